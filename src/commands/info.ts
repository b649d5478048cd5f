// Commands that only tell something, and the one that leaves.

import { versionLine } from "../home/product.ts";
import { compactDuration, contextSize, dollars, tokenCount } from "../kit/formats.ts";
import type { UsageTotals } from "../sessions/store.ts";
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";
import { takeSkipWord } from "./registry.ts";
import { confirmDestructive } from "./session.ts";

const help: CommandDefinition = {
  name: "help",
  description: "list the commands",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(ctx.commands());
  },
};

const usage: CommandDefinition = {
  name: "usage",
  description: "tokens and cost of this conversation",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { agent, target } = ctx.conversation;
    const rows = await ctx.store.usage({ sessionId: agent.sessionId, by: "purpose" });
    if (rows.size === 0) return ctx.say("Nothing has been sent to a model yet.");
    const used = agent.lastOutcome?.lastPromptTokens ?? null;
    const context =
      used === null
        ? "not known yet"
        : `${tokenCount(used)} / ${contextSize(target.contextLength)} (${Math.round((used / target.contextLength) * 100)}%)`;
    ctx.say(
      [
        `Model: ${target.model} (${target.provider})`,
        `Context: ${context}`,
        "",
        "purpose             calls   cache read  cache write     input    output  reasoning  cost",
        ...[...rows].map(([purpose, totals]) => usageRow(purpose, totals)),
      ].join("\n"),
    );
  },
};

function usageRow(purpose: string, totals: UsageTotals): string {
  const column = (value: number, width: number) => tokenCount(value).padStart(width);
  const figures = [
    column(totals.cacheReadTokens, 12),
    column(totals.cacheWriteTokens, 12),
    column(totals.inputTokens, 9),
    column(totals.outputTokens, 9),
    column(totals.reasoningTokens, 10),
  ].join(" ");
  return `${purpose.padEnd(18)} ${String(totals.calls).padStart(6)} ${figures}  ${costOf(totals)}`;
}

/** Unknown is never shown as nothing. */
function costOf(totals: UsageTotals): string {
  if (totals.unknownCostCalls === 0) return dollars(totals.costUsd);
  return totals.unknownCostCalls === totals.calls
    ? "unknown"
    : `≥ ${dollars(totals.costUsd)} (${totals.unknownCostCalls} of ${totals.calls} calls unknown)`;
}

const status: CommandDefinition = {
  name: "status",
  description: "this conversation at a glance",
  category: "Session",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { agent, target } = ctx.conversation;
    const session = await ctx.store.get(agent.sessionId);
    ctx.say(
      [
        `Session:  ${agent.sessionId}`,
        `Title:    ${session?.title ?? "—"}`,
        `Home:     ${ctx.home.paths.dir} (profile ${ctx.home.paths.profile})`,
        `Model:    ${target.model} (${target.provider})`,
        ...(session
          ? [`Started:  ${compactDuration(ctx.now() - session.startedAt)} ago, ${session.messageCount} messages`]
          : []),
        `Running:  ${ctx.busy ? "yes" : "no"}`,
        ...(ctx.conversation.yolo ? ["YOLO:     on"] : []),
      ].join("\n"),
    );
  },
};

const profile: CommandDefinition = {
  name: "profile",
  description: "which profile and home this is",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(`Profile ${ctx.home.paths.profile}, home ${ctx.home.paths.dir}`);
  },
};

const version: CommandDefinition = {
  name: "version",
  aliases: ["v"],
  description: "version of the program",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(versionLine());
  },
};

const quit: CommandDefinition = {
  name: "quit",
  aliases: ["exit"],
  description: "leave; --delete removes this conversation",
  category: "Exit",
  availability: "cli",
  argsHint: "[--delete]",
  busyPolicy: "interrupt_then_dispatch",
  async run(typed, ctx: CommandContext) {
    const { args, skip } = takeSkipWord(typed);
    const deleteSession = args === "--delete";
    if (deleteSession && !(await confirmDestructive(ctx, "Delete this conversation for good?", skip))) return;
    ctx.quit({ deleteSession });
  },
};

export const INFO_COMMANDS: readonly CommandDefinition[] = [status, help, usage, profile, version, quit];
