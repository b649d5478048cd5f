// Looks after the background processes that the terminal tool started.
import { z } from "zod";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  action: z.enum(["list", "poll", "log", "wait", "kill", "write", "submit", "close"]),
  session_id: z.coerce.string().optional().describe("Not for list"),
  data: z.string().optional().describe("write, submit"),
  timeout: z.int().optional().describe("wait: seconds"),
  offset: z.int().optional().describe("log: first line"),
  limit: z.int().optional().describe("log: lines, default 200"),
});
export type ProcessArguments = z.infer<typeof parameters>;

register({
  name: "process",
  toolset: "terminal",
  emoji: "⚙️",
  description:
    "Processes of terminal(background=true). poll: status and newest output; log: output by lines; wait: until it ends; " +
    "write: text to its input; submit: text and Enter; close: end of input.",
  parameters,
  verbatim: ["data"],
  textOrigin: "local",
  timeoutMs: ({ action }, config) => (action === "wait" ? config.terminal.timeout * 1000 : undefined),
  handler: async (args, ctx) => (await import("./terminal/process-actions.ts")).runProcess(args, ctx),
});
