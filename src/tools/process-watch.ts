// When a line of a background process is worth a message to the model, and when there were too many of them.
import type { Clock } from "../kit/clock.ts";

const WINDOW_MS = 15_000;
const STRIKES = 3;
const MAX_LINES = 20;
const MAX_CHARS = 2000;

const BREAKER_MESSAGES = 15;
const BREAKER_MS = 10_000;
const PAUSE_MS = 30_000;

export type WatchEvent =
  | { readonly type: "match"; readonly text: string; readonly missed: number }
  /** Three windows in a row had more matches than one: watching ends, only the process's end will be told. */
  | { readonly type: "overflow" };

/** Looks for texts in the output lines of one process. */
export class LineWatch {
  readonly #patterns: readonly string[];
  readonly #now: () => number;
  readonly #redact: (text: string) => string;
  #partial = "";
  #windowStart = Number.NEGATIVE_INFINITY;
  #missed = 0;
  #strikes = 0;
  #active = true;

  /** What matches is told redacted; it is redacted before it is cut, while secrets are still whole. */
  constructor(patterns: readonly string[], clock: Clock, redact: (text: string) => string) {
    this.#patterns = patterns;
    this.#redact = redact;
    this.#now = () => clock.now();
  }

  push(text: string): WatchEvent | null {
    const lines = (this.#partial + text).split("\n");
    const rest = lines.pop() ?? "";
    this.#partial = rest.length > MAX_CHARS ? this.#redact(rest).slice(-MAX_CHARS) : rest;
    const matches = lines.filter((line) => this.#patterns.some((pattern) => line.includes(pattern)));
    if (!this.#active || matches.length === 0) return null;
    const now = this.#now();
    if (now - this.#windowStart < WINDOW_MS) return this.#miss(matches.length);
    if (this.#missed === 0) this.#strikes = 0;
    const missed = this.#missed;
    this.#missed = 0;
    this.#windowStart = now;
    const told = this.#redact(matches.slice(0, MAX_LINES).join("\n")).slice(0, MAX_CHARS);
    return { type: "match", text: told, missed };
  }

  #miss(count: number): WatchEvent | null {
    if (this.#missed === 0) this.#strikes++;
    this.#missed += count;
    if (this.#strikes < STRIKES) return null;
    this.#active = false;
    return { type: "overflow" };
  }
}

/** Stops the messages of all watches together when they come too fast. */
export class WatchBreaker {
  readonly #clock: Clock;
  readonly #say: (text: string) => void;
  readonly #signal: AbortSignal;
  #sent: number[] = [];
  #paused = false;

  constructor(clock: Clock, say: (text: string) => void, signal: AbortSignal) {
    this.#clock = clock;
    this.#say = say;
    this.#signal = signal;
  }

  send(text: string): void {
    if (this.#paused) return;
    const now = this.#clock.now();
    this.#sent = [...this.#sent.filter((at) => now - at < BREAKER_MS), now];
    if (this.#sent.length <= BREAKER_MESSAGES) {
      this.#say(text);
      return;
    }
    this.#paused = true;
    this.#say("[IMPORTANT: Background processes matched too often; watch messages pause for 30 seconds.]");
    this.#clock.sleep(PAUSE_MS, this.#signal).then(
      () => {
        this.#paused = false;
        this.#sent = [];
        this.#say("[IMPORTANT: Watch messages of background processes are on again.]");
      },
      () => undefined, // the agent was closed during the pause
    );
  }
}
