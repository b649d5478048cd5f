// Hand-written: write-file-atomic takes no stream, puts a file in the place of a device or pipe, and does not sync the folder.
import { constants, createReadStream, type Stats } from "node:fs";
import {
  access,
  chmod,
  chown,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { codeOf, messageOf, UserError } from "./errors.ts";

interface AtomicWriteOptions {
  /** Mode of the file from now on. Without it an existing file keeps its mode and a new one gets 0666 minus the umask. */
  readonly mode?: number;
  /** Mode of a file that was not there before; an existing one keeps its own. */
  readonly newMode?: number;
  /** How names of temporary files begin; they stand next to the target and end in `.tmp`. */
  readonly temporaryPrefix?: string;
}

/** A write that did not happen; the old file is as it was. `code` is the system's (ENOSPC, EACCES, ...). */
export class FileWriteError extends UserError {
  override name = "FileWriteError";
  readonly path: string;
  readonly code: string | undefined;
  constructor(path: string, cause: unknown) {
    super(`Cannot write ${path}: ${reasonOf(cause, path)}`, { cause });
    this.path = path;
    this.code = codeOf(cause);
  }
}

/**
 * Replaces a file in one step: readers see the old bytes or the new ones, also after a power cut.
 *
 * - A symlink stays a symlink: its target is replaced.
 * - A device or a pipe is written to; it has no old bytes to keep, and must not become a file.
 * - On failure the old file is untouched and the temporary one is gone.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  options: AtomicWriteOptions = {},
): Promise<void> {
  try {
    const target = await throughLinks(path);
    const old = await statOrNull(target);
    if (old && !old.isFile()) return await writeFile(target, data);
    await replaceFile(target, old, data, options);
  } catch (error) {
    throw new FileWriteError(path, error);
  }
}

async function replaceFile(
  target: string,
  old: Stats | null,
  data: string | Uint8Array | AsyncIterable<string | Uint8Array>,
  options: AtomicWriteOptions,
): Promise<void> {
  let temporary: string | undefined;
  try {
    const mode = options.mode ?? (old ? old.mode & 0o7777 : options.newMode);
    const opened = await openTemporary(target, mode ?? 0o666, options.temporaryPrefix ?? ".");
    temporary = opened.path;
    try {
      await opened.file.writeFile(data);
      await opened.file.sync();
    } finally {
      await opened.file.close();
    }
    const made = await stat(temporary);
    if (mode !== undefined && (made.mode & 0o7777) !== mode) await chmod(temporary, mode); // the umask took bits away
    if (old && (old.uid !== made.uid || old.gid !== made.gid)) {
      await chown(temporary, old.uid, old.gid).catch(() => undefined); // only root may give files away
    }
    await replace(temporary, target);
    temporary = undefined;
    await syncDirectory(dirname(target));
  } catch (error) {
    if (temporary !== undefined) await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Where the bytes really live. A dangling link is followed too, so that writing creates its target. */
async function throughLinks(path: string): Promise<string> {
  let target = resolve(path);
  for (let hops = 0; hops < 40; hops++) {
    try {
      return await realpath(target);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
    const next = await readlink(target).catch(() => null);
    if (next === null) return target;
    target = resolve(dirname(target), next);
  }
  throw new Error("too many symbolic links");
}

let serial = 0;

async function openTemporary(
  target: string,
  mode: number,
  prefix: string,
): Promise<{ path: string; file: FileHandle }> {
  for (;;) {
    const path = join(dirname(target), `${prefix}${basename(target)}.${process.pid}.${serial++}.tmp`);
    try {
      return { path, file: await open(path, "wx", mode) };
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error; // left over by a killed process that had our number
    }
  }
}

/** A file that is a mount point of its own (as in containers) cannot be renamed over; its bytes are replaced in place. */
async function replace(temporary: string, target: string): Promise<void> {
  try {
    await rename(temporary, target);
  } catch (error) {
    const code = codeOf(error);
    if (code !== "EBUSY" && code !== "EXDEV") throw error;
    const file = await open(target, constants.O_WRONLY | constants.O_TRUNC | NO_LINK);
    try {
      await file.writeFile(createReadStream(temporary));
      await file.sync();
    } finally {
      await file.close();
    }
    await rm(temporary, { force: true });
  }
}

/** Makes the rename itself durable. Windows and some network file systems cannot open a directory. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r").catch(() => null);
  if (!directory) return;
  await directory.sync().catch(() => undefined);
  await directory.close();
}

const statOrNull = (path: string) => stat(path).catch(ifMissing);

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the disk",
  EDQUOT: "disk quota exceeded",
  ENOTDIR: "part of its path is not a directory",
  EISDIR: "it is a directory",
};

function reasonOf(cause: unknown, path: string): string {
  const code = codeOf(cause);
  if (code === "ENOENT") return `the directory ${dirname(resolve(path))} does not exist`;
  if (code !== undefined) return reasons[code] ?? code;
  return messageOf(cause);
}

/** A folder with all above it; false when it was there. Node's own recursive way never comes back from a place like /proc. */
export async function makeDirectories(path: string, mode = 0o777): Promise<boolean> {
  const made = await makeOne(path, mode);
  if (made !== null) return made;
  await makeDirectories(dirname(path), mode);
  const again = await makeOne(path, mode);
  if (again === null)
    throw Object.assign(new Error(`ENOENT: no such file or directory, mkdir '${path}'`), { code: "ENOENT" });
  return again;
}

/** Null when the folder above is missing. */
async function makeOne(path: string, mode: number): Promise<boolean | null> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    const found = await stat(path).catch(() => null); // what mkdir said counts
    if (found?.isDirectory()) return false;
    const missing = codeOf(error) === "ENOENT" && dirname(path) !== path;
    if (missing) return null;
    throw error;
  }
}

