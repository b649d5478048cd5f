// One call of the terminal tool: checks in order, then the foreground or the background.
import { UserError } from "../../kit/errors.ts";
import { foregroundGuidance } from "../../safety/command-kinds.ts";
import { type ApprovedCommand, type ClearedCommand, SUDO_PROBE, SUDO_PROBE_OUTSIDE } from "../../safety/decision.ts";
import { freeBackground, readSudoPasswords } from "../../safety/rewrite.ts";
import type { Command } from "../../safety/shell/ast.ts";
import { parseCommandLine, plainText } from "../../safety/shell/parse.ts";
import type { Confinement, ExecuteResult } from "../../sandbox/environment.ts";
import type { TerminalArguments } from "../terminal.ts";
import type { StateKey, ToolContext } from "../toolset/context.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";
import { LastLines, presentOutput } from "./output.ts";
import { processTable } from "./processes.ts";

const MAX_FOREGROUND_SECONDS = 600;
const WORKDIR = /^[\p{L}\p{M}\p{N}/\\:_\-.~+@=, ]+$/u;

export async function runTerminal(args: TerminalArguments, ctx: ToolContext): Promise<string> {
  const { command, background = false } = args;
  if (command.trim() === "") return refusal("command is empty");
  const most = Number(ctx.env?.("TERMINAL_MAX_FOREGROUND_TIMEOUT")) || MAX_FOREGROUND_SECONDS;
  const seconds = args.timeout ?? Math.min(ctx.config.terminal.timeout, most);
  if (seconds <= 0) return toolError("timeout must be at least 1 second");
  if (!background && seconds > most) {
    return toolError(
      `timeout ${seconds} is over the foreground limit of ${most} seconds; use background=true for longer work`,
    );
  }
  const guidance = background ? null : foregroundGuidance(command);
  if (guidance) return refusal(guidance);

  const cwd = args.workdir === undefined ? ctx.environment.cwd : resolveWorkdir(args.workdir, ctx);
  const leaves = args.outside === true && ctx.environment.confinement !== undefined;
  const reason = args.reason?.trim() ?? "";
  if (leaves && reason === "")
    return refusal("outside=true needs a reason: say why this command cannot run in the sandbox");
  const approval = await ctx.guard.decide(command, ctx.signal, { cwd, ...(leaves && { outside: { reason } }) });
  if (!approval.approved) {
    if (!approval.pending) return refusal(approval.message, "blocked");
    return toolResult({
      ...refused(approval.message, "pending_approval"),
      approval_pending: true,
      command,
      description: approval.description,
      pattern_key: approval.patternKey,
    });
  }
  if (args.workdir !== undefined && !WORKDIR.test(args.workdir)) {
    return refusal(`workdir holds characters that no directory name needs: ${JSON.stringify(args.workdir)}`, "blocked");
  }
  try {
    return await (background ? startInBackground(args, ctx, approval) : runInForeground(args, ctx, seconds, approval));
  } catch (error) {
    // It cannot run anywhere: no container engine, no way to the other machine.
    if (error instanceof UserError) return refusal(error.message);
    throw error;
  }
}

/** Shows a yes that a person or a model gave; what needed none is not mentioned. */
const consentOf = ({ userApproved, smartApproved, description }: ApprovedCommand) => {
  if (userApproved) return { approval: `The user approved this command (${description})` };
  return smartApproved ? { approval: `The approving model allowed this one command (${description})` } : {};
};

