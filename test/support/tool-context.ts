// A tool context over real parts, for tests of single tools. What a test does not name gets the plainest real thing.
import { tmpdir } from "node:os";
import { defaultConfig } from "../../src/home/config/schema.ts";
import type { Logger } from "../../src/home/log.ts";
import { homePaths } from "../../src/home/paths.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { Environment } from "../../src/sandbox/environment.ts";
import type { ToolContext } from "../../src/tools/toolset/context.ts";
import { createToolState } from "../../src/tools/toolset/session-tools.ts";
import { allowingGuard } from "./cleared.ts";

export interface LogLine {
  readonly level: string;
  readonly message: string;
}

export function recordingLog(lines: LogLine[] = []): Logger & { readonly lines: LogLine[] } {
  const at = (level: string) => (message: string) => void lines.push({ level, message });
  const log = { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), child: () => log };
  return log;
}

/** Stands where a test needs no shell; using it is a defect of the test. */
const noEnvironment: Environment = {
  kind: "none",
  cwd: "/",
  tempDir: tmpdir(),
  home: "/",
  isolated: false,
  execute: () => Promise.reject(new Error("this test has no environment")),
  spawn: () => Promise.reject(new Error("this test has no environment")),
  setCwd: () => undefined,
  cleanup: async () => undefined,
};

export function toolContext(given: Partial<ToolContext> & { readonly homeDir?: string } = {}): ToolContext {
  const { homeDir = tmpdir(), ...ports } = given;
  return {
    home: homePaths(homeDir, homeDir, "default"),
    config: defaultConfig(),
    profile: "default",
    sessionId: "session-1",
    turn: 1,
    taskId: "task-1",
    platform: "cli",
    source: "cli",
    origin: "foreground",
    interactive: true,
    signal: new AbortController().signal,
    clock: systemClock,
    log: recordingLog(),
    callId: "call_1",
    environment: noEnvironment,
    guard: allowingGuard(),
    ask: async (question) => (question.kind === "approval" ? { choice: "deny" } : { text: null }) as never, // the refusing answer
    sessions: null,
    state: createToolState(),
    contextLength: 200_000,
    toolNames: new Set(),
    redact: (text) => text,
    progress: () => undefined,
    ...ports,
  };
}
