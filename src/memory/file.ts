// Reading and writing one memory file. Unreadable is never taken for empty: what cannot be read is not written over.
import { open, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../kit/clock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { makeDirectories } from "../kit/make-directories.ts";
import { parseEntries } from "./format.ts";

export type Reading =
  | { readonly type: "read"; readonly text: string; readonly entries: readonly string[] }
  | { readonly type: "unreadable"; readonly reason: string };

/** A file that is not there is an empty one. */
export async function readMemoryFile(path: string): Promise<Reading> {
  try {
    // The BOM is kept in the text: who restores a file restores its very bytes.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(path));
    return { type: "read", text, entries: parseEntries(text) };
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return { type: "read", text: "", entries: [] };
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return { type: "unreadable", reason: "it is not valid UTF-8" };
    return { type: "unreadable", reason: error instanceof Error ? error.message : String(error) };
  }
}

const TEMPORARY_PREFIX = ".mem_";

export async function writeMemoryFile(path: string, text: string): Promise<void> {
  await writeFileAtomic(path, text, { newMode: 0o600, temporaryPrefix: TEMPORARY_PREFIX });
}

/** Keeps a copy of the file as `<file>.bak.<seconds>`; the newest copy serves again when it holds the same bytes. */
export async function backUpMemoryFile(path: string, clock: Clock): Promise<string> {
  const bytes = await readFile(path);
  const newest = await newestBackup(path);
  if (newest !== null && bytes.equals(await readFile(newest))) return newest;
  for (let seconds = Math.floor(clock.now() / 1000); ; seconds++) {
    const backup = `${path}.bak.${seconds}`;
    try {
      const file = await open(backup, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      return backup;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
}

async function newestBackup(path: string): Promise<string | null> {
  const start = `${basename(path)}.bak.`;
  const times = (await readdir(dirname(path)))
    .filter((name) => name.startsWith(start) && /^\d+$/.test(name.slice(start.length)))
    .map((name) => Number(name.slice(start.length)));
  return times.length === 0 ? null : `${path}.bak.${Math.max(...times)}`;
}

const HOUR = 3_600_000;

/** Makes the folder, and removes what killed writers left in it. */
export async function prepareMemoryFolder(dir: string, clock: Clock): Promise<void> {
  await makeDirectories(dir, 0o700);
  for (const name of await readdir(dir)) {
    if (!name.startsWith(TEMPORARY_PREFIX) || !name.endsWith(".tmp")) continue;
    const path = join(dir, name);
    const found = await stat(path).catch(() => null); // its writer may just have finished
    if (found && clock.now() - found.mtimeMs > HOUR) await rm(path, { force: true });
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