async function runInForeground(
  args: TerminalArguments,
  ctx: ToolContext,
  seconds: number,
  approval: ApprovedCommand,
): Promise<string> {
  const { environment } = ctx;
  const before = environment.cwd;
  const sudo = await prepareSudo(freeBackground(approval.cleared), ctx);
  const { mask = (text: string) => text } = sudo;
  const tail = ctx.showOutput ? new LastLines(ctx.showOutput, (text) => ctx.redact(mask(text))) : null;
  const result = await environment.execute(sudo.command, {
    timeoutMs: seconds * 1000,
    signal: ctx.signal,
    ...(args.workdir === undefined ? {} : { cwd: resolveWorkdir(args.workdir, ctx), keepCwd: true }),
    stdin: sudo.stdin,
    ...(ctx.forScript ? {} : { shownFor: ctx.callId }),
    ...(tail && { onOutput: (text: string) => tail.push(text) }),
  });
  tail?.stop();
  const ending = result.timedOut
    ? `\n[Command timed out after ${seconds}s]`
    : result.interrupted
      ? "\n[Command interrupted]"
      : "";
  const printed = await transformed(masked(result, sudo.mask), args.command, ctx, sudo.tip(result));
  const shown = await presentOutput(printed, ctx);
  const output = `${shown.output}${ending}`.trim();
  const meaning = exitCodeMeaning(args.command, result.exitCode, result.output);
  const { confinement } = approval.cleared.outside ? {} : environment;
  const blocked = confinement ? sandboxHint(result.exitCode, output, confinement) : null;
  const hint = blocked ?? (meaning ? null : failureHint(result.exitCode, output));
  return toolResult({
    output,
    exit_code: result.exitCode,
    error: null,
    ...consentOf(approval),
    exit_code_meaning: meaning || undefined,
    hint: hint || undefined,
    pty_note: args.pty ? "pty works with background=true only; this ran on pipes" : undefined,
    note: result.note,
    cwd: environment.cwd === before ? undefined : environment.cwd,
    ...shown.truncation,
  });
}

type Printed = Awaited<ReturnType<ToolContext["environment"]["execute"]>>;

/** Masked on both sides of a gap, which moves with what stands before it. */
function masked(result: Printed, mask: SudoCommand["mask"]): Printed {
  if (!mask) return result;
  const head = mask(result.output.slice(0, result.headChars));
  return { ...result, output: head + mask(result.output.slice(result.headChars)), headChars: head.length };
}

/** What hooks make of the output, the tip included; what they give is the whole of it. */
async function transformed(result: Printed, command: string, ctx: ToolContext, tip: string): Promise<Printed> {
  const output = result.output + tip;
  const changed = await ctx.transformOutput?.({
    command,
    output,
    returncode: result.exitCode,
    task_id: ctx.taskId,
    session_id: ctx.sessionId,
    env_type: ctx.environment.kind,
  });
  if (typeof changed !== "string") return { ...result, output };
  return { ...result, output: changed, omittedChars: 0, headChars: 0 };
}

async function startInBackground(
  args: TerminalArguments,
  ctx: ToolContext,
  approval: ApprovedCommand,
): Promise<string> {
  const login = args.command.search(/\bgh\s+auth\s+login\b/);
  const takesToken = login >= 0 && args.command.includes("--with-token", login);
  const pty = args.pty === true && !takesToken;
  const cwd = args.workdir === undefined ? ctx.environment.cwd : resolveWorkdir(args.workdir, ctx);
  const child = await ctx.environment.spawn(freeBackground(approval.cleared), { cwd, pty });
  const notify = args.notify_on_complete === true;
  const patterns = (args.watch_patterns ?? []).filter((pattern) => pattern !== "");
  const watch = notify ? [] : patterns;
  const started = await ctx.state.of(processTable).add(child, { command: args.command, cwd, notify, watch }, ctx);
  if ("error" in started) return refusal(started.error);
  return toolResult({
    output: "Background process started",
    session_id: started.id,
    pid: child.pid,
    exit_code: 0,
    error: null,
    ...consentOf(approval),
    notify_on_complete: notify || undefined,
    watch_patterns: watch.length > 0 ? watch : undefined,
    ...(notify && patterns.length > 0
      ? { watch_patterns_ignored: "notify_on_complete is set; only the end is reported" }
      : {}),
    ...(!notify && watch.length === 0
      ? { hint: "Nothing will tell you when it ends: poll or wait with the process tool" }
      : {}),
    ...((notify || watch.length > 0) && !ctx.notify
      ? { notify_unsupported: "This session cannot receive messages by itself; poll or wait with the process tool" }
      : {}),
    ...(takesToken && args.pty
      ? { pty_note: "gh reads the token from standard input, so this runs without a pty" }
      : {}),
    ...(child.note ? { [pty ? "pty_note" : "note"]: child.note } : {}),
  });
}

