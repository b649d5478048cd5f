// Puts files back as a checkpoint has them. Nothing is overwritten or removed that was not copied a moment before.
import { chmod, lstat, mkdir, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserError } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { type Checkpoint, type KeptFile, readBlobs, readCheckpoints, readTree } from "./records.ts";
import { type CheckpointStore, refOf } from "./store.ts";

const BATCH_BYTES = 32 * 1024 * 1024;
const BATCH_FILES = 500;

export interface RestoreWish {
  /** One path below the root, with slashes; absent: everything. */
  readonly file?: string | undefined;
  /** Also take away what was created since. */
  readonly removeNew?: boolean | undefined;
  readonly sessionId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RestoreReport {
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  /** Created since the checkpoint, and left alone. */
  readonly created: readonly string[];
  /** Not put back, because what stands there now could not be copied first. */
  readonly kept: readonly { readonly path: string; readonly why: string }[];
  /** The checkpoint of the state before, to go back to; null when that is the newest one already. */
  readonly before: string | null;
}

/** Rejects before anything is changed when the present cannot be copied. */
export async function restore(
  store: CheckpointStore,
  root: string,
  checkpoint: Checkpoint,
  wish: RestoreWish,
): Promise<RestoreReport> {
  return store.exclusively(async () => {
    const target = await readTree(store.git, checkpoint.tree);
    const { sessionId, signal, file } = wish;
    const include = [...target.keys()];
    const asked = (path: string) => file === undefined || path === file || path.startsWith(`${file}/`);
    const notThen = new Set(checkpoint.leftOut.map(({ path }) => path));
    const since = (present: ReadonlyMap<string, KeptFile>) => ({
      changed: [...target].filter(([path, entry]) => asked(path) && !isSame(present.get(path), entry)),
      created: [...present.keys()].filter((path) => asked(path) && !target.has(path) && !notThen.has(path)),
    });

    // A checkpoint of the present moves the numbers of all others, so none is made for nothing.
    const seen = since(await readTree(store.git, (await store.presentLocked(root, include, signal)).tree));
    if (file !== undefined && !include.some(asked) && seen.created.length === 0)
      throw new UserError(
        `${file} is not in checkpoint ${checkpoint.id.slice(0, 7)}, nor was it created since. Names begin below ${root}.`,
      );
    if (seen.changed.length === 0 && !(wish.removeNew && seen.created.length > 0))
      return { restored: [], removed: [], created: seen.created, kept: [], before: null };

    const why = `before going back to ${checkpoint.id.slice(0, 7)}`;
    const made = await store.takeLocked(root, { why, sessionId, include, signal });
    const [newest] = await readCheckpoints(store.git, refOf(root), 1);
    const present = newest ? await readTree(store.git, newest.tree) : new Map<string, KeptFile>();
    const { changed, created } = since(present);
    // First: what is put back may stand where new files were.
    const removed = wish.removeNew ? created : [];
    for (const path of removed) await removeFile(root, path);
    const result = await putBack(store, root, changed, present);
    const left = wish.removeNew ? [] : await stillThere(root, created);
    return { ...result, removed, created: left, before: made?.id ?? null };
  });
}

function isSame(one: KeptFile | undefined, other: KeptFile): boolean {
  return one?.blob === other.blob && one.mode === other.mode;
}

async function putBack(
  store: CheckpointStore,
  root: string,
  files: readonly (readonly [string, KeptFile])[],
  present: ReadonlyMap<string, KeptFile>,
): Promise<Pick<RestoreReport, "restored" | "kept">> {
  const restored: string[] = [];
  const kept: { path: string; why: string }[] = [];
  for (const batch of batches(files)) {
    const contents = await readBlobs(
      store.git,
      batch.map(([, { blob }]) => blob),
    );
    for (const [index, [path, entry]] of batch.entries()) {
      const problem = await makeWay(root, path, present);
      if (problem === null) await put(join(root, path), entry, contents[index] ?? Buffer.alloc(0));
      if (problem === null) restored.push(path);
      else kept.push({ path, why: problem });
    }
  }
  return { restored, kept };
}

function* batches(files: readonly (readonly [string, KeptFile])[]): Generator<(readonly [string, KeptFile])[]> {
  let batch: (readonly [string, KeptFile])[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length > 0 && (bytes + file[1].size > BATCH_BYTES || batch.length >= BATCH_FILES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += file[1].size;
  }
  if (batch.length > 0) yield batch;
}

/** Directories on the way are made; what else stands there goes only if it was copied. Null, or why the path must stay as it is. */
async function makeWay(root: string, path: string, present: ReadonlyMap<string, KeptFile>): Promise<string | null> {
  const parts = path.split("/");
  for (let depth = 1; depth < parts.length; depth++) {
    const above = parts.slice(0, depth).join("/");
    const facts = await lstat(join(root, above)).catch(() => null);
    if (facts?.isDirectory()) continue;
    if (facts && !present.has(above)) return `${above} is in the way and could not be copied first`;
    if (facts) await rm(join(root, above));
    await mkdir(join(root, above));
  }
  const facts = await lstat(join(root, path)).catch(() => null);
  if (facts === null) return null;
  if (!facts.isDirectory())
    return present.has(path) ? null : "it could not be copied first (too large, unreadable or with a secret in it)";
  const emptied = await rmdir(join(root, path)).then(
    () => true,
    () => false,
  );
  return emptied ? null : "a directory with files stands there now";
}

async function put(path: string, { mode }: KeptFile, data: Buffer): Promise<void> {
  const facts = await lstat(path).catch(() => null);
  if (mode === "120000") {
    if (facts) await rm(path);
    return symlink(data.toString("utf8"), path);
  }
  if (facts?.isSymbolicLink()) await rm(path);
  await writeFileAtomic(path, data);
  const now = (await lstat(path)).mode & 0o7777;
  // Whoever may read it may run it, as git has it.
  const wished = mode === "100755" ? now | ((now & 0o444) >> 2) : now & ~0o111;
  if (wished !== now) await chmod(path, wished);
}

/** Of the new files: some had to make way for what was put back. */
async function stillThere(root: string, paths: readonly string[]): Promise<string[]> {
  const left: string[] = [];
  for (const path of paths) {
    const facts = await lstat(join(root, path)).catch(() => null);
    if (facts && !facts.isDirectory()) left.push(path);
  }
  return left;
}

/** With the directories it leaves empty. */
async function removeFile(root: string, path: string): Promise<void> {
  await rm(join(root, path), { force: true });
  for (let above = dirname(path); above !== "."; above = dirname(above)) {
    const emptied = await rmdir(join(root, above)).then(
      () => true,
      () => false, // not empty, or gone already
    );
    if (!emptied) return;
  }
}