// Files whose paths were resolved and then looked at. Between that and the deed a folder or the file itself may be replaced by a link; what
// was looked at is what is opened, or nothing is.

/** Windows has no such flag. */
const NO_LINK = constants.O_NOFOLLOW ?? 0;

class MovedError extends UserError {
  override name = "MovedError";
  constructor(path: string) {
    super(`${path} was replaced by a link, or a folder above it was, after it was checked. Nothing was changed`);
  }
}

/** As `writeFileAtomic`, for a path without links. */
export async function writeRealFile(path: string, data: string | Uint8Array): Promise<void> {
  try {
    await inItsFolder(path, async (inside) => {
      const old = await lstat(inside).catch(ifMissing);
      if (old && !old.isFile()) throw new MovedError(path);
      await replaceFile(inside, old, data, {});
    });
  } catch (error) {
    throw error instanceof UserError ? error : new FileWriteError(path, error);
  }
}

/** As `makeDirectories`, for a path without links. */
export async function makeRealDirectories(path: string): Promise<boolean> {
  const make = () =>
    inItsFolder(path, async (inside) => {
      try {
        await mkdir(inside);
        return true;
      } catch (error) {
        const found = await lstat(inside).catch(() => null); // what mkdir said counts
        if (found?.isSymbolicLink()) throw new MovedError(path);
        if (!found?.isDirectory()) throw error;
        return false;
      }
    });
  try {
    return await make();
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
  }
  await makeRealDirectories(dirname(path));
  return make();
}

export const removeRealFile = (path: string): Promise<void> => inItsFolder(path, (inside) => rm(inside));

export const moveRealFile = (from: string, to: string): Promise<void> =>
  inItsFolder(from, (source) => inItsFolder(to, (target) => rename(source, target)));

/** For reading. O_NONBLOCK: should a pipe have taken the file's place meanwhile, opening it must not hang. */
export async function openRealFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | NO_LINK).catch((error: unknown) => {
    throw codeOf(error) === "ELOOP" ? new MovedError(path) : error;
  });
  try {
    await checkPlace(file, path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Holds the folder of the path open, so that nobody can change where the path leads; `act` gets a path through what is held. */
async function inItsFolder<T>(path: string, act: (inside: string) => Promise<T>): Promise<T> {
  const folder = dirname(path);
  const held = await open(folder, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | NO_LINK).catch((error) => {
    // Elsewhere a directory may not be openable, or its mode forbids listing it: the next best is to look once more.
    if (["EISDIR", "EPERM", "EACCES"].includes(codeOf(error) ?? "")) return null;
    throw ["ELOOP", "ENOTDIR"].includes(codeOf(error) ?? "") ? new MovedError(folder) : error;
  });
  try {
    if (held) await checkPlace(held, folder);
    else if ((await realpath(folder)) !== folder) throw new MovedError(folder);
    return await act(held && HAS_HANDLES ? join(`/proc/self/fd/${held.fd}`, basename(path)) : path);
  } finally {
    await held?.close();
  }
}

/** Where the system shows what a handle is open on, and lets paths begin at one. */
const HAS_HANDLES = process.platform === "linux";

async function checkPlace(file: FileHandle, path: string): Promise<void> {
  const shown = HAS_HANDLES ? await readlink(`/proc/self/fd/${file.fd}`) : await realpath(path);
  // A file that was replaced while it was being opened is shown as deleted: its old bytes are as good.
  if (shown !== path && shown !== `${path} (deleted)`) throw new MovedError(path);
}

function ifMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}

/** Something is there, and it may be seen. */
export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** False too for what cannot be seen. */
export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

/** Equal to `directory` or below it; a name that merely begins alike is outside. Both are absolute and normalised. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}
