// What of a project may not be written from inside a sandbox because it runs later by itself: settings and hooks of its repositories, files
// that a shell, an editor or Hermes executes on entering the folder, and start files of the user that lie in it.

import { mkdir, readdir, readlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type LinkedWorktree, linkedWorktree } from "../home/git-pointer.ts";
import { ownKindNow, realPathNow } from "../home/looks.ts";
import { codeOf } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";
import { PROJECT_PATHS, USER_PATHS } from "../safety/file-guard.ts";
import { filesOfSettings } from "./named-files.ts";
import { type FoundRepository, RepositoryWalk } from "./repository-walk.ts";
import { HeldFolder, type KeptPlace } from "./set-aside.ts";

/** One place of the view. Of two at one path the later one counts; parents are mounted before children. */
export interface Mount {
  readonly path: string;
  readonly kind: "read-only" | "writable" | "empty directory" | "empty file";
  readonly source?: string;
}

interface Protection {
  readonly mounts: readonly Mount[];
  /** Nothing can be mounted there: what a command puts there is set aside. */
  readonly kept: readonly KeptPlace[];
}

export interface ProjectProtection extends Protection {
  /** The project, and the repository outside of it that a worktree belongs to. */
  readonly roots: readonly string[];
  /** Repositories that were there. */
  readonly found: readonly FoundRepository[];
  readonly walks: Map<string, RepositoryWalk>;
}

/** More submodules than this are read-only as a whole: each costs several mounts for every command. */
const MAX_MODULES = 20;
const MAX_DEPTH = 6;
/** So many repositories below the project can be worked in, and so many more can be read; others are looked at after each command. */
const MAX_NESTED = 20;
const MAX_READ_ONLY = 60;
const LOOK_MS = 1500;

export async function protectProject(project: string, userHome: string): Promise<ProjectProtection> {
  const walk = new RepositoryWalk(project);
  const [{ found }, worktree, places] = await Promise.all([
    walk.find({ near: true, until: Date.now() + LOOK_MS }),
    readWorktree(project),
    protectPlaces(project, userHome),
  ]);
  const roots = worktree && !isWithin(worktree.shared, project) ? [project, worktree.shared] : [project];
  const repositories = [await protectRepository(project, worktree), ...(await protectNested(project, found))];
  const plain = [...repositories, places].flatMap(({ mounts }) => mounts);
  // Settings that can be written are nobody's word.
  const believed = [...found, ...roots.slice(1).map((path): FoundRepository => ({ type: "git", path }))].filter((one) =>
    isReadOnly(plain, one),
  );
  const named = await filesOfSettings(believed, userHome);
  const files = await Promise.all(named.map((path) => hold(path, roots)));
  return {
    // Before the repositories: a file that is named may be one that a mount of theirs shows.
    mounts: [...files.flatMap(({ mounts }) => mounts), ...plain],
    // What lies in a read-only place cannot change from inside.
    kept: [...repositories, places, ...files]
      .flatMap(({ kept }) => kept)
      .filter(({ path }) => kindAt(plain, path) !== "read-only"),
    roots,
    found,
    walks: new Map(roots.map((root) => [root, root === project ? walk : new RepositoryWalk(root)])),
  };
}

/** Whether commands cannot write the settings of a git folder, or the file or link that leads to one. */
export function isReadOnly(mounts: readonly Mount[], { type, path }: FoundRepository): boolean {
  return kindAt(mounts, type === "git" ? join(path, "config") : path) === "read-only";
}

function kindAt(mounts: readonly Mount[], path: string): Mount["kind"] | undefined {
  const around = mounts.filter((mount) => isWithin(path, mount.path));
  return around.reduce<Mount | null>((a, b) => (a && a.path.length > b.path.length ? a : b), null)?.kind;
}

/** A file or folder, there or not, behind links or not, that commands must leave as it is. Outside of `roots` they cannot write anyway. */
async function hold(path: string, roots: readonly string[]): Promise<Protection> {
  const inRoot = (at: string) => roots.find((root) => isWithin(at, root) && at !== root);
  const kind = ownKindNow(path);
  const real = realPathNow(path);
  const ownRoot = inRoot(path);
  const mounts: Mount[] = [];
  const kept: KeptPlace[] = [];
  if (kind === "link" && ownRoot !== undefined) kept.push({ path, root: ownRoot, link: await readLink(path) });
  if (real !== null) {
    if (inRoot(real) !== undefined) mounts.push({ path: real, kind: "read-only" });
    return { mounts, kept };
  }
  const missing = kind === "link" ? join(dirname(path), await readLink(path)) : path;
  const at = asFarAsThere(missing);
  const root = inRoot(at);
  if (root !== undefined) kept.push({ path: at, root, link: null });
  return { mounts, kept };
}

