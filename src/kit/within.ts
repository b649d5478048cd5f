import type { Clock } from "./clock.ts";

export class OutOfTime extends Error {
  override name = "OutOfTime";
}

/** The work, if it is done in time; it is left to itself otherwise. */
export async function within<T>(work: () => Promise<T>, ms: number, clock: Clock, signal?: AbortSignal): Promise<T> {
  // First: work that throws at once leaves no timer behind.
  const running = work();
  const stop = new AbortController();
  const limit = clock.sleep(ms, signal ? AbortSignal.any([stop.signal, signal]) : stop.signal).then(() => {
    throw new OutOfTime(`no answer within ${ms / 1000} seconds`);
  });
  try {
    return await Promise.race([running, limit]);
  } finally {
    stop.abort();
    limit.catch(() => undefined); // whoever loses the race has nothing more to say
    running.catch(() => undefined);
  }
}
