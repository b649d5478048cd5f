// Sends a message to a chat that is not the one of the conversation.
import { z } from "zod";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  action: z.enum(["send", "list"]).optional().describe("Default send"),
  target: z
    .string()
    .optional()
    .describe("A platform (its home channel), platform:chat_id[:thread_id] or platform:#name; with list: a platform"),
  message: z.string().optional().describe("Markdown; MEDIA:/absolute/path on a line of its own sends a file"),
});

register({
  name: "send_message",
  toolset: "messaging",
  emoji: "📨",
  deferred: true,
  description:
    "Send a message to another chat or platform, or list the chats that can be reached. Your answer reaches this conversation by itself: never send it with this.",
  parameters,
  port: "deliver",
  textOrigin: "local",
  handler: send,
});

async function send(
  { action, target = "", message = "" }: z.infer<typeof parameters>,
  ctx: ToolContext,
): Promise<string> {
  const { deliver: port } = ctx;
  if (!port) return toolError("No gateway stands behind this conversation: nothing can be sent from here.");
  if (action === "list")
    return toolResult({ platforms: await port.list(target.trim() === "" ? undefined : target.trim()) });
  if (target.trim() === "")
    return toolError("target is required: a platform, or platform:chat_id. action list shows them.");
  if (message.trim() === "") return toolError("message is required.");
  // Once a stranger's text is in the conversation, it may be what wants this sent.
  const verdict = await ctx.guard.decideSend?.(`the chat ${target.trim()}`, ctx.signal);
  if (verdict && !verdict.approved) return toolError(verdict.message);
  const result = await port.deliver({ target, message, cause: `send:${ctx.callId}` });
  return "error" in result ? toolError(`${result.error}.`) : toolResult(result);
}
