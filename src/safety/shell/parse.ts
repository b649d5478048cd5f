// Reads a command line into pipelines of commands. One pass, never throws: what it cannot make sense of sets `ok` to false, and
// the words around it are still kept as commands, so that a caller who looks for trouble sees too much rather than too little.
// Hand-written: the parsers there are (tree-sitter-bash, sh-syntax) are WebAssembly to load before the first command, and give a syntax tree
// where the guard needs words as bash resolves them. parse.test.ts holds this one to bash itself.

import type {
  Assignment,
  Command,
  Group,
  Joiner,
  ParsedLine,
  Pipeline,
  Redirection,
  Script,
  SimpleCommand,
  Word,
} from "./ast.ts";
import {
  atReserved,
  descend,
  endsWord,
  findArithmeticEnd,
  type PendingHeredoc,
  type Reader,
  readArray,
  readExpandingText,
  readWord,
  type ScriptEnd,
  skipBlanks,
} from "./word.ts";

export function parseCommandLine(text: string): ParsedLine {
  const comments: { start: number; end: number }[] = [];
  const reader: Reader = { text, at: 0, ok: true, tooDeep: false, depth: 0, pending: [], parseScript, comments };
  const script = parseScript(reader, "end");
  if (reader.pending.length > 0) {
    for (const heredoc of reader.pending) heredoc.fill({ body: "", parts: [], doubtful: true });
  }
  return { script, ok: reader.ok, tooDeep: reader.tooDeep, comments };
}

function parseScript(reader: Reader, end: ScriptEnd): Script {
  const pipelines: Pipeline[] = [];
  for (;;) {
    skipBlanks(reader);
    const char = reader.text[reader.at];
    if (char === undefined) break;
    if (char === "\n") takeNewline(reader);
    else if (char === ")" && end === ")") break;
    else if (end === "}" && atReserved(reader, "}")) break;
    else if (end === "case" && (isCaseEnd(reader) || atReserved(reader, "esac"))) break;
    else if (char === ")" || char === "|" || char === ";" || (char === "&" && reader.text[reader.at + 1] !== ">")) {
      reader.ok = false;
      reader.at++;
    } else pipelines.push(parsePipeline(reader));
  }
  return { pipelines };
}

const isCaseEnd = (reader: Reader) =>
  reader.text[reader.at] === ";" && (reader.text[reader.at + 1] === ";" || reader.text[reader.at + 1] === "&");

function parsePipeline(reader: Reader): Pipeline {
  const start = reader.at;
  const commands: Command[] = [parseCommand(reader)];
  let end = reader.at;
  for (;;) {
    skipBlanks(reader);
    if (reader.text[reader.at] !== "|" || reader.text[reader.at + 1] === "|") break;
    reader.at += reader.text[reader.at + 1] === "&" ? 2 : 1;
    skipNewlines(reader);
    commands.push(parseCommand(reader));
    end = reader.at;
  }
  const joinerStart = reader.at;
  return { commands, start, end, joinerStart, joiner: takeJoiner(reader) };
}

function takeJoiner(reader: Reader): Joiner {
  const { text, at } = reader;
  const two = text.slice(at, at + 2);
  if (two === "&&" || two === "||") {
    reader.at += 2;
    return two;
  }
  const char = text[at];
  if (char === "\n") {
    takeNewline(reader);
    return "\n";
  }
  if ((char === ";" && !isCaseEnd(reader)) || char === "&") {
    reader.at++;
    return char;
  }
  return "";
}

function skipNewlines(reader: Reader): void {
  skipBlanks(reader);
  while (reader.text[reader.at] === "\n") {
    takeNewline(reader);
    skipBlanks(reader);
  }
}

function parseCommand(reader: Reader): Command {
  return descend(reader, emptyCommand(reader.at), () =>
    readCommand(reader, { parseScript, skipNewlines, readArithmetic }),
  );
}

/** `((...))` as a command; null when it does not close as arithmetic. */
function readArithmetic(reader: Reader): Word | null {
  if (!reader.text.startsWith("((", reader.at)) return null;
  const end = findArithmeticEnd(reader.text, reader.at + 2, "))");
  if (end < 0) return null;
  const start = reader.at;
  // Read as the word `$((...))` would be, so that substitutions inside are seen.
  const inner: Reader = {
    ...reader,
    text: `$${reader.text.slice(start, end)}`,
    at: 0,
    pending: [],
    comments: undefined,
  };
  const word = readWord(inner);
  if (!inner.ok) reader.ok = false;
  if (inner.tooDeep) reader.tooDeep = true;
  reader.at = end;
  return { parts: word.parts, start, end };
}

