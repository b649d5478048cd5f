/** Time and chance enter through this, so that every behaviour can be replayed in a test. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", aborted, { once: true });
      function done() {
        signal?.removeEventListener("abort", aborted);
        resolve();
      }
      function aborted() {
        clearTimeout(timer);
        reject(signal?.reason);
      }
    }),
};

export class OutOfTime extends Error {
  override name = "OutOfTime";
}

/** Without a reason of its own each abort makes an exception with a stack. */
const OVER = "over";

/** The work, if it is done in time; it is left to itself otherwise. */
export async function within<T>(work: () => Promise<T>, ms: number, clock: Clock, signal?: AbortSignal): Promise<T> {
  // First: work that throws at once leaves no timer behind.
  const running = work();
  const stop = new AbortController();
  const limit = clock.sleep(ms, signal ? AbortSignal.any([stop.signal, signal]) : stop.signal).then(() => {
    throw new OutOfTime(`no response within ${ms / 1000} seconds`);
  });
  try {
    return await Promise.race([running, limit]);
  } finally {
    stop.abort(OVER);
    limit.catch(() => undefined); // the loser of the race is ignored
    running.catch(() => undefined);
  }
}

/** What came of work that may ignore its signal. */
type Settled<T> = { readonly done: true; readonly value: T } | { readonly done: false };

/** Waits for work; once the signal aborts it gets `graceMs` more, then it is left to itself and its late result is dropped. */
export async function withGrace<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<Settled<T>> {
  const finished = work.then((value): Settled<T> => ({ done: true, value }));
  const { promise: abandoned, resolve } = Promise.withResolvers<Settled<T>>();
  let timer: NodeJS.Timeout | undefined;
  const start = () => {
    timer = setTimeout(() => resolve({ done: false }), graceMs);
  };
  if (signal.aborted) start();
  else signal.addEventListener("abort", start, { once: true });
  try {
    return await Promise.race([finished, abandoned]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", start);
    finished.catch(() => undefined); // a late failure of abandoned work is ignored
  }
}

/**
 * Aborts with the first of these signals; `release` lets go of them. Unlike `AbortSignal.any` it is gone with its last user: that one stays
 * in memory for as long as anybody listens to it.
 */
export function joinSignals(...signals: readonly AbortSignal[]): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const stops = signals.map((signal) => {
    const stop = () => controller.abort(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    return () => signal.removeEventListener("abort", stop);
  });
  return {
    signal: controller.signal,
    release: () => {
      for (const letGo of stops) letGo();
    },
  };
}
