// What /rollback needs, for the project a conversation stands in.

import { chmod, lstat, mkdir, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize, relative, resolve, sep } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { hasTraversalComponent } from "../safety/paths.ts";
import type { Environment } from "../sandbox/environment.ts";
import { projectRootOf } from "./checkpointer.ts";
import { runGit } from "./git.ts";
import { keepsCheckpoints } from "./port.ts";
import {
  type Checkpoint,
  type CheckpointStore,
  type KeptFile,
  openCheckpoints,
  readBlobs,
  readCheckpoints,
  readTree,
  refOf,
} from "./store.ts";

export class Rollback {
  readonly root: string;
  /** Whether this conversation takes checkpoints. */
  readonly on: boolean;
  readonly #store: CheckpointStore;
  readonly #sessionId: string;

  constructor(
    store: CheckpointStore,
    { root, sessionId, on }: { readonly root: string; readonly sessionId: string; readonly on: boolean },
  ) {
    this.#store = store;
    this.root = root;
    this.on = on;
    this.#sessionId = sessionId;
  }

  list(): Promise<readonly Checkpoint[]> {
    return this.#store.list(this.root);
  }

  /** By its number in the list or by its id. */
  async find(name: string): Promise<Checkpoint> {
    const all = await this.list();
    if (all.length === 0) throw new UserError(`No checkpoints of ${this.root}.`);
    const byNumber = /^\d{1,3}$/.test(name) ? all[Number(name) - 1] : undefined;
    if (byNumber) return byNumber;
    if (!/^[0-9a-f]{4,64}$/i.test(name))
      throw new UserError(
        `"${name}" is not a checkpoint; use a number from 1 to ${all.length} or the first 4 or more characters of an id.`,
      );
    const found = all.filter(({ id }) => id.startsWith(name.toLowerCase()));
    if (found.length === 1 && found[0]) return found[0];
    throw new UserError(
      found.length === 0
        ? `No checkpoint of ${this.root} matches ${name}.`
        : `More than one checkpoint id starts with ${name}.`,
    );
  }

  diff(checkpoint: Checkpoint, file?: string): Promise<SinceThen> {
    return diffSince(this.#store, this.root, checkpoint, { file: this.#inside(file) });
  }

  restore(checkpoint: Checkpoint, request: { file?: string | undefined; removeNew?: boolean }): Promise<RestoreReport> {
    const file = this.#inside(request.file);
    return restore(this.#store, this.root, checkpoint, { ...request, file, sessionId: this.#sessionId });
  }

  #inside(file: string | undefined): string | undefined {
    if (file === undefined) return undefined;
    if (isAbsolute(file) || hasTraversalComponent(file))
      throw new UserError(`${file} must be a path inside ${this.root}, without a leading slash and without "..".`);
    const path = relative(this.root, resolve(this.root, normalize(file)))
      .split(sep)
      .join("/");
    return path === "" ? undefined : path;
  }
}

interface RollbackOptions {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly sessionId: string;
  readonly on: boolean;
}

/** Throws `UserError` where there can be no checkpoints. */
export async function openRollback({ home, clock, environment, sessionId, on }: RollbackOptions): Promise<Rollback> {
  if (!keepsCheckpoints(environment))
    throw new UserError(
      `Checkpoints are copies of files on this machine; commands and file tools of this conversation work elsewhere (${environment.kind}). Use git there.`,
    );
  const root = await projectRootOf(environment.cwd, { osHome: home.osHome, cwd: environment.cwd });
  if (root === null)
    throw new UserError(
      `No checkpoints are made of ${home.display(environment.cwd)}: the folder is too broad. Start Hermes in a project folder.`,
    );
  return new Rollback(openCheckpoints(home, clock), { root, sessionId, on });
}

// Puts files back as a checkpoint has them. Nothing is overwritten or removed that was not copied a moment before.

const BATCH_BYTES = 32 * 1024 * 1024;
const BATCH_FILES = 500;

interface RestoreRequest {
  /** One path below the root, with slashes; absent: everything. */
  readonly file?: string | undefined;
  /** Also take away what was created since. */
  readonly removeNew?: boolean | undefined;
  readonly sessionId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface RestoreReport {
  readonly restored: readonly string[];
  readonly removed: readonly string[];
  /** Created since the checkpoint, and left alone. */
  readonly created: readonly string[];
  /** Not restored, because what stands there now could not be copied first. */
  readonly kept: readonly { readonly path: string; readonly why: string }[];
  /** The checkpoint of the state before, to go back to; null when that is the newest one already. */
  readonly before: string | null;
}

/** Rejects before anything is changed when the present cannot be copied. */
async function restore(
  store: CheckpointStore,
  root: string,
  checkpoint: Checkpoint,
  request: RestoreRequest,
): Promise<RestoreReport> {
  return store.exclusively(async () => {
    const target = await readTree(store.git, checkpoint.tree);
    const { sessionId, signal, file } = request;
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
        `${file} is not in checkpoint ${checkpoint.id.slice(0, 7)}, nor was it created since. Paths are relative to ${root}.`,
      );
    if (seen.changed.length === 0 && !(request.removeNew && seen.created.length > 0))
      return { restored: [], removed: [], created: seen.created, kept: [], before: null };

    const why = `before going back to ${checkpoint.id.slice(0, 7)}`;
    const made = await store.takeLocked(root, { why, sessionId, include, signal });
    const [newest] = await readCheckpoints(store.git, refOf(root), 1);
    const present = newest ? await readTree(store.git, newest.tree) : new Map<string, KeptFile>();
    const { changed, created } = since(present);
    // First: what is put back may stand where new files were.
    const removed = request.removeNew ? created : [];
    for (const path of removed) await removeFile(root, path);
    const result = await putBack(store, root, changed, present);
    const left = request.removeNew ? [] : await stillThere(root, created);
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
  return emptied ? null : "there is a non-empty directory now";
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
  // Executable for everyone who may read it, as git does.
  const wanted = mode === "100755" ? now | ((now & 0o444) >> 2) : now & ~0o111;
  if (wanted !== now) await chmod(path, wanted);
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

// What changed since a checkpoint.

const MAX_BYTES = 200_000;

interface SinceThen {
  /** One line per file with how much of it changed; empty when nothing did. */
  readonly summary: string;
  readonly patch: string;
  /** The patch is longer than this. */
  readonly cut: boolean;
}

async function diffSince(
  store: CheckpointStore,
  root: string,
  checkpoint: Checkpoint,
  { file, signal }: { readonly file?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<SinceThen> {
  return store.exclusively(async () => {
    const then = await readTree(store.git, checkpoint.tree);
    const { tree } = await store.presentLocked(root, [...then.keys()], signal);
    const of = file === undefined ? [] : ["--", file];
    const common = ["--no-color", "--no-ext-diff", "--no-textconv", "-M", checkpoint.tree, tree, ...of];
    const summary = await runGit(store.git, { args: ["diff", "--stat=100", ...common], most: MAX_BYTES, signal });
    const patch = await runGit(store.git, { args: ["diff", ...common], most: MAX_BYTES, signal });
    const cut = patch.length > MAX_BYTES;
    return {
      summary: summary.toString("utf8").trimEnd(),
      patch: patch.subarray(0, MAX_BYTES).toString("utf8").trimEnd(),
      cut,
    };
  });
}
