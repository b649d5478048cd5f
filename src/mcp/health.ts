// A connection in quiet times: asked for signs of life, and closed when nobody has used it for long.
import { isAnswer } from "./explain.ts";
import type { Link } from "./link.ts";

const PING_MS = 10_000;

export interface QuietWatchOptions {
  readonly keepaliveMs: number;
  /** Null = never closed for being idle. */
  readonly idleMs: number | null;
  /** The connection gave no sign of life. */
  onSilence(link: Link): void;
  /** Nobody has called for so long. */
  onIdle(link: Link): void;
}

export class QuietWatch {
  readonly #options: QuietWatchOptions;
  #link: Link | null = null;
  #keepalive: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: QuietWatchOptions) {
    this.#options = options;
  }

  /** From now on this connection, and no other. */
  begin(link: Link): void {
    this.end();
    this.#link = link;
    this.#keepalive = setInterval(() => void this.#ask(link), this.#options.keepaliveMs);
    this.#keepalive.unref();
    this.rest();
  }

  end(): void {
    this.#link = null;
    clearInterval(this.#keepalive);
    clearTimeout(this.#idle);
  }

  /** A call runs. */
  wake(): void {
    clearTimeout(this.#idle);
  }

  /** No call runs any more. */
  rest(): void {
    const { idleMs, onIdle } = this.#options;
    const link = this.#link;
    clearTimeout(this.#idle);
    if (idleMs === null || !link) return;
    this.#idle = setTimeout(() => onIdle(link), idleMs);
    this.#idle.unref();
  }

  async #ask(link: Link): Promise<void> {
    try {
      await link.client.ping({ timeout: PING_MS });
    } catch (error) {
      // An answer, even "I do not know this", is a sign of life.
      if (!isAnswer(error) && this.#link === link) this.#options.onSilence(link);
    }
  }
}
