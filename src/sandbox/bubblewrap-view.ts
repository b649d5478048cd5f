// What a sandboxed command sees of the file system: everything read-only, the project and a temp directory writable, the home as
// bubblewrap-home.ts shows it, secrets behind empty mounts.

import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, readFile, utimes } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { ownKindNow, realPathNow } from "../home/looks.ts";
import { installRoot } from "../home/paths.ts";
import { isWithin } from "../kit/files.ts";
import { USER_PATHS } from "../safety/file-guard.ts";
import { SECRET_PLACES } from "../safety/secret-places.ts";
import { viewOfHome } from "./bubblewrap-home.ts";
import { removeTree } from "./child-env.ts";
import { cleanAfterKilled } from "./project-watch.ts";
import { type Mount, type ProjectProtection, protectProject } from "./protected-files.ts";

interface ViewFacts {
  /** The user's own home directory. */
  readonly userHome: string;
  /** The home of this profile and the root home; hidden but for skills, cache and workspace. */
  readonly hermesHome: { readonly dir: string; readonly root: string };
  /** HOME of commands when it lies in the profile's home. */
  readonly privateHome?: string | undefined;
  /** More folders of the home that are shown. */
  readonly readable?: readonly string[] | undefined;
  /** The session's directory. */
  readonly cwd: string;
  /** PATH of the commands. */
  readonly path: string;
  /** On this machine; becomes /tmp. */
  readonly tempDir: string;
  /** On this machine: an empty file to lay over others. */
  readonly emptyFile: string;
}

export interface View {
  readonly args: readonly string[];
  /** The folder that commands may write to besides the temp directory; null: there is none. */
  readonly writable: string | null;
  /** Whether commands can write at a path, links in it followed. */
  allowsWrite(path: string): boolean;
  /** Whether no command can exchange a folder on the way to a path. */
  holdsStill(path: string): boolean;
  /** Whether a path is behind an empty mount. */
  hides(path: string): boolean;
  /** Of the project, if there is one. */
  readonly protection: ProjectProtection | null;
  readonly mounts: readonly Mount[];
  /** How names of notes about open sandboxes of this project begin. */
  readonly records: string | null;
}

// Sockets of daemons and agents live below /run: docker's would lead out. What resolving names and NixOS need is shown again.
const RUN_KEPT = (
  "/run/systemd/resolve /run/resolvconf /run/NetworkManager/resolv.conf /run/connman /run/current-system /run/wrappers " +
  "/run/opengl-driver"
).split(" ");

const SYSTEM =
  /^\/(bin|boot|dev|etc|lib|lib32|lib64|libx32|opt|proc|root|run|sbin|sys|usr|var|home|Users|nix|snap|tmp)?$/;
/** Folders of the profile's home that hold work, not the agent's own things. */
const WORK_IN_HOME = /^(workspaces?|worktrees|kanban\/(?:boards\/[^/]+\/)?workspaces)\//;

export async function makeView(facts: ViewFacts): Promise<View> {
  const { tempDir, emptyFile } = facts;
  const project = await writableProject(facts);
  const cacheDir = project && (await packageCache(facts.hermesHome.dir, project));
  if (cacheDir) await cleanAfterKilled(cacheDir);
  const protection = project ? await protectProject(project, facts.userHome) : null;
  const workspace = await ownWorkspace(facts, { make: project === null });
  const userHome = await viewOfHome({ ...facts, needed: [dirname(dirname(process.execPath)), installRoot()] });
  const own: Mount[] = [
    { path: "/run", kind: "empty directory" },
    { path: "/tmp", kind: "writable", source: tempDir },
    ...(cacheDir ? [{ path: CACHE, kind: "writable", source: cacheDir } as const] : []),
    ...userHome.mounts,
    ...(project ? [{ path: project, kind: "writable" } as const] : []),
    ...(protection?.mounts ?? []),
    ...hiddenMounts(facts, userHome),
    ...(workspace ? [{ path: workspace, kind: "writable" } as const] : []),
  ];
  // Parents before children; of two mounts at one path the later one counts.
  const ordered = inOrder(own);
  const mounts = inOrder([...(project ? heldInPlace(ordered, project) : []), ...ordered]);
  return {
    args: [
      ..."--ro-bind / / --dev /dev --proc /proc".split(" "),
      ...mounts.flatMap((mount) => mountArguments(mount, emptyFile)),
      ...userHome.links.flatMap(({ path, target }) => ["--symlink", target, path]),
      ...RUN_KEPT.flatMap((path) => ["--ro-bind-try", path, path]),
      // Kernel settings below /proc/sys ask for the user id of root alone, not for its rights.
      ...(process.getuid?.() === 0 ? ["--remount-ro", "/proc"] : []),
      // Last, because mount points of what is shown again are made inside.
      ...mounts.flatMap(({ path, kind }) => (kind === "empty directory" ? ["--remount-ro", path] : [])),
    ],
    writable: project ?? workspace,
    allowsWrite: (path) => mountOf(mounts, path)?.kind === "writable",
    holdsStill(path) {
      for (let at = dirname(path); at !== "/"; at = dirname(at))
        if (mountOf(mounts, dirname(at))?.kind === "writable" && !mounts.some((mount) => mount.path === at))
          return false;
      return true;
    },
    hides: (path) => path !== userHome.home && mountOf(mounts, path)?.kind.startsWith("empty") === true,
    protection,
    mounts,
    records: cacheDir,
  };
}

