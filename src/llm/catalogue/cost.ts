// Money in whole pico-dollars, so that a million small calls add up exactly.
import type { CostStatus } from "../gate.ts";
import type { Usage } from "../usage.ts";
import type { Price, Rates } from "./prices.ts";

export interface Cost {
  /** Null = unknown; never 0 by default. */
  readonly usd: number | null;
  readonly status: CostStatus;
  readonly source: string | null;
}

type Tokens = Pick<Usage, "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens">;

export function costOf(usage: (Tokens & Pick<Usage, "reportedCostUsd">) | null, price: Price): Cost {
  if (typeof usage?.reportedCostUsd === "number") {
    return { usd: usage.reportedCostUsd, status: "actual", source: "provider" };
  }
  if (price.type === "included") return { usd: 0, status: "included", source: price.source };
  if (price.type === "unknown" || !usage || usage.inputTokens === null || usage.outputTokens === null) {
    return { usd: null, status: "unknown", source: null };
  }
  return { usd: dollars(usage, price), status: "estimated", source: price.source };
}

function dollars(tokens: Tokens, price: Extract<Price, { type: "per_token" }>): number {
  const input = tokens.inputTokens ?? 0;
  const read = tokens.cacheReadTokens ?? 0;
  const write = tokens.cacheWriteTokens ?? 0;
  const rates: Rates = price.tiers.findLast((tier) => input + read + write > tier.above) ?? price.rates;
  const pico =
    times(input, rates.input) +
    times(tokens.outputTokens ?? 0, rates.output) +
    times(read, rates.cacheRead) +
    times(write, rates.cacheWrite) +
    BigInt(Math.round((price.perCall ?? 0) * 1e12));
  return toDollars(pico);
}

/** Dollars per million tokens are micro-dollars, that is 10^6 pico-dollars, per token. */
function times(tokens: number, rate: number): bigint {
  return BigInt(Math.max(0, Math.round(tokens))) * BigInt(Math.round(rate * 1e6));
}

function toDollars(pico: bigint): number {
  return Number((pico + 500n) / 1000n) / 1e9;
}
