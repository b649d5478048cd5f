// The bundled snapshot of published model facts. Loaded on the first question, each provider's lines read on its first question.
import { hostBelongs, hostOf } from "../providers/hosts.ts";
import { PROVIDERS } from "../providers/table.ts";
import { type ModelFacts, readFactLine } from "./fact-lines.ts";

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
