// This machine's own files, for the file tools.

import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { factsNow, readSmallNow } from "../../home/looks.ts";
import { codeOf, messageOf, UserError } from "../../kit/errors.ts";
import {
  makeDirectories,
  makeRealDirectories,
  moveRealFile,
  openRealFile,
  removeRealFile,
  writeFileAtomic,
  writeRealFile,
} from "../../kit/files.ts";
import { followLinks, resolveLinks } from "../../safety/paths.ts";
import { type DirectoryEntry, type EnvironmentFiles, MAX_TEXT_BYTES } from "../../sandbox/environment.ts";

const CHUNK = 256 * 1024;
const AT_ONCE = 64;

export const localFiles: EnvironmentFiles = {
  async facts(path) {
    try {
      const found = factsNow(path);
      return {
        type: found.isFile() ? "file" : found.isDirectory() ? "directory" : "other",
        size: Number(found.size),
        mtimeMs: Number(found.mtimeMs),
        version: `${found.mtimeNs}:${found.size}:${found.ino}`,
      };
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    }
  },
  follow: followLinks,
  resolve: resolveLinks,
  async *chunks(path, signal) {
    signal?.throwIfAborted();
    const small = readSmallNow(path);
    // O_NONBLOCK: should a pipe have taken the file's place meanwhile, opening it must not hang.
    if (small) yield small;
    else yield* chunksOf(path, await open(path, constants.O_RDONLY | constants.O_NONBLOCK), signal);
  },
  read: (path) => readWhole(localFiles.chunks(path)),
  write: (path, data) => writeFileAtomic(path, data),
  makeDirectory: makeDirectories,
  list: (path) => readdir(path),
  remove: (path) => rm(path),
  move: (from, to) => rename(from, to),
  async entries(directories, signal) {
    const found = new Map<string, readonly DirectoryEntry[]>();
    for (const directory of directories) {
      signal.throwIfAborted();
      const entries = await readdir(directory, { withFileTypes: true }).catch(() => null);
      if (entries === null) continue; // gone or not ours to read: left out, as promised
      found.set(
        directory,
        entries.map((entry) => ({
          name: entry.name,
          type: entry.isFile() ? "file" : entry.isDirectory() ? "directory" : "other",
        })),
      );
    }
    return found;
  },
  async changeTimes(paths, signal) {
    const times = new Map<string, number>();
    for (let at = 0; at < paths.length; at += AT_ONCE) {
      signal.throwIfAborted();
      const batch = paths.slice(at, at + AT_ONCE);
      const facts = await Promise.all(batch.map((path) => stat(path).catch(() => null)));
      for (const [index, path] of batch.entries()) {
        const mtimeMs = facts[index]?.mtimeMs;
        if (mtimeMs !== undefined) times.set(path, mtimeMs);
      }
    }
    return times;
  },
  async *readTexts(paths, signal) {
    for (const path of paths) {
      const data = await readText(path, signal);
      if (data !== null) yield { path, data };
    }
  },
};

/** The same for paths that were resolved and looked at: what was looked at is what is read, written, moved and removed. */
export const checkedFiles: EnvironmentFiles = {
  ...localFiles,
  async *chunks(path, signal) {
    signal?.throwIfAborted();
    const small = readSmallNow(path);
    if (small) yield small;
    else yield* chunksOf(path, await openRealFile(path), signal);
  },
  read: (path) => readWhole(checkedFiles.chunks(path)),
  write: writeRealFile,
  makeDirectory: makeRealDirectories,
  remove: removeRealFile,
  move: moveRealFile,
};

async function* chunksOf(path: string, file: FileHandle, signal?: AbortSignal): AsyncGenerator<Buffer> {
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new NotAFileError(path);
    // Files of the kernel have no size, and are read until there is no more.
    for (let left = found.size; ; ) {
      signal?.throwIfAborted();
      const length = found.size > 0 ? Math.min(CHUNK, left) : CHUNK;
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length);
      if (bytesRead === 0) return;
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
      if (found.size > 0 && left <= 0) return;
    }
  } finally {
    await file.close();
  }
}

async function readWhole(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

/** Null for a binary file, which is not read to its end, and for one that cannot be read. */
async function readText(path: string, signal: AbortSignal): Promise<Buffer | null> {
  const parts: Buffer[] = [];
  let room = MAX_TEXT_BYTES;
  try {
    for await (const chunk of localFiles.chunks(path, signal)) {
      if (chunk.includes(0)) return null;
      parts.push(chunk.subarray(0, room));
      room -= chunk.length;
      if (room <= 0) break;
    }
  } catch {
    signal.throwIfAborted();
    return null;
  }
  return Buffer.concat(parts);
}

export class NotAFileError extends Error {
  override name = "NotAFileError";
  constructor(path: string) {
    super(`${path} is not a regular file (a pipe, socket or device)`);
  }
}

/** What went wrong, in words, with the path the caller knows. */
export function describeFileError(error: unknown, path: string): string {
  if (error instanceof UserError) return error.message;
  const reason = reasons[codeOf(error) ?? ""];
  if (reason !== undefined) return `${reason}: ${path}`;
  return messageOf(error);
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "File not found",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  EISDIR: "It is a directory",
  ENOTDIR: "A part of the path is not a directory",
  ELOOP: "The symbolic links run in a circle",
  ENAMETOOLONG: "The path is too long",
  ENOSPC: "No space left on the disk",
  EROFS: "The file system is read-only",
  EBUSY: "The file is busy",
  ENXIO: "Not a regular file",
};

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
