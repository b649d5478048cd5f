import { type Command, InvalidArgumentError } from "commander";
import { EFFORTS } from "../../home/config/sections/model.ts";
import { ExitError } from "../cli-context.ts";

// Arguments as the parser expects them.

/** Options of `hermes` and `hermes chat` that take a value. The next word is it unless it has the form of an option. */
const VALUE_OPTIONS: ReadonlySet<string> = new Set([
  "-z",
  "--oneshot",
  "-q",
  "--query",
  "-m",
  "--model",
  "--provider",
  "-t",
  "--toolsets",
  "-s",
  "--skills",
  "-p",
  "--profile",
  "--image",
  "--max-turns",
  "--source",
  "--reasoning",
  "--usage-file",
]);

const NAMING_OPTIONS: ReadonlySet<string> = new Set(["-c", "--continue", "-r", "--resume"]);

const PROMPT_OPTIONS: ReadonlyMap<string, string> = new Map([
  ["-z", "--oneshot"],
  ["--oneshot", "--oneshot"],
  ["-q", "--query"],
  ["--query", "--query"],
]);

/** One word such as `-r`, `--resume` or `--model=x`. `-`, `-5` and a sentence that begins with a dash are values. */
const OPTION = /^--?[a-z][\w-]*(?:=.*)?$/is;

function hasValue(argv: readonly string[], at: number): boolean {
  const next = argv[at + 1];
  return next !== undefined && !OPTION.test(next);
}

/**
 * A prompt may stand away from its option: `-z --resume ID hi` is `--oneshot=hi --resume ID`. Titles are one word then, or quoted.
 * Throws the usage error for an option that got no value.
 */
export function joinPrompt(argv: readonly string[]): readonly string[] {
  let bare = -1;
  const words: number[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--") {
      for (let rest = i + 1; rest < argv.length; rest++) words.push(rest);
      break;
    }
    if (VALUE_OPTIONS.has(word)) {
      if (hasValue(argv, i)) i++;
      else if (PROMPT_OPTIONS.has(word)) bare = i;
      else if (i + 1 < argv.length) throw new ExitError(2, `${word} needs a value, but "${argv[i + 1]}" is an option.`);
    } else if (NAMING_OPTIONS.has(word)) {
      if (hasValue(argv, i)) i++;
    } else if (!OPTION.test(word)) {
      if (bare >= 0) words.push(i);
      else if (word !== "chat") return argv; // another command reads its own options
    }
  }
  return bare < 0 ? argv : withPrompt(argv, bare, words);
}

function withPrompt(argv: readonly string[], bare: number, words: readonly number[]): readonly string[] {
  const option = argv[bare] as string; // it was found there
  const [at, ...more] = words;
  if (at === undefined) {
    if (argv.some((word) => ["-h", "--help", "-V", "--version"].includes(word))) return argv.toSpliced(bare, 1);
    throw new ExitError(2, `${option} needs a prompt: hermes ${option} PROMPT (- reads it from stdin).`);
  }
  if (more.length > 0) {
    const found = words.map((index) => `"${argv[index]}"`).join(", ");
    throw new ExitError(
      2,
      `${option} takes one prompt, but there are several candidates: ${found}. Quote the prompt and put it right after ${option}.`,
    );
  }
  const dashes = argv.indexOf("--");
  const joined = argv.with(bare, `${PROMPT_OPTIONS.get(option)}=${argv[at]}`).toSpliced(at, 1);
  return dashes >= 0 && dashes < at ? joined.toSpliced(dashes, 1) : joined;
}

/**
 * Titles after `-c` and `-r` need no quotes: the words that follow are joined until one starts with `-` or is a sub-command.
 * The first word always belongs to the option, even if it equals a sub-command's name.
 */
export function joinNames(argv: readonly string[], subcommands: ReadonlySet<string>): string[] {
  const out: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--") return [...out, ...argv.slice(i)];
    out.push(word);
    if (VALUE_OPTIONS.has(word) && hasValue(argv, i)) out.push(argv[++i] as string); // checked on the same line
    if (!NAMING_OPTIONS.has(word)) continue;
    const name: string[] = [];
    while (i + 1 < argv.length) {
      const next = argv[i + 1] as string; // i + 1 is in range
      if (next.startsWith("-") || (name.length > 0 && subcommands.has(next))) break;
      name.push(next);
      i++;
    }
    if (name.length > 0) out.push(name.join(" "));
  }
  return out;
}

/** Index of the sub-command: the first word that is neither an option nor an option's value. -1 when there is none. */
export function commandIndex(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--") return -1;
    if (VALUE_OPTIONS.has(word)) {
      if (hasValue(argv, i)) i++;
    } else if (NAMING_OPTIONS.has(word)) {
      if (i + 1 < argv.length && !argv[i + 1]?.startsWith("-")) i++;
    } else if (!word.startsWith("-")) return i;
  }
  return -1;
}

