// Secrets that something further away names: the heading of a column in CSV and Markdown tables, the title of a list of recovery codes, the
// block of a VPN's settings, the other half of a sentence about a login.
import { isHarmless, isMarked, type Marks } from "./redact-known.ts";
import { isSecretValue, nameKind } from "./redact-named.ts";

/** One pass over the lines of the text; what is looked at further is bounded by a line, a list or a block. */
export function redactTables(text: string, marks: Marks): string {
  let result = NAMES_COLUMN.test(text) && SEPARATED.test(text) ? maskColumns(text, marks) : text;
  result = maskCodes(result, marks);
  return maskLogins(maskBlocks(result, marks), marks);
}

// Columns under a heading

const NAMES_COLUMN =
  /pass|p(?:wd|w|in)(?![a-z])|secret|token|key|credential|otp|kennwort|clave|senha|contrase|wachtwoord|парол|密|口令|パスワード|비밀번호/i;
const SEPARATED = /[,;|\t]|\\t/;
const OTHER_NAMES =
  /^(?:.*_)?(?:t?otp(?:_secret)?|otpauth|pin|cvv|contraseña|пароль|密[码碼]|口令|パスワード|暗証番号|비밀번호)$/;
const ACCOUNT =
  /^(?:.*_)?(?:user|user_?name|login|login_name|e-?mail|account|benutzer(?:name)?|usuario|utilisateur|utente|gebruiker(?:snaam)?|логин|пользователь|用[户戶]名?|账号|ユーザー名?|사용자(?: ?이름)?|아이디)$/;
/** Words of a sentence, which has commas too. */
const SENTENCE = /(?:^|_)(?:and|or|the|is|are|of|to|with|und|oder|et|ou|y|e)(?:_|$)/;
const HEADING = /^[^\s\d"'`=(){}[\]<>:/\\][^"'`=(){}[\]<>:/\\]{0,39}$/;
const LINE_END = /\r?\n|\\r\\n|\\n/g;
const MANY = 4096;
const NO_VALUE = /^(?:n\/?a|tbd|todo|same|see .*|ask .*|unchanged|unknown|not set|unset|empty|blank)$/i;

interface Line {
  readonly start: number;
  readonly end: number;
}

interface Cell extends Line {
  readonly text: string;
}

interface Column {
  readonly at: number;
  readonly kind: "password" | "key";
}

function maskColumns(text: string, marks: Marks): string {
  const out: string[] = [];
  let position = 0;
  const lines = linesOf(text);
  for (let at = 0; at < lines.length - 1; at++) {
    const table = tableAt(text, lines, at);
    if (table === null) continue;
    for (at = table.first; at < lines.length; at++) {
      const line = lines[at] as Line; // below the length
      if (isBorder(text, line)) continue;
      const cells = cellsOf(text, line, table.separator);
      if (cells.length !== table.width) break;
      for (const { at: index, kind } of table.columns) {
        const cell = cells[index] as Cell; // as many as the heading has
        if (!isSecretCell(cell.text, kind, table.hasAccount)) continue;
        out.push(text.slice(position, cell.start), marks.hidden);
        position = cell.end;
      }
    }
    at--; // what ended this table may begin another one
  }
  if (position === 0) return text;
  out.push(text.slice(position));
  return out.join("");
}

/** Lines too long to be those of a table are empty here; inside JSON a line ends as two characters, and at the quote of its string. */
function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  let start = 0;
  let inside = false;
  const push = (end: number, escaped: boolean) => {
    const from = escaped && !inside ? openingQuote(text, start, end) : start;
    const isLong = end - start > MANY;
    lines.push(isLong ? { start, end: start } : { start: from, end: inside ? closingQuote(text, from, end) : end });
  };
  for (const match of text.matchAll(LINE_END)) {
    const escaped = match[0].startsWith("\\");
    push(match.index, escaped);
    start = match.index + match[0].length;
    inside = escaped;
  }
  push(text.length, false);
  return lines;
}

function openingQuote(text: string, start: number, end: number): number {
  for (let at = end - 1; at >= start; at--) if (text[at] === '"' && text[at - 1] !== "\\") return at + 1;
  return start;
}

function closingQuote(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return end;
}

interface Table {
  readonly separator: string;
  readonly width: number;
  /** The first line behind the headings. */
  readonly first: number;
  readonly columns: readonly Column[];
  /** Who signs in stands beside it, so whatever stands below is a password. */
  readonly hasAccount: boolean;
}

