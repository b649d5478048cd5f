// Sums of model calls: what several groups took together, and how sure the money is.
import type { UsageTotals } from "./store.ts";

/** From sure to unsure: a sum is as unsure as its worst part. */
export const COST_STATUSES = ["included", "actual", "estimated", "unknown"] as const;
type CostStatus = UsageTotals["costStatus"];

export function addUsage(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    calls: one.calls + other.calls,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
    costUsd: one.costUsd + other.costUsd,
    unknownCostCalls: one.unknownCostCalls + other.unknownCostCalls,
    costStatus: worse(one.costStatus, other.costStatus),
  };
}

/** The less sure of the two. */
export function worse(a: CostStatus, b: CostStatus): CostStatus {
  return COST_STATUSES.indexOf(a) >= COST_STATUSES.indexOf(b) ? a : b;
}
