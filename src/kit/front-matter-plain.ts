// Front matter as nearly every file has it: `key: value` lines, mappings below keys, lists of words. Read here in a fraction of the time
// the YAML parser takes, and without loading it. Whatever is not certain to mean the same in YAML is left to that parser.

export type FrontMatterValue = string | readonly FrontMatterValue[] | FrontMatter;
export interface FrontMatter {
  readonly [key: string]: FrontMatterValue;
}

export interface Parsed {
  readonly fields: FrontMatter;
  /** Everything behind the closing line, byte for byte; the whole text when there is no front matter. */
  readonly body: string;
  readonly present: boolean;
  /** Why the YAML could not be read as it is. `fields` then holds what plain `key: value` lines gave. */
  readonly problem: string | null;
}

type Split =
  | { readonly type: "found"; readonly yaml: string; readonly body: string }
  | { readonly type: "none"; readonly parsed: Parsed };

/** A byte order mark, CRLF and blanks behind the dashes are no trouble. */
export function splitFrontMatter(text: string): Split {
  const plain = text.startsWith("\ufeff") ? text.slice(1) : text;
  const none = { fields: {}, body: plain, present: false };
  if (!isFence(lineAt(plain, 0))) return { type: "none", parsed: { ...none, problem: null } };
  const start = nextLine(plain, 0);
  for (let at = start; at < plain.length; at = nextLine(plain, at)) {
    if (isFence(lineAt(plain, at)))
      return { type: "found", yaml: plain.slice(start, at), body: plain.slice(nextLine(plain, at)) };
  }
  return { type: "none", parsed: { ...none, problem: "the front matter has no closing line ---" } };
}

/** Null: this one needs the YAML parser. */
export function parsePlainFrontMatter(text: string): Parsed | null {
  const split = splitFrontMatter(text);
  if (split.type === "none") return split.parsed;
  const fields = readPlainYaml(split.yaml);
  return fields && { fields, body: split.body, present: true, problem: null };
}

/** Null for everything beyond plain block mappings of one-line texts and lists of such texts. */
export function readPlainYaml(yaml: string): FrontMatter | null {
  if (/[^\P{C}\n]|[\u2028\u2029]/u.test(yaml)) return null; // tabs, CR and what cannot be seen
  const lines: Line[] = [];
  for (const text of yaml.split("\n")) {
    const content = text.replace(/^ +/, "");
    if (content !== "") lines.push({ indent: text.length - content.length, content });
    else if (text !== "") return null;
  }
  const reader = { lines, at: 0 };
  const fields = readMap(reader, 0);
  return fields && reader.at === lines.length ? fields : null;
}

interface Line {
  readonly indent: number;
  readonly content: string;
}

interface Reader {
  readonly lines: readonly Line[];
  at: number;
}

const KEY = /^([A-Za-z][\w.-]{0,99}):(?: +(.*))?$/;

function readMap(reader: Reader, indent: number): FrontMatter | null {
  const fields: Record<string, FrontMatterValue> = {};
  for (let line = reader.lines[reader.at]; line && line.indent === indent; line = reader.lines[reader.at]) {
    const [, key, given = ""] = KEY.exec(line.content) ?? [];
    if (key === undefined) return null;
    reader.at++;
    const value = given === "" ? readBelow(reader, indent) : readInline(given);
    if (value === null || isDeeper(reader, indent)) return null;
    fields[key] = value;
  }
  return fields;
}

/** What stands below a key with nothing behind its colon. */
function readBelow(reader: Reader, indent: number): FrontMatterValue | null {
  const next = reader.lines[reader.at];
  if (!next || next.indent < indent) return "";
  if (next.content.startsWith("- ")) return readList(reader, next.indent);
  return next.indent === indent ? "" : readMap(reader, next.indent);
}

function readList(reader: Reader, indent: number): readonly string[] | null {
  const items: string[] = [];
  for (let line = reader.lines[reader.at]; line && line.indent === indent; line = reader.lines[reader.at]) {
    if (!line.content.startsWith("- ")) break;
    const item = readScalar(line.content.slice(2));
    reader.at++;
    if (item === null || isDeeper(reader, indent)) return null;
    items.push(item);
  }
  return items;
}

/** A deeper line behind a value would go on with it. */
const isDeeper = ({ lines, at }: Reader, indent: number) => (lines[at]?.indent ?? 0) > indent;

const WORD = /^[A-Za-z0-9_][\w./+ -]*$/;

function readInline(text: string): FrontMatterValue | null {
  if (!text.startsWith("[")) return readScalar(text);
  const inside = /^\[([^[\]]*)\] *$/.exec(text)?.[1];
  if (inside === undefined) return null;
  if (/^ *$/.test(inside)) return [];
  const items = inside.split(",").map((item) => item.replace(/^ +| +$/g, ""));
  return items.every((item) => WORD.test(item)) ? items : null;
}

function readScalar(given: string): string | null {
  const text = given.replace(/^ +| +$/g, "");
  const quoted = /^(?:"([^"\\]*)"|'([^']*)')$/.exec(text);
  if (quoted) return quoted[1] ?? quoted[2] ?? "";
  const isPlain = /^[^\s\-?:,[\]{}#&*!|>'"%@`]/.test(text) && !/:(?: |$)| #/.test(text);
  return isPlain ? text : null;
}

const isFence = (line: string) => /^---[ \t]*\r?$/.test(line);

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(at, end === -1 ? undefined : end);
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end + 1;
}

/** Without one pair of outer quotes. */
export function unquote(text: string): string {
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  return quoted ? (quoted[2] ?? "") : text;
}
