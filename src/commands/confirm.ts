import type { CommandContext } from "./context.ts";

export interface DestructiveQuestion {
  readonly what: string;
  readonly detail: string;
  /** The command was typed with a word that skips the question. */
  readonly skip: boolean;
}

/** Destructive commands ask first, unless told not to or there is nothing to lose. True = go on. */
export async function confirmDestructive(
  ctx: CommandContext,
  { what, detail, skip }: DestructiveQuestion,
): Promise<boolean> {
  const session = await ctx.store.get(ctx.conversation.agent.sessionId);
  const nothingToLose = !ctx.busy && (session?.messageCount ?? 0) === 0;
  if (skip || nothingToLose || !ctx.home.config().approvals.destructive_slash_confirm) return true;
  const choice = await ctx.confirm(what, detail);
  if (choice === "always") await ctx.home.setConfigKey("approvals.destructive_slash_confirm", false);
  if (choice === "cancel") ctx.say("Nothing changed.");
  return choice !== "cancel";
}