// One command: simple, grouped, `case`, or a function definition.

interface Grammar {
  parseScript(reader: Reader, end: ScriptEnd): Script;
  skipNewlines(reader: Reader): void;
  readArithmetic(reader: Reader): Word | null;
}

const KEYWORDS = new Set(["if", "then", "elif", "else", "while", "until", "do", "!", "coproc", "fi", "done", "esac"]);
const ASSIGNMENT = /[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]\n]*\])?\+?=/y;
const DESCRIPTOR = /(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})(?=[<>])/y;
const REDIRECTION = /&>>|&>|<<<|<<-|<<|<>|<&|<|>>|>&|>\||>/y;

const emptyCommand = (at: number): SimpleCommand => ({
  type: "simple",
  keywords: [],
  assignments: [],
  words: [],
  redirections: [],
  start: at,
  end: at,
});

interface Draft {
  readonly keywords: string[];
  readonly assignments: Assignment[];
  readonly words: Word[];
  readonly redirections: Redirection[];
  readonly start: number;
}

function readCommand(reader: Reader, grammar: Grammar): Command {
  skipBlanks(reader);
  const draft: Draft = { keywords: [], assignments: [], words: [], redirections: [], start: reader.at };
  let end = reader.at;
  for (;;) {
    skipBlanks(reader);
    const fresh = draft.words.length === 0 && draft.assignments.length === 0 && draft.redirections.length === 0;
    if (fresh && draft.keywords.at(-1) === "coproc") skipCoprocName(reader);
    const group = fresh ? readGroup(reader, grammar, draft.start) : null;
    if (group) return group;
    if (!readPart(reader, grammar, draft)) break;
    end = reader.at;
    const definition = readFunction(reader, grammar, draft);
    if (definition) return definition;
  }
  return { type: "simple", ...draft, end };
}

