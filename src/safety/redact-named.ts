// Values that a name beside them gives away, in everyday files and command lines: INI, YAML, TOML, properties, XML, flags. Ordinary code and
// prose name passwords and tokens all the time, so the value decides too: what reads like a word, a type or a variable is left alone.
import { isHarmless, isMarked, type Marks } from "./redact-known.ts";

/**
 * `password`: whatever stands there is secret, unless it is plainly something else. `key`: only what no word looks like. `spoken`: the word
 * for a password in another language or in a sentence, where words about it follow; what has letters alone is one of them.
 */
type NameKind = "password" | "key" | "spoken";

const PASSWORD_NAME =
  /(?:password|passwd|passphrase|passcode|(?:^|[_.-])(?:pass|pwd|pw|psk)|(?:require|store|key)pass)\d{0,2}$/;
const SPOKEN_NAME =
  /(?:^|[_.-])(?:contrasena|clave|senha|mdp|mot_?de_?passe|palavra_?passe|haslo|heslo|sifre|parola|passwort|kennwort|wachtwoord|losenord|salasana|adgangskode)\d{0,2}$/;
const KEY_NAME =
  /(?:^|[_.-])(?:(?:api|access|secret|private|auth|signing|encryption|client|account|storage|hmac|jwt|session|master|consumer|pre_?shared|wpa|wep)[_-]?key(?:[_-]?(?:pem|data|base64))?|apikey|\w{0,24}token|\w{0,24}secret|credentials?|bearer|auth|authtok|\w{0,24}_authtok|sas|key_?material|(?:clave|chave|cle|chiave)_(?:api|secreta|privada|privee|segreta))$/;
/** Pages of a list are turned with tokens too. */
const PAGE_TOKEN = /(?:next|page|continuation|sync|cursor)[_-]?token$/;

/** In every such name, written small; the expressions above take longer to make than most runs spend on masking. */
const MAY_NAME_SECRET =
  /pass|pwd|pw|psk|key|token|secret|credential|bearer|auth|sas|material|contrasena|clave|senha|mdp|haslo|heslo|sifre|parola|kennwort|wachtwoord|losenord|salasana|adgangskode|chave|cle|chiave/;

/** The last word of the name says what it holds: `accessToken` holds a key, `tokenCount` does not. */
export function nameKind(name: string): NameKind | null {
  if (name === "PWD" || name === "OLDPWD") return null; // where a shell stands
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
  if (!MAY_NAME_SECRET.test(words)) return null;
  if (PASSWORD_NAME.test(words)) return "password";
  if (SPOKEN_NAME.test(words) || /^(?:CONTRASENA|CLAVE|SENHA|PASSWORT|KENNWORT)_[A-Z0-9_]{1,40}$/.test(name))
    return "spoken";
  if (/^(?!PUBLIC|CACHE|PRIMARY|FOREIGN|SORT)[A-Z][A-Z0-9_]{0,60}_KEY$/.test(name)) return "key";
  return KEY_NAME.test(words) && !PAGE_TOKEN.test(words) ? "key" : null;
}

/** Words and versions. */
const ORDINARY_PART = /^(?:[A-Za-z]?[a-z]{0,23}\d{0,3}|[A-Z]{1,20}\d{0,3}|v?\d{1,4})$/;
const CAMEL_WORDS = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;

/** Long enough, and no word, version, identifier or path that somebody would write. */
export function looksRandom(value: string): boolean {
  if (value.length < 8) return false;
  return !value
    .slice(0, 256)
    .split(/[-_./:\s]/)
    .every((part) => ORDINARY_PART.test(part) || isCamel(part));
}

