// What a word amounts to when the shell is done with it, as far as the command line alone shows.
import type { Scope, Script, Word, WordPart } from "./ast.ts";
import { decodeAnsiC } from "./word.ts";

/** In a command's name what is unknown counts as empty; in an argument it stays as it is written. */
type Position = "command" | "argument";

/** Stands between words inside one resolved text. */
export const WORD_BREAK = "\0";
const MAX_ALTERNATIVES = 8;
/** As long as the longest command that is read; expansions past it are dropped. */
const MAX_TEXT_CHARS = 128_000;

export function resolveWord(word: Word, scope: Scope, position: Position): readonly string[] {
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
  const whole = braces ? texts.flatMap(expandBraces) : texts;
  return whole
    .flatMap((text) => (text.includes(WORD_BREAK) ? text.split(WORD_BREAK).filter((piece) => piece !== "") : [text]))
    .filter((text) => text !== "" || quoted)
    .map((text) => text.replace(CONTROL, ""));
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
  // `"${list[@]}"` is as many words as the list has, quoted or not.
  if (operator === "[" && known) return known.map((value) => value.trim().replace(/[ \t\n]+/g, WORD_BREAK));
  if (operator === "+" || operator === ":+") return [textOf(part.operand, scope)];
  if (operator === "-" || operator === ":-" || operator === "=" || operator === ":=") {
    if (known) return known;
    return name === "HOME" ? [unknown] : [textOf(part.operand, scope)];
  }
  if (!known) return [unknown];
  if (operator === ":") return known.map((value) => substring(value, textOf(part.operand, scope)));
  if (operator === "^^" || operator === ",,") {
    return known.map((value) => (operator === "^^" ? value.toUpperCase() : value.toLowerCase()));
  }
  return known;
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
  if (printed !== undefined) return printed.replace(/\n+$/, "");
  if (program === "which" || program === "type" || (program === "command" && /^-[vV]$/.test(args[0] ?? ""))) {
    return args.filter((arg) => !arg.startsWith("-")).join(" ");
  }
  return null;
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

const DIRECTIVE = /%(?:%|[-+ #0]*[0-9*]*(?:\.[0-9*]+)?[a-zA-Z])/g;

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
