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

export function openRouterHeaders(model: string): Readonly<Record<string, string>> {
  return {
    "HTTP-Referer": "https://www.npmjs.com/package/hermes-ts",
    "X-Title": "Hermes",
    ...(model.includes("claude") ? { "x-anthropic-beta": "fine-grained-tool-streaming-2025-05-14" } : {}),
  };
}