/** `azureADTokenProvider`, `x509Authentication`; what was drawn by lot changes case and kind far more often. */
function isCamel(part: string): boolean {
  if (!/^[#$]?[A-Za-z][A-Za-z0-9]{2,63}$/.test(part) || !/[a-z]{4}/.test(part) || !/[A-Z]/.test(part)) return false;
  const words = part.match(CAMEL_WORDS) ?? [];
  return part.length / words.length >= 3.3 && part.replace(/\D/g, "").length <= 4;
}

const TYPES =
  /^(?:str|string|text|number|int|integer|bool|boolean|bytes?|object|any|unknown|never|void|nil|required|optional|default|prompt|hidden|secret|redacted|example|changeme|placeholder|basic|bearer|x+|\*+|\.+|-+|…+)$/i;
const PLACEHOLDER =
  /^(?:\$|@|!|%\(|%[sdvq]|\{|\[|your[-_ ]|my[-_ ]|replace|insert|enter[-_ ]|xxx|<|\(\?)|\*\*\*|\.\.\.$/i;
const NAMES_ITSELF =
  /^(?:my|the|your|user|db|old|new)?_?(?:password|passwd|passphrase|pass|pwd|pw|token|secret|key)s?$/i;
const FILE_PATH = /^(?:~|\.{1,2})\/|^\/(?:etc|home|usr|var|opt|run|root|tmp|srv|mnt|Users|data|app|secrets)\//;
const CODE_PATH = /^[A-Za-z_$][\w$]{0,63}(?:(?:\.|\?\.|::|->)[A-Za-z_$][\w$]{0,63}){1,8}$/;
const IDENTIFIER = /^(?:[A-Z][A-Za-z]*|[a-z]{1,3}|[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z]+(?:_[A-Z]+)+)$/;

const ENCODING = /^(?:base64|sha-?\d+|md5|utf-?8|bcrypt|argon2)/i;

interface Found {
  readonly kind: NameKind;
  readonly value: string;
  readonly quoted: boolean;
  /** More of a sentence or an expression follows. */
  readonly loose: boolean;
  /** A plain word is as likely a variable as a value. */
  readonly codeLike?: boolean;
}

export function isSecretValue({ kind, value, quoted, loose, codeLike }: Found): boolean {
  if (kind === "spoken" && /^\d{4,12}$/.test(value)) return !loose;
  if (isMarked(value) || isHarmless(value) || TYPES.test(value) || PLACEHOLDER.test(value)) return false;
  if (NAMES_ITSELF.test(value) || CODE_PATH.test(value) || FILE_PATH.test(value)) return false;
  if (kind === "spoken" && (/[^\x21-\x7e]/.test(value) || ENCODING.test(value))) return false;
  if (!/\s/.test(value) && looksRandom(value)) return true;
  // In a sentence more words follow.
  if (kind === "spoken" && /^(?=.{6})(?=.*[a-z])(?!\d{1,3}-[a-z]+$).*\d/i.test(value)) return true;
  if (kind === "key" || loose || /\s/.test(value)) return false;
  if (IDENTIFIER.test(value) || (kind === "spoken" && !/\d|[^\w./-]/.test(value.replace(/[.!?]$/, "")))) return false;
  return quoted || !codeLike || !/^[a-z]+$/.test(value);
}

// NAME = value, name: value

const START = String.raw`(?:(?<![A-Za-z0-9_.\\])|(?<=\\[nrt]))`;
const NAMED = new RegExp(
  String.raw`${START}([A-Za-z_][A-Za-z0-9_.-]{1,63})(\\?["'])?([ \t]{0,16})(=>|=(?![=~>])|:(?![:=]))([ \t]{0,16})`,
  "g",
);
/** Names in other letters or of several words, set or said: `mot de passe : x`, `密码：x`, `the password is x`. */
const SPOKEN =
  /(?:(?<![a-z0-9_])|(?<=\\[nrt]))(contraseñas?|mots? de passe|palavra[- ]passe|kata sandi|mật khẩu|hasło|lösenord|şifre|parolă|jelszó|парол[ьяюе]м?|密[码碼]|口令|暗号|暗証番号|パスワード|비밀번호|패스워드|암호|كلمة (?:المرور|السر)|סיסמה|पासवर्ड|รหัสผ่าน|(?:password|passphrase|passcode|passwort|kennwort|senha|clave|parola|wachtwoord|haslo)(?=(?: {1,4}[:：])? {1,4}(?:is|was|ist|war|lautet|es|est|é|è|jest)[ :]|：| {1,4}:))(\\?["'])?([ \t\u3000]{0,16})(=>|=(?![=~>])|:(?![:=])|[：＝]|(?:is|was|ist|war|lautet|es|est|é|è|jest|это)(?=[ :]):?|[是为為は])([ \t\u3000]{0,16})/gi;
/** In all that the expression above finds, which takes milliseconds to make; most texts go without. */
const MAY_SPEAK = /[^\x00-\x7f]|pass|kata sandi|kennwort|senha|clave|parola|wachtwoord|haslo/i;
const READ = 1024;
// What is read before it is known to be a secret is bounded: a value that is none is read again for the names inside it.
// A quote before a comma or a bracket closes a string of the JSON around it, and nothing reads over it.
const QUOTED = /(\\?["'])(?![,}\]:])((?:(?!\1|"[,}\]:])(?:\\.|[^\n\\])){0,1024})/y;
/** Ends where a word ends for a shell, a query or a list; a line break inside JSON is written `\n`. */
const BARE = /(?:[^\s"'`\\;|&<>(){}[\],$]|\$(?!\()){1,1024}/y;
const REST_OF_WORD = /[^\s"'`\\;|&<>(){}[\],]*/y;
const LINE_IS_OVER = /[ \t]{0,32}(?:$|[\n\r]|\\[nr]|[ \t][#;]|[#;"'`}|&<>]|\\")/y;
const LINE_START = /(?:^|[\n\r]|\\[nr])(?:[ \t]|\\t|- ){0,40}$/;

interface NamedOptions {
  readonly marks: Marks;
  /** The file is there to hold credentials: a plain word is one too. */
  readonly strict: boolean;
  /** Only what no word looks like, and masked by this. */
  readonly mask?: (name: string, value: string) => string;
}

export function redactNamed(text: string, options: NamedOptions): string {
  const named = /[=:]/.test(text) ? maskNamed(text, NAMED, nameKind, options) : text;
  return MAY_SPEAK.test(named) ? maskNamed(named, SPOKEN, () => "spoken", options) : named;
}

function maskNamed(
  text: string,
  names: RegExp,
  kindOf: (name: string) => NameKind | null,
  { marks, strict, mask }: NamedOptions,
): string {
  const out: string[] = [];
  let position = 0;
  names.lastIndex = 0;
  for (let match = names.exec(text); match; match = names.exec(text)) {
    const kind = kindOf(match[1] ?? "");
    if (kind === null) continue;
    const value = valueAt(text, match, { kind: mask ? "key" : kind, strict });
    if (value === null) continue;
    const rest = value.end - value.start < READ ? 0 : (matchAt(REST_OF_WORD, text, value.end)?.[0].length ?? 0);
    const end = value.end + rest;
    out.push(text.slice(position, value.start), mask?.(match[1] ?? "", text.slice(value.start, end)) ?? marks.hidden);
    position = end;
    names.lastIndex = end;
  }
  if (position === 0) return text;
  out.push(text.slice(position));
  return out.join("");
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function valueAt(
  text: string,
  match: RegExpExecArray,
  { kind, strict }: { readonly kind: NameKind; readonly strict: boolean },
): Span | null {
  const [whole, name = "", nameQuote, before = "", written = "", room = ""] = match;
  // Broad signs and those of languages without blanks stand without one.
  const sign = /^[：＝是为為は]/.test(written) ? ":" : written;
  const after = sign === written ? room : " ";
  const at = match.index + whole.length;
  if (sign === "=>" && nameQuote === undefined) return null;
  const quoted = matchAt(QUOTED, text, at);
  if (quoted) {
    const [, quote = "", value = ""] = quoted;
    const closed = value.length >= READ || text.startsWith(quote, at + quote.length + value.length);
    // A quote that closes a text (`"Password: " + name`) opens none.
    if (value === "" || !closed || (/^[+,)]/.test(value) && !looksRandom(value))) return null;
    const found = { kind, value, quoted: true, loose: false };
    const secret = strict ? !isMarked(value) && !isHarmless(value) : isSecretValue(found);
    return secret ? { start: at + quote.length, end: at + quote.length + value.length } : null;
  }
  if (sign !== "=" && (after === "" || nameQuote !== undefined)) return null;
  // Test runs say `PASS: name`.
  if (sign === ":" && /^pass$/i.test(name)) return null;
  const value = matchAt(BARE, text, at)?.[0] ?? "";
  const end = at + value.length;
  const next = text[end] ?? "";
  if (/^(?:old)?pwd$/i.test(name) && /^[/~.]/.test(value)) return null;
  if (value === "" || "([{".includes(next || " ") || next === "$") return null;
  const span = { start: at, end };
  if (strict) return isMarked(value) || isHarmless(value) ? null : span;
  const closed = ",)]}".includes(next || " ");
  const spaced = before !== "" || after !== "";
  const over = matchAt(LINE_IS_OVER, text, end) !== null;
  const atStart = sign !== ":" || LINE_START.test(text.slice(Math.max(0, match.index - 48), match.index));
  const loose = closed || (spaced && !over) || (sign === ":" && !atStart && !/\d/.test(value));
  return isSecretValue({ kind, value, quoted: false, loose, codeLike: sign === "=" && spaced }) ? span : null;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// --password x, XML elements, name and value side by side, SQL

const FLAG =
  /(?<![\w-])--?([A-Za-z][A-Za-z0-9-]{1,40}) (?:(\\?["'])(?![,}\]:])((?:(?!\2|"[,}\]:])(?:\\.|[^\n\\]))+)|([^\s"'`\\;|&<>()$-][^\s"'`\\;|&<>()$]*))/g;
const ELEMENT = /<([A-Za-z][\w.:-]{1,63})>([^<>\n]{1,1024})<\/\1>/g;
const PLIST = /(<key>([\w.-]{1,64})<\/key>(?:\s|\\[nrt]){0,32}<string>)([^<>\n]{1,1024})(?=<\/string>)/g;
const PAIR =
  /(\b(?:key|name)\s{0,4}[:=]\s{0,4}\\?["']?([\w.-]{2,64})\\?["']?(?:,?\s{1,64}|(?:\\[nr]){1,2} {0,40})value\s{0,4}[:=]\s{0,4})(?:(\\?["'])(?![,}\]:])((?:(?!\3|"[,}\]:])[^\n\\])+)|([^\s"'\\,}>]+))/g;
/** `ENV NAME value` of a Dockerfile, and what shells set without a sign. */
const SET =
  /(?<=^|[\n\r;&|]|\\[nrt]| )((?:ENV|ARG|#define|setenv|setx|set -[a-zA-Z]{1,4}|config set|secrets? set|env add)[ \t]{1,8}([A-Za-z_][\w.]{1,63})[ \t]{1,8})(?:(\\?["'])(?![,}\]:])((?:(?!\3|"[,}\]:])[^\n\\]){1,1024})|([^\s"'`\\=;|&<>()$-][^\s"'`\\;|&<>()]{0,1024}))/g;
const DEFINE =
  /((?:\b|(?<=\\[nrt]))define\(\s{0,4}\\?["']([A-Za-z_]\w{1,63})\\?["']\s{0,4},\s{0,4}\\?["'])([^"'\\\n]{1,256})(?=\\?["'])/gi;
const MAY_SET = /ENV|ARG|set|env add|define/i;
const SQL = /(\b(?:identified(?:\s{1,8}with\s{1,8}\S{1,40})?\s{1,8}by|password)\s{1,8})'([^'\n]{1,256})'/gi;
/** As Gradle has it. */
const STORE = /((?:store|key)Password\s{1,4}(?:'|\\?"))([^'"\\\n]{1,256})(?='|\\?")/g;

/** Names and values that stand beside each other in other ways. */
export function redactBeside(text: string, marks: Marks): string {
  const is = (name: string, value: string, quoted: boolean, loose = false) => {
    const kind = nameKind(name);
    return kind !== null && isSecretValue({ kind, value, quoted, loose });
  };
  let result = text.replace(FLAG, (whole, name: string, _quote?: string, quoted?: string, bare?: string) => {
    const value = quoted ?? bare ?? "";
    // Help texts and sentences go on in words.
    const isWord = quoted === undefined && /^[A-Za-z_]+[,.:]?$/.test(value);
    if (!is(name, value, quoted !== undefined, isWord || value.endsWith(","))) return whole;
    return `${whole.slice(0, whole.length - value.length)}${marks.hidden}`;
  });
  if (result.includes("</"))
    result = result
      .replace(ELEMENT, (whole, name: string, value: string) =>
        is(name, value, true) ? `<${name}>${marks.hidden}</${name}>` : whole,
      )
      .replace(PLIST, (whole, head: string, name: string, value: string) =>
        is(name, value, true) ? head + marks.hidden : whole,
      );
  if (result.includes("value"))
    result = result.replace(
      PAIR,
      (whole, head: string, name: string, quote?: string, quoted?: string, bare?: string) =>
        is(name, quoted ?? bare ?? "", quoted !== undefined) ? `${head}${quote ?? ""}${marks.hidden}` : whole,
    );
  if (MAY_SET.test(result))
    result = result
      .replace(SET, (whole, head: string, name: string, quote?: string, quoted?: string, bare?: string) =>
        is(name, quoted ?? bare ?? "", quoted !== undefined) ? `${head}${quote ?? ""}${marks.hidden}` : whole,
      )
      .replace(DEFINE, (whole, head: string, name: string, value: string) =>
        is(name, value, true) ? head + marks.hidden : whole,
      );
  if (!/password|identified/i.test(result)) return result;
  return result
    .replace(STORE, (whole, head: string, value: string) => (is("password", value, true) ? head + marks.hidden : whole))
    .replace(SQL, (whole, head: string, value: string) =>
      isMarked(value) || isHarmless(value) || PLACEHOLDER.test(value) ? whole : `${head}'${marks.hidden}'`,
    );
}
