// What the process tool does, action by action.

import { messageOf } from "../../kit/errors.ts";
import type { ProcessArguments } from "../process.ts";
import type { ToolContext } from "../toolset/context.ts";
import { toolError, toolResult } from "../toolset/dispatch.ts";
import { processTable, type TrackedProcess, visible } from "./processes.ts";

const PREVIEW_CHARS = 1000;
const LIST_PREVIEW_CHARS = 200;
const LOG_LINES = 200;

export async function runProcess(args: ProcessArguments, ctx: ToolContext): Promise<string> {
  const table = ctx.state.of(processTable);
  if (args.action === "list") {
    const all = await table.list(ctx);
    return toolResult({ processes: all.map((process) => listLine(process, ctx)) });
  }
  if (!args.session_id) return toolError(`session_id is required for ${args.action}`);
  const process = await table.get(args.session_id, ctx);
  if (!process) {
    return toolResult({
      status: "not_found",
      error: `No background process ${args.session_id}; action list shows all`,
    });
  }
  switch (args.action) {
    case "poll":
      return toolResult(poll(process, ctx));
    case "log":
      return toolResult(log(process, args, ctx));
    case "wait":
      return toolResult(await wait(process, args.timeout, ctx));
    case "kill":
      return kill(process, ctx);
    case "write":
    case "submit":
      return write(process, `${args.data ?? ""}${args.action === "submit" ? "\n" : ""}`);
    case "close":
      return close(process);
  }
}

function listLine(process: TrackedProcess, ctx: ToolContext) {
  return {
    session_id: process.id,
    command: ctx.redact(process.command),
    status: status(process),
    pid: process.pid,
    uptime_seconds: uptime(process, ctx),
    preview: tail(process, LIST_PREVIEW_CHARS, ctx),
    ...(process.child ? {} : { detached: true }),
  };
}

function poll(process: TrackedProcess, ctx: ToolContext) {
  return {
    session_id: process.id,
    command: ctx.redact(process.command),
    status: status(process),
    pid: process.pid,
    uptime_seconds: uptime(process, ctx),
    output_preview: tail(process, PREVIEW_CHARS, ctx),
    exit_code: process.exitCode ?? undefined,
    ...(process.child ? {} : { detached: true, note: "Started by an earlier run: its output and input are lost" }),
  };
}

function log(process: TrackedProcess, { offset = 0, limit = LOG_LINES }: ProcessArguments, ctx: ToolContext) {
  if (status(process) === "exited") process.consumed = true;
  const lines = ctx.redact(visible(process)).replace(/\n$/, "").split("\n");
  const total = lines.length === 1 && lines[0] === "" ? 0 : lines.length;
  const from = offset > 0 ? offset : Math.max(0, total - limit);
  const shown = lines.slice(from, Math.min(total, from + limit));
  return {
    session_id: process.id,
    status: status(process),
    output: shown.join("\n"),
    total_lines: total,
    showing: shown.length > 0 ? `lines ${from}-${from + shown.length - 1}` : "no lines",
  };
}

async function wait(process: TrackedProcess, wanted: number | undefined, ctx: ToolContext) {
  const most = ctx.config.terminal.timeout;
  const seconds = Math.max(1, Math.min(wanted ?? most, most));
  const clamped = wanted !== undefined && wanted > most ? { timeout_note: `timeout cut to ${most} seconds` } : {};
  const wasConsumed = process.consumed;
  process.consumed = true;
  const why = await firstEnd(process, seconds * 1000, ctx);
  if (why !== "exited") process.consumed = wasConsumed;
  const base = { session_id: process.id, output: tail(process, PREVIEW_CHARS, ctx), ...clamped };
  if (why === "exited") return { status: "exited", exit_code: process.exitCode, ...base };
  if (why === "interrupted") return { status: "interrupted", process_running: true, ...base };
  return {
    status: "timeout",
    process_running: true,
    note: `Still running after ${seconds} seconds; that is not an error. Wait again, poll, or do something else meanwhile`,
    ...base,
  };
}

async function firstEnd(
  process: TrackedProcess,
  ms: number,
  ctx: ToolContext,
): Promise<"exited" | "timeout" | "interrupted"> {
  if (status(process) === "exited") return "exited";
  const stop = new AbortController();
  const signal = AbortSignal.any([ctx.signal, stop.signal]);
  const time = ctx.clock.sleep(ms, signal).then(
    () => "timeout" as const,
    () => "interrupted" as const,
  );
  const why = await Promise.race([process.ended.then(() => "exited" as const), time]);
  stop.abort();
  return why;
}

async function kill(process: TrackedProcess, ctx: ToolContext): Promise<string> {
  if (status(process) === "exited") {
    process.consumed = true;
    return toolResult({ status: "already_exited", session_id: process.id, exit_code: process.exitCode });
  }
  if (!(await ctx.state.of(processTable).kill(process, ctx))) {
    return toolError(`pid ${process.pid} belongs to another process by now; nothing was killed`, {
      session_id: process.id,
    });
  }
  return toolResult({
    status: "killed",
    session_id: process.id,
    exit_code: process.exitCode,
    output: tail(process, PREVIEW_CHARS, ctx),
  });
}

async function write(process: TrackedProcess, data: string): Promise<string> {
  const child = inputOf(process);
  if (typeof child === "string") return child;
  try {
    return toolResult({ status: "ok", bytes_written: await child.write(data) });
  } catch (error) {
    return toolError(`${process.id} takes no input: ${messageOf(error)}`);
  }
}

function close(process: TrackedProcess): string {
  const child = inputOf(process);
  if (typeof child === "string") return child;
  child.closeInput();
  return toolResult({ status: "ok", bytes_written: 0 });
}

function inputOf(process: TrackedProcess) {
  if (status(process) === "exited") return toolResult({ status: "already_exited", error: `${process.id} has ended` });
  if (!process.child) return toolError(`${process.id} was started by an earlier run; its input is lost`);
  return process.child;
}

function status(process: TrackedProcess): "running" | "exited" {
  return process.finishedAt === null ? "running" : "exited";
}

function uptime(process: TrackedProcess, ctx: ToolContext): number {
  return Math.max(0, Math.round(((process.finishedAt ?? ctx.clock.now()) - process.startedAt) / 1000));
}

function tail(process: TrackedProcess, chars: number, ctx: ToolContext): string {
  return ctx.redact(visible(process)).trimEnd().slice(-chars);
}
