// The shell: one command in the foreground, or one process in the background that the process tool looks after.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  command: z.string(),
  background: z.boolean().optional().describe("For servers and long jobs"),
  timeout: z.int().optional().describe("Seconds; default 180, foreground at most 600"),
  workdir: z.string().optional().describe("For this call only"),
  pty: z.boolean().optional().describe("Background: a pseudo-terminal"),
  notify_on_complete: z.boolean().optional().describe("Background jobs: a message at the end"),
  watch_patterns: z.array(z.string()).optional().describe("Background servers: a message when a line has one"),
  outside: z.boolean().optional().describe("Leave the sandbox"),
  reason: z.string().optional(),
});
export type TerminalArguments = z.infer<typeof parameters>;

register({
  name: "terminal",
  toolset: "terminal",
  emoji: "💻",
  description:
    "Run a bash command; stdout and stderr come together. Directory, exports, functions and aliases last. Nobody can " +
    "type: no prompts (use -y), no pagers. A foreground command must end by itself; never use &, nohup or setsid. background=true gives a " +
    "session_id for the process tool.",
  parameters,
  sandboxParameters: ["outside", "reason"],
  textOrigin: "local",
  timeoutMs: ({ timeout, background }, config) =>
    background === true ? undefined : 1000 * (typeof timeout === "number" ? timeout : config.terminal.timeout),
  onInvalid: (error) => JSON.stringify({ output: "", exit_code: -1, error, status: "error" }),
  // The parsers behind it are loaded with the first command.
  handler: async (args, ctx) => (await import("./terminal/run.ts")).runTerminal(args, ctx),
});
