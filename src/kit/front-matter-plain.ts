// Front matter as nearly every file has it, read without loading the YAML parser.
import { type PlainTree, type PlainValue, readPlainTexts } from "./plain-yaml.ts";

export type FrontMatterValue = PlainValue<string>;
export type FrontMatter = PlainTree<string>;

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

/** A byte order mark, CRLF and blanks behind the dashes are accepted. */
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
  const fields = readPlainTexts(split.yaml);
  return fields && { fields, body: split.body, present: true, problem: null };
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
