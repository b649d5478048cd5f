// Every repository below a folder, found by looking at names: a `.git` of whatever kind, and folders that git would take for a repository
// of their own (`HEAD` beside `objects` and `refs`, or beside `commondir`).

import { lstat, readdir } from "node:fs/promises";
import { basename, join } from "node:path";

export interface FoundRepository {
  /** `git`: a folder with settings, hooks and objects. `pointer`: the file of a worktree or submodule. */
  readonly type: "git" | "pointer" | "link";
  readonly path: string;
}

interface WalkLimits {
  /** Folders that hold thousands of files of others are left out. */
  readonly near: boolean;
  readonly until?: number;
}

interface Looked {
  readonly ctime: bigint;
  readonly folders: readonly string[];
  readonly found: readonly FoundRepository[];
  /** Files that a conversation takes its rules from. */
  readonly rules: readonly string[];
}

const RULES: ReadonlySet<string> = new Set("agents.md claude.md hermes.md .hermes.md .cursorrules".split(" "));

const HEAVY: ReadonlySet<string> = new Set(
  "node_modules .venv venv target .tox .gradle .next .cache __pycache__ site-packages".split(" "),
);
/** Of a repository: data, thousands of folders, and nothing in it is looked at by git as a repository. */
const DATA: ReadonlySet<string> = new Set(["objects", "refs", "logs", "lfs"]);
const MAX_FOLDERS = 200_000;
/** A file system may count time in steps as long as this: a folder that changed just now is looked at again. */
const STEP_NS = 20_000_000n;
const AT_ONCE = 16;

/**
 * - A second walk lists only folders that changed since; a time of change cannot be set by commands.
 * - Links are not followed. What cannot be read is not there for commands either.
 */
export class RepositoryWalk {
  readonly #root: string;
  readonly #looked = new Map<string, Looked>();

  constructor(root: string) {
    this.#root = root;
  }

  /** `whole` is false when there were too many folders, or the time was up. */
  async find({ near, until }: WalkLimits): Promise<{
    readonly found: FoundRepository[];
    readonly rules: string[];
    readonly whole: boolean;
  }> {
    const found: FoundRepository[] = [];
    const rules: string[] = [];
    let level = [this.#root];
    let count = 0;
    // Level by level: what lies near the top, where people work, is found first.
    while (level.length > 0) {
      const next: string[] = [];
      for (let at = 0; at < level.length; at += AT_ONCE) {
        const looks = await Promise.all(level.slice(at, at + AT_ONCE).map((path) => this.#look(path)));
        for (const [index, look] of looks.entries()) {
          if (!look) continue;
          found.push(...look.found);
          rules.push(...look.rules);
          const path = level[at + index] ?? "";
          for (const name of look.folders) if (!near || !HEAVY.has(name)) next.push(join(path, name));
        }
        count += looks.length;
        if (count > MAX_FOLDERS || (until !== undefined && Date.now() > until)) return { found, rules, whole: false };
      }
      level = next;
    }
    return { found, rules, whole: true };
  }

  async #look(path: string): Promise<Looked | null> {
    try {
      const facts = await lstat(path, { bigint: true });
      if (!facts.isDirectory()) return null;
      const known = this.#looked.get(path);
      if (known?.ctime === facts.ctimeNs) return known;
      const entries = await readdir(path, { withFileTypes: true });
      const look = lookAt(path, entries);
      const settled = BigInt(Date.now()) * 1_000_000n - facts.ctimeNs > STEP_NS;
      this.#looked.set(path, { ...look, ctime: settled ? facts.ctimeNs : -1n });
      return { ...look, ctime: facts.ctimeNs };
    } catch {
      this.#looked.delete(path);
      return null; // gone meanwhile, or not ours to read
    }
  }
}

interface Entry {
  readonly name: string;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

function lookAt(path: string, entries: readonly Entry[]): Omit<Looked, "ctime"> {
  const names = new Set(entries.map(({ name }) => name));
  const isGit = names.has("HEAD") && ((names.has("objects") && names.has("refs")) || names.has("commondir"));
  const isDotGit = basename(path).toLowerCase() === ".git";
  // Only there: a path of the index may lead into any other folder.
  const skipsData = isDotGit || (isGit && /\/\.git\//i.test(path));
  const pointers = entries
    .filter((entry) => entry.name.toLowerCase() === ".git" && !entry.isDirectory())
    .map(
      (entry): FoundRepository => ({
        type: entry.isSymbolicLink() ? "link" : "pointer",
        path: join(path, entry.name),
      }),
    );
  return {
    folders: entries
      .filter((entry) => entry.isDirectory() && !(skipsData && DATA.has(entry.name)))
      .map(({ name }) => name),
    rules: entries
      .map(({ name }) => name)
      .filter((name) => RULES.has(name.toLowerCase()) || (name.endsWith(".mdc") && path.endsWith("/.cursor/rules")))
      .map((name) => join(path, name)),
    found: [...(isGit || isDotGit ? [{ type: "git", path } as const] : []), ...pointers],
  };
}
