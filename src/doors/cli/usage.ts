// `hermes usage`: what the model calls of this home took, per purpose, model or day.
import { type Command, InvalidArgumentError, Option } from "commander";
import { addUsage } from "../../sessions/ledger.ts";
import type { UsageTotals } from "../../sessions/store.ts";
import { type CliContext, ExitError } from "../cli-context.ts";

const NOTHING: UsageTotals = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  unknownCostCalls: 0,
  costStatus: "included",
};
const GROUPS = ["purpose", "model", "day"] as const;

interface UsageFlags {
  readonly days?: number;
  readonly session?: string;
  readonly by: (typeof GROUPS)[number];
  readonly json?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("show tokens and cost of model calls")
    .addOption(new Option("--days <N>", "only the last N days").argParser(wholeDays))
    .option("--session <ID>", "only this conversation, with its side calls")
    .addOption(new Option("--by <GROUP>", "group by").choices(GROUPS).default("purpose"))
    .option("--json", "machine-readable")
    .action((flags: UsageFlags) => show(flags, ctx));
}

async function show(flags: UsageFlags, ctx: CliContext): Promise<void> {
  const store = await ctx.store();
  const sessionId = flags.session === undefined ? undefined : await store.resolveId(flags.session);
  if (sessionId === null) {
    throw new ExitError(1, `No session "${flags.session}". \`hermes sessions list\` shows them.`);
  }
  const rows = await store.usage({
    by: flags.by,
    sessionId,
    sinceSeconds: flags.days === undefined ? undefined : ctx.clock.now() / 1000 - flags.days * 86_400,
  });
  const total = [...rows.values()].reduce(addUsage, NOTHING);
  if (flags.json) {
    const groups = [...rows].map(([key, totals]) => ({ [flags.by]: key, ...asJson(totals) }));
    ctx.io.out(
      `${JSON.stringify({ by: flags.by, session_id: sessionId ?? null, days: flags.days ?? null, rows: groups, total: asJson(total) }, null, 2)}\n`,
    );
    return;
  }
  if (rows.size === 0) {
    ctx.io.out("No model calls recorded for this selection.\n");
    return;
  }
  ctx.io.out(table(flags.by, rows, total));
  if (total.unknownCostCalls > 0) {
    const calls = total.unknownCostCalls === 1 ? "1 call is" : `${total.unknownCostCalls} calls are`;
    ctx.io.out(`\nThe cost of ${calls} unknown and not included in the total.\n`);
  }
}

function table(by: string, rows: ReadonlyMap<string, UsageTotals>, total: UsageTotals): string {
  const head = [by, "calls", "cache read", "cache write", "fresh input", "output", "reasoning", "cost", "status"];
  const lines = [
    head,
    ...[...rows].map(([key, totals]) => cells(key, totals)),
    ...(rows.size > 1 ? [cells("total", total)] : []),
  ];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]) =>
    line
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 || column === line.length - 1 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ");
  return `${lines.map((line) => render(line).trimEnd()).join("\n")}\n`;
}

function cells(key: string, totals: UsageTotals): readonly string[] {
  const { calls, cacheReadTokens, cacheWriteTokens, inputTokens, outputTokens, reasoningTokens } = totals;
  const counts = [calls, cacheReadTokens, cacheWriteTokens, inputTokens, outputTokens, reasoningTokens];
  return [key, ...counts.map((count) => count.toLocaleString("en-US")), costText(totals), totals.costStatus];
}

/** An unknown cost is never shown as 0. */
function costText({ calls, costUsd, unknownCostCalls }: UsageTotals): string {
  if (calls > 0 && unknownCostCalls === calls) return "unknown";
  const known = `$${costUsd.toFixed(costUsd !== 0 && costUsd < 0.01 ? 6 : 2)}`;
  return unknownCostCalls > 0 ? `${known} + unknown` : known;
}

function asJson(totals: UsageTotals) {
  return {
    calls: totals.calls,
    input_tokens: totals.inputTokens,
    output_tokens: totals.outputTokens,
    cache_read_tokens: totals.cacheReadTokens,
    cache_write_tokens: totals.cacheWriteTokens,
    reasoning_tokens: totals.reasoningTokens,
    cost_usd: totals.calls > 0 && totals.unknownCostCalls === totals.calls ? null : totals.costUsd,
    unknown_cost_calls: totals.unknownCostCalls,
    cost_status: totals.costStatus,
  };
}

function wholeDays(value: string): number {
  if (/^[1-9]\d{0,4}$/.test(value)) return Number(value);
  throw new InvalidArgumentError("Must be a whole number of days, 1 or more.");
}
