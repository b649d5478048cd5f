// The one redactor: tool output, logs, approval questions, stored text and exports all pass it.
// Hand-written: redaction packages mask named fields of objects; this is running text, in linear time, masked once and for all.
import type { RedactorSettings, TextRedactor } from "../home/open.ts";
import { takePastedKeys } from "./pasted-keys.ts";
import { isCredentialFile, redactByFile, redactCarried } from "./redact-carried.ts";
import { fileMarks, isHarmless, isMarked, type Marks, prepareKnown, redactKnown, screenMarks } from "./redact-known.ts";
import { nameKind, redactBeside, redactNamed } from "./redact-named.ts";
import {
  redactHashes,
  redactPhones,
  redactPrivateKeys,
  redactSeeds,
  redactTelegramTokens,
  redactTokens,
  redactWebTokens,
} from "./redact-shapes.ts";
import { redactTables } from "./redact-tables.ts";

/**
 * Masks secrets in a text.
 *
 * - Linear in the text's length, and idempotent: what was masked once stays as it is.
 * - `forKeeping` is for notes the agent keeps about its user and its work.
 * - `forFile` is for text that a model may write back: its marks can never pass for a working key, and it keeps the number of lines.
 */
export function createRedactor({ enabled, knownSecrets }: RedactorSettings): TextRedactor {
  const unchanged = (text: string) => text;
  if (!enabled)
    return Object.assign(unchanged, {
      ...{ forFile: unchanged, forKeeping: unchanged },
      fromUser: (text: string) => ({ text, keys: [] }),
    });
  let source: readonly string[] | undefined;
  let known: readonly string[] = [];
  const currentlyKnown = () => {
    const secrets = knownSecrets();
    if (secrets !== source) {
      source = secrets;
      known = prepareKnown(secrets);
    }
    return known;
  };
  const redact = (text: string) =>
    settled(text, (one) =>
      redactFormBody(redactText(one, currentlyKnown(), screenMarks, { named: "loosely" }), screenMarks),
    );
  const forFile = (text: string, path: string) => {
    const named = isCredentialFile(path) ? "strictly" : isSourceCode(path) ? "not" : "loosely";
    return settled(text, (one) =>
      redactByFile(redactText(one, currentlyKnown(), fileMarks, { named }), path, fileMarks),
    );
  };
  const fromUser = (text: string) => takePastedKeys(text, currentlyKnown());
  const forKeeping = (text: string) => {
    const keyless = redactPrivateKeys(redactKnown(text, currentlyKnown(), fileMarks), fileMarks);
    return redactWebTokens(redactTokens(keyless, fileMarks), fileMarks);
  };
  return Object.assign(redact, { forFile, forKeeping, fromUser });
}

/** A secret as settings screens show it. */
export function maskSecret(value: string): string {
  if (value === "") return "";
  return value.length < 12 ? "***" : `${value.slice(0, 4)}...${value.slice(-4)}`;
}

const MAX_PASSES = 4;

// An expression is compiled when it is first used, the larger ones for a millisecond, and most texts of a run are short and plain: so each step
// first looks for what stands in everything that its expression finds.

/** A mark may change how its neighbours read, so a text that was changed is looked at again. One without a secret is read once. */
function settled(text: string, pass: (text: string) => string): string {
  let result = text;
  for (let count = 0; count < MAX_PASSES; count++) {
    const next = pass(result);
    if (next === result) break;
    result = next;
  }
  return result;
}

interface Reach {
  /** Values that only their name gives away: in source code such a name stands beside a type or a test value far more often. */
  readonly named: "not" | "loosely" | "strictly";
}

function redactText(text: string, known: readonly string[], marks: Marks, { named }: Reach): string {
  let result = redactKnown(text, known, marks);
  result = redactPrivateKeys(result, marks);
  result = redactTokens(result, marks);
  result = redactWebTokens(result, marks);
  result = redactTelegramTokens(result, marks);
  result = redactHashes(result, marks);
  result = redactSeeds(result, marks);
  result = redactAssignments(result, marks);
  result = redactHeaders(result, marks);
  result = redactCarried(result, marks);
  if (named !== "not") {
    result = redactFields(result, marks);
    result = redactNamed(result, { marks, strict: named === "strictly" });
    result = redactBeside(result, marks);
    result = redactTables(result, marks);
  }
  result = redactUrlPasswords(result, marks);
  return redactPhones(result);
}

