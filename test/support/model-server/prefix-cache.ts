// Simulates a provider's prefix cache: what of a request was sent before, byte for byte, from the start on.
import type { WireName } from "./script.ts";

/** The part of a body that providers cache, in their order: tools, system, messages. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of three protocols
export function promptOf(wire: WireName, body: any): string {
  const strip = (value: unknown) =>
    JSON.stringify(value ?? null, (key, inner) => (key === "cache_control" ? undefined : inner));
  const spoken: unknown = wire === "responses" ? body.input : body.messages;
  const turns = Array.isArray(spoken) ? spoken : [spoken];
  const system = wire === "anthropic" ? body.system : wire === "responses" ? body.instructions : null;
  return [strip(body.tools), strip(system), ...turns.map(strip)].join("\n");
}

export class PrefixCache {
  readonly #seen: string[] = [];

  /** Length of the longest prefix shared with any earlier prompt; remembers this one. */
  admit(prompt: string): number {
    let best = 0;
    for (const earlier of this.#seen) best = Math.max(best, commonPrefix(earlier, prompt));
    this.#seen.push(prompt);
    return best;
  }
}

function commonPrefix(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i;
}