/** What follows `mcp add ... --args` belongs to the server's command, what follows `safety check` to the one checked, whatever it looks like. */
export function shieldForeignWords(argv: readonly string[]): readonly string[] {
  const at = commandIndex(argv);
  if (["safety check", "approvals test"].includes(`${argv[at]} ${argv[at + 1]}`)) {
    const first = argv.findIndex((word, index) => index > at + 1 && !word.startsWith("-"));
    return first < 0 || argv[first - 1] === "--" ? argv : argv.toSpliced(first, 0, "--");
  }
  const args = argv.indexOf("--args", at);
  if (argv[at] !== "mcp" || argv[at + 1] !== "add" || args < 0) return argv;
  return argv.with(args, "--");
}

/** `help`, `help sessions list` are `--help`, `sessions list --help`. */
export function helpAsOption(argv: readonly string[]): readonly string[] {
  const at = commandIndex(argv);
  return argv[at] === "help" ? [...argv.toSpliced(at, 1), "--help"] : argv;
}

/** What stands behind a `-p` that is still there: the profile selection takes away every one with a valid name. */
export function strayProfile(argv: readonly string[]): string | null {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string; // i is in range
    if (word === "--" || !word.startsWith("-")) return null;
    if (word === "-p" || word === "--profile") return argv[i + 1] ?? null;
    if (word.startsWith("--profile=")) return word.slice("--profile=".length);
    if (VALUE_OPTIONS.has(word) && hasValue(argv, i)) i++;
  }
  return null;
}

// The options of `hermes` and `hermes chat`.

export interface ChatOptions {
  readonly oneshot?: string;
  readonly query?: string;
  readonly quiet?: boolean;
  readonly image?: readonly string[];
  readonly model?: string;
  readonly provider?: string;
  readonly toolsets?: string;
  readonly skills?: readonly string[];
  readonly resume?: string;
  /** True when given without a name. */
  readonly continue?: string | true;
  readonly restoreCwd: boolean;
  readonly yolo?: boolean;
  readonly plain?: boolean;
  readonly acceptHooks?: boolean;
  readonly maxTurns?: number;
  readonly passSessionId?: boolean;
  readonly ignoreUserConfig?: boolean;
  readonly ignoreRules?: boolean;
  readonly safeMode?: boolean;
  readonly source?: string;
  readonly verbose?: boolean;
  readonly reasoning?: string;
  readonly json?: boolean;
  readonly usageFile?: string;
  readonly learn?: boolean;
  readonly checkpoints?: boolean;
  readonly worktree?: boolean;
}

export function addChatOptions(command: Command): Command {
  return command
    .option("-V, --version", "print the version")
    .option("-p, --profile <name>", "use another profile (its own home, sessions, memory)")
    .option("-z, --oneshot <prompt>", "answer one prompt; prints only the answer (- reads stdin)")
    .option("-q, --query <text>", "run one turn, then exit (- reads stdin)")
    .option("-Q, --quiet", "with -q: print only the answer")
    .option("--json", "with -z or -q: print one JSON object")
    .option("--image <path>", "attach an image to the first message (repeatable)", collect)
    .option("-m, --model <id>", "model for this run: id, provider:model or alias")
    .option("--provider <name>", "provider for this run")
    .option("-t, --toolsets <names>", "toolsets for this run, comma-separated (all = everything)")
    .option("-s, --skills <names>", "skills to preload, comma-separated (repeatable)", collect)
    .option("-r, --resume <id or title>", "resume a conversation")
    .option("-c, --continue [title]", "resume the latest conversation, or the one with this title")
    .option("--no-restore-cwd", "when resuming, stay in the current folder")
    .option("-w, --worktree", "work in a new git worktree; removed on exit unless it holds unsaved work")
    .option("--yolo", "run dangerous commands without asking")
    .option("--plain", "plain line mode, for screen readers and simple terminals")
    .option("--checkpoints", "save file checkpoints before changes; /rollback restores them")
    .option("--accept-hooks", "allow shell hooks you have not approved yet, for this run")
    .option("--max-turns <n>", "maximum model calls per turn", positiveInteger)
    .option("--reasoning <level>", `reasoning effort for this run: ${EFFORTS.join(" ")}`, reasoningLevel)
    .option("--pass-session-id", "include the session id in the system prompt")
    .option("--ignore-user-config", "ignore config.yaml and use defaults (.env is still read)")
    .option("--ignore-rules", "skip AGENTS.md, SOUL.md, memory and preloaded skills")
    .option("--safe-mode", "both of the above; also skip plugins, MCP servers and hooks")
    .option("--source <name>", "source recorded for the session")
    .option("--usage-file <path>", "with -z: write token usage and cost to this file as JSON")
    .option("--learn", "with -z or -q: wait for a due review of the conversation")
    .option("-v, --verbose", "print the debug log")
    .option("--tui", "accepted for compatibility; no effect")
    .option("--cli", "accepted for compatibility; no effect");
}

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];

function positiveInteger(value: string): number {
  if (/^[1-9]\d*$/.test(value)) return Number(value);
  throw new InvalidArgumentError("Must be a whole number, 1 or more.");
}

function reasoningLevel(value: string): string {
  if ((EFFORTS as readonly string[]).includes(value)) return value;
  throw new InvalidArgumentError(`Must be one of ${EFFORTS.join(", ")}.`);
}
