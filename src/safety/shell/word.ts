// Reads one word: quotes, escapes, expansions, substitutions.
import type { Heredoc, Quoting, Script, Word, WordPart } from "./ast.ts";

const EMPTY: Script = { pipelines: [] };
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const PLAIN = /[A-Za-z0-9_./:=,%^~#[\]-]+/y;

/** Reads up to the first unquoted metacharacter. */
export function readWord(reader: Reader): Word {
  const start = reader.at;
  const parts: WordPart[] = [];
  for (;;) {
    const char = reader.text[reader.at];
    if (char === "(" && opensPattern(reader, start)) readPatternList(reader, parts);
    else if ((char === "<" || char === ">") && reader.text[reader.at + 1] === "(") {
      parts.push(readSubstitution(reader, char === "<" ? "<(" : ">(", false));
    } else if (endsWord(char)) break;
    else readPiece(reader, parts);
  }
  return { parts, start, end: reader.at };
}

/** Reads an array literal `(a b c)`; the cursor stands on the bracket. */
export function readArray(reader: Reader): readonly WordPart[] {
  const parts: WordPart[] = [];
  reader.at++;
  while (reader.at < reader.text.length && reader.text[reader.at] !== ")") {
    const char = reader.text[reader.at];
    if (endsWord(char)) {
      push(parts, isBlank(char) || char === "\n" ? " " : (char ?? ""), "none");
      reader.at++;
    } else readPiece(reader, parts);
  }
  if (reader.text[reader.at] === ")") reader.at++;
  else reader.ok = false;
  return parts;
}

/** Reads a text that expands as if in double quotes (an unquoted heredoc's body) to its end. */
export function readExpandingText(text: string, parent: Reader): readonly WordPart[] {
  const inner = openReader(text, parent);
  const parts = descend(inner, [], () => readDoubleBody(inner, () => inner.at >= inner.text.length));
  adopt(parent, inner);
  return parts;
}

/** One piece of an unquoted stretch: a quoted string, an expansion, or plain characters. */
function readPiece(reader: Reader, parts: WordPart[]): void {
  const { text } = reader;
  const char = text[reader.at];
  if (char === "\\") {
    if (text[reader.at + 1] !== "\n") push(parts, text[reader.at + 1] ?? "", "escaped");
    reader.at = Math.min(reader.at + 2, text.length);
  } else if (char === "'") readSingle(reader, parts);
  else if (char === '"') readDouble(reader, parts);
  else if (char === "$") readDollar(reader, parts, false);
  else if (char === "`") parts.push(readBackticks(reader, false));
  else {
    PLAIN.lastIndex = reader.at;
    const run = PLAIN.exec(text)?.[0] ?? char ?? "";
    push(parts, run, "none");
    reader.at += run.length;
  }
}

function push(parts: WordPart[], text: string, quoting: Quoting): void {
  const last = parts.at(-1);
  if (last?.type === "literal" && last.quoting === quoting) {
    parts[parts.length - 1] = { type: "literal", text: last.text + text, quoting };
  } else parts.push({ type: "literal", text, quoting });
}

function readSingle(reader: Reader, parts: WordPart[]): void {
  const end = reader.text.indexOf("'", reader.at + 1);
  if (end < 0) reader.ok = false;
  const stop = end < 0 ? reader.text.length : end;
  push(parts, reader.text.slice(reader.at + 1, stop), "single");
  reader.at = end < 0 ? stop : stop + 1;
}

function readDouble(reader: Reader, parts: WordPart[]): void {
  reader.at++;
  const inside = readDoubleBody(reader, () => reader.text[reader.at] === '"');
  if (reader.text[reader.at] === '"') reader.at++;
  else reader.ok = false;
  if (inside.length === 0) push(parts, "", "double");
  parts.push(...inside);
}

function readDoubleBody(reader: Reader, atEnd: () => boolean): WordPart[] {
  const { text } = reader;
  const parts: WordPart[] = [];
  let run = "";
  const flush = () => {
    if (run !== "") push(parts, run, "double");
    run = "";
  };
  while (reader.at < text.length && !atEnd()) {
    const char = text[reader.at];
    if (char === "\\") {
      const next = text[reader.at + 1] ?? "";
      if (next !== "\n") run += '$`"\\'.includes(next) && next !== "" ? next : `\\${next}`;
      reader.at = Math.min(reader.at + 2, text.length);
    } else if (char === "$") {
      flush();
      readDollar(reader, parts, true);
    } else if (char === "`") {
      flush();
      parts.push(readBackticks(reader, true));
    } else {
      run += char;
      reader.at++;
    }
  }
  flush();
  return parts;
}

function readDollar(reader: Reader, parts: WordPart[], quoted: boolean): void {
  const { text } = reader;
  const next = text[reader.at + 1];
  if (next === "(") {
    parts.push(readArithmetic(reader, 3, "))") ?? readSubstitution(reader, "$(", quoted));
    return;
  }
  if (next === "{") {
    parts.push(readBraced(reader, quoted));
    return;
  }
  const old = next === "[" ? readArithmetic(reader, 2, "]") : null;
  if (old) {
    parts.push(old);
    return;
  }
  if (next === "'" && !quoted) {
    readAnsiC(reader, parts);
    return;
  }
  if (next === '"' && !quoted) {
    reader.at++;
    readDouble(reader, parts);
    return;
  }
  NAME.lastIndex = reader.at + 1;
  const name = NAME.exec(text)?.[0] ?? (next !== undefined && /[0-9@*#?$!-]/.test(next) ? next : null);
  if (name === null) {
    push(parts, "$", quoted ? "double" : "none");
    reader.at++;
    return;
  }
  reader.at += 1 + name.length;
  parts.push({ type: "variable", name, operator: "", operand: [], source: `$${name}`, quoted });
}

function readAnsiC(reader: Reader, parts: WordPart[]): void {
  const from = reader.at + 2;
  let at = from;
  while (at < reader.text.length && reader.text[at] !== "'") at += reader.text[at] === "\\" ? 2 : 1;
  if (at >= reader.text.length) reader.ok = false;
  push(parts, decodeAnsiC(reader.text.slice(from, at)), "single");
  reader.at = Math.min(at + 1, reader.text.length);
}

/** `$((...))` or `$[...]`; `head` = length of the opening. Null when it does not close as arithmetic. */
function readArithmetic(reader: Reader, head: number, close: "))" | "]"): WordPart | null {
  if (close === "))" && reader.text[reader.at + 2] !== "(") return null;
  const end = findArithmeticEnd(reader.text, reader.at + head, close);
  if (end < 0) return null;
  const start = reader.at;
  const parts = readExpandingText(reader.text.slice(start + head, end - close.length), reader);
  reader.at = end;
  return { type: "arithmetic", parts, source: reader.text.slice(start, end) };
}

function readSubstitution(reader: Reader, form: "$(" | "<(" | ">(", quoted: boolean): WordPart {
  const start = reader.at;
  reader.at += 2;
  const script = readNested(reader, ")");
  return { type: "substitution", form, script, source: reader.text.slice(start, reader.at), quoted };
}

function readNested(reader: Reader, close: ")" | "}"): Script {
  const outer = reader.pending;
  reader.pending = [];
  const script = descend(reader, EMPTY, () => reader.parseScript(reader, close));
  // Shells differ on a heredoc whose command closes before its body begins.
  if (reader.pending.length > 0) reader.ok = false;
  reader.pending = outer;
  if (reader.text[reader.at] === close) reader.at++;
  else reader.ok = false;
  return script;
}

function readBackticks(reader: Reader, quoted: boolean): WordPart {
  const { text } = reader;
  const start = reader.at;
  let inside = "";
  reader.at++;
  while (reader.at < text.length && text[reader.at] !== "`") {
    const next = text[reader.at + 1];
    if (text[reader.at] === "\\" && next !== undefined) {
      inside += "$`\\".includes(next) || (quoted && next === '"') ? next : `\\${next}`;
      reader.at += 2;
    } else inside += text[reader.at++];
  }
  if (text[reader.at] === "`") reader.at++;
  else reader.ok = false;
  const inner = openReader(inside, reader);
  const script = descend(inner, EMPTY, () => inner.parseScript(inner, "end"));
  adopt(reader, inner);
  return { type: "substitution", form: "`", script, source: text.slice(start, reader.at), quoted };
}

const OPERATOR = /:[-=+?]|[-=+?]|##?|%%?|\/[/#%]?|\^\^?|,,?|@|:|\[/y;

function readBraced(reader: Reader, quoted: boolean): WordPart {
  const { text } = reader;
  const start = reader.at;
  const head = text[reader.at + 2];
  if (head === "|" || isBlank(head) || head === "\n") {
    // `${ command; }`: a substitution that runs in the same shell.
    reader.at += head === "|" ? 3 : 2;
    const script = readNested(reader, "}");
    return { type: "substitution", form: "$(", script, source: text.slice(start, reader.at), quoted };
  }
  reader.at += 2;
  const prefix = head === "!" || (head === "#" && text[reader.at + 1] !== "}") ? head : "";
  reader.at += prefix.length;
  NAME.lastIndex = reader.at;
  const name = NAME.exec(text)?.[0] ?? /^(?:[0-9]+|[@*#?$!-])/.exec(text.slice(reader.at, reader.at + 8))?.[0] ?? "";
  reader.at += name.length;
  OPERATOR.lastIndex = reader.at;
  const operator = OPERATOR.exec(text)?.[0] ?? "";
  reader.at += operator.length;
  const operand = descend(reader, [], () => readOperand(reader, quoted));
  if (text[reader.at] === "}") reader.at++;
  else reader.ok = false;
  if (name === "" && prefix === "") reader.ok = false;
  const source = text.slice(start, reader.at);
  return { type: "variable", name, operator: prefix + operator, operand, source, quoted };
}

function readOperand(reader: Reader, quoted: boolean): WordPart[] {
  const parts: WordPart[] = [];
  while (reader.at < reader.text.length && reader.text[reader.at] !== "}") {
    // Inside double quotes a single quote here is plain for some operators and a quote for others.
    if (quoted && reader.text[reader.at] === "'") {
      reader.ok = false;
      push(parts, "'", "double");
      reader.at++;
    } else readPiece(reader, parts);
  }
  return parts;
}

const opensPattern = (reader: Reader, start: number) =>
  reader.at > start && "?*+@!".includes(reader.text[reader.at - 1] ?? " ");

function readPatternList(reader: Reader, parts: WordPart[]): void {
  let open = 0;
  while (reader.at < reader.text.length) {
    const char = reader.text[reader.at];
    if (char === "(") open++;
    if (char === ")" && --open === 0) break;
    if (endsWord(char)) {
      push(parts, char ?? "", "none");
      reader.at++;
    } else readPiece(reader, parts);
  }
  if (reader.text[reader.at] === ")") {
    push(parts, ")", "none");
    reader.at++;
  } else reader.ok = false;
}

// The cursor all parts of the parser share.

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
const MAX_DEPTH = 60;

function openReader(text: string, parent: Pick<Reader, "depth" | "parseScript">): Reader {
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
function adopt(reader: Reader, inner: Reader): void {
  if (!inner.ok) reader.ok = false;
  if (inner.tooDeep) reader.tooDeep = true;
}

const isBlank = (char: string | undefined) => char === " " || char === "\t" || char === "\r";

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

const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  e: "\x1b",
  E: "\x1b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

const ESCAPE = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c([\s\S])|([\s\S]))/g;

/** Undoes the escapes of `$'...'`. */
export function decodeAnsiC(body: string): string {
  return body.replace(ESCAPE, (_all, hex, short, long, octal, control, other) => {
    const code = hex ?? short ?? long;
    if (code !== undefined) return fromCode(Number.parseInt(code, 16));
    if (octal !== undefined) return fromCode(Number.parseInt(octal, 8) & 0xff);
    if (control !== undefined) return fromCode(control.charCodeAt(0) & 0x1f);
    return SIMPLE[other] ?? other;
  });
}

const fromCode = (code: number) => (code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd");

/**
 * The offset behind the `))` (or `]`) that ends an arithmetic expression whose inside starts at `from`; -1 when it is none, as in
 * `$((a) | b)`. Bash decides the same way: arithmetic first, commands when that does not close.
 */
export function findArithmeticEnd(text: string, from: number, close: "))" | "]"): number {
  let open = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") at++;
    else if (char === "'" || char === '"') {
      const end = text.indexOf(char, at + 1);
      if (end < 0) return -1;
      at = end;
    } else if (close === "]") {
      if (char === "[") open++;
      else if (char === "]" && open-- === 0) return at + 1;
    } else if (char === "(") open++;
    else if (char === ")") {
      if (open > 0) open--;
      else return text[at + 1] === ")" ? at + 2 : -1;
    }
  }
  return -1;
}