function resolveWorkdir(workdir: string, { environment }: ToolContext): string {
  if (/^([/\\]|[A-Za-z]:)/.test(workdir)) return workdir;
  if (workdir === "~" || workdir.startsWith("~/")) return environment.home + workdir.slice(1);
  return `${environment.cwd.replace(/\/$/, "")}/${workdir}`;
}

const refused = (error: string, status: string) => ({ output: "", exit_code: -1, error, status });
const refusal = (error: string, status = "error") => toolResult(refused(error, status));

// What an exit code means when it is not a failure, and one line of help when it is.

const NO_MATCH = { 1: "No match found (not an error)" };
const DIFFERENT = { 1: "The files differ (not an error)" };
const FALSE = { 1: "The condition is false (not an error)" };

const MEANINGS: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  ...Object.fromEntries(["grep", "egrep", "fgrep", "rg", "ag", "ack"].map((name) => [name, NO_MATCH])),
  diff: DIFFERENT,
  colordiff: DIFFERENT,
  find: { 1: "Some paths could not be read; the rest of the result holds" },
  test: FALSE,
  "[": FALSE,
  git: { 1: "Often means that there are differences (not an error)" },
  curl: {
    6: "The host name could not be resolved",
    7: "The connection was refused",
    22: "The server answered with an HTTP error",
    28: "The request timed out",
  },
};

/** Judged by the last command of the line. Null for success and for codes that mean a real failure. */
export function exitCodeMeaning(command: string, exitCode: number, output = ""): string | null {
  if (exitCode === 0) return null;
  const program = lastProgram(command);
  if (program === "git" && /^(?:error|fatal): /m.test(output)) return null;
  return (program && MEANINGS[program]?.[exitCode]) || null;
}

const HINTS: readonly [matches: (exitCode: number, output: string) => boolean, hint: string][] = [
  [(code) => code === 124, "It ran out of time: give it a longer timeout, or background=true"],
  [(code) => code === 137, "It was killed, most likely for using too much memory"],
  [
    (code, output) => code === 127 || /command not found/.test(output),
    "Command not found: check the spelling, its package and PATH",
  ],
  [
    (_, output) => /ModuleNotFoundError|No module named|Cannot find module|ERR_MODULE_NOT_FOUND/.test(output),
    "A module is missing: install it, or use the environment that has it",
  ],
  [(_, output) => /permission denied/i.test(output), "Permission denied: check owner and mode of the path"],
  [(code) => code === 126, "It was found but could not be run, or its directory could not be entered"],
];

const HOW_TO_LEAVE = "If it must, call terminal again with outside=true and a reason";

/** Whether it failed for the sandbox's sake. */
function sandboxHint(exitCode: number, output: string, { network }: Pick<Confinement, "network">): string | null {
  if (exitCode === 0) return null;
  const found = SANDBOX_FAILURES.find(
    ([pattern, onlyWithout]) => !(onlyWithout && network === "on") && pattern.test(output),
  );
  if (!found) return null;
  const [, onlyWithout, what] = found;
  const reach = typeof network === "string" ? network : `limited to ${network.join(", ")}`;
  const setting = onlyWithout ? ` (terminal.sandbox_network: ${reach})` : "";
  return `The sandbox is in the way: ${what}${setting}. ${HOW_TO_LEAVE}`;
}

