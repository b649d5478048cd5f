// Commands that certainly change nothing, so that several may run side by side. A doubt counts as a change.
import type { Joiner, Redirection, Script, SimpleCommand, WordPart } from "./shell/ast.ts";
import { plainText } from "./shell/command.ts";
import { parseCommandLine } from "./shell/parse.ts";

export function isReadOnlyCommand(command: string): boolean {
  const { script, ok } = parseCommandLine(command.trim());
  return ok && script.pipelines.length > 0 && isReadOnlyScript(script);
}

const JOINERS = new Set<Joiner>(["&&", ";", ""]);

function isReadOnlyScript(script: Script): boolean {
  return script.pipelines.every(
    ({ commands, joiner }) =>
      JOINERS.has(joiner) && commands.every((command) => command.type === "simple" && isReadOnlySimple(command)),
  );
}

function isReadOnlySimple(command: SimpleCommand): boolean {
  if (command.keywords.length > 0 || command.assignments.length > 0) return false;
  if (!command.redirections.every(isHarmlessRedirection)) return false;
  if (!command.words.every(({ parts }) => parts.every(isReadOnlyPart))) return false;
  const [program, ...args] = command.words.map(wordText);
  return program !== undefined && program !== null && isReadOnlyProgram(program, args);
}

/** Null when the shell would compute it. */
function wordText(word: SimpleCommand["words"][number]): string | null {
  if (!word.parts.every((part) => part.type === "literal")) return null;
  return word.parts.map((part) => (part.type === "literal" ? part.text : "")).join("");
}

function isReadOnlyPart(part: WordPart): boolean {
  if (part.type === "literal") return true;
  if (part.type === "substitution") return part.form !== ">(" && isReadOnlyScript(part.script);
  if (part.type === "arithmetic") return !/[-+]{2}|[^=!<>]=[^=]/.test(part.source) && part.parts.every(isReadOnlyPart);
  return !part.operator.includes("=") && part.operand.every(isReadOnlyPart);
}

function isHarmlessRedirection({ operator, target }: Redirection): boolean {
  if (operator === "<" || operator === "<<<") return target.parts.every(isReadOnlyPart);
  const text = plainText(target);
  if (operator === ">&" || operator === "<&") return text !== null && /^(?:[0-9]+|-)$/.test(text);
  return (operator === ">" || operator === ">>" || operator === "&>") && text === "/dev/null";
}

type Args = readonly (string | null)[];

const ANY_ARGUMENTS = new Set("sleep echo pwd ls cat head tail wc grep stat du df uname true false".split(" "));

const VERSIONED = new Set(
  "node npm npx pnpm yarn bun deno tsc python python3 pip pip3 uv ruby gem perl php go rustc cargo java javac gcc g++ clang make cmake git docker kubectl bash".split(
    " ",
  ),
);

function isReadOnlyProgram(program: string, args: Args): boolean {
  if (ANY_ARGUMENTS.has(program)) return true;
  if (program === "rg") return !args.some((arg) => arg === null || /^--(?:pre|hostname-bin)(?:=|$)/.test(arg));
  if (program === "find") return !args.some((arg) => arg === null || FIND_ACTIONS.test(arg));
  if (program === "date") return args.every((arg) => arg !== null && /^(?:\+|-[uIR]|--(?:utc|iso|rfc))/.test(arg));
  if (program === "git" && isReadOnlyGit(args)) return true;
  return VERSIONED.has(program) && args.length === 1 && /^(?:-v|-V|--version)$/.test(args[0] ?? "");
}

const FIND_ACTIONS = /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/;

function isReadOnlyGit(args: Args): boolean {
  let at = 0;
  while (args[at] === "-C" || args[at] === "--no-pager") at += args[at] === "-C" ? 2 : 1;
  const [verb, ...rest] = args.slice(at);
  if (rest.some((arg) => arg === null || /^--(?:out|ext-d|textconv)/.test(arg))) return false;
  if (verb === "branch") return rest[0] === "--list";
  return verb === "status" || verb === "log" || verb === "diff" || verb === "show";
}
