// Takes checkpoints for one conversation: before the first change of a turn, once per directory. It never stops a tool.

import { access, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { isWithin, writeFileAtomic } from "../kit/files.ts";
import { isDestructiveCommand } from "../safety/command-kinds.ts";
import { expandPath } from "../safety/paths.ts";
import type { Environment } from "../sandbox/environment.ts";
import { pathsOfBatch } from "../tools/toolset/batch-plan.ts";
import type { HookedCall, RunContext } from "../tools/toolset/context.ts";
import { GitMissingError } from "./git.ts";
import { storedBytes } from "./prune.ts";
import { TooManyFilesError } from "./scan.ts";
import { type CheckpointStore, openCheckpoints } from "./store.ts";

const HOUR_MS = 3600 * 1000;
const MB = 1024 * 1024;

interface CheckpointerOptions {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly environment: Environment;
}

/** A change that is about to happen, and the files it names. */
interface Change {
  readonly directory: string;
  readonly file?: string;
}

export class Checkpointer {
  readonly #options: CheckpointerOptions;
  readonly #store: CheckpointStore;
  /** Which turn the roots below belong to. */
  #turn = "";
  readonly #taken = new Map<string, Promise<string | null>>();
  readonly #said = new Set<string>();
  #tidying: Promise<void> | null = null;
  /** What the store holds, about; null until it was measured. */
  #bytes: number | null = null;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
    this.#store = openCheckpoints(options.home, options.clock);
  }

  /** Resolves when what the call may change has been copied, or cannot be. A text is for the user, once. */
  async before(call: HookedCall, run: RunContext): Promise<string | null> {
    const changes = this.#changesOf(call);
    if (changes.length === 0) return null;
    const turn = `${run.sessionId} ${run.turn}`;
    if (turn !== this.#turn) this.#taken.clear();
    this.#turn = turn;
    const { home, environment } = this.#options;
    const standing = { osHome: home.osHome, cwd: environment.cwd };
    const byRoot = new Map<string, string[]>();
    for (const { directory, file } of changes) {
      const root = await projectRootOf(directory, standing);
      if (root === null) continue;
      const files = byRoot.get(root) ?? [];
      byRoot.set(root, files);
      if (file !== undefined) files.push(await belowRoot(root, file));
    }
    const problems: (string | null)[] = [];
    for (const [root, include] of byRoot) problems.push(await this.#once(root, include, call, run));
    return this.#sayOnce(problems.find((problem) => problem !== null) ?? null);
  }

  /** Resolves when nothing is being cleaned up any more. */
  async settled(): Promise<void> {
    await this.#tidying;
  }

  #changesOf({ name, args }: HookedCall): Change[] {
    const { environment, home } = this.#options;
    if (name === "write_file" || name === "patch") {
      const planned = [{ name, arguments: JSON.stringify(args) }];
      const paths = pathsOfBatch(planned, environment.cwd, { home: environment.home });
      return paths.map((file) => ({ directory: dirname(file), file }));
    }
    // What a script will write is not known before it runs.
    if (name === "execute_code") return [{ directory: environment.cwd }];
    if (name !== "terminal" || typeof args.command !== "string" || !isDestructiveCommand(args.command)) return [];
    const { workdir } = args;
    const directory = typeof workdir === "string" ? expandPath(workdir, environment.cwd, home.osHome) : environment.cwd;
    return [{ directory }];
  }

  /** Calls that run side by side wait for the same copy. */
  #once(root: string, include: readonly string[], call: HookedCall, run: RunContext): Promise<string | null> {
    const taken = this.#taken.get(root) ?? this.#take(root, include, call, run);
    this.#taken.set(root, taken);
    return taken;
  }

  async #take(root: string, include: readonly string[], call: HookedCall, run: RunContext): Promise<string | null> {
    const { home } = this.#options;
    try {
      const why = home.redact(`before ${call.name}${whatOf(call)}`);
      const made = await this.#store.take(root, { why, sessionId: run.sessionId, include, signal: run.signal });
      if (made) this.#tidyUp(made.changedBytes);
      return null;
    } catch (error) {
      if (run.signal.aborted) return null;
      home.log.warn(`no checkpoint of ${root} was made`, error);
      return explain(error, home.display(root));
    }
  }

  #sayOnce(problem: string | null): string | null {
    if (problem === null || this.#said.has(problem)) return null;
    this.#said.add(problem);
    return problem;
  }

  /** In the background; only the end of the conversation waits for it. */
  #tidyUp(addedBytes: number): void {
    const { home } = this.#options;
    if (this.#bytes !== null) this.#bytes += addedBytes;
    this.#tidying ??= this.#tidy()
      .catch((error) => home.log.warn("old checkpoints could not be removed", error))
      .finally(() => {
        this.#tidying = null;
      });
  }

  async #tidy(): Promise<void> {
    const { home, clock } = this.#options;
    const settings = home.config().checkpoints;
    this.#bytes ??= await storedBytes(this.#store);
    const tooMuch = this.#bytes > settings.max_total_size_mb * MB;
    const mark = join(this.#store.options.directory, ".last_prune");
    const due = settings.auto_prune && (await ageOf(mark, clock)) > settings.min_interval_hours * HOUR_MS;
    if (!tooMuch && !due) return;
    const { prune } = await import("./prune.ts");
    this.#bytes = (await prune(this.#store)).bytesAfter;
    await writeFileAtomic(mark, `${clock.now()}\n`);
  }
}