const SOURCE_CODE =
  /\.(?:[cm]?[jt]sx?|py|pyi|rb|go|rs|java|kt|kts|scala|swift|c|cc|cpp|cxx|h|hh|hpp|cs|php|pl|lua|r|dart|ex|exs|erl|hs|clj|vue|svelte|sh|bash|zsh|fish|ps1|sql)$/i;

/** In source code a field of such a name holds a type, a message or a test value far more often than a secret. */
function isSourceCode(path: string): boolean {
  return SOURCE_CODE.test(path);
}

// Secrets that are named: NAME=value, JSON fields, form bodies.

/**
 * An unquoted value ends at what ends a word in a shell: the redactor also serves approval questions, where `TOKEN=x;rm …` must
 * not hide the second command. It ends at a backslash too, because in JSON the next line follows as `\n`.
 * Names that are no secret are passed over at once: matched, they would swallow a secret that stands in their value.
 * A quote before a comma or a bracket closes a string of the JSON around it, and nothing reads over it.
 */
const ASSIGNMENT =
  /(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))(?=[A-Z0-9_]{0,127}?(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)|(?:[A-Z0-9_]{0,126}_)?(?:KEYS?|AUTH|PASS|PASSPHRASE)(?:_[A-Z0-9_]{0,126})?=|[A-Z0-9_]{1,126}_PWD=)([A-Z_][A-Z0-9_]{1,127})=(?:(\\?["'])(?![,}\]:])((?:(?!\2|"[,}\]:])(?:\\.|[^\n\\]))+)(\2)?|((?:[^\s"'`\\;|&<>()$]|\$(?!\())+))/g;

const ASSIGNED_NAME = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|_PWD/;

function redactAssignments(text: string, marks: Marks): string {
  if (!text.includes("=") || !ASSIGNED_NAME.test(text)) return text;
  return text.replace(
    ASSIGNMENT,
    (whole, name: string, open?: string, quoted?: string, close?: string, bare?: string) => {
      const value = quoted ?? bare ?? "";
      if (isMarked(value) || isHarmless(value)) return whole;
      return `${name}=${open ?? ""}${marks.hidden}${close ?? ""}`;
    },
  );
}

const FIELD = /"([A-Za-z0-9_.-]{3,64})"(\s{0,20}:\s{0,20})"((?:[^"\\\n]|\\.)+)"/g;
const ESCAPED_FIELD = /\\"([A-Za-z0-9_.-]{3,64})\\"(\s{0,20}:\s{0,20})\\"([^"\\]+)\\"/g;
/** A list of variables, as container engines and clusters write it. */
const NAME_AND_VALUE =
  /("name"\s{0,20}:\s{0,20}"([A-Za-z0-9_.-]{3,64})"\s{0,20},\s{0,20}"value"\s{0,20}:\s{0,20}")([^"\\\n]{1,4096})"/g;

function redactFields(text: string, marks: Marks): string {
  if (!text.includes('"')) return text;
  const mask = (whole: string, name: string, between: string, value: string, quote: string) => {
    if (!isSecretField(name, value) || isMarked(value) || isHarmless(value)) return whole;
    return `${quote}${name}${quote}${between}${quote}${marks.token(value, "")}${quote}`;
  };
  return text
    .replace(NAME_AND_VALUE, (whole, head: string, name: string, value: string) =>
      nameKind(name) === null || isMarked(value) || isHarmless(value) ? whole : `${head}${marks.token(value, "")}"`,
    )
    .replace(FIELD, (whole, name: string, between: string, value: string) => mask(whole, name, between, value, '"'))
    .replace(ESCAPED_FIELD, (whole, name: string, between: string, value: string) =>
      mask(whole, name, between, value, '\\"'),
    );
}

const isNameAndPassword = (value: string) =>
  /^(?=.+:.)[\x20-\x7e]+$/.test(Buffer.from(value, "base64").toString("latin1"));

