// Simulates a provider's prefix cache: what of a request was sent before, byte for byte, from the start on.
import type { WireName } from "./script.ts";

/** The part of a body that providers cache, in their order: tools, system, messages. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of three protocols
export function promptOf(wire: WireName, body: any): string {
  const strip = (value: unknown) => {
    const text = JSON.stringify(value ?? null);
    // Few bodies carry marks, and leaving them out takes much longer.
    if (!text.includes('"cache_control"')) return text;
    return JSON.stringify(value, (key, inner) => (key === "cache_control" ? undefined : inner));
  };
  const spoken: unknown = wire === "responses" ? body.input : body.messages;
  const turns = Array.isArray(spoken) ? spoken : [spoken];
  const system = wire === "anthropic" ? body.system : wire === "responses" ? body.instructions : null;
  return [strip(body.tools), strip(system), ...turns.map(strip)].join("\n");
}

export class PrefixCache {
  /** In the order of their letters: what shares most with a text stands beside it. */
  readonly #seen: string[] = [];

  /** Length of the longest prefix shared with any earlier prompt; remembers this one. */
  admit(prompt: string): number {
    let [from, to] = [0, this.#seen.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#seen[middle] ?? "") < prompt) from = middle + 1;
      else to = middle;
    }
    const [before = "", after = ""] = [this.#seen[from - 1], this.#seen[from]];
    if (after !== prompt) this.#seen.splice(from, 0, prompt);
    return Math.max(commonPrefix(before, prompt), commonPrefix(after, prompt));
  }
}

function commonPrefix(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return i;
}
