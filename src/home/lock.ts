// The one lock of the program. Node has no flock, so a lock is a write transaction on a small SQLite file: the operating system
// drops it with the process that held it, whatever way that process ends.

import { existsSync, realpathSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { type Clock, systemClock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { FileWriteError } from "../kit/files.ts";
import { makeDirectory } from "./paths.ts";

interface LockOptions {
  /** How long to wait for another holder, in milliseconds. */
  readonly waitMs?: number;
  readonly clock?: Clock;
}

/** The lock was held by someone else for the whole wait. */
export class LockTimeoutError extends UserError {
  override name = "LockTimeoutError";
}

/**
 * Runs `fn` while no other caller, in this process or another, holds the lock file at `path`.
 *
 * - The file is created on first use (mode 0600) and stays; it holds no data.
 * - Where it cannot be made or locked, `FileWriteError`: what it protects could not be written either.
 * - Not re-entrant: taking a lock inside itself waits until the time is up.
 */
export async function withLock<T>(path: string, fn: () => Promise<T> | T, options: LockOptions = {}): Promise<T> {
  const { waitMs = 10_000, clock = systemClock } = options;
  const deadline = clock.now() + waitMs;
  // Blocking on purpose, and tiny: nothing awaited before the queue, so callers keep the order they came in.
  makeFolder(path);
  const key = join(realpathSync(dirname(path)), basename(path));

  const leave = await enterQueue(key, deadline, clock, path);
  try {
    const release = await takeFile(key, deadline, clock, path);
    try {
      return await fn();
    } finally {
      release();
    }
  } finally {
    leave();
  }
}

// One queue per lock file: agents that share this process take turns here and only the first one touches the file. It also keeps
// the POSIX trap shut: closing any handle of a file drops every lock the process has on it.
const tails = new Map<string, Promise<void>>();

async function enterQueue(key: string, deadline: number, clock: Clock, path: string): Promise<() => void> {
  const ahead = tails.get(key);
  const { promise: mine, resolve: done } = Promise.withResolvers<void>();
  const tail = (ahead ?? Promise.resolve()).then(() => mine);
  tails.set(key, tail);
  const leave = () => {
    done();
    if (tails.get(key) === tail) tails.delete(key);
  };
  if (!ahead) return leave;

  const stop = new AbortController();
  const timeUp = clock.sleep(Math.max(0, deadline - clock.now()), stop.signal).then(
    () => true,
    () => false,
  );
  const late = await Promise.race([ahead.then(() => false), timeUp]);
  stop.abort();
  if (!late) return leave;
  done(); // the next in the queue goes on when those ahead are done
  throw timeout(path);
}

function makeFolder(path: string): void {
  try {
    if (!existsSync(dirname(path))) makeDirectory(dirname(path), 0o700);
  } catch (error) {
    throw new FileWriteError(path, error);
  }
}

async function makeFile(path: string): Promise<void> {
  try {
    await (await open(path, "a", 0o600)).close();
  } catch (error) {
    throw new FileWriteError(path, error);
  }
}

async function takeFile(key: string, deadline: number, clock: Clock, path: string): Promise<() => void> {
  if (!existsSync(key)) await makeFile(key);
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(key, { timeout: 0 });
  try {
    for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
      if (begin(database, path)) return hold(database);
      if (clock.now() + pause > deadline) throw timeout(path);
      await clock.sleep(pause + clock.random() * pause);
    }
  } catch (error) {
    database.close();
    throw error;
  }
}

// A connection that nothing refers to is closed by the garbage collector, and its lock is gone while the work still runs.
const held = new Set<DatabaseSync>();

function hold(database: DatabaseSync): () => void {
  held.add(database);
  return () => {
    held.delete(database);
    database.close(); // rolls the empty transaction back
  };
}

const SQLITE_BUSY = 5;

function begin(database: DatabaseSync, path: string): boolean {
  try {
    database.exec("BEGIN IMMEDIATE");
    return true;
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) : 0;
    if ((code & 0xff) === SQLITE_BUSY) return false;
    throw new FileWriteError(path, error instanceof Error ? new Error(error.message) : error);
  }
}

function timeout(path: string): LockTimeoutError {
  return new LockTimeoutError(`Another hermes process has locked ${path} for too long. Try again in a moment.`);
}
