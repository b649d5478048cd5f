// Work that may take long or much memory, on a thread of its own that is given up when it comes to no end in time.

interface WorkerLimits {
  readonly signal: AbortSignal;
  readonly timeMs: number;
  readonly memoryMb: number;
}

/** What the thread posts; null when it came to no end in time, or to a bad one. Rejects only with the signal's reason. */
export async function runInWorker<Result>(script: URL, data: unknown, options: WorkerLimits): Promise<Result | null> {
  const { signal, timeMs, memoryMb } = options;
  const { Worker } = await import("node:worker_threads");
  signal.throwIfAborted();
  const worker = new Worker(script, {
    workerData: data,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    // What comes from outside must not find the user's keys, and nothing is written over the screen.
    env: {},
    stdout: true,
    stderr: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<Result | null>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const late = setTimeout(() => resolve(null), timeMs);
  worker.once("message", resolve);
  worker.once("error", () => resolve(null));
  worker.once("exit", () => resolve(null));
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
    await worker.terminate();
  }
}
