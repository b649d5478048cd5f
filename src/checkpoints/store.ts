// Copies of projects in one shadow repository of the home. The user's own repositories are never written to, nor asked about anything.
import { createHash, randomBytes } from "node:crypto";
import { copyFile, mkdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../home/lock.ts";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { ATTRIBUTES, GitError, type GitRepository, gitFields, gitText, runGit } from "./git.ts";
import { type LeftOut, type Scan, scanProject } from "./scan.ts";

interface StoreOptions {
  /** `checkpoints/` of the home. */
  readonly directory: string;
  readonly searchPath: string;
  readonly clock: Clock;
  readonly limits: () => CheckpointLimits;
  /** Values of this home that no copy may hold. */
  readonly secrets: () => readonly string[];
  /** Directories that belong to no checkpoint: the home itself. */
  readonly except: readonly string[];
}

/** The `checkpoints` section of the settings, as far as it limits. */
export interface CheckpointLimits {
  readonly max_snapshots: number;
  readonly max_total_size_mb: number;
  readonly max_file_size_mb: number;
  readonly retention_days: number;
  readonly delete_orphans: boolean;
}

interface Occasion {
  readonly why: string;
  readonly sessionId?: string | undefined;
  /** Paths below the root that belong to it whatever a .gitignore says. */
  readonly include?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** One project in the store. Names are the file's format. */
interface ProjectRecord {
  readonly workdir: string;
  readonly created_at: number;
  readonly last_touch: number;
}

const MB = 1024 * 1024;
const LOCK_WAIT_MS = 10_000;
const LOCK_WAIT_LONG_MS = 60_000;
const SCAN_MS = 60_000;
/** A lock that a git process left behind when the machine went down. */
const STALE_MS = 10_000;

export class CheckpointStore {
  readonly options: StoreOptions;
  readonly git: GitRepository;
  #ready: Promise<void> | null = null;

  constructor(options: StoreOptions) {
    this.options = options;
    this.git = { store: join(options.directory, "store"), searchPath: options.searchPath };
  }

  /** The files of a project as they are now. Null when they are as the newest checkpoint has them. */
  async take(root: string, occasion: Occasion): Promise<{ readonly id: string; readonly changedBytes: number } | null> {
    return this.exclusively(() => this.takeLocked(root, occasion));
  }

  /** Requires the lock. */
  async takeLocked(root: string, occasion: Occasion): Promise<{ id: string; changedBytes: number } | null> {
    const { limits, clock } = this.options;
    const [newest] = await readCheckpoints(this.git, refOf(root), 1);
    const work = await this.#workOnIndex(root);
    try {
      const scan = await this.#scan(root, work, occasion);
      const now = Math.floor(clock.now() / 1000);
      if (newest?.tree !== scan.tree) await this.#commit(root, scan, { newest, occasion, now });
      await rename(work, this.#indexOf(root));
      await this.#touch(root, now);
      if (newest?.tree === scan.tree) return null;
      await this.#keepWithin(root, limits().max_snapshots);
      const [made] = await readCheckpoints(this.git, refOf(root), 1);
      return made ? { id: made.id, changedBytes: scan.changedBytes } : null;
    } finally {
      await rm(work, { force: true });
      await rm(`${work}.lock`, { force: true });
    }
  }

  /** The tree of the files as they are now, without a checkpoint of it. Requires the lock. */
  async presentLocked(root: string, include: readonly string[], signal?: AbortSignal): Promise<Scan> {
    const work = await this.#workOnIndex(root);
    try {
      return await this.#scan(root, work, { why: "", include, signal });
    } finally {
      await rm(work, { force: true });
    }
  }

  /** Newest first, at most as many as are kept. */
  async list(root: string): Promise<readonly Checkpoint[]> {
    if (!(await this.exists())) return [];
    return readCheckpoints(this.git, refOf(root), this.options.limits().max_snapshots);
  }

  async exists(): Promise<boolean> {
    return (await stat(join(this.git.store, "info", "attributes")).catch(() => null)) !== null;
  }

  /** One at a time on the whole machine: git's own clean-up must not meet a checkpoint that is being made. */
  async exclusively<T>(work: () => Promise<T>, { patient = false } = {}): Promise<T> {
    await this.#prepare();
    const waitMs = patient ? LOCK_WAIT_LONG_MS : LOCK_WAIT_MS;
    return withLock(join(this.options.directory, ".lock.db"), work, { waitMs });
  }

  projectFile(hash: string): string {
    return join(this.git.store, "projects", `${hash}.json`);
  }

  indexFile(hash: string): string {
    return join(this.git.store, "indexes", hash);
  }

  /** Points the project's ref somewhere; null takes it away. */
  async setRef(ref: string, id: string | null): Promise<void> {
    const lock = join(this.git.store, `${ref}.lock`);
    const facts = await stat(lock).catch(() => null);
    if (facts && Date.now() - facts.mtimeMs > STALE_MS) await rm(lock, { force: true });
    await runGit(this.git, { args: id === null ? ["update-ref", "-d", ref] : ["update-ref", ref, id] });
  }

  /** Makes the chain anew with these checkpoints alone, newest first; their files are not touched. */
  async rewrite(ref: string, kept: readonly Checkpoint[]): Promise<void> {
    let parent: string | null = null;
    for (const checkpoint of kept.toReversed()) {
      const parents: readonly string[] = parent === null ? [] : ["-p", parent];
      parent = await gitText(this.git, {
        args: ["commit-tree", checkpoint.tree, ...parents, "-F", "-"],
        stdin: commitMessage(checkpoint),
        at: checkpoint.at,
      });
    }
    await this.setRef(ref, parent);
  }

  async readProject(hash: string): Promise<ProjectRecord | null> {
    try {
      const record = JSON.parse(await readFile(this.projectFile(hash), "utf8")) as Partial<ProjectRecord>; // checked below
      if (typeof record.workdir !== "string") return null;
      const created = Number(record.created_at) || 0;
      return { workdir: record.workdir, created_at: created, last_touch: Number(record.last_touch) || created };
    } catch {
      return null; // absent or damaged: it is written anew with the next checkpoint
    }
  }

  #prepare(): Promise<void> {
    this.#ready ??= this.#create().catch((error) => {
      this.#ready = null;
      throw error;
    });
    return this.#ready;
  }

  async #create(): Promise<void> {
    const { store } = this.git;
    await mkdir(store, { recursive: true, mode: 0o700 });
    if (await this.exists()) return;
    await withLock(join(this.options.directory, ".lock.db"), async () => {
      await runGit(this.git, { args: ["init", "--quiet", "--bare", store] });
      for (const name of ["indexes", "projects", "info"]) await mkdir(join(store, name), { recursive: true });
      // Last: its presence says that the store is whole.
      await writeFileAtomic(join(store, "info", "attributes"), ATTRIBUTES);
    });
  }

  /** A copy of the project's index, so that a process that dies in the middle leaves the real one as it was. */
  async #workOnIndex(root: string): Promise<string> {
    const work = `${this.#indexOf(root)}.${process.pid}-${randomBytes(4).toString("hex")}`;
    const facts = await stat(this.#indexOf(root)).catch(() => null);
    if (facts === null) return work; // the first checkpoint of a project begins with none
    await copyFile(this.#indexOf(root), work);
    // git compares times in whole seconds, and looks into files that are as young as their index. So the copy keeps the index's age.
    const second = Math.floor(facts.mtimeMs / 1000);
    await utimes(work, second, second);
    return work;
  }

  async #scan(root: string, work: string, { include = [], signal }: Occasion): Promise<Scan> {
    const { secrets, except, limits } = this.options;
    const timeUp = AbortSignal.timeout(SCAN_MS);
    const options = {
      ...{ root, index: work, include, except, secrets: secrets() },
      maxFileBytes: limits().max_file_size_mb * MB,
      signal: signal ? AbortSignal.any([signal, timeUp]) : timeUp,
    };
    try {
      return await scanProject(this.git, options);
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof GitError)) throw error;
      // An index that is damaged, or that names contents which were cleaned away, is made anew.
      await rm(work, { force: true });
      return scanProject(this.git, options);
    }
  }

  async #commit(
    root: string,
    scan: Scan,
    about: { readonly newest: Checkpoint | undefined; readonly occasion: Occasion; readonly now: number },
  ): Promise<void> {
    const { newest, occasion, now } = about;
    const id = await gitText(this.git, {
      args: ["commit-tree", scan.tree, ...(newest ? ["-p", newest.id] : []), "-F", "-"],
      stdin: commitMessage({ why: occasion.why, sessionId: occasion.sessionId ?? null, leftOut: scan.leftOut }),
      at: now,
    });
    await this.setRef(refOf(root), id);
  }

  /** Making the chain anew costs one step per checkpoint: it is done now and then, and what is over the limit is not shown. */
  async #keepWithin(root: string, most: number): Promise<void> {
    const all = await readCheckpoints(this.git, refOf(root), 2 * most + 1);
    if (all.length > 2 * most) await this.rewrite(refOf(root), all.slice(0, most));
  }

  async #touch(root: string, now: number): Promise<void> {
    const hash = hashOf(root);
    const created = (await this.readProject(hash))?.created_at ?? now;
    const record: ProjectRecord = { workdir: root, created_at: created, last_touch: now };
    await writeFileAtomic(this.projectFile(hash), `${JSON.stringify(record)}\n`);
  }

  #indexOf(root: string): string {
    return this.indexFile(hashOf(root));
  }
}

