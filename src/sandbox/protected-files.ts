// What of a project may not be written from inside a sandbox because it runs later by itself: settings and hooks of its repository, and
// files that a shell or Hermes executes on entering the folder.

import { randomBytes } from "node:crypto";
import { lstat, mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type LinkedWorktree, linkedWorktree } from "../home/git-pointer.ts";
import { codeOf } from "../kit/errors.ts";

/** One place of the view. Of two at one path the later one counts; parents are mounted before children. */
export interface Mount {
  readonly path: string;
  readonly kind: "read-only" | "writable" | "empty directory" | "empty file";
  readonly source?: string;
}

export interface ProjectProtection {
  readonly mounts: readonly Mount[];
  /**
   * Nothing is there, so nothing can be mounted there: what a command puts there is set aside when it has ended. The folder that holds it
   * is always one that cannot be exchanged for a link from inside.
   */
  readonly keptFree: readonly string[];
}

/** More submodules than this are read-only as a whole: each costs several mounts for every command. */
const MAX_MODULES = 20;
const MAX_DEPTH = 6;
const ASIDE = ".from-sandbox";

export async function protectProject(project: string): Promise<ProjectProtection> {
  const parts = await Promise.all([
    protectRepository(project),
    protectShellFile(join(project, ".envrc")),
    protectPlugins(join(project, ".hermes")),
  ]);
  return {
    mounts: parts.flatMap(({ mounts }) => mounts),
    keptFree: parts.flatMap(({ keptFree }) => keptFree),
  };
}

/** The places of `keptFree` over the life of one sandbox. */
export class KeptFree {
  #paths: readonly string[];

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  has(path: string): boolean {
    return this.#paths.some((kept) => path === kept || path.startsWith(`${kept}/`));
  }

  /** Sets aside what appeared; resolves to its paths. Renames and nothing else: no link is followed. */
  async clear(): Promise<readonly string[]> {
    const found = await this.#filled();
    for (const path of found)
      await rename(path, `${path}${ASIDE}`).catch(() =>
        rename(path, `${path}${ASIDE}-${randomBytes(4).toString("hex")}`),
      );
    return found;
  }

  /** What is there now was put there from outside, with a yes: it stays. */
  async accept(): Promise<void> {
    const found = await this.#filled();
    this.#paths = this.#paths.filter((path) => !found.includes(path));
  }

  async #filled(): Promise<string[]> {
    const filled: string[] = [];
    for (const path of this.#paths) {
      const kind = await kindOf(path);
      if (kind === null) continue;
      // A folder of this name counts for the plugins in it alone.
      const hasNoPlugins = kind === "directory" && (await kindOf(join(path, "plugins"))) === null;
      if (basename(path) !== ".hermes" || !hasNoPlugins) filled.push(path);
    }
    return filled;
  }
}

async function protectShellFile(path: string): Promise<ProjectProtection> {
  const kind = await kindOf(path);
  if (kind === null) return { mounts: [], keptFree: [path] };
  // A link cannot be mounted over.
  return kind === "link" ? NOTHING : { mounts: [{ path, kind: "read-only" }], keptFree: [] };
}

async function protectPlugins(folder: string): Promise<ProjectProtection> {
  const kind = await kindOf(folder);
  if (kind === null) return { mounts: [], keptFree: [folder] };
  if (kind !== "directory") return NOTHING;
  const path = join(folder, "plugins");
  await makeEmpty(() => mkdir(path));
  return (await kindOf(path)) === "directory" ? { mounts: [{ path, kind: "read-only" }], keptFree: [] } : NOTHING;
}

// The repository. Commits, branches and merges are written from inside; what git executes is not.

async function protectRepository(project: string): Promise<ProjectProtection> {
  const path = join(project, ".git");
  const kind = await kindOf(path);
  if (kind === "directory") return protectGitDirectory(path);
  if (kind !== "file") return NOTHING;
  const worktree = await readWorktree(project);
  const pointer: Mount = { path, kind: "read-only" };
  if (!worktree) return { mounts: [pointer], keptFree: [] };
  const { shared, own } = worktree;
  const common = await protectGitDirectory(shared);
  // A broken one is read-only as it is.
  if (common.mounts.length === 1) return { mounts: [pointer, ...common.mounts], keptFree: [] };
  const settings = join(own, "config.worktree");
  const hasSettings = (await kindOf(settings)) === "file";
  return {
    mounts: [
      pointer,
      ...common.mounts.filter(({ path }) => path !== own),
      { path: dirname(own), kind: "read-only" },
      { path: own, kind: "writable" },
      ...["commondir", "gitdir"].map((name): Mount => ({ path: join(own, name), kind: "read-only" })),
      ...(hasSettings ? [{ path: settings, kind: "read-only" } as const] : []),
    ],
    keptFree: [...common.keptFree, ...(hasSettings ? [] : [settings])],
  };
}

