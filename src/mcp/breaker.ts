import type { Clock } from "../kit/clock.ts";

const FAILURES = 3;
const REFUSED_MS = 60_000;

/** Three failures in a row, and a server is left in peace for a minute: a model that insists would only wait. */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #reason = "";
  #openUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why calls are refused right now, and for how many seconds; null = they are not. */
  refusal(): { readonly reason: string; readonly seconds: number } | null {
    const left = this.#openUntil - this.#clock.now();
    return left > 0 ? { reason: this.#reason, seconds: Math.ceil(left / 1000) } : null;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(reason: string): void {
    this.#reason = reason;
    if (++this.#failures < FAILURES) return;
    this.#openUntil = this.#clock.now() + REFUSED_MS;
    // The first call after the pause is a trial: if it fails, the pause begins anew.
    this.#failures = FAILURES - 1;
  }

  reset(): void {
    this.#failures = 0;
    this.#openUntil = 0;
  }
}
