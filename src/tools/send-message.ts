// Messages to chats outside the conversation. The way there is a port: without a connected platform there is none.
import { z } from "zod";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";

const parameters = z.object({
  action: z.enum(["send", "list"]).optional().describe("list: where messages can go; default send"),
  target: z.string().optional().describe("platform, platform:chat or platform:chat:thread"),
  message: z.string().optional().describe("May hold MEDIA:<path> to send a file"),
});

register({
  name: "send_message",
  toolset: "messaging",
  emoji: "📨",
  deferred: true,
  port: "deliver",
  description:
    "Send a message to a chat outside this conversation, when the user asks for it. A bare platform means its home chat. Your answer here needs no sending.",
  parameters,
  textOrigin: "local",
  handler: sendMessage,
});

async function sendMessage(args: z.infer<typeof parameters>, ctx: ToolContext): Promise<string> {
  if (!ctx.deliver) return toolError("No messaging platform is configured in this run: nothing can be sent.");
  if (args.action === "list") return toolResult({ success: true, targets: await ctx.deliver.targets(ctx) });
  const target = args.target?.trim() ?? "";
  if (target === "")
    return toolError("target: say where to, as platform or platform:chat; action list shows the chats.");
  if (!/^[a-z][a-z0-9_]*(:.+)?$/i.test(target))
    return toolError(`target: "${target}" is not platform, platform:chat or platform:chat:thread.`);
  const text = args.message ?? "";
  if (text.trim() === "") return toolError("message: is empty.");
  return toolResult(await ctx.deliver.send({ target, text }, ctx));
}
