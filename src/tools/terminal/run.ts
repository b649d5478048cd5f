// One call of the terminal tool: checks in order, then the foreground or the background.

import { UserError } from "../../kit/errors.ts";
import { foregroundGuidance } from "../../safety/command-kinds.ts";
import type { ApprovedCommand } from "../../safety/decision.ts";
import { freeBackground } from "../../safety/rewrite.ts";
import { exitCodeMeaning, failureHint } from "../exit-codes.ts";
import { prepareSudo, type SudoCommand } from "../sudo.ts";
import type { TerminalArguments } from "../terminal.ts";
import type { ToolContext } from "../toolset/context.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";
import { presentOutput } from "./output.ts";
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
  const approval = await ctx.guard.decide(command, ctx.signal, cwd);
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
    // There is no place to run it: no container engine, no way to the other machine.
    if (error instanceof UserError) return refusal(error.message);
    throw error;
  }
}

/** A yes that a person or a model gave is told; what needed none is not. */
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
  const result = await environment.execute(sudo.command, {
    timeoutMs: seconds * 1000,
    signal: ctx.signal,
    ...(args.workdir === undefined ? {} : { cwd: resolveWorkdir(args.workdir, ctx), keepCwd: true }),
    ...(sudo.stdin === undefined ? {} : { stdin: sudo.stdin }),
  });
  const ending = result.timedOut
    ? `\n[Command timed out after ${seconds}s]`
    : result.interrupted
      ? "\n[Command interrupted]"
      : "";
  const printed = await transformed(masked(result, sudo.mask), args.command, ctx, sudo.tip(result));
  const shown = await presentOutput(printed, ctx);
  const output = `${shown.output}${ending}`.trim();
  const meaning = exitCodeMeaning(args.command, result.exitCode);
  const hint = meaning ? null : failureHint(result.exitCode, output);
  return toolResult({
    output,
    exit_code: result.exitCode,
    error: null,
    ...consentOf(approval),
    ...(meaning ? { exit_code_meaning: meaning } : {}),
    ...(hint ? { hint } : {}),
    ...(args.pty ? { pty_note: "pty works with background=true only; this ran on pipes" } : {}),
    ...(result.note ? { note: result.note } : {}),
    ...(environment.cwd === before ? {} : { cwd: environment.cwd }),
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
  const takesToken = /\bgh\s+auth\s+login\b.*--with-token/s.test(args.command);
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
    ...(notify ? { notify_on_complete: true } : {}),
    ...(watch.length > 0 ? { watch_patterns: watch } : {}),
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
