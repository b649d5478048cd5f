// Whether a tool can be offered right now. Probes cost something (a binary looked for, a key read), so their answers are kept a while.

import type { Logger } from "../../home/log.ts";
import type { Clock } from "../../kit/clock.ts";
import { sanitizeParameters } from "../../llm/json-schema.ts";
import type { JsonSchema, ToolDefinition } from "../../llm/wire.ts";
import { type AvailabilityFacts, early, type ToolEntry, type ToolRegistry } from "./registry.ts";

const KEPT_MS = 30_000;
const FLAKE_MS = 60_000;
const MAX_KEPT = 512;

type Probe = NonNullable<ToolEntry["spec"]["available"]>;
interface Answer {
  readonly value: boolean;
  readonly at: number;
}

/**
 * Remembers what availability probes answered.
 *
 * - An answer holds for 30 s. A probe that throws says no.
 * - A no within 60 s of the last yes is taken for a hiccup: the tool stays, and the probe is asked again next time.
 */
export class AvailabilityCache {
  readonly #now: Clock["now"];
  #answers = new Map<Probe, Map<string, Answer>>();
  #lastYes = new WeakMap<Probe, Map<string, number>>();

  constructor(clock: Clock) {
    this.#now = () => clock.now();
  }

  async isAvailable(entry: ToolEntry, facts: AvailabilityFacts): Promise<boolean> {
    const { port } = entry.traits;
    if (port !== undefined && facts.ports?.has(port) !== true) return false;
    const probe = early(entry, "available");
    if (!probe) return true;
    const now = this.#now();
    const kept = this.#answers.get(probe)?.get(facts.platform);
    if (kept && now - kept.at < KEPT_MS) return kept.value;
    const value = await ask(probe, facts);
    if (value) this.#yesTimes(probe).set(facts.platform, now);
    else if (now - (this.#yesTimes(probe).get(facts.platform) ?? Number.NEGATIVE_INFINITY) < FLAKE_MS) return true;
    this.#keep(probe, facts.platform, { value, at: now });
    return value;
  }

  /** After a change of configuration or of the enabled toolsets. */
  invalidate(): void {
    this.#answers.clear();
    this.#lastYes = new WeakMap();
  }

  #keep(probe: Probe, platform: string, answer: Answer): void {
    const answers = this.#answers.get(probe) ?? new Map<string, Answer>();
    this.#answers.delete(probe);
    this.#answers.set(probe, answers.set(platform, answer));
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MAX_KEPT) break;
      this.#answers.delete(oldest);
    }
  }

  #yesTimes(probe: Probe): Map<string, number> {
    const times = this.#lastYes.get(probe) ?? new Map<string, number>();
    this.#lastYes.set(probe, times);
    return times;
  }
}

async function ask(probe: Probe, facts: AvailabilityFacts): Promise<boolean> {
  try {
    return await probe(facts);
  } catch {
    return false; // a probe that throws says no
  }
}

// The tool list as a provider gets it: sorted (a stable order keeps prompt caches warm), checked, as few words as possible.

export interface DefinitionSource {
  readonly registry: ToolRegistry;
  readonly availability: AvailabilityCache;
  readonly facts: AvailabilityFacts;
  readonly log: Logger;
  /** Further tools of the session, for descriptions that name others. */
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

function define(entry: ToolEntry, defined: ReadonlySet<string>, source: DefinitionSource): ToolDefinition {
  const { log, session, facts } = source;
  const parameters = facts.sandboxed ? entry.parameters : withoutSandboxed(entry);
  const merged = { description: entry.traits.description, parameters, ...dynamicPart(entry, log) };
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

function withoutSandboxed({ parameters, traits: { sandboxParameters } }: ToolEntry): JsonSchema {
  const { properties } = parameters;
  if (!sandboxParameters || typeof properties !== "object" || properties === null) return parameters;
  const kept = Object.entries(properties).filter(([name]) => !sandboxParameters.includes(name));
  return { ...parameters, properties: Object.fromEntries(kept) };
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

// Services that plugins provide for our tools: pictures, search, browsers, speech. A tool asks here for a name it does not know itself.

type ExtraKind = "image_gen" | "web_search" | "browser" | "tts" | "transcription";

const registered = new Map<string, () => Promise<unknown>>();

/** The first of a name keeps it. Returns how to take it back. */
export function registerProvider(kind: ExtraKind, name: string, load: () => Promise<unknown>): () => void {
  const key = `${kind}/${name}`;
  if (registered.has(key)) throw new Error(`there is a ${kind} provider called "${name}" already`);
  registered.set(key, load);
  return () => {
    if (registered.get(key) === load) registered.delete(key);
  };
}

export function providerNames(kind: ExtraKind): string[] {
  const lead = `${kind}/`;
  return [...registered.keys()].filter((key) => key.startsWith(lead)).map((key) => key.slice(lead.length));
}

/** Null when no plugin provides one of this name. What comes back is the plugin's: its user checks it. */
export async function findProvider(kind: ExtraKind, name: string): Promise<unknown> {
  return (await registered.get(`${kind}/${name}`)?.()) ?? null;
}
