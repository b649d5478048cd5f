// What a word amounts to when the shell is done with it, as far as the command line alone shows.
import { matchGlob } from "../paths.ts";
import { type Position, type Scope, type Script, UNKNOWN, type Word, type WordPart } from "./ast.ts";
import { decodeAnsiC } from "./word.ts";

/** Stands between words inside one resolved text. */
export const WORD_BREAK = "\0";
const MAX_ALTERNATIVES = 8;
/** As long as the longest command that is read; expansions past it are dropped. */
const MAX_TEXT_CHARS = 128_000;

export function resolveWord(word: Word, scope: Scope, position: Position): readonly string[] {
  return resolveAlternatives(word, scope, position).flat();
}

/** Where a variable may hold one of several values: the words for each. */
export function resolveAlternatives(word: Word, scope: Scope, position: Position): readonly (readonly string[])[] {
  let texts = [""];
  let quoted = false;
  let braces = false;
  for (const part of word.parts) {
    if (part.type === "literal") {
      if (part.quoting !== "none") quoted = true;
      else if (part.text.includes("{")) braces = true;
      texts = texts.map((text) => text + part.text);
    } else {
      if (part.type !== "arithmetic" && part.quoted) quoted = true;
      const values = partValues(part, scope, position);
      texts = texts.flatMap((text) => values.map((value) => bounded(text, value))).slice(0, MAX_ALTERNATIVES);
    }
  }
  return texts.map((one) =>
    (braces ? expandBraces(one) : [one])
      .flatMap((text) => (text.includes(WORD_BREAK) ? text.split(WORD_BREAK).filter((piece) => piece !== "") : [text]))
      .filter((text) => text !== "" || quoted)
      .map((text) => text.replace(CONTROL, "")),
  );
}

const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** The word as one text, not split. */
export function resolveText(word: Word, scope: Scope): string {
  return textOf(word.parts, scope);
}

function textOf(parts: readonly WordPart[], scope: Scope): string {
  let text = "";
  for (const part of parts) {
    text = part.type === "literal" ? text + part.text : bounded(text, partValues(part, scope, "argument")[0] ?? "");
  }
  return text.replaceAll(WORD_BREAK, " ");
}

const bounded = (text: string, more: string) => (text.length > MAX_TEXT_CHARS ? text : text + more);

function partValues(part: Exclude<WordPart, { type: "literal" }>, scope: Scope, position: Position): readonly string[] {
  if (part.type === "arithmetic") return [position === "command" ? "" : part.source];
  if (part.type === "substitution") {
    const output = part.form === "$(" || part.form === "`" ? literalOutput(part.script, scope) : null;
    if (output !== null) return [splitUnless(part.quoted, output)];
    return [position === "command" ? "" : part.source];
  }
  return variableValues(part, scope, position).map((value) => splitUnless(part.quoted, value));
}

const splitUnless = (quoted: boolean, text: string) => (quoted ? text : text.replace(/[ \t\n]+/g, WORD_BREAK));

type Variable = Extract<WordPart, { type: "variable" }>;

function variableValues(part: Variable, scope: Scope, position: Position): readonly string[] {
  const { name, operator } = part;
  const known = scope.get(name);
  const unknown = unknownValue(part, position);
  if (operator === "" || operator === "?" || operator === ":?") return known ?? [unknown];
  if (operator === "[" && known)
    return known.flatMap((value) => elements(value, textOf(part.operand, scope), position));
  if (operator === "+" || operator === ":+") return [textOf(part.operand, scope)];
  if (operator === "-" || operator === ":-" || operator === "=" || operator === ":=") {
    if (known && (!operator.startsWith(":") || known.some((value) => value !== ""))) return known;
    return name === "HOME" ? [unknown] : [textOf(part.operand, scope)];
  }
  if (!known) return [unknown];
  if (operator === "!") return known.flatMap((target) => scope.get(target) ?? [unknown]);
  const operand = textOf(part.operand, scope);
  return known.map((value) => compute(value, operator, operand) ?? value);
}