function tableAt(text: string, lines: readonly Line[], at: number): Table | null {
  const line = lines[at] as Line; // the caller counts
  const written = text.slice(line.start, line.end);
  if (!NAMES_COLUMN.test(written) || isBorder(text, line)) return null;
  const next = lines[at + 1] as Line; // the caller stops before the last
  const isRuled = isBorder(text, next);
  for (const separator of isRuled ? ["|"] : ["\t", "\\t", ";", ","]) {
    if (!written.includes(separator)) continue;
    const cells = cellsOf(text, line, separator);
    const names = cells.map(({ text: cell }) => cell.replace(/ {0,2}\([^()]{0,40}\)$/, "").replace(/[\s-]+/g, "_"));
    if (cells.length < 2 || !cells.every(({ text: cell }) => HEADING.test(cell))) continue;
    if (!isRuled && (names.some((name) => SENTENCE.test(name.toLowerCase())) || /[.:]$/.test(written))) continue;
    if (!isRuled && cellsOf(text, next, separator).length !== cells.length) continue;
    const columns = names.flatMap((name, index): Column[] => {
      const kind = columnKind(name);
      return kind ? [{ at: index, kind }] : [];
    });
    if (columns.length === 0) continue;
    const hasAccount = names.some((name) => ACCOUNT.test(name.toLowerCase()));
    return { separator, width: cells.length, first: isRuled ? at + 2 : at + 1, columns, hasAccount };
  }
  return null;
}

function columnKind(name: string): Column["kind"] | null {
  if (OTHER_NAMES.test(name.toLowerCase())) return "password";
  const kind = nameKind(name);
  return kind === "spoken" ? "password" : kind;
}

function isBorder(text: string, { start, end }: Line): boolean {
  const written = text.slice(start, end);
  return written.includes("--") && /^[\s|+:-]+$/.test(written);
}

function isSecretCell(value: string, kind: Column["kind"], hasAccount: boolean): boolean {
  if (value === "" || isMarked(value) || NO_VALUE.test(value)) return false;
  const asNamed = isSecretValue({ kind, value, quoted: true, loose: false });
  if (kind === "key") return asNamed;
  if (!hasAccount) return asNamed && /\d|[^\w\s.-]/.test(value);
  return asNamed || /^\d{4,}$/.test(value) || (/^\S+(?: \S+){1,7}$/.test(value) && !isHarmless(value));
}

/** Without the quotes and blanks around them. Edges of a table are no cells. */
function cellsOf(text: string, line: Line, separator: string): Cell[] {
  const cells: Cell[] = [];
  let start = line.start;
  let quoted = false;
  const push = (end: number) => cells.push(trimmed(text, start, end));
  for (let at = line.start; at < line.end; at++) {
    if (separator !== "|" && text[at] === '"') quoted = !quoted;
    if (quoted || !text.startsWith(separator, at)) continue;
    push(at);
    start = at + separator.length;
    at = start - 1;
  }
  push(line.end);
  if (separator !== "|") return cells;
  const isEdge = (cell: Cell | undefined) => cell?.text === "";
  return cells.slice(isEdge(cells[0]) ? 1 : 0, cells.length > 1 && isEdge(cells.at(-1)) ? -1 : undefined);
}

