// Runs a hook's program: words, not a shell; facts on stdin, an answer on stdout, a time limit for all of it.
import { spawn } from "node:child_process";
import { isRecord } from "../../kit/json.ts";
import { endWithUs } from "../../sandbox/outlives-nobody.ts";
import type { Payload } from "../hooks.ts";
import type { ShellHook } from "./settings.ts";

export interface HookRun {
  /** With `~` resolved. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly stdin: string;
  /** Nobody waits for it any more. */
  readonly signal?: AbortSignal | undefined;
}

export type HookRunResult =
  | {
      readonly type: "ended";
      readonly code: number | null;
      readonly stdout: string;
      readonly stderr: string;
      readonly ms: number;
    }
  | { readonly type: "failed"; readonly reason: string; readonly ms: number };

const MOST_CHARS = 1_000_000;

/** Never rejects. The whole family of processes ends with the time limit or the signal. */
export function runHook({ argv, cwd, env, timeoutMs, stdin, signal }: HookRun): Promise<HookRunResult> {
  const began = performance.now();
  const ms = () => Math.round(performance.now() - began);
  const [program = "", ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
    });
    const stop = () => {
      try {
        if (child.pid !== undefined && process.platform !== "win32") process.kill(-child.pid, "SIGKILL");
        else child.kill("SIGKILL");
      } catch {
        // it ended by itself in this moment
      }
    };
    let late = false;
    const giveUp = (why: string) => {
      late = true;
      stop();
      finish({ type: "failed", reason: `it ${why} and was stopped`, ms: ms() });
    };
    const timer = setTimeout(() => giveUp(`took longer than ${timeoutMs / 1000} s`), timeoutMs);
    const interrupt = () => giveUp("was interrupted");
    signal?.addEventListener("abort", interrupt, { once: true });
    const letGo = child.pid === undefined ? null : endWithUs(child.pid);
    const finish = (result: HookRunResult) => {
      letGo?.();
      clearTimeout(timer);
      signal?.removeEventListener("abort", interrupt);
      resolve(result);
    };
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (stdout.length < MOST_CHARS) stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (stderr.length < MOST_CHARS) stderr += text;
    });
    child.stdin.on("error", () => {
      // a hook need not read what it is told
    });
    child.on("error", (error) =>
      finish({ type: "failed", reason: `it could not be started: ${error.message}`, ms: ms() }),
    );
    child.on("close", (code) => {
      if (!late) finish({ type: "ended", code, stdout, stderr, ms: ms() });
    });
    child.stdin.end(stdin);
  });
}

/** What a hook reads. What has no name of its own here is in `extra`. */
export function hookInput(event: string, payload: Payload): string {
  const { tool_name, args, session_id, cwd, ...extra } = payload;
  return JSON.stringify({
    hook_event_name: event,
    tool_name: tool_name ?? null,
    tool_input: args ?? null,
    session_id: session_id ?? "",
    cwd: cwd ?? "",
    extra,
  });
}

export type HookAnswer =
  | { readonly type: "nothing" }
  | { readonly type: "block"; readonly message: string }
  | { readonly type: "context"; readonly text: string }
  /** Something was printed that is no answer to this event. */
  | { readonly type: "ignored"; readonly why: string };

/** What a hook printed, as far as it counts for its event. */
export function readAnswer({ event }: Pick<ShellHook, "event">, stdout: string): HookAnswer {
  if (stdout.trim() === "") return { type: "nothing" };
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    return { type: "ignored", why: "what it printed is not JSON" };
  }
  if (!isRecord(value)) return { type: "ignored", why: "what it printed is no JSON object" };
  const blocks = value.decision === "block" || value.action === "block";
  if (blocks) {
    if (event !== "pre_tool_call") return { type: "ignored", why: `only pre_tool_call may block, not ${event}` };
    const message = [value.reason, value.message].find((text) => typeof text === "string" && text.trim() !== "");
    return { type: "block", message: typeof message === "string" ? message : "Blocked by shell hook." };
  }
  if (typeof value.context === "string") {
    if (event !== "pre_llm_call") return { type: "ignored", why: `only pre_llm_call may add context, not ${event}` };
    return value.context.trim() === "" ? { type: "nothing" } : { type: "context", text: value.context };
  }
  return Object.keys(value).length === 0
    ? { type: "nothing" }
    : { type: "ignored", why: "its answer has none of the known keys" };
}
