// What readers may ask of a file system. Handed in, so that a test or a sandbox can answer instead.

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises";
import { codeOf } from "../kit/errors.ts";

/**
 * - Nothing here rejects because something is missing, locked or of the wrong kind: that is an answer.
 * - Links are followed.
 */
export interface FileAccess {
  /** Null when there is nothing, or nothing that may be looked at. */
  look(path: string): Promise<FileLook | null>;
  /** The whole of a regular file of at most `maxBytes`. */
  read(path: string, maxBytes: number): Promise<FileRead>;
  /** Names in a directory; empty when there is none. Order is the file system's. */
  list(path: string): Promise<readonly ListedEntry[]>;
  /** Where a path really leads; null when it leads nowhere. */
  real(path: string): Promise<string | null>;
}

export interface FileLook {
  readonly kind: "file" | "directory" | "other";
  readonly size: number;
  /** The same for two names of one file. */
  readonly id: string;
}

type FileRead =
  | { readonly type: "bytes"; readonly bytes: Uint8Array }
  | { readonly type: "missing" }
  | { readonly type: "not_a_file" }
  | { readonly type: "too_big"; readonly size: number }
  | { readonly type: "failed"; readonly code: string };

export interface ListedEntry {
  readonly name: string;
  /** Links are not followed here. */
  readonly kind: "file" | "directory" | "link" | "other";
}

export const hostFiles: FileAccess = {
  async look(path) {
    try {
      const found = await stat(path);
      const kind = found.isFile() ? "file" : found.isDirectory() ? "directory" : "other";
      return { kind, size: found.size, id: `${found.dev}:${found.ino}` };
    } catch {
      return null; // missing, or in a directory that may not be entered
    }
  },
  async read(path, maxBytes) {
    let file: FileHandle | undefined;
    try {
      // Without O_NONBLOCK a named pipe would hold us until somebody writes to it.
      file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
      const found = await file.stat();
      if (!found.isFile()) return { type: "not_a_file" };
      if (found.size > maxBytes) return { type: "too_big", size: found.size };
      const bytes = await file.readFile();
      return bytes.length > maxBytes ? { type: "too_big", size: bytes.length } : { type: "bytes", bytes };
    } catch (error) {
      const code = codeOf(error) ?? String(error);
      if (code === "ENOENT" || code === "ENOTDIR") return { type: "missing" };
      return code === "EISDIR" || code === "ENXIO" ? { type: "not_a_file" } : { type: "failed", code };
    } finally {
      await file?.close();
    }
  },
  async list(path) {
    try {
      const entries = await readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({
        name: entry.name,
        kind: entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other",
      }));
    } catch {
      return []; // not a directory, or not ours to list
    }
  },
  real: (path) => realpath(path).catch(() => null),
};

// A program run for its output: git, python3. Never a shell.

interface ProgramResult {
  /** Null when it did not run to its end. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  /** What killed it, if something did. */
  readonly signal?: string | null;
}

/** Never rejects: a program that is not there has no exit code. */
export type RunProgram = (
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly timeoutMs: number },
) => Promise<ProgramResult>;

const MOST_BYTES = 16 * 1024 * 1024;

export function programRunner(environment: Readonly<Record<string, string | undefined>>): RunProgram {
  return (program, args, { cwd, timeoutMs }) =>
    new Promise((resolve) => {
      const settings = {
        cwd,
        env: { ...environment },
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: MOST_BYTES,
        encoding: "utf8",
        windowsHide: true,
      } as const;
      try {
        execFile(program, args, settings, (error, stdout, stderr) => {
          const exitCode = error === null ? 0 : typeof error.code === "number" ? error.code : null;
          const timedOut = error?.killed === true && error.signal === "SIGKILL";
          resolve({ exitCode, stdout, stderr, timedOut, signal: error?.signal ?? null });
        }).stdin?.end();
      } catch (error) {
        // A NUL byte in an argument is refused before anything starts.
        resolve({ exitCode: null, stdout: "", stderr: String(error), timedOut: false });
      }
    });
}
