// A whole home as a zip file and back, and quick snapshots of what cannot be made again. Databases go through SQLite's backup in both
// directions: bytes copied beside a writer, or put under an open connection or an old write-ahead log, would mix two databases.
import { createReadStream } from "node:fs";
import { chmod, copyFile, lstat, mkdir, mkdtemp, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { codeOf, messageOf, UserError } from "../kit/errors.ts";
import { FileWriteError, isDirectory, makeDirectories, writeFileAtomic } from "../kit/files.ts";
import { readZip, type ZipEntry, ZipWriter } from "../kit/zip.ts";
import { copyDatabase, putDatabase } from "./repair.ts";

/** A backup or restore that cannot be done, in words for the user. */
export class ArchiveError extends UserError {
  override name = "ArchiveError";
}

/** Made again by themselves, copies of other things, or somebody else's code. */
const SKIPPED_FOLDERS = new Set([".git", "node_modules", "__pycache__", "backups", "checkpoints", "state-snapshots"]);
const SKIPPED_AT_TOP = new Set(["hermes-agent", ".worktrees"]);
const SKIPPED_FILES = new Set(["gateway.pid", "cron.pid"]);
/** What SQLite keeps next to a database, the index that is made from it, locks, and what was being written. */
const SKIPPED_ENDS = /(?:-wal|-shm|-journal|-recall|\.pyc|\.lock|\.lock\.db|\.sock|\.tmp)$/;

const isSkippedFile = (name: string) => SKIPPED_FILES.has(name) || SKIPPED_ENDS.test(name);

interface BackupReport {
  readonly path: string;
  readonly files: number;
  readonly databases: number;
  readonly bytes: number;
  /** What could not be read, with the reason. */
  readonly failed: readonly string[];
}

/** Writes everything below `root` to a new file that only its owner can read. An existing file is replaced at the end, or stays. */
export async function writeBackup(root: string, path: string): Promise<BackupReport> {
  // Next to the target: room for a copy of a database is where room for the archive is.
  const staging = await mkdtemp(join(dirname(path), ".hermes-backup-")).catch((error: unknown) => {
    throw new FileWriteError(path, error);
  });
  const draft = join(staging, "backup.zip");
  const failed: string[] = [];
  let files = 0;
  let databases = 0;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      const zip = new ZipWriter(file);
      for await (const name of filesBelow(root, staging)) {
        const source = join(root, name);
        try {
          const { mode, mtime } = await lstat(source);
          const isCopied = await isDatabase(source);
          const content = isCopied ? join(staging, "copy.db") : source;
          if (isCopied) await copyDatabase(source, content);
          // Opened before the member is begun, so that what cannot be read leaves no hole in the archive.
          const handle = await open(content, "r");
          await zip.add({ name, mode, modified: mtime }, handle.createReadStream());
          if (isCopied) await rm(content);
          files++;
          databases += isCopied ? 1 : 0;
        } catch (error) {
          if (codeOf(error) === "ENOENT") continue; // gone since the folder was listed
          if (!["EACCES", "EPERM"].includes(codeOf(error) ?? "")) throw error;
          failed.push(`${name}: ${codeOf(error)}`);
        }
      }
      await zip.finish();
    } finally {
      await file.close();
    }
    const { size: bytes } = await lstat(draft);
    await rename(draft, path);
    return { path, files, databases, bytes, failed };
  } catch (error) {
    throw codeOf(error) === "ENOSPC" || codeOf(error) === "EROFS" ? new FileWriteError(path, error) : error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Plain files in order, as paths with `/`; links and devices are left out. */
async function* filesBelow(root: string, staging: string, folder = ""): AsyncGenerator<string> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      const skipped = SKIPPED_FOLDERS.has(entry.name) || (folder === "" && SKIPPED_AT_TOP.has(entry.name));
      if (skipped || join(root, name) === staging) continue;
      yield* filesBelow(root, staging, name);
    } else if (entry.isFile() && !isSkippedFile(entry.name) && !/^hermes-backup-.*\.zip$/.test(entry.name)) yield name;
  }
}

const MAGIC = Buffer.from("SQLite format 3\0");

async function isDatabase(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0);
    return bytesRead === MAGIC.length && buffer.equals(MAGIC);
  } finally {
    await file.close();
  }
}

// The way back.

/** An archive that was looked at: what of it would be restored. */
interface CheckedBackup {
  readonly entries: readonly { readonly name: string; readonly entry: ZipEntry }[];
  /** Names that lead out of the home, links, and what belongs to a process that is gone. */
  readonly refused: readonly string[];
}

const MARKS = ["config.yaml", ".env", "state.db"];