/** A path whose beginning exists, links in that followed. */
function asFarAsThere(path: string): string {
  if (path === "/") return path;
  const real = realPathNow(path);
  return real ?? join(asFarAsThere(dirname(path)), basename(path));
}

/** Files of the project's own that something runs, and places of the user's home that are links into the project. */
async function protectPlaces(project: string, userHome: string): Promise<Protection> {
  const own = PROJECT_PATHS.map(({ path }) => path).filter((path) => path !== ".git" && !path.startsWith(".git/"));
  const home = realPathNow(userHome) ?? userHome;
  const linked = USER_PATHS.map(({ path }) => join(home, path)).filter((path) => !isWithin(path, project));
  const parts = await Promise.all([
    ...own.filter((path) => !path.includes("/")).map((path) => hold(join(project, path), [project])),
    ...own.filter((path) => path.includes("/")).map((path) => protectInside(project, path)),
    protectPlugins(project),
    ...linked.map((path) => hold(path, [project])),
  ]);
  return { mounts: parts.flatMap(({ mounts }) => mounts), kept: parts.flatMap(({ kept }) => kept) };
}

/** `.vscode/tasks.json`: the folder may come and go, what counts is the file. */
async function protectInside(project: string, path: string): Promise<Protection> {
  const folder = join(project, dirname(path));
  if (ownKindNow(folder) !== null) return hold(join(project, path), [project]);
  return { mounts: [], kept: [{ path: folder, root: project, link: null, inside: basename(path) }] };
}

async function protectPlugins(project: string): Promise<Protection> {
  const folder = join(project, ".hermes");
  const kind = ownKindNow(folder);
  if (kind === null) return { mounts: [], kept: [{ path: folder, root: project, link: null, inside: "plugins" }] };
  if (kind === "link") return hold(folder, [project]);
  if (kind !== "directory") return NOTHING;
  const path = join(folder, "plugins");
  await makeEmpty(() => mkdir(path));
  return hold(path, [project]);
}

// Repositories. Commits, branches and merges are written from inside; what git executes is not.

async function protectRepository(project: string, worktree: LinkedWorktree | null): Promise<Protection> {
  const path = join(project, ".git");
  const kind = ownKindNow(path);
  if (kind === "directory") return protectGitDirectory(path, project);
  if (kind === "link") return protectLink(path, project);
  if (kind !== "file") return NOTHING;
  const pointer: Mount = { path, kind: "read-only" };
  if (!worktree) return { mounts: [pointer], kept: [] };
  const { shared, own } = worktree;
  const common = await protectGitDirectory(shared, shared);
  // A broken one is read-only as it is.
  if (common.mounts.length === 1) return { mounts: [pointer, ...common.mounts], kept: [] };
  const settings = join(own, "config.worktree");
  const hasSettings = ownKindNow(settings) === "file";
  return {
    mounts: [
      pointer,
      ...common.mounts.filter(({ path }) => path !== own),
      { path: dirname(own), kind: "read-only" },
      { path: own, kind: "writable" },
      ...["commondir", "gitdir"].map((name): Mount => ({ path: join(own, name), kind: "read-only" })),
      ...(hasSettings ? [{ path: settings, kind: "read-only" } as const] : []),
    ],
    kept: [...common.kept, ...(hasSettings ? [] : [{ path: settings, root: shared, link: null }])],
  };
}

/** What lies below the project. What lies in another repository's own folder is protected with that one. */
async function protectNested(project: string, found: readonly FoundRepository[]): Promise<Protection[]> {
  const parts: Protection[] = [];
  const done = [join(project, ".git")];
  let [folders, files] = [0, 0];
  for (const { type, path } of found) {
    if (done.some((one) => isWithin(path, one))) continue;
    if (type === "git") {
      if (++folders <= MAX_NESTED) parts.push(await protectGitDirectory(path, project));
      else if (folders <= MAX_NESTED + MAX_READ_ONLY) parts.push({ mounts: [{ path, kind: "read-only" }], kept: [] });
      done.push(path);
    } else if (++files <= MAX_READ_ONLY)
      parts.push(
        type === "link" ? await protectLink(path, project) : { mounts: [{ path, kind: "read-only" }], kept: [] },
      );
  }
  return parts;
}