/** The folder that commands would be able to write to; null: there is none. */
export async function writableFolder(
  facts: Pick<ViewFacts, "cwd" | "userHome" | "hermesHome">,
): Promise<string | null> {
  const home = existing(facts.hermesHome.dir);
  return (await writableProject(facts)) ?? (home && join(home.path, "workspace"));
}

const inOrder = (mounts: readonly Mount[]) =>
  [...new Map(mounts.map((mount) => [mount.path, mount])).values()].sort((a, b) => depth(a.path) - depth(b.path));

/** The mount that a path lies in. */
function mountOf(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => isWithin(path, mount.path));
}

/** A folder with a mount in it can be renamed and another one put in its place, unless it is a mount itself. */
function heldInPlace(mounts: readonly Mount[], project: string): Mount[] {
  const held: Mount[] = [];
  for (const { path } of mounts) {
    for (let at = dirname(path); isInside(path, project) && isInside(at, project); at = dirname(at))
      if (mountOf(mounts, at)?.kind === "writable" && !mounts.some((mount) => mount.path === at))
        held.push({ path: at, kind: "writable" });
  }
  return held;
}

function mountArguments({ path, kind, source = path }: Mount, emptyFile: string): string[] {
  switch (kind) {
    case "read-only":
      return ["--ro-bind", source, path];
    case "writable":
      return ["--bind", source, path];
    case "empty directory":
      return ["--tmpfs", path];
    case "empty file":
      return ["--ro-bind", emptyFile, path];
  }
}

function hiddenMounts(
  { userHome, hermesHome: { dir, root }, privateHome, readable = [] }: ViewFacts,
  home: { hides(path: string): boolean },
): Mount[] {
  const secrets = SECRET_PLACES.map(({ path }) => existing(join(userHome, path)));
  const homes = [root, dir].map(existing);
  const inHome = [join(dir, "skills"), join(dir, "cache"), privateHome ?? "", ...readable];
  const shown = inHome.map(existing);
  return [
    // Where a link leads out of the home, or into a part of it that is shown.
    ...[...secrets.filter((found) => found !== null && !home.hides(found.path)), ...homes]
      .filter((found) => found !== null)
      .map(({ path, isDirectory }): Mount => ({ path, kind: isDirectory ? "empty directory" : "empty file" })),
    // Inside what is hidden: only what lies there itself, not where a link would lead.
    ...shown.filter((found) => found !== null).map(({ path }): Mount => ({ path, kind: "read-only" })),
  ];
}

/** The one folder of the profile's home for work that belongs to no project. */
async function ownWorkspace(
  { hermesHome }: Pick<ViewFacts, "hermesHome">,
  { make }: { readonly make: boolean },
): Promise<string | null> {
  const home = existing(hermesHome.dir);
  if (!home) return null;
  const path = join(home.path, "workspace");
  // A home that cannot be written has none, and then nothing but the temp directory is writable.
  if (make) await mkdir(path, { mode: 0o700 }).catch(() => undefined);
  const found = existing(path);
  return found?.isDirectory && found.path === path ? path : null;
}

/** The git root of the session's directory, else the directory; null where writing would reach the system or the secrets. */
async function writableProject({
  cwd,
  userHome,
  hermesHome,
}: Pick<ViewFacts, "cwd" | "userHome" | "hermesHome">): Promise<string | null> {
  const start = existing(cwd);
  if (!start?.isDirectory) return null;
  const home = existing(userHome)?.path ?? userHome;
  const project = gitRoot(start.path, home) ?? start.path;
  if (SYSTEM.test(project) || isWithin(home, project)) return null;
  if (isPlace(project, home)) return null;
  for (const dir of [hermesHome.dir, hermesHome.root]) {
    const found = existing(dir);
    if (!found || !isWithin(project, found.path)) continue;
    if (!WORK_IN_HOME.test(`${project.slice(found.path.length + 1)}/`)) return null;
  }
  return project;
}