/** Docker keeps `user:password` as base64 under `auth`; elsewhere the word names a way to sign in. */
function isSecretField(name: string, value: string): boolean {
  // Words of other languages name fields of forms more often: there the value decides, in the step for names.
  if (nameKind(name) === "spoken") return false;
  if (name !== "auth") return nameKind(name) !== null && !(/^pwd$/i.test(name) && /^[~/]/.test(value));
  return /^[A-Za-z0-9+/]{8,}={0,2}$/.test(value) && isNameAndPassword(value);
}

const FORM_KEYS: ReadonlySet<string> = new Set([
  "access_token",
  "refresh_token",
  "id_token",
  "token",
  "api_key",
  "apikey",
  "client_secret",
  "password",
  "auth",
  "jwt",
  "secret",
  "private_key",
  "authorization",
  "key",
]);

const FORM_BODY = /^(?:[\w.[\]%-]{1,64}=[^&\s?]*(?:&(?!$)|$)){2,}$/;

/** A text that is a form body as a whole (`a=b&c=d`); the query of an ordinary URL is none. */
function redactFormBody(text: string, marks: Marks): string {
  if (!text.includes("&") || !FORM_BODY.test(text)) return text;
  return text.replace(/(?<![^&=])([^&=]+)=([^&]*)/g, (whole, name: string, value: string) => {
    const secret = FORM_KEYS.has(name.toLowerCase()) && value !== "" && !isMarked(value) && !isHarmless(value);
    return secret ? `${name}=${marks.hidden}` : whole;
  });
}

// Secrets known by what carries them: headers and URLs.

// Values end where a shell ends a word, as above, and no earlier: next to a mark, a rest would be read in another way.
// A name may stand behind a line break that JSON wrote as two characters, of which the second is a letter.
const AUTHORIZATION =
  /((?:\b|(?<=\\[nrt]))authorization\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)(?:((?:bearer|basic|token|digest|apikey|negotiate)\s{1,8})((?:[^\s"'`\\,;|&<>()$]|\$(?!\())+)|([A-Za-z0-9._~+/=-]{16,}))/gi;
const BEARER = /((?:\b|(?<=\\[nrt]))Bearer\s{1,8})([A-Za-z0-9._~+/-]{20,}(?:[^\s"'`\\,;|&<>()$]|\$(?!\())*)/g;
/** Without its header: only what decodes to a name and a password. */
const BASIC = /((?:\b|(?<=\\[nrt]))Basic\s{1,8})([A-Za-z0-9+/]{12,2048}={0,2})(?![A-Za-z0-9+/=])/g;
const KEY_HEADER =
  /((?:\b|(?<=\\[nrt]))(?:x-)?(?:goog-)?api-key\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?|(?:\b|(?<=\\[nrt]))x-auth-token\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)(?!(?<=")[,}\]:])((?:[^\s"'`\\,;|&<>()$]|\$(?!\())+)/gi;

const HEADER = /authorization|bearer|basic|api-key|x-auth-token/i;

function redactHeaders(text: string, marks: Marks): string {
  if (!HEADER.test(text)) return text;
  const mask = (value: string) => (isMarked(value) || isHarmless(value) ? value : marks.token(value, ""));
  return text
    .replace(AUTHORIZATION, (_whole, head: string, scheme?: string, value?: string, bare?: string) =>
      scheme === undefined ? head + mask(bare ?? "") : head + scheme + mask(value ?? ""),
    )
    .replace(BEARER, (_whole, head: string, value: string) => head + mask(value))
    .replace(BASIC, (whole, head: string, value: string) => (isNameAndPassword(value) ? head + mask(value) : whole))
    .replace(KEY_HEADER, (_whole, head: string, value: string) => head + mask(value));
}

// Begins at the colon: a pattern that began with the scheme would walk a long word once per letter.
const URL_PASSWORD = /(?<=[A-Za-z0-9]):\/\/([^\s/:@"'<>\\]{0,256}):([^\s/@"'<>\\]{1,1024})@/g;

function redactUrlPasswords(text: string, marks: Marks): string {
  if (!text.includes("://")) return text;
  return text.replace(URL_PASSWORD, (whole, user: string, password: string) =>
    isMarked(password) ? whole : `://${user}:${marks.hidden}@`,
  );
}
