// models.dev publishes what models there are, how much they take in and write, and what they cost. Read into our own lines.
import { textOf } from "../../kit/http.ts";
import { asList, asRecord, asText, isRecord } from "../../kit/json.ts";
import { type Catalogue, type ModelFacts, type PublishedPrice, writeFactLine } from "./facts.ts";
export const MODELS_DEV = "https://models.dev/api.json";
const MAX_BYTES = 32 * 1024 * 1024;

/** Our provider <- the lists it is made of; an earlier one wins. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  openrouter: ["openrouter"],
  anthropic: ["anthropic"],
  "openai-api": ["openai"],
  gemini: ["google"],
  xai: ["xai"],
  deepseek: ["deepseek"],
  zai: ["zai", "zhipuai"],
  "kimi-coding": ["moonshotai", "kimi-for-coding"],
  "kimi-coding-cn": ["moonshotai-cn"],
  minimax: ["minimax"],
  "minimax-cn": ["minimax-cn"],
  alibaba: ["alibaba"],
  copilot: ["github-copilot"],
  nvidia: ["nvidia"],
  huggingface: ["huggingface"],
  "opencode-zen": ["opencode"],
  "opencode-go": ["opencode-go"],
  xiaomi: ["xiaomi"],
  stepfun: ["stepfun"],
  "ollama-cloud": ["ollama-cloud"],
  "azure-foundry": ["azure"],
};

/** Throws when nothing usable came. */
export async function fetchCatalogue(
  url: string,
  ports: { readonly fetch: typeof globalThis.fetch; readonly signal: AbortSignal },
): Promise<Catalogue> {
  const response = await ports.fetch(url, { signal: ports.signal, redirect: "error" });
  if (!response.ok) throw new Error(`${url} returned HTTP ${response.status}`);
  if (Number(response.headers.get("content-length") ?? 0) > MAX_BYTES) throw new Error(`${url} is far too large`);
  const catalogue = readModelsDev(JSON.parse(await textOf(response, MAX_BYTES)));
  if (Object.keys(catalogue).length === 0) throw new Error(`${url} names no model of a provider we know`);
  return catalogue;
}

export function readModelsDev(published: unknown): Catalogue {
  const catalogue: Record<string, readonly string[]> = {};
  for (const [provider, names] of Object.entries(LISTS)) {
    const models = new Map<string, string>();
    for (const name of names) {
      for (const [id, entry] of Object.entries(asRecord(asRecord(asRecord(published)[name]).models))) {
        if (isRecord(entry) && speaks(entry) && !/[|\n]/.test(id) && !models.has(id))
          models.set(id, writeFactLine(factsOf(id, entry)));
      }
    }
    if (models.size > 0) catalogue[provider] = [...models.values()].sort();
  }
  return catalogue;
}

/** Makers of pictures and sound answer no chat. */
function speaks(entry: Readonly<Record<string, unknown>>): boolean {
  const output = asList(asRecord(entry.modalities).output);
  return output.length === 0 || output.includes("text");
}

function factsOf(id: string, entry: Readonly<Record<string, unknown>>): ModelFacts {
  const { context, output } = asRecord(entry.limit);
  const price = priceOf(entry.cost);
  const long = priceOf(asRecord(entry.cost).context_over_200k);
  return {
    id,
    contextLength: positive(context),
    maxOutput: positive(output),
    images: asList(asRecord(entry.modalities).input).map(asText).includes("image"),
    reasoning: entry.reasoning === true,
    price,
    tiers: price && long ? [{ above: 200_000, ...long }] : [],
  };
}

function priceOf(cost: unknown): PublishedPrice | null {
  const { input, output, cache_read, cache_write } = asRecord(cost);
  const [inputPrice, outputPrice] = [amount(input), amount(output)];
  if (inputPrice === null || outputPrice === null) return null;
  return { input: inputPrice, output: outputPrice, cacheRead: amount(cache_read), cacheWrite: amount(cache_write) };
}

function positive(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : null;
}

function amount(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}