/** `coproc NAME { ...; }`: only in front of a group is the word a name. */
function skipCoprocName(reader: Reader): void {
  const name = /[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[{(])/y;
  name.lastIndex = reader.at;
  if (name.test(reader.text)) reader.at = name.lastIndex;
}

/** Takes one word, assignment or redirection; false at the command's end. */
function readPart(reader: Reader, grammar: Grammar, draft: Draft): boolean {
  const char = reader.text[reader.at];
  if (char === undefined || char === "\n" || char === ";" || char === "|" || char === ")") return false;
  if (readRedirection(reader, draft.redirections)) return true;
  if (char === "&") return false;
  if (char === "(") {
    const loop = draft.words.length === 1 ? grammar.readArithmetic(reader) : null;
    if (loop) draft.words.push(loop);
    else {
      reader.ok = false;
      reader.at++;
      return false;
    }
    return true;
  }
  if (draft.words.length === 0 && readAssignment(reader, draft.assignments)) return true;
  const word = readDeclared(reader, draft.words[0], readWord(reader));
  const plain = plainText(word);
  if (draft.words.length === 0 && draft.assignments.length === 0 && plain !== null && KEYWORDS.has(plain)) {
    draft.keywords.push(plain);
    return true;
  }
  draft.words.push(word);
  if (plain === "[[" && draft.words.length === 1) readCondition(reader, grammar, draft.words);
  return true;
}

/** `declare -a list=(a b)`: the brackets belong to the word. */
function readDeclared(reader: Reader, command: Word | undefined, word: Word): Word {
  if (reader.text[reader.at] !== "(" || !command) return word;
  if (!/^(?:declare|typeset|local|export|readonly)$/.test(plainText(command) ?? "")) return word;
  if (!/^[A-Za-z_]\w*\+?=$/.test(plainText(word) ?? "")) return word;
  return { parts: [...word.parts, ...readArray(reader)], start: word.start, end: reader.at };
}

/** The text of a word without quotes, escapes or expansions; null for any other. */
export function plainText(word: Word): string | null {
  const [first] = word.parts;
  if (word.parts.length !== 1 || first?.type !== "literal" || first.quoting !== "none") return null;
  return first.text;
}

function readAssignment(reader: Reader, assignments: Assignment[]): boolean {
  ASSIGNMENT.lastIndex = reader.at;
  const head = ASSIGNMENT.exec(reader.text)?.[0];
  if (head === undefined) return false;
  reader.at += head.length;
  const start = reader.at;
  const value: Word =
    reader.text[reader.at] === "(" ? { parts: readArray(reader), start, end: reader.at } : readWord(reader);
  const open = head.indexOf("[");
  const index = open < 0 ? [] : readExpandingText(head.slice(open + 1, head.lastIndexOf("]")), reader);
  assignments.push({ name: head.slice(0, head.search(/[[+=]/)), index, append: head.endsWith("+="), value });
  return true;
}

function readRedirection(reader: Reader, redirections: Redirection[]): boolean {
  const { text } = reader;
  DESCRIPTOR.lastIndex = reader.at;
  const fd = DESCRIPTOR.exec(text)?.[0] ?? "";
  const from = reader.at + fd.length;
  if (fd === "" && (text[from] === "<" || text[from] === ">") && text[from + 1] === "(") return false;
  REDIRECTION.lastIndex = from;
  const operator = REDIRECTION.exec(text)?.[0];
  if (operator === undefined) return false;
  reader.at = from + operator.length;
  skipBlanks(reader);
  const target = readWord(reader);
  if (target.start === target.end) reader.ok = false;
  if (operator !== "<<" && operator !== "<<-") {
    redirections.push({ operator, fd, target, heredoc: null });
    return true;
  }
  const index = redirections.length;
  redirections.push({ operator, fd, target, heredoc: null });
  reader.pending.push({
    ...readDelimiter(target),
    stripTabs: operator === "<<-",
    fill: (heredoc) => {
      redirections[index] = { operator, fd, target, heredoc };
    },
  });
  return true;
}

/** Inside `[[ ]]` the operators of the shell are operators of the test. */
function readCondition(reader: Reader, grammar: Grammar, words: Word[]): void {
  for (;;) {
    grammar.skipNewlines(reader);
    const char = reader.text[reader.at];
    if (char === undefined) {
      reader.ok = false;
      return;
    }
    const start = reader.at;
    const isSubstitution = (char === "<" || char === ">") && reader.text[start + 1] === "(";
    if (endsWord(char) && !isSubstitution) {
      reader.at++;
      words.push({ parts: [{ type: "literal", text: char, quoting: "none" }], start, end: reader.at });
      continue;
    }
    const word = readWord(reader);
    words.push(word);
    if (plainText(word) === "]]") return;
  }
}

function readGroup(reader: Reader, grammar: Grammar, start: number): Command | null {
  if (reader.text[reader.at] === "(") {
    const condition = grammar.readArithmetic(reader);
    if (condition) {
      return { ...emptyCommand(start), words: [condition], end: reader.at };
    }
    return readBody(reader, grammar, start, { kind: "subshell", close: ")" });
  }
  if (atReserved(reader, "{")) return readBody(reader, grammar, start, { kind: "braces", close: "}" });
  if (atReserved(reader, "case")) return readCase(reader, grammar, start);
  if (!atReserved(reader, "function")) return null;
  reader.at += "function".length;
  skipBlanks(reader);
  const name = readWord(reader);
  takeBrackets(reader);
  return readDefinition(reader, grammar, { name: plainText(name) ?? "", start });
}

function readBody(
  reader: Reader,
  grammar: Grammar,
  start: number,
  shape: { readonly kind: "subshell" | "braces"; readonly close: ")" | "}" },
): Group {
  reader.at++;
  const body = grammar.parseScript(reader, shape.close);
  if (reader.text[reader.at] === shape.close) reader.at++;
  else reader.ok = false;
  const redirections: Redirection[] = [];
  const end = readRedirections(reader, redirections);
  return { type: "group", kind: shape.kind, name: "", bodies: [body], words: [], redirections, start, end };
}

function readRedirections(reader: Reader, redirections: Redirection[]): number {
  let end = reader.at;
  for (;;) {
    skipBlanks(reader);
    if (!readRedirection(reader, redirections)) return end;
    end = reader.at;
  }
}

function readCase(reader: Reader, grammar: Grammar, start: number): Group {
  reader.at += "case".length;
  skipBlanks(reader);
  const words: Word[] = [readWord(reader)];
  const bodies: Script[] = [];
  grammar.skipNewlines(reader);
  if (atReserved(reader, "in")) reader.at += 2;
  else reader.ok = false;
  for (;;) {
    grammar.skipNewlines(reader);
    if (atReserved(reader, "esac")) {
      reader.at += "esac".length;
      break;
    }
    if (!readPattern(reader, words)) break;
    bodies.push(grammar.parseScript(reader, "case"));
    while (reader.text[reader.at] === ";" || (reader.text[reader.at] === "&" && reader.text[reader.at - 1] === ";")) {
      reader.at++;
    }
  }
  const redirections: Redirection[] = [];
  const end = readRedirections(reader, redirections);
  return { type: "group", kind: "case", name: "", bodies, words, redirections, start, end };
}

function readPattern(reader: Reader, words: Word[]): boolean {
  if (reader.text[reader.at] === "(") reader.at++;
  for (;;) {
    skipBlanks(reader);
    const char = reader.text[reader.at];
    if (char === ")") {
      reader.at++;
      return true;
    }
    if (char === "|") reader.at++;
    else if (endsWord(char)) {
      reader.ok = false;
      return false;
    } else words.push(readWord(reader));
  }
}

function readFunction(reader: Reader, grammar: Grammar, draft: Draft): Group | null {
  const [word] = draft.words;
  if (draft.words.length !== 1 || draft.assignments.length > 0 || !word || !takeBrackets(reader)) return null;
  return readDefinition(reader, grammar, { name: plainText(word) ?? "", start: draft.start });
}

function takeBrackets(reader: Reader): boolean {
  const brackets = /[ \t]*\([ \t]*\)/y;
  brackets.lastIndex = reader.at;
  if (!brackets.test(reader.text)) return false;
  reader.at = brackets.lastIndex;
  return true;
}

function readDefinition(reader: Reader, grammar: Grammar, head: { name: string; start: number }): Group {
  grammar.skipNewlines(reader);
  const body = descend(reader, emptyCommand(reader.at), () => readCommand(reader, grammar));
  const script: Script = {
    pipelines: [{ commands: [body], joiner: "", joinerStart: body.end, start: body.start, end: body.end }],
  };
  return {
    type: "group",
    kind: "function",
    name: head.name,
    bodies: [script],
    words: [],
    redirections: [],
    start: head.start,
    end: reader.at,
  };
}

/** What the word behind `<<` means: the end line, and whether the body expands. */
function readDelimiter(word: Word): Pick<PendingHeredoc, "delimiter" | "expands" | "doubtful"> {
  let delimiter = "";
  let expands = true;
  let doubtful = false;
  for (const part of word.parts) {
    if (part.type === "literal") {
      delimiter += part.text;
      if (part.quoting !== "none") expands = false;
    } else {
      delimiter += part.source;
      doubtful = true;
    }
  }
  return { delimiter, expands, doubtful };
}

/** Steps over a newline and reads the bodies announced on the line before it. */
function takeNewline(reader: Reader): void {
  reader.at++;
  if (reader.pending.length === 0) return;
  const pending = reader.pending;
  reader.pending = [];
  for (const heredoc of pending) readHeredocBody(reader, heredoc);
}

function readHeredocBody(reader: Reader, heredoc: PendingHeredoc): void {
  const start = reader.at;
  const { text } = reader;
  let at = start;
  let joined = false;
  let found = false;
  let end = text.length;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    const lineEnd = newline < 0 ? text.length : newline;
    let line = text.slice(at, lineEnd).replace(/\r$/, "");
    if (heredoc.stripTabs) line = line.replace(/^\t+/, "");
    if (!joined && line === heredoc.delimiter) {
      found = true;
      end = at;
      at = Math.min(lineEnd + 1, text.length);
      break;
    }
    // In an expanding body a line that ends in a backslash swallows the next one, end line or not.
    joined = heredoc.expands && trailingBackslashes(line) % 2 === 1;
    at = lineEnd + 1;
  }
  const body = text.slice(start, end);
  reader.at = Math.min(at, text.length);
  const doubtful = heredoc.doubtful || !found;
  heredoc.fill({
    body,
    doubtful,
    parts: heredoc.expands ? readExpandingText(body, reader) : [{ type: "literal", text: body, quoting: "single" }],
  });
}

function trailingBackslashes(line: string): number {
  let count = 0;
  while (count < line.length && line[line.length - 1 - count] === "\\") count++;
  return count;
}

/** The command without its comments; null when it cannot be read well enough to find them. */
export function withoutComments(command: string): string | null {
  const { ok, comments } = parseCommandLine(command);
  if (!ok) return null;
  let text = "";
  let from = 0;
  for (const { start, end } of [...comments].sort((left, right) => left.start - right.start)) {
    if (start < from) continue;
    text += command.slice(from, start);
    from = end;
  }
  return (text + command.slice(from)).replace(/(?<![ \t])[ \t]+$/gm, "").trim();
}
