// Where environments keep their own files on this machine.
import { lstat, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

const STALE_MS = 7 * 24 * 3600 * 1000;

/** Ours alone: a directory that somebody else prepared under a name we would guess is not used. */
export async function privateTempDir(base: string): Promise<string> {
  const uid = process.getuid?.();
  const wished = join(base, `hermes-${uid ?? "user"}`);
  await mkdir(wished, { recursive: true, mode: 0o700 });
  const found = await lstat(wished);
  const safe = found.isDirectory() && (uid === undefined || (found.uid === uid && (found.mode & 0o022) === 0));
  return safe ? wished : mkdtemp(`${wished}-`);
}

/** A killed program leaves its shell state behind. What runs touches its own with every command. */
export async function removeStale(tempDir: string): Promise<void> {
  for (const name of await readdir(tempDir).catch(() => [])) {
    const path = join(tempDir, name);
    if (!name.startsWith("shell-")) continue;
    const found = await stat(path).catch(() => null); // another run removed it first
    if (found && Date.now() - found.mtimeMs > STALE_MS) await removeTree(path);
  }
}

/** A command may have left directories behind that even their owner cannot look into; those stay. */
export async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EACCES" && error.code !== "EPERM" && error.code !== "ENOTEMPTY") throw error;
  });
}
