// Older and shorter spellings of settings, brought to the one place where the program looks for them.
import { isMapping } from "./decode.ts";
import type { Tree } from "./yaml-text.ts";

/** The tree with every accepted spelling moved to its key; a value already there wins. The given tree is not touched. */
export function normalise(tree: Tree): Tree {
  const { provider, base_url, context_length, api_base, max_turns, personalities, fallback_model, ...rest } = tree;
  const result: Tree = { ...rest };
  const chain = [tree.fallback_providers, fallback_model].map(asList).find((list) => list.length > 0);
  if (chain) result.fallback_providers = chain;

  const model = modelSection(tree.model);
  fillGap(model, "provider", provider);
  fillGap(model, "base_url", base_url);
  fillGap(model, "base_url", api_base);
  fillGap(model, "context_length", context_length);
  if (Object.keys(model).length > 0 || isMapping(tree.model) || tree.model === "") result.model = model;

  if (max_turns !== undefined || personalities !== undefined) {
    const agent: Tree = isMapping(tree.agent) ? { ...tree.agent } : {};
    fillGap(agent, "max_turns", max_turns);
    if (isMapping(personalities)) {
      agent.personalities = { ...(isMapping(agent.personalities) ? agent.personalities : {}), ...personalities };
    }
    if (isMapping(tree.agent) || tree.agent === undefined || tree.agent === null) result.agent = agent;
  }
  return result;
}

/** One mapping stands for a list of one. */
function asList(value: unknown): readonly unknown[] {
  return isMapping(value) ? [value] : Array.isArray(value) ? value : [];
}

function modelSection(raw: unknown): Tree {
  if (typeof raw === "string") return raw.trim() === "" ? {} : { default: raw };
  if (!isMapping(raw)) return {};
  const { model, name, api_base, ...section } = raw;
  fillGap(section, "default", model);
  fillGap(section, "default", name);
  fillGap(section, "base_url", api_base);
  return section;
}

function fillGap(section: Tree, key: string, value: unknown): void {
  if (isBlank(section[key]) && !isBlank(value)) section[key] = value;
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