/** What a project is known by in the store. */
export function hashOf(root: string): string {
  return createHash("sha256").update(root).digest("hex").slice(0, 16);
}

export function refOf(root: string): string {
  return `refs/hermes/${hashOf(root)}`;
}

// What a checkpoint is, as it stands in the store: a commit whose body is one line of JSON.

export interface Checkpoint {
  /** The commit. */
  readonly id: string;
  readonly tree: string;
  /** Unix seconds. */
  readonly at: number;
  /** What was about to happen. */
  readonly why: string;
  readonly sessionId: string | null;
  /** Files of then that are not in it. */
  readonly leftOut: readonly LeftOut[];
}

/** One entry of a checkpoint's tree. */
export interface KeptFile {
  readonly mode: "100644" | "100755" | "120000";
  readonly blob: string;
  readonly size: number;
}

const MAX_LEFT_OUT = 1000;
const MAX_WHY = 100;

function commitMessage(about: Pick<Checkpoint, "why" | "sessionId" | "leftOut">): string {
  const why = about.why.replace(/\p{Cc}+/gu, " ").trim();
  const subject = why.length > MAX_WHY ? `${why.slice(0, MAX_WHY - 1).toWellFormed()}…` : why;
  const body = { session: about.sessionId, left_out: about.leftOut.slice(0, MAX_LEFT_OUT) };
  return `${subject || "checkpoint"}\n\n${JSON.stringify(body)}\n`;
}