async function ageOf(mark: string, clock: Clock): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  const at = Number(await readFile(mark, "utf8").catch(() => "0")); // never done yet
  return clock.now() - (Number.isFinite(at) ? at : 0);
}

function whatOf({ name, args }: HookedCall): string {
  const what = name === "terminal" ? args.command : args.path;
  return typeof what === "string" ? `: ${what}` : "";
}

/** Links in the directories followed, as the root's are. */
async function belowRoot(root: string, file: string): Promise<string> {
  const parent = await realpath(dirname(file)).catch(() => dirname(file));
  return relative(root, join(parent, basename(file)))
    .split(sep)
    .join("/");
}

function explain(error: unknown, root: string): string {
  if (error instanceof GitMissingError) return `No checkpoint: ${error.message}`;
  if (error instanceof TooManyFilesError) return `No checkpoint of ${root}: too many files.`;
  const what = messageOf(error);
  return `No checkpoint of ${root} was made: ${what}. Changes there cannot be undone with /rollback.`;
}

// Which directory a change belongs to.

const MARKS = [
  ".git",
  "package.json",
  "pyproject.toml",
  "Cargo.toml",
  "go.mod",
  "Makefile",
  "pom.xml",
  ".hg",
  "Gemfile",
] as const;

/**
 * The nearest directory from here upwards that looks like a project, else the folder the conversation stands in if this is part of it,
 * else this directory itself (or the nearest one that exists). Null for what is no project: the root of the file system, the user's home
 * and what lies above it.
 */
export async function projectRootOf(directory: string, at: Standing): Promise<string | null> {
  const [start, cwd] = [await nearestDirectory(directory), await nearestDirectory(at.cwd)];
  const home = await realpath(at.osHome).catch(() => at.osHome);
  if (isTooWide(start, home)) return null;
  for (let above = start; !isTooWide(above, home); above = dirname(above))
    if (await looksLikeProject(above)) return above;
  return isWithin(start, cwd) && !isTooWide(cwd, home) ? cwd : start;
}

interface Standing {
  readonly osHome: string;
  readonly cwd: string;
}

function isTooWide(directory: string, home: string): boolean {
  return dirname(directory) === directory || isWithin(home, directory);
}

async function looksLikeProject(directory: string): Promise<boolean> {
  const found = await Promise.all(
    MARKS.map((mark) =>
      access(join(directory, mark)).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}

/** Links followed, so that one project has one name. */
async function nearestDirectory(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const real = await realpath(at).catch(() => null);
    if (real !== null && (await stat(real)).isDirectory()) return real;
    if (dirname(at) === at) return at;
  }
}
