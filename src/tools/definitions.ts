// The tool list as a provider gets it: sorted (a stable order keeps prompt caches warm), checked, as few words as possible.
import type { Logger } from "../home/log.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { AvailabilityCache } from "./availability.ts";
import { type AvailabilityFacts, early, type ToolEntry, type ToolRegistry } from "./registry.ts";
import { sanitizeParameters } from "./schema.ts";

export interface DefinitionSource {
  readonly registry: ToolRegistry;
  readonly availability: AvailabilityCache;
  readonly facts: AvailabilityFacts;
  readonly log: Logger;
}

/** Definitions of those of `names` that exist and are available now. Unknown names are skipped. */
export async function toolDefinitions(names: Iterable<string>, source: DefinitionSource): Promise<ToolDefinition[]> {
  const entries = await availableTools(names, source);
  return entries.map((entry) => define(entry, source.log));
}

/** The entries behind `toolDefinitions`, in the same order. */
export async function availableTools(
  names: Iterable<string>,
  { registry, availability, facts }: DefinitionSource,
): Promise<ToolEntry[]> {
  const entries = [...new Set(names)].sort().flatMap((name) => registry.get(name) ?? []);
  const offered = await Promise.all(entries.map((entry) => availability.isAvailable(entry, facts)));
  return entries.filter((_, index) => offered[index]);
}

function define(entry: ToolEntry, log: Logger): ToolDefinition {
  const merged = { description: entry.traits.description, parameters: entry.parameters, ...dynamicPart(entry, log) };
  return {
    type: "function",
    function: {
      name: entry.name,
      description: merged.description,
      parameters: sanitizeParameters(merged.parameters),
    },
  };
}

function dynamicPart(entry: ToolEntry, log: Logger) {
  try {
    return early(entry, "dynamicSchema")?.() ?? {};
  } catch (error) {
    log.warn(`tool ${entry.name}: its dynamic schema failed, the static one is used`, error);
    return {};
  }
}
