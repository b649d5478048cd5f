// What OpenRouter wants beside the plain protocol: routing wishes in the body, and who is calling in the headers.
import { mapping, type ProviderConfig } from "./settings.ts";

const SORTS = ["price", "throughput", "latency"];

/** `provider` and `plugins` of the request body; only what the user set. */
export function openRouterBody(config: ProviderConfig, model: string): Readonly<Record<string, unknown>> {
  const wishes = mapping(config.provider_routing);
  const provider: Record<string, unknown> = {};
  if (typeof wishes.sort === "string" && SORTS.includes(wishes.sort)) provider.sort = wishes.sort;
  for (const key of ["only", "ignore", "order"] as const) {
    const names = Array.isArray(wishes[key]) ? wishes[key].filter((name) => typeof name === "string") : [];
    if (names.length > 0) provider[key] = names;
  }
  if (typeof wishes.require_parameters === "boolean") provider.require_parameters = wishes.require_parameters;
  if (wishes.data_collection === "allow" || wishes.data_collection === "deny") {
    provider.data_collection = wishes.data_collection;
  }
  const score = mapping(config.openrouter).min_coding_score;
  const automatic = model === "openrouter/auto" || model === "auto";
  return {
    ...(Object.keys(provider).length > 0 ? { provider } : {}),
    ...(automatic && typeof score === "number" ? { plugins: [{ id: "pareto-router", min_coding_score: score }] } : {}),
  };
}

export function openRouterHeaders(config: ProviderConfig, model: string): Readonly<Record<string, string>> {
  return {
    ...cacheHeaders(mapping(config.openrouter)),
    "HTTP-Referer": "https://www.npmjs.com/package/hermes-ts",
    "X-Title": "Hermes",
    ...(model.includes("claude") ? { "x-anthropic-beta": "fine-grained-tool-streaming-2025-05-14" } : {}),
  };
}

/** The same request again is answered from OpenRouter's own store for so many seconds, where the user wants that. */
function cacheHeaders({
  response_cache,
  response_cache_ttl: ttl,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  if (response_cache !== true) return {};
  const seconds = typeof ttl === "number" && ttl >= 1 && ttl <= 86_400 ? Math.floor(ttl) : 300;
  return { "X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": String(seconds) };
}
