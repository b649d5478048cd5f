// A provider's cache that stopped working shows in the figures long before it shows on the bill.
import type { PrefixReport } from "../gate.ts";
import type { Usage } from "../usage.ts";

const LARGE_PROMPT = 8_000;
const LEAST_SHARE = 0.2;
const IN_A_ROW = 2;

export class CacheShare {
  readonly #low = new Map<string, number>();
  readonly #told = new Set<string>();

  /** A sentence for the log when two large requests in a row read next to nothing from the cache; once per session. */
  note(sessionId: string, usage: Usage, { commonBytes, brokeOwner, brokeOffset }: PrefixReport): string | null {
    const { promptTokens, cacheReadTokens } = usage;
    // A first request finds nothing, and a provider that reports nothing proves nothing.
    if (promptTokens === null || cacheReadTokens === null || promptTokens <= LARGE_PROMPT || !commonBytes) return null;
    if (cacheReadTokens >= LEAST_SHARE * promptTokens) {
      this.#low.delete(sessionId);
      return null;
    }
    const times = (this.#low.get(sessionId) ?? 0) + 1;
    this.#low.set(sessionId, times);
    if (times < IN_A_ROW || this.#told.has(sessionId)) return null;
    this.#told.add(sessionId);
    const where =
      brokeOwner === undefined
        ? "the requests themselves begin alike: the provider does not cache them, or forgot them"
        : `the first difference to the request before is in ${brokeOwner}, at byte ${brokeOffset ?? 0}`;
    return `Session ${sessionId}: ${IN_A_ROW} large requests in a row read less than ${LEAST_SHARE * 100} % of their prompt from the provider's cache (${cacheReadTokens} of ${promptTokens} tokens); ${where}. "hermes prompt blame ${sessionId}" shows all of them.`;
  }
}
