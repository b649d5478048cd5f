// One call's life: ends at once when the caller aborts or a limit is passed, and takes the socket with it.
import type { Clock } from "../../kit/clock.ts";
import type { RequestLimits } from "../wire.ts";
import { WireFailure } from "./failure.ts";

const LONGEST_TIMER = 2 ** 31 - 1;

export class Watch {
  readonly #socket = new AbortController();
  readonly #over = new AbortController();
  readonly #caller: AbortSignal;
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  #failure: WireFailure | null = null;
  #reject: ((failure: WireFailure) => void) | null = null;
  #lastSign: number;
  #begun = false;

  constructor(caller: AbortSignal, limits: RequestLimits, clock: Clock) {
    this.#caller = caller;
    this.#clock = clock;
    this.#limits = limits;
    const start = clock.now();
    this.#lastSign = start;
    if (caller.aborted) this.#aborted();
    caller.addEventListener("abort", this.#aborted, { once: true });
    const { totalMs, staleMs, firstByteMs = staleMs } = limits;
    void this.#until(totalMs, () => start, "request_timeout", "The whole request timed out");
    void this.#until(
      firstByteMs,
      () => (this.#begun ? Infinity : start),
      "stale_stream",
      "The server did not answer: timed out",
    );
  }

  /** For `fetch`: aborts when this call is over in any way but a good end. */
  get signal(): AbortSignal {
    return this.#socket.signal;
  }

  /** The response has begun: from here on silence is measured between bytes. */
  begin(): void {
    this.#begun = true;
    this.touch();
    void this.#until(this.#limits.staleMs, () => this.#lastSign, "stale_stream", "The stream fell silent: timed out");
  }

  /** A byte came. */
  touch(): void {
    this.#lastSign = this.#clock.now();
  }

  /** The promise's result, unless the call ends first. One at a time. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      promise.then(resolve, reject);
      if (this.#failure) reject(this.#failure);
    });
  }

  /** The call ended; `closeSocket` unless the body was read to its end. */
  end(options: { closeSocket: boolean }): void {
    this.#caller.removeEventListener("abort", this.#aborted);
    this.#over.abort();
    if (options.closeSocket) this.#socket.abort();
  }

  readonly #aborted = () =>
    this.#fail(new WireFailure({ message: "The call was stopped.", code: "aborted", name: "AbortError" }));

  #fail(failure: WireFailure): void {
    this.#failure ??= failure;
    this.#reject?.(this.#failure);
    this.end({ closeSocket: true });
  }

  async #until(limit: number | undefined, since: () => number, code: string, what: string): Promise<void> {
    if (limit === undefined || limit <= 0 || limit > LONGEST_TIMER) return;
    while (!this.#over.signal.aborted) {
      const now = this.#clock.now();
      const left = since() + limit - now;
      if (left === Infinity) return;
      if (left <= 0) {
        this.#fail(new WireFailure({ message: `${what} after ${limit / 1000} s.`, code, name: "TimeoutError" }));
        return;
      }
      const rang = await this.#clock.sleep(left, this.#over.signal).then(
        () => true,
        () => false,
      );
      // A clock that stands still (tests) cannot measure; without this line it would spin here.
      if (!rang || this.#clock.now() === now) return;
    }
  }
}
