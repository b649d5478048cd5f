// The bundled snapshot of published model facts. Loaded on the first question, each provider's lines read on its first question.
import { hostBelongs, hostOf } from "../providers/hosts.ts";
import { PROVIDERS } from "../providers/table.ts";

/** Lines of models, by our own names of providers. */
export type Catalogue = Readonly<Record<string, readonly string[]>>;

let loading: Promise<Catalogue> | null = null;
let newer: Catalogue = {};
const parsed = new Map<string, ReadonlyMap<string, ModelFacts>>();

/** Lists that were published later: what they say of a model holds, what they do not name stays known. */
export function addPublished(catalogue: Catalogue): void {
  newer = catalogue;
  parsed.clear();
}

/** All models of one of our providers, in the order of their names; empty when nothing is published. */
export async function modelsOf(provider: string): Promise<readonly ModelFacts[]> {
  const models = [...(await listOf(provider)).values()];
  return newer[provider] ? models.sort((a, b) => (a.id < b.id ? -1 : 1)) : models;
}

/** What is published about a model at a provider, or null. */
export async function modelFacts(provider: string, model: string, baseUrl = ""): Promise<ModelFacts | null> {
  const list = await listOf(providerAt(provider, baseUrl));
  for (const name of spellings(model)) {
    const found = list.get(name);
    if (found) return found;
  }
  return null;
}

/** The same model as an aggregator lists it, whatever the vendor prefix; for endpoints nothing is published about. */
export async function modelFactsAnywhere(model: string): Promise<ModelFacts | null> {
  const slugs = new Set(spellings(model).map(slugOfModel));
  for (const [id, facts] of await listOf("openrouter")) {
    if (slugs.has(slugOfModel(id))) return facts;
  }
  return null;
}

async function listOf(provider: string): Promise<ReadonlyMap<string, ModelFacts>> {
  const known = parsed.get(provider);
  if (known) return known;
  loading ??= import("./model-facts.generated.json", { with: { type: "json" } }).then((module) => module.default);
  const lines = [...((await loading)[provider] ?? []), ...(newer[provider] ?? [])];
  const list = new Map(lines.map((line) => [line.split("|", 1)[0]?.toLowerCase() ?? "", readFactLine(line)]));
  parsed.set(provider, list);
  return list;
}

/** A custom endpoint on a vendor's host is that vendor; the Nous portal sells what OpenRouter lists. */
function providerAt(provider: string, baseUrl: string): string {
  if (provider === "nous" || provider === "kilocode") return "openrouter";
  if (provider !== "custom") return provider;
  const host = hostOf(baseUrl);
  const row = PROVIDERS.find(({ auth, hosts }) => auth !== "none" && hosts.some((domain) => hostBelongs(host, domain)));
  return row?.id ?? provider;
}

function spellings(model: string): readonly string[] {
  const name = model.trim().toLowerCase();
  const plain = name.replace(/:[a-z]+$/, "");
  const undated = plain.replace(/-20\d{6}$/, "");
  const slug = slugOfModel(undated);
  return [...new Set([name, plain, undated, slug, slug.replaceAll(".", "-")])];
}

function slugOfModel(id: string): string {
  return id.slice(id.lastIndexOf("/") + 1);
}

// One model on one line: id | context | output | flags (i images, r reasoning) | prices | tier;tier ...
// with prices = input,output,cacheRead,cacheWrite. Thousands of them load much quicker than as objects.

/** US dollars per million tokens. */
export interface PublishedPrice {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
}

export interface ModelFacts {
  readonly id: string;
  readonly contextLength: number | null;
  readonly maxOutput: number | null;
  readonly images: boolean;
  readonly reasoning: boolean;
  readonly price: PublishedPrice | null;
  /** Prices of requests with more prompt tokens than `above`, smallest first. */
  readonly tiers: readonly (PublishedPrice & { readonly above: number })[];
}

export function readFactLine(line: string): ModelFacts {
  const [id = "", context = "", output = "", flags = "", price = "", tiers = ""] = line.split("|");
  return {
    id,
    contextLength: context ? Number(context) : null,
    maxOutput: output ? Number(output) : null,
    images: flags.includes("i"),
    reasoning: flags.includes("r"),
    price: price ? readPrice(price) : null,
    tiers: tiers
      ? tiers
          .split(";")
          .map((tier) => {
            const colon = tier.indexOf(":");
            return { above: Number(tier.slice(0, colon)), ...readPrice(tier.slice(colon + 1)) };
          })
          .sort((a, b) => a.above - b.above)
      : [],
  };
}

export function writeFactLine({ id, contextLength, maxOutput, images, reasoning, price, tiers }: ModelFacts): string {
  const flags = `${images ? "i" : ""}${reasoning ? "r" : ""}`;
  const above = tiers.map((tier) => `${tier.above}:${writePrice(tier)}`).join(";");
  const fields = [id, contextLength ?? "", maxOutput ?? "", flags, price ? writePrice(price) : "", above];
  return fields.join("|").replace(/(?<!\|)\|+$/, "");
}

function readPrice(text: string): PublishedPrice {
  const [input = "", output = "", cacheRead = "", cacheWrite = ""] = text.split(",");
  return {
    input: Number(input),
    output: Number(output),
    cacheRead: cacheRead === "" ? null : Number(cacheRead),
    cacheWrite: cacheWrite === "" ? null : Number(cacheWrite),
  };
}

function writePrice({ input, output, cacheRead, cacheWrite }: PublishedPrice): string {
  return [input, output, cacheRead ?? "", cacheWrite ?? ""].join(",");
}
