// Scripts that call tools: many calls and what is made of them, for one result in the conversation.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

/** What a script may call, as far as the session has it. */
export const SCRIPT_TOOLS = [
  "web_search",
  "web_extract",
  "read_file",
  "write_file",
  "search_files",
  "patch",
  "terminal",
] as const;

const TIMEOUT_MS = 300_000;

const parameters = z.object({ code: z.string() });

register({
  name: "execute_code",
  toolset: "code_execution",
  emoji: "🐍",
  description:
    "Run a Python script (JavaScript where there is no Python) for several calls with logic between them, or much data of " +
    "which little matters. `from hermes_tools import …` gives: {tools} (each returns a dict), json_parse, " +
    "shell_quote, retry. You see only what it prints. 5 minutes, 50 calls.",
  mentions: SCRIPT_TOOLS,
  parameters,
  textOrigin: "local",
  timeoutMs: () => TIMEOUT_MS,
  onInvalid: (error) => JSON.stringify({ status: "error", output: "", tool_calls_made: 0, duration_seconds: 0, error }),
  handler: async ({ code }, ctx) =>
    (await import("./execute-code/run.ts")).runCode(code, ctx, { timeoutMs: TIMEOUT_MS, tools: SCRIPT_TOOLS }),
});
