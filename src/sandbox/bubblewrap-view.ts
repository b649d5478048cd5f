// What a sandboxed command sees of the file system: everything read-only, the project and a temp directory writable, secrets behind
// empty mounts.
import { lstat, readFile, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

interface ViewFacts {
  /** The user's own home directory. */
  readonly userHome: string;
  /** The home of this profile and the root home; hidden but for skills and cache. */
  readonly hermesHome: { readonly dir: string; readonly root: string };
  /** HOME of commands when it lies in the profile's home. */
  readonly privateHome?: string | undefined;
  /** The session's directory. */
  readonly cwd: string;
  /** On this machine; becomes /tmp. */
  readonly tempDir: string;
  /** On this machine: an empty file to lay over others. */
  readonly emptyFile: string;
}

export interface View {
  readonly args: readonly string[];
  /** Null: only the temp directory is writable. */
  readonly writable: string | null;
}

const SECRETS =
  ".ssh .aws .gnupg .kube .docker .azure .config/gh .config/gcloud .netrc .npmrc .pypirc .git-credentials".split(" ");

/** If the home directory itself is the project, what runs at the next login must not be written from inside. */
const START_FILES = (
  ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .inputrc .xprofile .xinitrc " +
  ".pam_environment .gitconfig .vimrc .config/autostart .config/systemd .config/fish .config/git .config/nvim .local/bin bin"
).split(" ");

// Sockets of daemons and agents live below /run: docker's would lead out. What resolving names and NixOS need is shown again.
const RUN_KEPT = (
  "/run/systemd/resolve /run/resolvconf /run/NetworkManager/resolv.conf /run/connman /run/current-system /run/wrappers " +
  "/run/opengl-driver"
).split(" ");

const SYSTEM =
  /^\/(bin|boot|dev|etc|lib|lib32|lib64|libx32|opt|proc|root|run|sbin|sys|usr|var|home|Users|nix|snap|tmp)?$/;
/** Folders of the profile's home that hold work, not the agent's own things. */
const WORK_IN_HOME = /^(workspaces?|worktrees|kanban\/workspaces)\//;

interface Mount {
  readonly path: string;
  readonly kind: "read-only" | "writable" | "empty directory" | "empty file";
  readonly source?: string;
}

export async function makeView(facts: ViewFacts): Promise<View> {
  const { tempDir, emptyFile } = facts;
  const project = await writableProject(facts);
  const hidden = await hiddenMounts(facts);
  const mounts: Mount[] = [
    { path: "/run", kind: "empty directory" },
    { path: "/tmp", kind: "writable", source: tempDir },
    ...(await shownAgain(facts)),
    ...(project ? await projectMounts(project, facts.userHome) : []),
    ...hidden,
  ];
  // Parents before children; of two mounts at one path the later one counts.
  const ordered = [...new Map(mounts.map((mount) => [mount.path, mount])).values()].sort(
    (a, b) => depth(a.path) - depth(b.path),
  );
  return {
    args: [
      ..."--ro-bind / / --dev /dev --proc /proc".split(" "),
      ...ordered.flatMap((mount) => mountArguments(mount, emptyFile)),
      ...RUN_KEPT.flatMap((path) => ["--ro-bind-try", path, path]),
      // Kernel settings below /proc/sys ask for the user id of root alone, not for its rights.
      ...(process.getuid?.() === 0 ? ["--remount-ro", "/proc"] : []),
      // Last, because mount points of what is shown again are made inside.
      ...ordered.flatMap(({ path, kind }) => (kind === "empty directory" ? ["--remount-ro", path] : [])),
    ],
    writable: project,
  };
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

async function hiddenMounts({ userHome, hermesHome: { dir, root }, privateHome }: ViewFacts): Promise<Mount[]> {
  const secrets = await Promise.all(SECRETS.map((name) => existing(join(userHome, name))));
  const homes = await Promise.all([root, dir].map(existing));
  const shown = await Promise.all([join(dir, "skills"), join(dir, "cache"), privateHome ?? ""].map(existing));
  return [
    ...[...secrets, ...homes]
      .filter((found) => found !== null)
      .map(({ path, isDirectory }): Mount => ({ path, kind: isDirectory ? "empty directory" : "empty file" })),
    // Inside what is hidden: only what lies there itself, not where a link would lead.
    ...shown.filter((found) => found !== null).map(({ path }): Mount => ({ path, kind: "read-only" })),
  ];
}

/** The private /tmp and the empty /run would also hide a home that lies there. */
async function shownAgain({ userHome }: ViewFacts): Promise<Mount[]> {
  const home = await existing(userHome);
  if (!home || !(isInside(home.path, "/tmp") || isInside(home.path, "/run"))) return [];
  return [{ path: home.path, kind: "read-only" }];
}

async function projectMounts(project: string, userHome: string): Promise<Mount[]> {
  const gitDir = await sharedGitDir(project);
  const isHome = (await existing(userHome))?.path === project;
  const startFiles = isHome ? await Promise.all(START_FILES.map((name) => existing(join(project, name)))) : [];
  return [
    { path: project, kind: "writable" },
    ...(gitDir ? [{ path: gitDir, kind: "writable" as const }] : []),
    ...startFiles.filter((found) => found !== null).map(({ path }): Mount => ({ path, kind: "read-only" })),
  ];
}

/** The git root of the session's directory, else the directory; null where writing would reach the system or the secrets. */
async function writableProject({ cwd, userHome, hermesHome }: ViewFacts): Promise<string | null> {
  const start = await existing(cwd);
  if (!start?.isDirectory) return null;
  const project = (await gitRoot(start.path)) ?? start.path;
  const home = (await existing(userHome))?.path ?? userHome;
  if (SYSTEM.test(project) && project !== home) return null;
  if (isInside(home, project) && home !== project) return null;
  for (const name of SECRETS) {
    const secret = await existing(join(userHome, name));
    if (secret && isWithin(project, secret.path)) return null;
  }
  for (const dir of [hermesHome.dir, hermesHome.root]) {
    const found = await existing(dir);
    if (!found || !isWithin(project, found.path)) continue;
    if (!WORK_IN_HOME.test(`${project.slice(found.path.length + 1)}/`)) return null;
  }
  return project;
}

async function gitRoot(start: string): Promise<string | null> {
  for (let at = start; ; at = dirname(at)) {
    if (await existing(join(at, ".git"))) return at;
    if (at === dirname(at)) return null;
  }
}

/**
 * A worktree keeps its commits in the repository it belongs to. The repository must name this worktree too: a `.git` file that was
 * written to open another folder for writing is not followed.
 */
async function sharedGitDir(project: string): Promise<string | null> {
  const pointer = await readFile(join(project, ".git"), "utf8").catch(() => ""); // a directory: nothing is shared
  const [, own, shared] = /^gitdir: ((\/.*\/\.git)\/worktrees\/[^/\n]+)\n?$/.exec(pointer) ?? [];
  if (!own || !shared) return null;
  const back = await readFile(join(own, "gitdir"), "utf8").catch(() => "");
  if (back.trim() !== join(project, ".git")) return null;
  return (await existing(shared))?.path ?? null;
}

/** Where a path really leads, if something is there. */
async function existing(path: string): Promise<{ path: string; isDirectory: boolean } | null> {
  if (path === "") return null;
  try {
    const real = await realpath(path);
    return { path: real, isDirectory: (await lstat(real)).isDirectory() };
  } catch {
    return null; // nothing there, or nothing we may look at: the sandbox may not either
  }
}

const depth = (path: string) => path.split(sep).length;
const isInside = (path: string, parent: string) => path.startsWith(parent === "/" ? "/" : `${parent}/`);
const isWithin = (path: string, parent: string) => path === parent || isInside(path, parent);
