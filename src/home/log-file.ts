// One log file: lines queue up and are appended in the background. Several processes may write to the same file and rotate it.
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../kit/clock.ts";
import { withLock } from "./lock.ts";
import { makeDirectory } from "./make-directory.ts";

export interface LogFile {
  append(line: string): void;
  flush(): Promise<void>;
}

export interface LogFileOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly backups: number;
  readonly onTrouble: (note: string) => void;
  readonly clock: Clock;
}

const MAX_WAITING_LINES = 10_000;

export function openLogFile({ path, maxBytes, backups, onTrouble, clock }: LogFileOptions): LogFile {
  let waiting: string[] = [];
  let working: Promise<void> | null = null;
  let handle: FileHandle | null = null;

  async function drain(): Promise<void> {
    await Promise.resolve(); // lets a burst of lines become one write
    while (waiting.length > 0) {
      const batch = Buffer.from(waiting.join(""));
      waiting = [];
      try {
        await writeBatch(batch);
      } catch (error) {
        await closeHandle();
        onTrouble(`hermes: cannot write ${path} (${codeOf(error)}); log lines are lost until this is fixed.`);
      }
    }
    await closeHandle(); // an idle logger holds no file, so that rotation, removal and unmounting never meet a stale one
    working = null;
  }

  async function writeBatch(batch: Buffer): Promise<void> {
    const size = await openCurrent();
    if (maxBytes > 0 && size > 0 && size + batch.length > maxBytes) {
      await withLock(join(dirname(path), ".lock.db"), () => rotate(batch.length), { clock });
      await openCurrent();
    }
    await handle?.appendFile(batch);
  }

  /** Opens the file of that name, anew if another process moved ours away. Resolves to its size. */
  async function openCurrent(): Promise<number> {
    if (handle) {
      const [ours, named] = await Promise.all([handle.stat(), stat(path).catch(() => null)]);
      if (named?.ino === ours.ino && named.dev === ours.dev) return ours.size;
      await closeHandle();
    }
    handle = await open(path, "a", 0o600).catch(async (error: unknown) => {
      if (codeOf(error) !== "ENOENT") throw error;
      makeDirectory(dirname(path), 0o700);
      return open(path, "a", 0o600);
    });
    return (await handle.stat()).size;
  }

  async function rotate(incoming: number): Promise<void> {
    const now = await stat(path).catch(() => null);
    if (!now || now.size + incoming <= maxBytes) return; // another process was faster
    await closeHandle();
    if (backups < 1) return rm(path, { force: true });
    for (let n = backups; n > 1; n--) await renameIfThere(`${path}.${n - 1}`, `${path}.${n}`);
    await rename(path, `${path}.1`);
  }

  async function closeHandle(): Promise<void> {
    const open = handle;
    handle = null;
    await open?.close().catch(() => undefined);
  }

  return {
    append(line) {
      if (waiting.length >= MAX_WAITING_LINES) {
        onTrouble(`hermes: ${basename(path)} cannot keep up; log lines are lost.`);
        return;
      }
      waiting.push(line);
      working ??= drain();
    },
    async flush() {
      while (working) await working;
    },
  };
}

async function renameIfThere(from: string, to: string): Promise<void> {
  await rename(from, to).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
