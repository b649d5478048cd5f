// Whether a tool can be offered right now. Probes cost something (a binary looked for, a key read), so their answers are kept a while.
import type { Clock } from "../../kit/clock.ts";
import { type AvailabilityFacts, early, type ToolEntry } from "./registry.ts";

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
