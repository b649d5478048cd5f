// Runs a hook's program: words, not a shell; facts on stdin, an answer on stdout, a time limit for all of it.

import { spawn } from "node:child_process";
import { messageOf } from "../../kit/errors.ts";
import { isRecord } from "../../kit/json.ts";
import { splitWords } from "../../kit/shell-words.ts";
import { endWithUs } from "../../sandbox/processes.ts";
import { HOOKS, type Payload } from "../hooks.ts";

interface HookRun {
  /** With `~` resolved. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly stdin: string;
  /** Its result is no longer needed. */
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

const MAX_CHARS = 1_000_000;

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
      if (stdout.length < MAX_CHARS) stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (stderr.length < MAX_CHARS) stderr += text;
    });
    child.stdin.on("error", () => {
      // a hook need not read its input
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
    return { type: "ignored", why: "its output is not JSON" };
  }
  if (!isRecord(value)) return { type: "ignored", why: "its output is not a JSON object" };
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
    : { type: "ignored", why: "its output has none of the known keys" };
}

// `hooks` of config.yaml: programs of the user's own, by event.

export interface ShellHook {
  readonly event: string;
  /** As it is written in the settings; consent is given for exactly this. */
  readonly command: string;
  readonly argv: readonly string[];
  /** Which tools it is for; null = all, and every event without a tool. */
  readonly matcher: RegExp | null;
  readonly timeoutSeconds: number;
}

interface HookSettings {
  readonly hooks: readonly ShellHook[];
  /** What is wrong with the others, one line each. */
  readonly problems: readonly string[];
}

const SECONDS = { standard: 60, least: 1, most: 300 };

export function readHookSettings(settings: Readonly<Record<string, unknown>>): HookSettings {
  const hooks: ShellHook[] = [];
  const problems: string[] = [];
  for (const [event, entries] of Object.entries(settings)) {
    if (!(event in HOOKS)) problems.push(`hooks.${event}: there is no such event; it never runs`);
    for (const [index, entry] of (Array.isArray(entries) ? entries : [entries]).entries()) {
      const read = readEntry(event, entry);
      if (typeof read === "string") problems.push(`hooks.${event}[${index}]: ${read}`);
      else hooks.push(read);
    }
  }
  return { hooks, problems };
}

function readEntry(event: string, entry: unknown): ShellHook | string {
  if (!isRecord(entry) || typeof entry.command !== "string" || entry.command.trim() === "")
    return "it needs a command, as in {command: ~/bin/check.sh}";
  const command = entry.command.trim();
  const argv = splitWords(command);
  if (argv === null) return "a quote in its command is not closed";
  if ((argv[0] ?? "") === "") return "its command names no program";
  const matcher = readMatcher(event, entry.matcher);
  if (typeof matcher === "string") return matcher;
  return { event, command, argv, matcher, timeoutSeconds: secondsOf(entry.timeout) };
}

function readMatcher(event: string, matcher: unknown): RegExp | null | string {
  if (matcher === undefined || matcher === null || matcher === "" || matcher === "*") return null;
  if (HOOKS[event]?.tool !== true) return null; // nothing to match against
  if (typeof matcher !== "string") return "its matcher is not a text";
  try {
    return new RegExp(`^(?:${matcher})$`);
  } catch (error) {
    return `its matcher is not a regular expression: ${messageOf(error)}`;
  }
}

function secondsOf(timeout: unknown): number {
  const value = Number(timeout ?? SECONDS.standard);
  if (Number.isNaN(value)) return SECONDS.standard;
  return Math.min(SECONDS.most, Math.max(SECONDS.least, value));
}
