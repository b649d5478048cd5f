// One writer per file at a time, across all agents of the process.

const tails = new Map<string, Promise<unknown>>();

/** Runs alone on all the given real paths. They are taken in sorted order, so two runs never wait for each other. */
export async function withFileLocks<T>(paths: readonly string[], run: () => Promise<T>): Promise<T> {
  const [first, ...rest] = [...new Set(paths)].sort();
  if (first === undefined) return run();
  return withLock(first, () => withFileLocks(rest, run));
}

async function withLock<T>(path: string, run: () => Promise<T>): Promise<T> {
  const before = tails.get(path) ?? Promise.resolve();
  const mine = before.then(run, run);
  tails.set(path, mine);
  try {
    return await mine;
  } finally {
    if (tails.get(path) === mine) tails.delete(path);
  }
}