/** A folder of the home directory that holds keys or what starts later by itself, or lies in one: `~/.config`, `~/.config/nvim`, `~/bin`. */
function isPlace(project: string, home: string): boolean {
  const places = [...USER_PATHS, ...OWN_PROGRAMS.map((path) => ({ path, type: "directory" as const }))];
  const real = places.map(({ path }) => existing(join(home, path)));
  return places.some(({ path, type }, index) => {
    const at = join(home, path);
    const leads = real[index]?.path ?? at;
    return isWithin(at, project) || (type === "directory" && (isWithin(project, at) || isWithin(project, leads)));
  });
}

const OWN_PROGRAMS = ["bin", ".local/bin"];

/** Not the home directory or one above it, which some keep under git too. */
function gitRoot(start: string, home: string): string | null {
  for (let at = start; !isWithin(home, at); at = dirname(at)) if (existing(join(at, ".git"))) return at;
  return null;
}

// Package managers keep what they fetched in the home directory, which is read-only. They get folders of their own, one for each project, so
// that one project cannot put anything into the packages of another.

const CACHE = "/tmp/.cache";
const UNUSED_MS = 30 * 24 * 3600 * 1000;

/** Variables that send programs to folders they can write. */
export const CACHE_VARIABLES: Readonly<Record<string, string>> = {
  TMPDIR: "/tmp",
  XDG_CACHE_HOME: CACHE,
  npm_config_cache: `${CACHE}/npm`,
  // Not npm_config_store_dir: npm warns with every command about a name that only pnpm knows.
  PNPM_HOME: `${CACHE}/pnpm`,
  pnpm_config_store_dir: `${CACHE}/pnpm`,
  YARN_CACHE_FOLDER: `${CACHE}/yarn`,
  BUN_INSTALL_CACHE_DIR: `${CACHE}/bun`,
  CARGO_HOME: `${CACHE}/cargo`,
  GOMODCACHE: `${CACHE}/go-mod`,
  GRADLE_USER_HOME: `${CACHE}/gradle`,
  MAVEN_ARGS: `-Dmaven.repo.local=${CACHE}/m2`,
  BUNDLE_USER_HOME: `${CACHE}/bundle`,
  NUGET_PACKAGES: `${CACHE}/nuget`,
};

/** Null where the home cannot be written: packages are then fetched again in each session. */
async function packageCache(home: string, project: string): Promise<string | null> {
  const folder = join(home, "sandboxes", "bubblewrap");
  const own = join(folder, createHash("sha256").update(project).digest("hex").slice(0, 16));
  try {
    await mkdir(own, { recursive: true, mode: 0o700 });
    const now = new Date();
    await utimes(own, now, now);
  } catch {
    return null;
  }
  void removeUnused(folder);
  return own;
}

async function removeUnused(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const found = await lstat(join(folder, name)).catch(() => null);
    if (found && Date.now() - found.mtimeMs > UNUSED_MS) await removeTree(join(folder, name));
  }
}

// A read-only mount does not keep anybody from talking to a daemon through its socket.

/** Arguments that lay an empty file over each socket of this machine that lies where commands can see it. Made anew for every command. */
export async function coveredSockets(view: Pick<View, "hides" | "allowsWrite">, emptyFile: string): Promise<string[]> {
  const table = await readFile("/proc/net/unix", "utf8").catch(() => "");
  const paths = table.split("\n").map((line) => /^\S+:(?: +\S+){5} +\d+ (\/.*)$/.exec(line)?.[1]);
  const seen = [...new Set(paths.filter((path) => path !== undefined))].filter((path) => !OUT_OF_SIGHT.test(path));
  const covered = await Promise.all(
    seen.map(async (path) => {
      const real = existing(path)?.path;
      if (real === undefined || OUT_OF_SIGHT.test(real) || view.hides(real) || view.allowsWrite(real)) return [];
      const isSocket = await lstat(real).then(
        (found) => found.isSocket(),
        () => false,
      );
      return isSocket ? ["--ro-bind", emptyFile, real] : [];
    }),
  );
  return covered.flat();
}

const OUT_OF_SIGHT = /^\/(?:run|tmp|dev|proc|sys)\//;

/** Where a path really leads; null where nothing is, or nothing we may look at: the sandbox may not either. Most places are not there. */
function existing(path: string): { path: string; isDirectory: boolean } | null {
  if (path === "" || ownKindNow(path) === null) return null;
  const real = realPathNow(path);
  return real === null ? null : { path: real, isDirectory: ownKindNow(real) === "directory" };
}

const depth = (path: string) => path.split(sep).length;
const isInside = (path: string, parent: string) => path !== parent && isWithin(path, parent);
