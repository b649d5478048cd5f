// Commands that would hold a foreground call for ever, or detach from it: they belong in the background.
import { analyseCommand } from "./analysis/analyse.ts";
import { argTexts, hasLetter, hasLong, type Invocation, readOptions } from "./analysis/invocation.ts";
import type { Joiner, Redirection, Script, SimpleCommand, WordPart } from "./shell/ast.ts";
import { parseCommandLine, plainText } from "./shell/parse.ts";

const DETACHERS = new Set(["nohup", "setsid", "disown"]);
const HELP = new Set(["--help", "-h", "--version", "-v"]);
const SCRIPT_RUNNERS = new Set(["npm", "pnpm", "yarn", "bun"]);
const PACKAGE_RUNNERS = new Set(["npx", "bunx", "pnpx"]);
const SERVER_SCRIPTS = new Set(["dev", "start", "serve", "watch"]);
const ALWAYS_SERVERS = new Set(["nodemon", "uvicorn", "gunicorn"]);

/** Why this command should not run in the foreground, and what to do instead; null when it may. */
export function foregroundGuidance(command: string): string | null {
  for (const invocation of analyseCommand(command.replace(/`[^`]*`/g, " ")).invocations) {
    if (invocation.remote || asksForHelp(invocation)) continue;
    const detacher = findDetacher(invocation);
    if (detacher) {
      return `\`${detacher}\` detaches the command from this call, so its output and its end are lost. ${USE_BACKGROUND}`;
    }
    if (invocation.background) {
      return `A lone \`&\` starts a background process that this call cannot follow. ${USE_BACKGROUND}`;
    }
    const server = findServer(invocation);
    if (server)
      return `\`${server}\` keeps running until it is stopped, so a foreground call would only time out. ${USE_BACKGROUND}`;
  }
  return null;
}

const USE_BACKGROUND =
  "Run it again with background=true and without `&`, `nohup`, `setsid` or `disown`; then check on it with the process tool.";

const asksForHelp = (invocation: Invocation) => invocation.args.some(({ text }) => HELP.has(text));

function findDetacher(invocation: Invocation): string | null {
  if (DETACHERS.has(invocation.program)) return invocation.program;
  return invocation.via.find(({ program }) => DETACHERS.has(program))?.program ?? null;
}

function findServer(invocation: Invocation): string | null {
  if (invocation.via.some(({ program }) => program === "timeout")) return null;
  const words = [invocation.program, ...argTexts(invocation)];
  return serverIn(words);
}

function serverIn(words: readonly string[]): string | null {
  const [program = "", ...args] = words;
  const operands = dropOptions(args);
  if (PACKAGE_RUNNERS.has(program)) return serverIn(operands);
  if (SCRIPT_RUNNERS.has(program)) return scriptServer(program, operands);
  if (ALWAYS_SERVERS.has(program)) return program;
  if (program === "vite" && !operands.some((word) => word === "build" || word === "optimize")) return "vite";
  if (program === "next" && operands[0] === "dev") return "next dev";
  if (program === "docker-compose") return composeUp(args);
  if (program === "docker" && operands[0] === "compose") return composeUp(args);
  if (/^python[0-9.]*$/.test(program)) return moduleServer(args);
  return null;
}

/** Options of package managers that own the next word, so that `npm --prefix web run dev` is seen. */
const VALUED = new Set(["--prefix", "-C", "--filter", "-F", "--workspace", "-w", "--cwd", "--dir"]);

function dropOptions(args: readonly string[]): readonly string[] {
  return args.filter((arg, index) => !arg.startsWith("-") && !VALUED.has(args[index - 1] ?? ""));
}

function scriptServer(program: string, operands: readonly string[]): string | null {
  const rest = operands[0] === "workspace" ? operands.slice(2) : operands;
  if (rest[0] === "exec" || rest[0] === "dlx" || rest[0] === "x") return serverIn(rest.slice(1));
  const named = rest[0] === "run" || rest[0] === "run-script";
  const script = (named ? rest[1] : rest[0]) ?? "";
  if (SERVER_SCRIPTS.has(script.split(":")[0] ?? "")) return `${program} ${named ? "run " : ""}${script}`;
  return named ? null : serverIn(program === "yarn" || program === "pnpm" ? rest : []);
}

function composeUp(args: readonly string[]): string | null {
  if (!args.includes("up") || args.some((arg) => arg === "-d" || arg === "--detach" || arg === "--no-start"))
    return null;
  return "docker compose up";
}

function moduleServer(args: readonly string[]): string | null {
  const at = args.indexOf("-m");
  const name = args[at + 1] ?? "";
  if (at < 0) return null;
  if (name === "http.server") return "python -m http.server";
  return ALWAYS_SERVERS.has(name) ? name : null;
}

// Commands that certainly change nothing, so that several may run side by side. A doubt counts as a change.

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

const DESTROYERS = new Set(["rm", "rmdir", "cp", "install", "mv", "truncate", "dd", "shred"]);
const GIT_VERBS = new Set(["reset", "clean", "checkout"]);

/** True when the command may overwrite or remove files, so that a checkpoint is taken first. */
export function isDestructiveCommand(command: string): boolean {
  return analyseCommand(command).invocations.some(
    (invocation) => !invocation.remote && (overwrites(invocation) || destroys(invocation)),
  );
}

function destroys(invocation: Invocation): boolean {
  const { program } = invocation;
  const args = argTexts(invocation);
  if (DESTROYERS.has(program)) return true;
  if (program === "sed") {
    const options = readOptions(args, { short: "efl", long: ["expression", "file"] });
    return hasLetter(options, "i") || hasLong(options, "in-place", 2);
  }
  if (program === "find") return args.includes("-delete");
  if (program !== "git") return false;
  const { operands } = readOptions(args, { short: "Cc", long: ["git-dir", "work-tree"], stopAtOperand: true });
  return GIT_VERBS.has(operands[0] ?? "");
}

const HARMLESS = /^(?:\/dev\/(?:null|stdout|stderr|tty|fd\/[0-9]+)|-|[0-9]+)$/;

function overwrites({ redirects }: Invocation): boolean {
  return redirects.some(({ operator, target }) => /^(?:>|>\||&>|>&)$/.test(operator) && !HARMLESS.test(target));
}
