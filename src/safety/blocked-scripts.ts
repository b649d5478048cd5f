// A command too long to be checked is kept for its user to look at, for a week.
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../kit/clock.ts";

const KEEP_MS = 7 * 24 * 3600 * 1000;

/** Writes the script, drops expired ones, and gives back the path. */
export async function saveBlockedScript(directory: string, script: string, clock: Clock): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await dropExpired(directory, clock.now() - KEEP_MS);
  const stamp = new Date(clock.now()).toISOString().replace(/[-:]|\.\d+/g, "");
  const path = join(directory, `blocked-${stamp}-${randomBytes(4).toString("hex")}.sh`);
  await writeFile(path, script, { mode: 0o600 });
  return path;
}

async function dropExpired(directory: string, before: number): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!/^blocked-.*\.sh$/.test(name)) continue;
    const path = join(directory, name);
    if ((await stat(path)).mtimeMs < before) await rm(path, { force: true });
  }
}