const AROUND = /[\s"'`*\\]/;

function trimmed(text: string, from: number, to: number): Cell {
  let [start, end] = [from, to];
  while (start < end && AROUND.test(text[start] as string)) start++;
  while (end > start && AROUND.test(text[end - 1] as string)) end--;
  return { text: text.slice(start, end), start, end };
}

// Recovery codes

const CODES_NAME =
  /(?:(?<![a-z])|(?<=\\[nrt]))(?:recovery|backup|scratch|emergency)[ _-]?(?:codes?|keys)(?![a-z])|wiederherstellungs-?codes?|codes? de (?:secours|récupération|recuperaci[oó]n|respaldo)|c[oó]digos? de (?:recupera\S{1,6}|respaldo|backup)|codici di (?:recupero|backup)|резервны[ех] код[ыов]{1,2}|恢复代?码|备用验?证?码|バックアップコード|リカバリーコード|복구 ?코드|백업 ?코드/gi;
const CODES_HEAD = /(?:[ \t]{0,2}\([^()\n]{0,60}\))?(?:\\?["'*]){0,3}[ \t]{0,4}(?:[:：=]|are(?= )|(?=\r?\n|\\n))/y;
const CODE =
  /(?:[\s,;"'`[*•☐|-]|\\[nrt"]|\d{1,2}[.)][ \t]){1,24}(\d{3,5}(?: \d{3,5}){1,3}|[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){0,3})(?![\w-])/y;
const MOST_CODES = 32;

const MAY_NAME_CODES = /[^\x00-\x7f]|code|codi|key/i;

function maskCodes(text: string, marks: Marks): string {
  if (!MAY_NAME_CODES.test(text)) return text;
  const out: string[] = [];
  let position = 0;
  for (const name of text.matchAll(CODES_NAME)) {
    CODES_HEAD.lastIndex = name.index + name[0].length;
    if (name.index < position || !CODES_HEAD.test(text)) continue;
    const codes = codesAt(text, CODES_HEAD.lastIndex);
    if (codes.length < 2) continue;
    for (const { start, end } of codes) {
      out.push(text.slice(position, start), marks.hidden);
      position = end;
    }
  }
  if (position === 0) return text;
  out.push(text.slice(position));
  return out.join("");
}

function codesAt(text: string, from: number): Line[] {
  const codes: Line[] = [];
  CODE.lastIndex = from;
  while (codes.length < MOST_CODES) {
    const code = CODE.exec(text)?.[1];
    if (code === undefined || !/\d/.test(code) || code.replace(/\W/g, "").length < 6) break;
    codes.push({ start: CODE.lastIndex - code.length, end: CODE.lastIndex });
  }
  return codes;
}

// <auth-user-pass> and its like: a name on one line, the password on the next

const BLOCK =
  /(<((?:http-proxy|socks-proxy|auth)-user-pass)>[ \t]{0,8}(?:\r?\n|\\r\\n|\\n)[^\n\r\\<]{0,256}(?:\r?\n|\\r\\n|\\n))([^\n\r\\<]{1,256})(?=(?:\r?\n|\\r\\n|\\n){1,4}<\/\2>)/g;

function maskBlocks(text: string, marks: Marks): string {
  if (!text.includes("-user-pass>")) return text;
  return text.replace(BLOCK, (whole, head: string, _name: string, value: string) =>
    isMarked(value) ? whole : head + marks.hidden,
  );
}

// "login bob pass x", "credentials: bob / x"

const PASSWORD =
  /((?:(?<![a-z])|(?<=\\[nrt]))(?:pass(?:word|wd|phrase|code)?|pwd|pw|passwort|kennwort|contraseña|mot de passe)(?: is|:|=)? {1,2})([^\s"'`\\,;|&<>(){}]{4,128})/gi;
const CREDENTIALS =
  /((?:(?<![\w.+-])|(?<=\\[nrt]))(?:credentials?|creds|login)(?: are| is)?[ :=]{1,3}[\w.@+-]{1,64} ?\/ ?)([^\s"'`\\,;|&<>(){}]{4,128})/gi;
/** Who signs in, and nothing but small words between. */
const ACCOUNT_BEFORE =
  /(?:(?<![\w.+-])|(?<=\\[nrt]))(?:(?:log-?in|user(?:name)?|account|usuario|utilisateur|benutzer)(?: as| is|:|=)? {1,2}[^\s,;"'\\]{1,64}|[\w.+-]{1,64}@[\w.-]{1,128})(?:[,;/]? {1,2}|(?:\r?\n|\\r\\n|\\n) {0,8})(?:(?:and|with|using|the|und|mit|con|avec|y|et) ){0,2}$/i;
const REACH = 240;

const MAY_NAME_LOGIN = /pass|pwd|pw|kennwort|contrase|cred|login/i;

function maskLogins(text: string, marks: Marks): string {
  if (!MAY_NAME_LOGIN.test(text)) return text;
  const mask = (whole: string, head: string, written: string) => {
    const value = written.replace(/[.?!:]$/, "");
    // A word is one of the sentence more often, and what has dots and slashes is a file.
    if (!/\d|[!@#$%^&*~+=]/.test(value) || /\/|\.[a-z]{2,4}$/i.test(value)) return whole;
    return isMarked(value) || isHarmless(value) ? whole : head + marks.hidden + written.slice(value.length);
  };
  return text
    .replace(PASSWORD, (whole, head: string, written: string, at: number) =>
      ACCOUNT_BEFORE.test(text.slice(Math.max(0, at - REACH), at)) ? mask(whole, head, written) : whole,
    )
    .replace(CREDENTIALS, mask);
}
