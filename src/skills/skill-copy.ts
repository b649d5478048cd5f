// Whole skill directories: their digest, and copying one so that it is there completely or not at all.

import { createHash } from "node:crypto";
import { chmod, copyFile, cp, lstat, mkdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../kit/errors.ts";
import { filesBelow } from "./files.ts";

/** Over sorted paths, lengths and bytes. */
export async function hashSkill(dir: string): Promise<string> {
  const hash = createHash("sha256");
  for (const path of await filesBelow(dir)) {
    const bytes = await readFile(join(dir, path));
    hash.update(`${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

export interface Copying {
  readonly from: string;
  readonly to: string;
  /** A directory of its own on the same disk, where no skill is looked for. */
  readonly staging: string;
}

/** The copy belongs to the user: it can be written even where the original cannot. */
export async function copySkill({ from, to, staging }: Copying): Promise<void> {
  const fresh = join(staging, "new");
  await rm(fresh, { recursive: true, force: true });
  for (const path of await filesBelow(from)) {
    const target = join(fresh, path);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(from, path), target);
    await chmod(target, ((await stat(target)).mode & 0o777) | 0o600);
  }
  await mkdir(dirname(to), { recursive: true });
  await rename(fresh, to);
  await removeStaging(staging);
}

/** Puts another version in its stead; if that fails the old one is back. */
export async function replaceSkill(copying: Copying): Promise<void> {
  const { to, staging } = copying;
  const backup = join(staging, "old");
  await rm(backup, { recursive: true, force: true });
  await mkdir(staging, { recursive: true });
  await rename(to, backup);
  try {
    await copySkill(copying);
  } catch (error) {
    await rename(backup, to);
    throw error;
  }
  await rm(staging, { recursive: true, force: true });
}

/** After a replacement that was cut short: the old version comes back if the new one never got there. */
export async function recoverSkill({ to, staging }: Pick<Copying, "to" | "staging">): Promise<void> {
  for (const backup of [join(staging, "old"), `${to}.bak`]) {
    if (!(await exists(to)) && (await exists(backup))) await moveSkill(backup, to);
  }
  await rm(staging, { recursive: true, force: true });
}

/** Stays while the old version is still in it. */
async function removeStaging(staging: string): Promise<void> {
  await rmdir(staging).catch(() => undefined);
}

/** Also from one disk to another. */
export async function moveSkill(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  try {
    await rename(from, to);
  } catch (error) {
    if (codeOf(error) !== "EXDEV") throw error;
    await cp(from, to, { recursive: true, errorOnExist: true, force: false, verbatimSymlinks: true });
    await rm(from, { recursive: true });
  }
}

/** Moves a skill to `.archive/`, under its own name or, if that is taken, with a time behind it. Resolves to where it is now. */
export async function archiveSkill(dir: string, skillsDir: string, now: number): Promise<string> {
  const plain = join(skillsDir, ".archive", basename(dir));
  const stamp = new Date(now).toISOString().replace(/\D/g, "").slice(0, 14);
  const target = (await exists(plain)) ? `${plain}-${stamp}` : plain;
  await moveSkill(dir, target);
  return target;
}

export async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