const SANDBOX_FAILURES: readonly [pattern: RegExp, onlyWithoutNetwork: boolean, what: string][] = [
  [
    /read-only file system|\bEROFS\b|unable to create temporary object directory/i,
    false,
    "this place can be read but not written",
  ],
  // git replaces its settings by renaming, and a mount cannot be renamed over.
  [/could not (?:write|lock) config file|device or resource busy/i, false, "settings of git cannot be written"],
  [
    /could not resolve host|temporary failure in name resolution|name or service not known|network is unreachable|\bE(?:AI_AGAIN|NOTFOUND|NETUNREACH)\b|CONNECT tunnel failed|Tunnel connection failed|response 403 from proxy|Proxy CONNECT aborted/i,
    true,
    "there is no way to that host",
  ],
  [
    /no new privileges|\bsudo: .{0,200}(?:nosuid|effective uid is not 0|owned by uid)/i,
    false,
    "nobody gains rights in it",
  ],
  [
    /ssh-agent|SSH_AUTH_SOCK|could not open a connection to your authentication agent|gpg failed to sign|Permission denied \(publickey/i,
    false,
    "keys and agents are not visible",
  ],
  [/cannot connect to the docker daemon|docker\.sock/i, false, "daemons of this machine cannot be reached"],
];

export function failureHint(exitCode: number, output: string): string | null {
  if (exitCode === 0) return null;
  return HINTS.find(([matches]) => matches(exitCode, output))?.[1] ?? null;
}

function lastProgram(command: string): string | null {
  let last: Command | undefined = parseCommandLine(command).script.pipelines.at(-1)?.commands.at(-1);
  while (last?.type === "group") last = last.bodies.at(-1)?.pipelines.at(-1)?.commands.at(-1);
  const word = last?.words[0];
  const text = word ? plainText(word) : null;
  return text?.slice(text.lastIndexOf("/") + 1) ?? null;
}

// Lets a command use sudo with the user's password, which only ever travels through the command's standard input.

const PROBE_MS = 3000;
const ASK_MS = 45_000;
const REFUSED = /sorry, try again|incorrect password|no password was provided/i;
const NEEDS_PASSWORD = /sudo: (a password is required|a terminal is required|no tty present)/i;

const remembered: StateKey<{ password: string | null }> = {
  name: "sudo",
  create: () => ({ password: null }),
};

interface SudoCommand {
  readonly command: ClearedCommand;
  /** One password line for each sudo. */
  readonly stdin?: string;
  /** A sudo that had a valid ticket reads no password and leaves it to the command, which may print it. */
  mask?(output: string): string;
  /** One line for the model when sudo could not work. */
  tip(result: ExecuteResult): string;
}

async function prepareSudo(command: ClearedCommand, ctx: ToolContext): Promise<SudoCommand> {
  const { command: rewritten, count } = readSudoPasswords(command);
  if (count === 0) return { command, tip: () => "" };
  const known = ctx.state.of(remembered);
  const password = (await worksWithoutPassword(ctx, command)) ? null : await findPassword(known, ctx);
  const tip = (result: ExecuteResult) => {
    if (REFUSED.test(result.output)) known.password = null;
    if (!NEEDS_PASSWORD.test(result.output)) return "";
    return "\nTip: sudo needs a password here. Ask the user to run `hermes config set SUDO_PASSWORD ...`, or do without sudo.";
  };
  if (password === null) return { command, tip };
  return {
    command: rewritten,
    stdin: `${password}\n`.repeat(count),
    mask: password === "" ? undefined : (output: string) => output.replaceAll(password, "***"),
    tip,
  };
}

/** Also true where there is no sudo at all: the command itself will say so. */
async function worksWithoutPassword(
  { environment, signal }: ToolContext,
  { outside }: ClearedCommand,
): Promise<boolean> {
  if (environment.kind !== "local" && !outside) return false;
  const probe = outside ? SUDO_PROBE_OUTSIDE : SUDO_PROBE;
  const { exitCode } = await environment.execute(probe, { timeoutMs: PROBE_MS, signal, stateless: true });
  return exitCode === 0 || exitCode === 127;
}

async function findPassword(known: { password: string | null }, ctx: ToolContext): Promise<string | null> {
  const fromEnvironment = ctx.env?.("SUDO_PASSWORD");
  if (fromEnvironment !== undefined) return fromEnvironment;
  if (known.password === null && ctx.interactive) {
    const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(ASK_MS)]);
    known.password = (await ctx.ask({ kind: "sudo" }, signal)).text;
  }
  return known.password;
}
