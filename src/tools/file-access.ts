// The files the file tools work on: a port, with this machine's file system behind it.
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { writeFileAtomic } from "../kit/atomic-file.ts";
import { resolveLinks } from "../safety/paths.ts";

export interface FileFacts {
  readonly type: "file" | "directory" | "other";
  readonly size: number;
  readonly mtimeMs: number;
  /** Differs whenever the content may differ. */
  readonly version: string;
}

/**
 * File access inside one environment. Paths are absolute.
 *
 * - `facts` follows links and gives null when nothing is there; everything else rejects with the system's error.
 * - Nothing here ever waits for another process: a named pipe is "other" and never opened.
 * - `write` replaces the file in one step and keeps links and modes.
 */
export interface FileAccess {
  facts(path: string): Promise<FileFacts | null>;
  /** Where the path leads through all links, also when nothing is there yet. */
  resolve(path: string): Promise<string>;
  chunks(path: string, signal?: AbortSignal): AsyncIterable<Buffer>;
  read(path: string): Promise<Buffer>;
  write(path: string, data: string): Promise<void>;
  /** Makes the directory and its parents; false when it was there. */
  makeDirectory(path: string): Promise<boolean>;
  list(path: string): Promise<string[]>;
  remove(path: string): Promise<void>;
  move(from: string, to: string): Promise<void>;
}

const CHUNK = 256 * 1024;

export const localFiles: FileAccess = {
  async facts(path) {
    try {
      const found = await stat(path, { bigint: true });
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
  resolve: resolveLinks,
  async *chunks(path, signal) {
    // O_NONBLOCK: should a pipe have taken the file's place meanwhile, opening it must not hang.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new NotAFileError(path);
      for (;;) {
        signal?.throwIfAborted();
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK);
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  },
  async read(path) {
    const parts: Buffer[] = [];
    for await (const chunk of localFiles.chunks(path)) parts.push(chunk);
    return Buffer.concat(parts);
  },
  write: (path, data) => writeFileAtomic(path, data),
  makeDirectory: async (path) => (await mkdir(path, { recursive: true })) !== undefined,
  list: (path) => readdir(path),
  remove: (path) => rm(path),
  move: (from, to) => rename(from, to),
};

export class NotAFileError extends Error {
  override name = "NotAFileError";
  constructor(path: string) {
    super(`${path} is not a regular file (a pipe, socket or device)`);
  }
}

/** What went wrong, in words, with the path the caller knows. */
export function describeFileError(error: unknown, path: string): string {
  if (error instanceof Error && (error.name === "FileWriteError" || error.name === "LinkLoopError"))
    return error.message;
  const reason = reasons[codeOf(error) ?? ""];
  if (reason !== undefined) return `${reason}: ${path}`;
  return error instanceof Error ? error.message : String(error);
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

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