/** Newest first; empty when the project has none. */
export async function readCheckpoints(git: GitRepository, ref: string, most?: number): Promise<Checkpoint[]> {
  const present = await gitFields(git, { args: ["for-each-ref", "--format=%(objectname)", ref] });
  if (present.length === 0 || present[0]?.trim() === "") return [];
  const limit = most === undefined ? [] : [`--max-count=${most}`];
  const args = ["log", "-z", ...limit, "--format=%H%x1f%T%x1f%ct%x1f%s%x1f%b", ref, "--"];
  return (await gitFields(git, { args })).map((line) => {
    const [id = "", tree = "", at = "0", why = "", body = ""] = line.split("\x1f");
    return { id, tree, at: Number(at), why, ...parseBody(body) };
  });
}

/** A body that another program wrote says nothing; the files of the commit are what counts. */
function parseBody(text: string): Pick<Checkpoint, "sessionId" | "leftOut"> {
  try {
    const body = JSON.parse(text) as { session?: unknown; left_out?: unknown }; // looked at field by field
    const leftOut = Array.isArray(body.left_out) ? body.left_out.filter(isLeftOut) : [];
    return { sessionId: typeof body.session === "string" ? body.session : null, leftOut };
  } catch {
    return { sessionId: null, leftOut: [] };
  }
}

function isLeftOut(value: unknown): value is LeftOut {
  return typeof value === "object" && value !== null && "path" in value && typeof value.path === "string";
}

export async function readTree(git: GitRepository, tree: string): Promise<Map<string, KeptFile>> {
  const files = new Map<string, KeptFile>();
  for (const line of await gitFields(git, { args: ["ls-tree", "-r", "-l", "-z", tree] })) {
    const found = /^(100644|100755|120000) blob ([0-9a-f]+) +(\d+)\t([\s\S]+)$/.exec(line);
    if (!found) continue; // a nested repository of another program's making
    const [, mode, blob = "", size, path = ""] = found;
    files.set(path, { mode: mode as KeptFile["mode"], blob, size: Number(size) }); // one of the three the pattern names
  }
  return files;
}

/** The contents of some blobs, in the order asked. */
export async function readBlobs(git: GitRepository, blobs: readonly string[]): Promise<Buffer[]> {
  const out = await runGit(git, { args: ["cat-file", "--batch"], stdin: blobs.map((blob) => `${blob}\n`).join("") });
  const contents: Buffer[] = [];
  let at = 0;
  for (const blob of blobs) {
    const lineEnd = out.indexOf(0x0a, at);
    const size = Number(/ blob (\d+)$/.exec(out.toString("latin1", at, lineEnd))?.[1] ?? Number.NaN);
    if (!Number.isFinite(size)) throw new Error(`the checkpoint store has lost ${blob}`);
    contents.push(out.subarray(lineEnd + 1, lineEnd + 1 + size));
    at = lineEnd + 1 + size + 1;
  }
  return contents;
}

/** The checkpoints of a home. Nothing is made on disk before the first one is taken. */
export function openCheckpoints(home: OpenHome, clock: Clock): CheckpointStore {
  return new CheckpointStore({
    directory: home.paths.at("checkpoints"),
    searchPath: home.env("PATH") ?? "",
    clock,
    limits: () => home.config().checkpoints,
    secrets: () => home.secrets(),
    except: [home.paths.dir, home.paths.root],
  });
}