/** `"${list[@]}"` is as many words as the list has, quoted or not; which one an index means is not worth guessing for a name. */
function elements(value: string, index: string, position: Position): readonly string[] {
  const words = value
    .trim()
    .split(/[ \t\n]+/)
    .map((word) => word.replace(/^\[[^\]]*\]=/, ""));
  if (/^[@*]\]/.test(index)) return [words.join(WORD_BREAK)];
  const at = /^-?[0-9]+(?=\]$)/.exec(index)?.[0];
  if (at === undefined && position === "argument") return [words.join(WORD_BREAK)];
  if (position === "argument") return [words.at(Number(at)) ?? ""];
  return [words.join(WORD_BREAK), ...words.slice(0, MAX_ALTERNATIVES)];
}

/** Longer values are not cut or searched: patterns cost the square. */
const MAX_PATTERN_CHARS = 64;

/** What `${x%y}`, `${x/y/z}`, `${x:1}` and the like make of a value; null when that is not followed. */
function compute(value: string, operator: string, operand: string): string | null {
  if (operator === ":") return substring(value, operand);
  if (operator === "^^" || operator === ",,") return operator === "^^" ? value.toUpperCase() : value.toLowerCase();
  if (operator === "^") return value.slice(0, 1).toUpperCase() + value.slice(1);
  if (operator === ",") return value.slice(0, 1).toLowerCase() + value.slice(1);
  if (operator === "#" && operand === "") return String(value.length);
  if (value.length > MAX_PATTERN_CHARS || operand.length > MAX_PATTERN_CHARS) return null;
  const cuts = [...value, ""].map((_, at) => at);
  if (operator === "#" || operator === "##") {
    const lengths = operator === "#" ? cuts : cuts.reverse();
    return value.slice(lengths.find((length) => matchGlob(operand, value.slice(0, length))) ?? 0);
  }
  if (operator === "%" || operator === "%%") {
    const starts = operator === "%" ? cuts.reverse() : cuts;
    return value.slice(0, starts.find((start) => matchGlob(operand, value.slice(start))) ?? value.length);
  }
  const replacing = /^\/[/#%]?$/.exec(operator);
  const [, pattern = "", replacement = ""] = /^([^/]*)\/?([\s\S]*)$/.exec(operand) ?? [];
  if (!replacing || pattern === "" || /[*?[]/.test(pattern)) return null;
  if (operator === "/#") return value.startsWith(pattern) ? replacement + value.slice(pattern.length) : value;
  if (operator === "/%") return value.endsWith(pattern) ? value.slice(0, -pattern.length) + replacement : value;
  return operator === "//" ? value.replaceAll(pattern, () => replacement) : value.replace(pattern, () => replacement);
}

function unknownValue(part: Variable, position: Position): string {
  if (part.name === "HOME") return "$HOME";
  if (part.name === "SHELL" || part.name === "BASH" || part.name === "0") return "sh";
  if (/^(?:[1-9][0-9]*|[@*])$/.test(part.name)) return "";
  return position === "command" ? "" : part.source;
}

function substring(value: string, range: string): string {
  const [offset, length] = range.split(":").map((text) => Number.parseInt(text.trim(), 10));
  if (offset === undefined || Number.isNaN(offset)) return value;
  const tail = value.slice(offset);
  return length === undefined || Number.isNaN(length) ? tail : tail.slice(0, length);
}

/** What `$(echo rm)` or `$(which rm)` prints; null when only running it would show. */
function literalOutput(script: Script, scope: Scope): string | null {
  const [pipeline] = script.pipelines;
  if (script.pipelines.length === 0) return "";
  const [command] = pipeline?.commands ?? [];
  if (script.pipelines.length !== 1 || pipeline?.commands.length !== 1 || command?.type !== "simple") return null;
  const [program, ...args] = command.words.map((word) => resolveText(word, scope));
  const [printed] = printedTexts(program ?? "", args) ?? [];
  if (printed !== undefined) return printed.replace(/(?<!\n)\n+$/, "");
  if (program === "which" || program === "type" || (program === "command" && /^-[vV]$/.test(args[0] ?? ""))) {
    return args.filter((arg) => !arg.startsWith("-")).join(" ");
  }
  // Where a link leads is not on the line; which file is meant is.
  if (program === "readlink" || program === "realpath")
    return args.findLast((arg) => /^\/(?:usr\/)?s?bin\//.test(arg)) ?? null;
  return null;
}

// What the line does not show. A mark stands where only running it would tell.

/** The word with marks; null when every part of it is known. */
export function markUnknown(word: Word, scope: Scope, position: Position): string | null {
  const text = markParts(word.parts, scope, position);
  return text.includes(UNKNOWN) ? text : null;
}

function markParts(parts: readonly WordPart[], scope: Scope, position: Position): string {
  let text = "";
  for (const part of parts) text = bounded(text, part.type === "literal" ? part.text : markPart(part, scope, position));
  return text;
}

function markPart(part: Exclude<WordPart, { type: "literal" }>, scope: Scope, position: Position): string {
  if (part.type === "arithmetic") return "0";
  if (part.type === "variable") return markVariable(part, scope, position);
  if (part.form === "<(" || part.form === ">(") return "/dev/fd/9";
  const output = literalOutput(part.script, scope);
  if (output !== null) return hasMarks(part.script, scope) ? UNKNOWN : output;
  return position === "argument" && printsPlainly(part.script) ? "x" : UNKNOWN;
}

/** Set by the system or the shell to something short, or to a folder. */
const ORDINARY =
  /^(?:PWD|OLDPWD|TMPDIR|TMP|TEMP|USER|LOGNAME|HOSTNAME|RANDOM|SECONDS|EPOCHSECONDS|BASHPID|PPID|UID|EUID|LINENO|LANG|TERM|COLUMNS|LINES|CI|GITHUB_(?:OUTPUT|ENV|PATH|STEP_SUMMARY|SHA|REF_NAME|RUN_ID|WORKSPACE)|RUNNER_TEMP|[$!?#0-9@*-]|[1-9][0-9]+)$/;

function markVariable(part: Variable, scope: Scope, position: Position): string {
  const { name, operator } = part;
  const marked = scope.marked(name, position);
  if (marked !== null) return operator === "" || operator === "[" ? marked : UNKNOWN;
  const known = scope.get(name);
  const isEmpty = !known || (operator.startsWith(":") && known.every((value) => value === ""));
  if (operator === "+" || operator === ":+" || (isEmpty && /^:?[-=]$/.test(operator)))
    return name === "HOME" ? "$HOME" : markParts(part.operand, scope, position);
  if (operator === "#" && part.operand.length === 0) return "0";
  if (!known) {
    if (/^(?:HOME|HERMES_HOME|SHELL|BASH|0)$/.test(name)) return unknownValue(part, position);
    if (/^(?:[1-9]|[@*])$/.test(name)) return "";
    return position === "argument" && operator === "" && ORDINARY.test(name) ? "x" : UNKNOWN;
  }
  if (/^(?::?[-=?]|\[|)$/.test(operator)) return variableValues(part, scope, position)[0] ?? "";
  if (operator === "!") return known.every((target) => scope.get(target)) ? "x" : UNKNOWN;
  const operand = textOf(part.operand, scope);
  return known.map((value) => compute(value, operator, operand)).find((value) => value === null) === null
    ? UNKNOWN
    : "x";
}

/**
 * Whether a name with marks says too little. A folder may be unknown (`$ROOT/bin/tool`), and so may the end of a long name
 * (`python$VERSION`) or of a script below a folder of the project (`./scripts/$name`).
 */
export function isUnseenName(marked: string | null | undefined): boolean {
  if (marked === null || marked === undefined) return false;
  const base = marked.slice(marked.lastIndexOf("/") + 1);
  if (!base.includes(UNKNOWN)) return base === "";
  if (base.indexOf(UNKNOWN) > 2) return false;
  return !/^(?:\.\/|[\w-]+\/)/.test(marked);
}

const simpleCommands = (script: Script) =>
  script.pipelines.flatMap(({ commands }) => commands.flatMap((one) => (one.type === "simple" ? [one] : [])));

const hasMarks = (script: Script, scope: Scope) =>
  simpleCommands(script).some(({ words }) => words.some((word) => markUnknown(word, scope, "command") !== null));

const PLAIN_PRINTERS =
  /^(?:date|mktemp|basename|dirname|pwd|whoami|hostname|uname|id|git|uuidgen|nproc|wc|expr|seq|arch|getconf|realpath|readlink|tput|openssl|node|python3?)$/;

/** A date, a count, a name of something: nothing that a stranger chose. */
function printsPlainly(script: Script): boolean {
  const [first] = simpleCommands(script);
  const [program] = first?.words ?? [];
  const text = program?.parts.length === 1 && program.parts[0]?.type === "literal" ? program.parts[0].text : "";
  return PLAIN_PRINTERS.test(text);
}

const LIMIT = 64;

/** `a{b,c}d` -> `abd acd`, nested too, bounded. A text without a list comes back alone. */
function expandBraces(text: string): readonly string[] {
  let done: string[] = [];
  const queue = [text];
  while (queue.length > 0 && done.length + queue.length <= LIMIT) {
    const next = queue.shift() ?? "";
    const list = findList(next);
    if (!list) done.push(next);
    else queue.unshift(...list.items.map((item) => list.before + item + list.after));
  }
  done = done.concat(queue);
  return done;
}

/** The first pair of braces with a comma of its own; one pass, however many braces there are. */
function findList(text: string): { before: string; items: readonly string[]; after: string } | null {
  const open: { at: number; commas: number[] }[] = [];
  let best: { at: number; commas: readonly number[]; end: number } | null = null;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "{") open.push({ at, commas: [] });
    else if (char === ",") open.at(-1)?.commas.push(at);
    else if (char === "}") {
      const pair = open.pop();
      if (pair && pair.commas.length > 0 && (!best || pair.at < best.at)) best = { ...pair, end: at };
    }
  }
  if (!best) return null;
  const cuts = [best.at, ...best.commas, best.end];
  const items = cuts.slice(1).map((cut, index) => text.slice((cuts[index] ?? 0) + 1, cut));
  return { before: text.slice(0, best.at), items, after: text.slice(best.end + 1) };
}

/** What `echo` or `printf` would print; two readings where shells differ on escapes. Null for any other program. */
export function printedTexts(program: string, args: readonly string[]): readonly string[] | null {
  if (program === "echo") {
    const text = args.filter((arg) => !/^-[neE]+$/.test(arg)).join(" ");
    return text.includes("\\") ? [text, decodeAnsiC(text)] : [text];
  }
  if (program !== "printf") return null;
  const [format = "", ...values] = args[0] === "--" ? args.slice(1) : args;
  return [fillFormat(decodeAnsiC(format), values)];
}

const DIRECTIVE = /%(?:%|[-+ #0]*(?:[1-9*][0-9*]*)?(?:\.[0-9*]+)?[a-zA-Z])/g;

/** As printf does: the format is used again as long as values are left. */
function fillFormat(format: string, values: readonly string[]): string {
  let at = 0;
  let text = "";
  for (let round = 0; round === 0 || (at < values.length && round < 100); round++) {
    const before = at;
    text += format.replace(DIRECTIVE, (directive) => (directive === "%%" ? "%" : (values[at++] ?? "")));
    if (at === before) break;
  }
  return text;
}