/** Throws `ArchiveError` when the file is no backup of a home. */
export async function checkBackup(path: string): Promise<CheckedBackup> {
  const all = await readZip(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") throw new ArchiveError(`No such file: ${path}.`);
    if (codeOf(error) === "EISDIR") throw new ArchiveError(`${path} is a folder, not a zip file.`);
    throw error;
  });
  const names = new Set(all.map(({ name }) => name));
  const prefix = ["", ".hermes/", "hermes/"].find((start) => MARKS.some((mark) => names.has(start + mark)));
  if (prefix === undefined)
    throw new ArchiveError(
      `${path} is not a backup of a home: it contains none of ${MARKS.join(", ")} at the top level.`,
    );
  const refused: string[] = [];
  const entries = all.flatMap((entry) => {
    if (entry.isDirectory) return [];
    const name = entry.name.startsWith(prefix) ? entry.name.slice(prefix.length) : entry.name;
    const isInside = entry.name.startsWith(prefix) && isPlainPath(name);
    if (isInside && !entry.isLink && !isSkippedFile(basename(name))) return [{ name, entry }];
    refused.push(entry.name);
    return [];
  });
  return { entries, refused };
}

/** Relative, without a step upwards; a backslash or a drive means something on Windows. */
function isPlainPath(name: string): boolean {
  if (name === "" || name.startsWith("/") || /^[A-Za-z]:|[\\\0]/.test(name)) return false;
  return name.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

interface RestoreReport {
  readonly files: number;
  readonly databases: number;
}

/**
 * Puts a checked archive in place. Everything is unpacked beside the home first, so that a damaged archive changes nothing; databases come
 * before the other files, because a database in use stops the work.
 */
export async function restoreBackup(
  backup: CheckedBackup,
  root: string,
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
): Promise<RestoreReport> {
  await makeDirectories(root, 0o700);
  const staging = await mkdtemp(join(root, ".import-"));
  try {
    const unpacked: { name: string; from: string; isCopied: boolean; mode: number }[] = [];
    for (const [at, { name, entry }] of backup.entries.entries()) {
      const from = join(staging, String(at));
      await writeFile(from, entry.read(), { mode: 0o600 });
      // Nobody else's business, all of it; only programs stay programs.
      const mode = (entry.mode & 0o111) === 0 ? 0o600 : 0o700;
      unpacked.push({ name, from, isCopied: await isDatabase(from), mode });
    }
    const [databases, files] = [unpacked.filter((one) => one.isCopied), unpacked.filter((one) => !one.isCopied)];
    for (const { name, from } of databases) {
      await makeDirectories(dirname(join(root, name)), 0o700);
      await putDatabase({ from, to: join(root, name), log, clock });
    }
    for (const { name, from, mode } of files) {
      await makeDirectories(dirname(join(root, name)), 0o700);
      await writeFileAtomic(join(root, name), createReadStream(from), { mode });
    }
    return { files: unpacked.length, databases: databases.length };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

// Quick snapshots: the state of one home, without logs, skills and caches.

const SNAPSHOT = [
  "state.db",
  "config.yaml",
  ".env",
  "auth.json",
  "cron/jobs.json",
  "gateway_state.json",
  "channel_directory.json",
  "processes.json",
  "pairing",
];
const KEPT_SNAPSHOTS = 20;

interface Snapshot {
  readonly id: string;
  readonly path: string;
  readonly files: Readonly<Record<string, number>>;
}

/** Under `state-snapshots/`; the newest twenty stay. */
export async function takeSnapshot(dir: string, id: string, label: string | undefined): Promise<Snapshot> {
  const folder = join(dir, "state-snapshots");
  await makeDirectories(folder, 0o700);
  let path = join(folder, id);
  for (let n = 2; await mkdir(path, { mode: 0o700 }).then(() => false, isThere); n++) path = join(folder, `${id}-${n}`);
  const files: Record<string, number> = {};
  for (const name of SNAPSHOT) await snapshotPart(dir, name, path, files);
  const manifest = { id: basename(path), label: label ?? null, created_at: new Date().toISOString(), files };
  await writeFile(join(path, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  await dropOldSnapshots(folder);
  return { id: basename(path), path, files };
}

async function snapshotPart(dir: string, name: string, to: string, files: Record<string, number>): Promise<void> {
  const from = join(dir, name);
  if (await isDirectory(from)) {
    for (const inner of await readdir(from)) await snapshotPart(dir, `${name}/${inner}`, to, files);
    return;
  }
  const found = await lstat(from).catch(() => null); // what is not there is not part of this home
  if (!found?.isFile()) return;
  const target = join(to, name);
  await makeDirectories(dirname(target), 0o700);
  if (await isDatabase(from)) await copyDatabase(from, target);
  else {
    await copyFile(from, target);
    await chmod(target, 0o600);
  }
  files[relative(to, target)] = (await lstat(target)).size;
}

async function dropOldSnapshots(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => /^\d{8}-\d{6}/.test(name)).sort();
  for (const name of names.slice(0, -KEPT_SNAPSHOTS)) await rm(join(folder, name), { recursive: true, force: true });
}

function isThere(error: unknown): boolean {
  if (codeOf(error) === "EEXIST") return true;
  throw new ArchiveError(`The snapshot could not be made: ${messageOf(error)}`);
}
