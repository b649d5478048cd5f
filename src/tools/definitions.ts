// The tool list as a provider gets it: sorted (a stable order keeps prompt caches warm), checked, as few words as possible.
import type { Logger } from "../home/log.ts";
import { sanitizeParameters } from "../llm/json-schema.ts";
import type { ToolDefinition } from "../llm/wire.ts";
import type { AvailabilityCache } from "./toolset/availability.ts";
import { type AvailabilityFacts, early, type ToolEntry, type ToolRegistry } from "./toolset/registry.ts";

export interface DefinitionSource {
  readonly registry: ToolRegistry;
  readonly availability: AvailabilityCache;
  readonly facts: AvailabilityFacts;
  readonly log: Logger;
  /** Tools the session has beside those that are defined here, for descriptions that name others. */
  readonly session?: ReadonlySet<string>;
}

/** Definitions of those of `names` that exist and are available now. Unknown names are skipped. */
export async function toolDefinitions(names: Iterable<string>, source: DefinitionSource): Promise<ToolDefinition[]> {
  const entries = await availableTools(names, source);
  const defined = new Set(entries.map(({ name }) => name));
  return entries.map((entry) => define(entry, defined, source));
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

function define(entry: ToolEntry, defined: ReadonlySet<string>, { log, session }: DefinitionSource): ToolDefinition {
  const merged = { description: entry.traits.description, parameters: entry.parameters, ...dynamicPart(entry, log) };
  return {
    type: "function",
    function: {
      name: entry.name,
      description: merged.description.replace(MENTIONS, () =>
        mentioned(entry, (name) => defined.has(name) || session?.has(name)),
      ),
      parameters: sanitizeParameters(merged.parameters),
    },
  };
}

/** Stands in a description for those of `mentions` that the session has. */
const MENTIONS = "{tools}";

function mentioned({ traits }: ToolEntry, has: (name: string) => boolean | undefined): string {
  return (traits.mentions ?? []).filter(has).join(", ") || "none";
}

function dynamicPart(entry: ToolEntry, log: Logger) {
  try {
    return early(entry, "dynamicSchema")?.() ?? {};
  } catch (error) {
    log.warn(`tool ${entry.name}: its dynamic schema failed, the static one is used`, error);
    return {};
  }
}
