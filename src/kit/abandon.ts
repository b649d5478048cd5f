/** What came of work that may ignore its signal. */
export type Settled<T> = { readonly done: true; readonly value: T } | { readonly done: false };

/** Waits for work; once the signal aborts it gets `graceMs` more, then it is left to itself and its late result is dropped. */
export async function orAbandon<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<Settled<T>> {
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
    finished.catch(() => undefined); // a late failure of abandoned work concerns nobody
  }
}
