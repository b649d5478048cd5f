// Looks at files that take less time than waking a thread for them. Settings are looked at again whenever something was waited for; the ways
// to files once in each turn of the event loop, and whoever opens one sees by its handle where it leads.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

let turn = 0;
let counting = false;

/** Another number in each turn of the event loop in which somebody asks. */
function loopTurn(): number {
  if (!counting) {
    counting = true;
    setImmediate(() => {
      counting = false;
      turn++;
    });
  }
  return turn;
}

/** Tells one state of a file from another. A look is shared until the code that runs now gives way: a message may come right behind a change. */
export class FileStamp {
  readonly #path: string;
  #seen = "";
  #isFresh = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Empty when nothing is there. */
  now(): string {
    return this.#isFresh ? this.#seen : this.fresh();
  }

  fresh(): string {
    const found = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    if (!this.#isFresh)
      process.nextTick(() => {
        this.#isFresh = false;
      });
    this.#isFresh = true;
    this.#seen = found ? `${found.isFile()}:${found.mtimeNs}:${found.size}:${found.ino}` : "";
    return this.#seen;
  }
}

/** Paths without links, of this turn. */
let plain = new Set<string>();
let plainOf = -1;

/** Where a path leads; null when it leads nowhere. */
export function realPathNow(path: string): string | null {
  const now = loopTurn();
  if (plainOf !== now) plain = new Set();
  plainOf = now;
  try {
    if (plain.has(path) || isPlainBelow(path)) return path;
    const real = realpathSync.native(path);
    // Every folder on such a way is its own real path too.
    if (real === path) for (let at = path; !plain.has(at) && dirname(at) !== at; at = dirname(at)) plain.add(at);
    return real;
  } catch {
    return null;
  }
}

/** Below a folder that was looked at, each further step takes one look. Elsewhere than on Linux a name may be written in several ways. */
function isPlainBelow(path: string): boolean {
  if (process.platform !== "linux" || plain.size === 0 || resolve(path) !== path) return false;
  const steps: string[] = [];
  let at = path;
  for (; !plain.has(at); at = dirname(at)) {
    if (dirname(at) === at) return false;
    steps.push(basename(at));
  }
  for (const step of steps.reverse()) {
    at = join(at, step);
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (!found || found.isSymbolicLink()) return false;
    plain.add(at);
  }
  return true;
}

/** Null for what is not there or cannot be seen. */
export function kindNow(path: string): "directory" | "file" | "other" | null {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return !found ? null : found.isDirectory() ? "directory" : found.isFile() ? "file" : "other";
  } catch {
    return null;
  }
}

/** The same of the path itself: a link is a link, wherever it leads. */
export function ownKindNow(path: string): "directory" | "file" | "link" | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return !found ? null : found.isSymbolicLink() ? "link" : found.isDirectory() ? "directory" : "file";
  } catch {
    return null;
  }
}

/** Throws for what is not there: without that, a path through a file could not be told from a missing one. */
export const factsNow = (path: string) => statSync(path, { bigint: true });

/** Times on disk are no finer than this everywhere: what is written twice within it may look as if it was written once. */
const FINEST_MS = 2_500;

/**
 * Tells one state of these files and folders from another; null while one of them is so new that its next change might not show. The state of
 * a folder tells which names are in it. `now`: milliseconds, of a time at which the paths were already as they are meant.
 */
export function stampNow(paths: readonly string[], now: number): string | null {
  let stamp = "";
  for (const path of paths) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && Math.max(found.mtimeMs, found.ctimeMs) > now - FINEST_MS) return null;
    stamp += found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs};` : ";";
  }
  return stamp;
}

const SMALL = 64 * 1024;

/** The bytes of a small regular file at a path without links; null for everything else, which is to be opened with more care. */
export function readSmallNow(path: string): Buffer | null {
  if (process.platform !== "linux") return null; // only there a handle shows where it leads
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const found = fstatSync(file);
    const { size } = found;
    if (!found.isFile() || size === 0 || size > SMALL || readlinkSync(`/proc/self/fd/${file}`) !== path) return null;
    const bytes = Buffer.allocUnsafe(size);
    return bytes.subarray(0, readSync(file, bytes, 0, size, 0));
  } catch {
    return null; // opening it with more care says what is wrong
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Both ends of a FIFO of ours, which has no name from then on. Neither end waits: the other one is there, or it does not care. */
export function openPipeNow(path: string): { readonly readEnd: number; readonly writeEnd: number } {
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  unlinkSync(path);
  return { readEnd, writeEnd };
}

/** An empty file that nobody else may read; there must be none yet. */
export const createNow = (path: string) => closeSync(openSync(path, "wx", 0o600));

/** Puts one file of ours into the place of another. */
export const renameNow = (place: string, file: string) => renameSync(file, place);
