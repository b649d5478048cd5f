// Mistakes in the shape of config.yaml that no single key's type can show.
import { isMapping } from "./decode.ts";
import type { Tree } from "./yaml-text.ts";

export interface Finding {
  readonly severity: "error" | "warning";
  readonly message: string;
}

/** Looks at the file as it is written, before anything is moved to its place. */
export function checkStructure(tree: Tree): Finding[] {
  return [...customProviders(tree), ...fallbackModel(tree.fallback_model), ...misplaced(tree)];
}

function* customProviders(tree: Tree): Generator<Finding> {
  const given = tree.custom_providers;
  if (given === undefined || given === null) return;
  if (isMapping(given)) {
    yield error(
      "custom_providers is a mapping; write it as a list: each entry starts with `- name: ...` and has a base_url",
    );
  }
  if (Array.isArray(given)) {
    for (const [index, item] of given.entries()) {
      if (!isMapping(item)) {
        yield warning(`custom_providers[${index}] is not a mapping; it needs name and base_url`);
        continue;
      }
      for (const key of ["base_url", "name"]) {
        if (!item[key]) yield warning(`custom_providers[${index}] has no ${key}`);
      }
    }
  }
  if (!tree.model) yield warning("custom_providers is there, but no model; set model.default and model.provider");
}

function* fallbackModel(given: unknown): Generator<Finding> {
  if (given === undefined || given === null) return;
  if (!isMapping(given) && !Array.isArray(given)) {
    yield error("fallback_model must be a mapping with provider and model, or a list of those");
    return;
  }
  const items: readonly unknown[] = Array.isArray(given) ? given : [given];
  for (const [index, item] of items.entries()) {
    const place = Array.isArray(given) ? `fallback_model[${index}]` : "fallback_model";
    if (!isMapping(item)) {
      yield error(`${place} must be a mapping with provider and model`);
      continue;
    }
    for (const key of ["provider", "model"]) {
      if (!item[key]) yield warning(`${place} has no ${key}; this fallback is switched off`);
    }
  }
}

const homes: Readonly<Record<string, string>> = {
  base_url: "model.base_url",
  api_key: "model.api_key",
  rate_limit_delay: "the provider's entry below providers",
  api_mode: "model.api_mode",
};

function* misplaced(tree: Tree): Generator<Finding> {
  for (const [key, home] of Object.entries(homes)) {
    if (tree[key] !== undefined) yield warning(`${key} stands at the top level; it belongs into ${home}`);
  }
}

const error = (message: string): Finding => ({ severity: "error", message });
const warning = (message: string): Finding => ({ severity: "warning", message });
