// The cursor all parts of the parser share.
import type { Heredoc, Script } from "./ast.ts";

export type ScriptEnd = "end" | ")" | "}" | "case";

export interface Reader {
  readonly text: string;
  at: number;
  ok: boolean;
  tooDeep: boolean;
  depth: number;
  /** Heredocs announced on the current line; their bodies start behind the next newline. */
  pending: PendingHeredoc[];
  parseScript(reader: Reader, end: ScriptEnd): Script;
  /** Where comments stood; absent for a text inside another. */
  readonly comments?: { readonly start: number; readonly end: number }[] | undefined;
}

export interface PendingHeredoc {
  readonly delimiter: string;
  readonly stripTabs: boolean;
  readonly expands: boolean;
  readonly doubtful: boolean;
  fill(heredoc: Heredoc): void;
}

/** Honest commands nest a handful of levels; the stack holds far more. */
export const MAX_DEPTH = 60;

export function openReader(text: string, parent: Pick<Reader, "depth" | "parseScript">): Reader {
  return { text, at: 0, ok: true, tooDeep: false, depth: parent.depth, pending: [], parseScript: parent.parseScript };
}

/** Runs `read` one level deeper; past the limit the rest of the text is given up and the parse counts as failed. */
export function descend<T>(reader: Reader, fallback: T, read: () => T): T {
  if (reader.depth >= MAX_DEPTH) {
    reader.tooDeep = true;
    reader.ok = false;
    reader.at = reader.text.length;
    return fallback;
  }
  reader.depth++;
  const value = read();
  reader.depth--;
  return value;
}

/** Takes over what a reader of an embedded text (backticks, heredoc body) found out. */
export function adopt(reader: Reader, inner: Reader): void {
  if (!inner.ok) reader.ok = false;
  if (inner.tooDeep) reader.tooDeep = true;
}

export const isBlank = (char: string | undefined) => char === " " || char === "\t" || char === "\r";

const METACHARACTERS = new Set([" ", "\t", "\r", "\n", ";", "&", "|", "<", ">", "(", ")"]);
export const endsWord = (char: string | undefined) => char === undefined || METACHARACTERS.has(char);

/** Skips blanks, joined lines and a comment; stops at a newline. */
export function skipBlanks(reader: Reader): void {
  const { text } = reader;
  for (;;) {
    const char = text[reader.at];
    if (isBlank(char)) reader.at++;
    else if (char === "\\" && text[reader.at + 1] === "\n") reader.at += 2;
    else break;
  }
  if (text[reader.at] !== "#") return;
  const newline = text.indexOf("\n", reader.at);
  const end = newline < 0 ? text.length : newline;
  reader.comments?.push({ start: reader.at, end });
  reader.at = end;
}

/** True when the reserved word stands here as a word of its own. */
export function atReserved(reader: Reader, word: string): boolean {
  return reader.text.startsWith(word, reader.at) && endsWord(reader.text[reader.at + word.length]);
}
