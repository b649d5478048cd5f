// What a call at a target costs. Three answers: so much per token, nothing per token (a plan, a local server), or nobody knows.
import { hostBelongs, hostOf, isLocalEndpoint } from "../providers/hosts.ts";
import { providerRow } from "../providers/table.ts";
import type { Target } from "../wire.ts";
import type { PublishedPrice } from "./fact-lines.ts";
import { modelFacts } from "./facts.ts";

/** US dollars per million tokens, every bucket filled. */
export interface Rates {
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

// A cache price of 0 beside a real input price means unpublished: such tokens count as plain input.
function ratesOf({ input, output, cacheRead, cacheWrite }: PublishedPrice): Rates {
  return { input, output, cacheRead: cacheRead || input, cacheWrite: cacheWrite || input };
}
