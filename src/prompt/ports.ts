// What readers may ask of this machine: its files, and programs run for their output. Handed in, so that a test can answer instead.

import { execFile } from "node:child_process";
import { codeOf } from "../kit/errors.ts";
import type { DirectoryEntry, EnvironmentFiles } from "../sandbox/environment.ts";

export type ReadableFiles = Pick<EnvironmentFiles, "facts" | "resolve" | "chunks" | "entries">;

// A prompt is built from what is there: missing, locked and of the wrong kind are answers, not errors. Links are followed.

/** Null when there is nothing, or nothing that may be looked at. */
export function look(files: Pick<ReadableFiles, "facts">, path: string): Promise<FileLook | null> {
  return files.facts(path).catch(() => null);
}

export type FileLook = NonNullable<Awaited<ReturnType<ReadableFiles["facts"]>>>;

/** Where a path really leads; null when it leads nowhere. */
export async function realPath(files: Pick<ReadableFiles, "facts" | "resolve">, path: string): Promise<string | null> {
  return (await look(files, path)) && files.resolve(path).catch(() => null);
}

/** What lies in a directory; empty when there is none. Order is the file system's; links count as "other". */
export async function list(files: Pick<ReadableFiles, "entries">, path: string): Promise<readonly DirectoryEntry[]> {
  return (await files.entries([path], new AbortController().signal)).get(path) ?? [];
}

type FileRead =
  | { readonly type: "bytes"; readonly bytes: Uint8Array }
  | { readonly type: "missing" }
  | { readonly type: "not_a_file" }
  | { readonly type: "too_big"; readonly size: number }
  | { readonly type: "failed"; readonly code: string };

/** The whole of a regular file of at most `maxBytes`. */
export async function readBytes(
  files: Pick<ReadableFiles, "facts" | "chunks">,
  path: string,
  maxBytes: number,
): Promise<FileRead> {
  try {
    const facts = await files.facts(path);
    if (!facts) return { type: "missing" };
    if (facts.type !== "file") return { type: "not_a_file" };
    if (facts.size > maxBytes) return { type: "too_big", size: facts.size };
    const parts: Buffer[] = [];
    let size = 0;
    for await (const chunk of files.chunks(path)) {
      size += chunk.length;
      if (size > maxBytes) return { type: "too_big", size };
      parts.push(chunk);
    }
    return { type: "bytes", bytes: Buffer.concat(parts) };
  } catch (error) {
    const code = codeOf(error) ?? String(error);
    return code === "ENOENT" || code === "ENOTDIR" ? { type: "missing" } : { type: "failed", code };
  }
}

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
  options: {
    readonly cwd: string;
    readonly timeoutMs: number;
    /** In addition; undefined takes one away. */
    readonly env?: Readonly<Record<string, string | undefined>>;
  },
) => Promise<ProgramResult>;

const MAX_BYTES = 16 * 1024 * 1024;

export function programRunner(environment: Readonly<Record<string, string | undefined>>): RunProgram {
  // Those of git may name another repository, and programs to run.
  const inherited = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("GIT_")));
  return (program, args, { cwd, timeoutMs, env }) =>
    new Promise((resolve) => {
      const settings = {
        cwd,
        env: { ...inherited, ...env },
        timeout: timeoutMs,
        killSignal: "SIGKILL",
        maxBuffer: MAX_BYTES,
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
