/** The promise, unless the time is over or the signal aborts first; then whatever comes of it is ignored. */
export function within<T>(promise: Promise<T>, ms: number, late: () => Error, signal?: AbortSignal): Promise<T> {
  promise.catch(() => undefined); // told to the caller below, or too late to matter
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(late())), ms);
    const stop = () => finish(() => reject(signal?.reason instanceof Error ? signal.reason : new Error("interrupted")));
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
    promise.then(
      (value) => finish(() => resolve(value)),
      (error) => finish(() => reject(error)),
    );
    function finish(settle: () => void): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      settle();
    }
  });
}
