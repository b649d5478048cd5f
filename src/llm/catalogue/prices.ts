// What a call at a target costs. Three answers: so much per token, nothing per token (a plan, a local server), or unknown.

import type { CostStatus } from "../gate.ts";
import { hostBelongs, hostOf, isLocalEndpoint } from "../providers/hosts.ts";
import { providerRow } from "../providers/table.ts";
import type { Usage } from "../usage.ts";
import type { Target } from "../wire.ts";
import { modelFacts, type PublishedPrice } from "./facts.ts";

/** US dollars per million tokens, every bucket filled. */
interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export type Price =
  | {
      readonly type: "per_token";
      readonly rates: Rates;
      /** For requests with more prompt tokens than `above`; smallest first. */
      readonly tiers: readonly (Rates & { readonly above: number })[];
      /** US dollars per call, on top. */
      readonly perCall?: number;
      readonly source: string;
    }
  | { readonly type: "included"; readonly source: string }
  | { readonly type: "unknown" };

export async function priceOf(target: Pick<Target, "provider" | "model" | "baseUrl">): Promise<Price> {
  const { provider, model, baseUrl } = target;
  if (provider === "demo") return { type: "included", source: "demo" };
  if (isLocalEndpoint(baseUrl)) return { type: "included", source: "local" };
  if (providerRow(provider)?.subscription) return { type: "included", source: "subscription" };
  const facts = await modelFacts(provider, model, baseUrl);
  if (!facts?.price) return { type: "unknown" };
  if (facts.price.input === 0 && facts.price.output === 0) return zeroPrice(model, baseUrl);
  return {
    type: "per_token",
    rates: ratesOf(facts.price),
    tiers: facts.tiers.map((tier) => ({ above: tier.above, ...ratesOf(tier) })),
    source: "catalogue",
  };
}

/** A published 0 means "not billed by token"; on endpoints that do bill by token it only means that nobody wrote the price down. */
function zeroPrice(model: string, baseUrl: string): Price {
  const host = hostOf(baseUrl);
  if (hostBelongs(host, "openrouter.ai") && !/:free$|\/free$/.test(model)) return { type: "unknown" };
  if (host === "api.z.ai" && !baseUrl.includes("/coding/")) return { type: "unknown" };
  return { type: "included", source: "catalogue" };
}

// A cache price of 0 next to a real input price means unpublished: such tokens count as plain input.
function ratesOf({ input, output, cacheRead, cacheWrite }: PublishedPrice): Rates {
  return { input, output, cacheRead: cacheRead || input, cacheWrite: cacheWrite || input };
}

// Money in whole pico-dollars, so that a million small calls add up exactly.

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