const NOTHING: ProjectProtection = { mounts: [], keptFree: [] };

async function protectGitDirectory(directory: string): Promise<ProjectProtection> {
  const at = (name: string) => join(directory, name);
  const [config, worktreeConfig, hooks, info, commondir] = await Promise.all(
    ["config", "config.worktree", "hooks", "info", "commondir"].map((name) => kindOf(at(name))),
  );
  // `commondir` sends git elsewhere for its settings, and a link can be exchanged: what is so unusual is not written at all.
  if (commondir !== null || [config, worktreeConfig, hooks, info].includes("link"))
    return { mounts: [{ path: directory, kind: "read-only" }], keptFree: [] };
  await Promise.all([
    hooks === null ? makeEmpty(() => mkdir(at("hooks"))) : null,
    info === null ? makeEmpty(() => mkdir(at("info"))) : null,
    config === null ? makeEmpty(() => writeFile(at("config"), "", { flag: "wx" })) : null,
  ]);
  const modules = await protectModules(at("modules"));
  const worktrees = await readdir(at("worktrees")).catch(() => []);
  return {
    mounts: [
      { path: directory, kind: "writable" },
      ...["config", "hooks", "info"].map((name): Mount => ({ path: at(name), kind: "read-only" })),
      ...(worktreeConfig === null ? [] : [{ path: at("config.worktree"), kind: "read-only" } as const]),
      ...worktrees.map((name): Mount => ({ path: join(at("worktrees"), name), kind: "read-only" })),
      ...modules.mounts,
    ],
    keptFree: [at("commondir"), ...(worktreeConfig === null ? [at("config.worktree")] : []), ...modules.keptFree],
  };
}

/** Every repository has these; git does without them just as well. Where they cannot be made, nobody inside can make them either. */
async function makeEmpty(make: () => Promise<unknown>): Promise<void> {
  await make().catch((error: unknown) => {
    if (!["EEXIST", "EACCES", "EPERM", "EROFS"].includes(codeOf(error) ?? "")) throw error;
  });
}

async function protectModules(directory: string): Promise<ProjectProtection> {
  if ((await kindOf(directory)) === null) return NOTHING;
  const found = await findModules(directory, MAX_DEPTH);
  if (found === null || found.length > MAX_MODULES)
    return { mounts: [{ path: directory, kind: "read-only" }], keptFree: [] };
  const parts = await Promise.all(found.map(protectGitDirectory));
  return {
    mounts: [{ path: directory, kind: "writable" }, ...parts.flatMap(({ mounts }) => mounts)],
    keptFree: parts.flatMap(({ keptFree }) => keptFree),
  };
}

/** Git directories below a folder, not those inside others, which look for themselves; null when there are too many folders to tell. */
async function findModules(directory: string, depth: number): Promise<string[] | null> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) return null;
    if (!entry.isDirectory()) continue;
    const path = join(directory, entry.name);
    if ((await kindOf(join(path, "HEAD"))) !== null) found.push(path);
    else {
      const below = depth === 0 ? null : await findModules(path, depth - 1);
      if (below === null) return null;
      found.push(...below);
    }
    if (found.length > MAX_MODULES) return found;
  }
  return found;
}

/** Links in their place are not followed. */
async function readWorktree(project: string): Promise<LinkedWorktree | null> {
  const worktree = linkedWorktree(project);
  if (!worktree) return null;
  const { shared, own } = worktree;
  return (await kindOf(shared)) === "directory" && (await kindOf(own)) === "directory" ? worktree : null;
}

async function kindOf(path: string): Promise<"directory" | "file" | "link" | null> {
  try {
    const found = await lstat(path);
    return found.isSymbolicLink() ? "link" : found.isDirectory() ? "directory" : "file";
  } catch {
    return null; // nothing there, or nothing we may look at: the sandbox may not either
  }
}