/** A link cannot be mounted over; it is put back when it was exchanged. */
async function protectLink(path: string, project: string): Promise<Protection> {
  const link: KeptPlace = { path, root: project, link: await readLink(path) };
  const real = realPathNow(path);
  if (real === null || !isWithin(real, project) || ownKindNow(real) !== "directory")
    return { mounts: [], kept: [link] };
  const target = await protectGitDirectory(real, project);
  return { mounts: target.mounts, kept: [link, ...target.kept] };
}

const NOTHING: Protection = { mounts: [], kept: [] };

async function protectGitDirectory(directory: string, root: string): Promise<Protection> {
  const at = (name: string) => join(directory, name);
  // git never makes one here: it was left by a command of a sandbox that was killed.
  if (basename(directory) === ".git" && ownKindNow(at("commondir")) !== null)
    await HeldFolder.within(root, directory, (folder) => folder.setAside("commondir"));
  const [config, worktreeConfig, hooks, info, commondir] = [
    "config",
    "config.worktree",
    "hooks",
    "info",
    "commondir",
  ].map((name) => ownKindNow(at(name)));
  // `commondir` sends git elsewhere for its settings, and a link can be exchanged: what is so unusual is not written at all.
  if (commondir !== null || [config, worktreeConfig, hooks, info].includes("link")) {
    const led = await Promise.all(["config", "config.worktree", "hooks", "info"].map((name) => hold(at(name), [root])));
    return {
      mounts: [{ path: directory, kind: "read-only" }, ...led.flatMap(({ mounts }) => mounts)],
      kept: led.flatMap(({ kept }) => kept).filter(({ path }) => !isWithin(path, directory)),
    };
  }
  await Promise.all([
    hooks === null ? makeEmpty(() => mkdir(at("hooks"))) : null,
    info === null ? makeEmpty(() => mkdir(at("info"))) : null,
    config === null ? makeEmpty(() => writeFile(at("config"), "", { flag: "wx" })) : null,
  ]);
  const modules = await protectModules(at("modules"), root);
  const worktrees = await readdir(at("worktrees")).catch(() => []);
  return {
    mounts: [
      { path: directory, kind: "writable" },
      ...["config", "hooks", "info"].map((name): Mount => ({ path: at(name), kind: "read-only" })),
      ...(worktreeConfig === null ? [] : [{ path: at("config.worktree"), kind: "read-only" } as const]),
      ...worktrees.map((name): Mount => ({ path: join(at("worktrees"), name), kind: "read-only" })),
      ...modules.mounts,
    ],
    kept: [
      { path: at("commondir"), root, link: null },
      ...(worktreeConfig === null ? [{ path: at("config.worktree"), root, link: null }] : []),
      ...modules.kept,
    ],
  };
}

/** Every repository has these; git does without them just as well. Where they cannot be made, nobody inside can make them either. */
async function makeEmpty(make: () => Promise<unknown>): Promise<void> {
  await make().catch((error: unknown) => {
    if (!["EEXIST", "EACCES", "EPERM", "EROFS"].includes(codeOf(error) ?? "")) throw error;
  });
}

async function protectModules(directory: string, root: string): Promise<Protection> {
  if (ownKindNow(directory) === null) return NOTHING;
  const found = await findModules(directory, MAX_DEPTH);
  if (found === null || found.length > MAX_MODULES)
    return { mounts: [{ path: directory, kind: "read-only" }], kept: [] };
  const parts = await Promise.all(found.map((one) => protectGitDirectory(one, root)));
  return {
    mounts: [{ path: directory, kind: "writable" }, ...parts.flatMap(({ mounts }) => mounts)],
    kept: parts.flatMap(({ kept }) => kept),
  };
}

/** Git directories below a folder, not those inside others, which look for themselves; null when there are too many folders to tell. */
async function findModules(directory: string, depth: number): Promise<string[] | null> {
  const found: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) return null;
    if (!entry.isDirectory()) continue;
    const path = join(directory, entry.name);
    if (ownKindNow(join(path, "HEAD")) !== null) found.push(path);
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
  return ownKindNow(shared) === "directory" && ownKindNow(own) === "directory" ? worktree : null;
}

const readLink = (path: string) => readlink(path).catch(() => "");
