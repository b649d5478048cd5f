// Names of models as people type them.
import { type ModelFacts, modelsOf } from "../catalogue/facts.ts";
import { mapping, ProviderError, text } from "./settings.ts";
import { resolveProviderAlias } from "./table.ts";

// `qwen:0.5b` and `deepseek:latest` are Ollama tags, not a provider and a model.
const TAG = /^(\d+(\.\d+)?(x\d+)?[bm]\b|latest|stable|q\d|fp?\d+|bf16|instruct|chat|coder|vision|text)/i;

interface PrefixedModel {
  readonly provider: string;
  readonly model: string;
}

/** `openrouter:x` is a provider and a model; null for a name whose colon means something else, such as a tag. */
export function splitProviderPrefix(name: string, isProvider: (name: string) => boolean): PrefixedModel | null {
  const [, provider = "", model = ""] = /^([^:]+):(.+)$/.exec(name) ?? [];
  if (model === "" || TAG.test(model) || !isProvider(provider)) return null;
  // `custom:box:x` is the model x of the user's own entry box.
  const own = provider.toLowerCase() === "custom" && splitProviderPrefix(model, (box) => isProvider(`custom:${box}`));
  return own ? { provider: `custom:${own.provider}`, model: own.model } : { provider, model };
}

/** `openrouter:x` -> `x`; a name with a tag stays whole. */
export function stripProviderPrefix(model: string): string {
  // `local` is no provider of ours, but a usual word for "the server I already use".
  const isKnown = (name: string) => name.toLowerCase() === "local" || isProviderName(name);
  return splitProviderPrefix(model, isKnown)?.model ?? model;
}

function isProviderName(name: string): boolean {
  try {
    return resolveProviderAlias(name) !== "";
  } catch (error) {
    if (error instanceof ProviderError) return false;
    throw error;
  }
}

/** `/model NAME [--provider P] [--global] [--refresh]`; phones turn `--` into a long dash. */
export function parseModelFlags(
  input: string,
): readonly [model: string, provider: string, global: boolean, refresh: boolean] {
  const words = input
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replace(/^(?=-*[–—])[-–—]+(?=[a-z])/i, "--"));
  const rest: string[] = [];
  let provider = "";
  let global = false;
  let refresh = false;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--global") global = true;
    else if (word === "--refresh") refresh = true;
    else if (word.startsWith("--provider=")) provider = word.slice("--provider=".length);
    else if (word === "--provider") provider = words[++index] ?? "";
    else rest.push(word);
  }
  return [rest.join(" "), provider, global, refresh];
}

const FAMILIES: Readonly<Record<string, RegExp>> = {
  sonnet: /^claude-sonnet-/,
  opus: /^claude-opus-/,
  haiku: /^claude-haiku-/,
  fable: /^claude-fable-/,
  claude: /^claude-(sonnet|opus)-/,
  gpt: /^gpt-\d/,
  gpt5: /^gpt-5/,
  "gpt-5": /^gpt-5/,
  codex: /^gpt-.*codex/,
  gemini: /^gemini-\d/,
  flash: /^gemini-\d.*flash/,
  grok: /^grok-\d/,
  kimi: /^kimi-k/,
  glm: /^glm-/,
  deepseek: /^deepseek-/,
  qwen: /^qwen-?\d/,
  minimax: /^minimax-m/,
  mimo: /^mimo-/,
};

interface NamedModel {
  readonly model: string;
  readonly provider?: string | undefined;
  readonly baseUrl?: string | undefined;
}

/** The user's aliases first, then our families (the newest published model of the provider), then the name as it is. */
export async function resolveModelName(
  name: string,
  { provider, aliases }: { readonly provider: string; readonly aliases?: unknown },
): Promise<NamedModel> {
  const wanted = name.trim();
  const own = mapping(aliases)[wanted] ?? mapping(aliases)[wanted.toLowerCase()];
  if (typeof own === "string" && own.trim() !== "") return { model: own.trim() };
  const entry = mapping(own);
  const model = text(entry.model);
  if (model) return { model, provider: text(entry.provider), baseUrl: text(entry.base_url) };
  const family = FAMILIES[wanted.toLowerCase()];
  const newest = family ? newestOf(await modelsOf(provider), family) : null;
  return { model: newest ?? stripProviderPrefix(wanted) };
}

function newestOf(models: readonly ModelFacts[], family: RegExp): string | null {
  const ranked = models
    .filter(({ id }) => family.test(slugOf(id)) && !id.includes(":"))
    .map((facts) => ({ id: facts.id, rank: rankOf(facts) }))
    .sort((a, b) => compareRanks(b.rank, a.rank) || a.id.length - b.id.length || (a.id < b.id ? -1 : 1));
  return ranked[0]?.id ?? null;
}

const SPECIAL =
  /(pro|mini|nano|lite|chat|spark|cyber|fast|highspeed|preview|image|vision|audio|live|tts|customtools|contributor|free|air|latest|codex|exp)/;

/** Version first; then the plain name before a special edition; then the dearer one, which is the vendor's flagship. */
function rankOf({ id, price }: ModelFacts): readonly number[] {
  const slug = slugOf(id);
  const version = /\d{1,2}(?![\dbm])(?:[.-]\d{1,2}(?![\dbkm]))*/.exec(slug)?.[0] ?? "0";
  const [major = 0, minor = 0] = version.split(/[.-]/).map(Number);
  const edition = slug.slice(slug.indexOf(version) + version.length);
  return [major, minor, SPECIAL.test(edition) ? 0 : 1, /^(-20\d{6})?$/.test(edition) ? 1 : 0, price?.input ?? 0];
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function slugOf(id: string): string {
  return id.slice(id.lastIndexOf("/") + 1).toLowerCase();
}
