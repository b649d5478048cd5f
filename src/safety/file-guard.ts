// Which files the agent may read and write. Rules hold for the path as written and for where its links lead.

import { basename, join, sep } from "node:path";
import { realPathNow } from "../home/looks.ts";
import { isWithin } from "../kit/files.ts";
import { lazy } from "../kit/lazy.ts";
import { expandPath, followLinks, resolveLinks } from "./paths.ts";
import { SECRET_PLACES } from "./secret-places.ts";

export type FileVerdict =
  | { readonly type: "allow" }
  | { readonly type: "deny"; readonly message: string }
  /** Like a command that writes this file: the command guard decides. */
  | { readonly type: "ask"; readonly command: string };

interface FileGuardOptions {
  /** The user's home directory, and the one commands have if it is another. */
  readonly userHome: string;
  readonly otherUserHomes?: readonly string[];
  /** The active profile's home and the root home (the same for the default profile). */
  readonly profileHome: string;
  readonly rootHome: string;
  /** Homes of the same layout elsewhere, such as the one inside a container. */
  readonly otherHermesHomes?: readonly string[];
  /** The way through links where the files are, if that is not this machine's own file system. */
  readonly follow?: (path: string) => Promise<readonly string[]>;
  /** HERMES_WRITE_SAFE_ROOT: outside these nothing is written. Absent or empty: no such limit. */
  readonly writeSafeRoots?: readonly string[];
}

export interface FileGuard {
  canRead(path: string): Promise<FileVerdict>;
  canWrite(path: string, options?: { readonly crossProfile?: boolean }): Promise<FileVerdict>;
  /** Files and folders outside of which `canWrite` has nothing against a path, safe roots apart. */
  watchedForWrites(): readonly string[];
  /** For listings: a path whose directory is real already. */
  isUnreadable(path: string): boolean;
}

const PROFILE_AREAS = ["skills", "plugins", "cron", "memories"];

const ENV_FILE = /^\.env(?:\.(?:local|development|production|test|staging))?$|^\.envrc$/;

const allow: FileVerdict = { type: "allow" };

const REASONS: Readonly<Record<ProtectedPath["holds"], string>> = {
  settings: 'it holds the settings; change them with "hermes config set"',
  "own secrets": "it belongs to Hermes itself (keys or tokens)",
  "own state": "it belongs to Hermes itself (trust, pairing, sessions or state)",
  credentials: "it holds credentials",
  "start file": "it runs with the next shell",
  "later start": "it runs at a later start",
  "own code": "it is code that runs inside Hermes",
  "own texts":
    "Hermes changes it with its own tools (memory, skill_manage, schedules), which check what they are given",
  system: "it belongs to the system",
};

export async function createFileGuard(options: FileGuardOptions): Promise<FileGuard> {
  const { userHome, profileHome, rootHome, writeSafeRoots = [], follow = followLinks } = options;
  const real = async (path: string) => (await follow(path)).at(-1) ?? path;
  // Asked for each call of a file tool; the homes are there, so no thread has to be waited for.
  const both = async (...paths: string[]) =>
    (await Promise.all(paths.map(async (path) => [path, realPathNow(path) ?? (await resolveLinks(path))]))).flat();
  const unique = (paths: readonly string[]) => [...new Set(paths)];
  const userHomes = unique(await both(userHome, ...(options.otherUserHomes ?? [])));
  const profileHomes = unique(await both(profileHome));
  const rootHomes = unique(await both(rootHome));
  const hermesHomes = [...profileHomes, ...rootHomes, ...(options.otherHermesHomes ?? [])];
  const safeRoots = await Promise.all(writeSafeRoots.map((root) => real(expandPath(root, process.cwd(), userHome))));

  const hits = (path: string, { hermes, user, system, project }: ProtectedTables): Hit[] => [
    ...below(path, hermesHomesOf(path, hermesHomes, rootHomes), hermes).map(named("~/.hermes/")),
    ...below(path, userHomes, user).map(named("~/")),
    ...system.filter((place) => covers(place, path)).map(named("")),
    ...project.filter((place) => coversAnywhere(place, path)).map((place) => ({ ...place, shown: quoted(path) })),
  ];
  const protectedPathsOf = (path: string) => hits(path, PROTECTED);
  // A search asks this for each file.
  const isUnreadable = (path: string) => ENV_FILE.test(basename(path)) || hits(path, UNREADABLE).length > 0;

  const guarded = (homes: readonly string[], places: readonly ProtectedPath[]) =>
    places.filter(({ write }) => write !== "allow").flatMap(({ path }) => homes.map((home) => join(home, path)));

  return {
    isUnreadable,
    watchedForWrites: lazy(() =>
      unique([
        ...guarded(hermesHomes, HERMES_PATHS),
        ...guarded(userHomes, USER_PATHS),
        ...guarded(["/"], SYSTEM_PATHS),
        // Rules of other profiles, and what is theirs.
        ...rootHomes.flatMap((home) => ["profiles", ...PROFILE_AREAS].map((area) => join(home, area))),
      ]),
    ),
    async canRead(path) {
      const blocked = (await follow(path)).find(isUnreadable);
      if (blocked === undefined) return allow;
      return deny(
        `Read denied: ${describe(path, blocked)} may hold secrets, which never enter a conversation. The user can say which value is needed; a template such as .env.example can be read.`,
      );
    },
    async canWrite(path, { crossProfile = false } = {}) {
      const hops = await follow(path);
      const target = hops.at(-1) ?? path;
      const owner = foreignOwner(target, profileHomes, rootHomes);
      // The tools reach the own profile only; for another one the user's word is asked for.
      const isDenied = ({ write }: ProtectedPath) => write === "deny" || (write === "tool" && owner === null);
      for (const hop of hops) {
        const place = protectedPathsOf(hop).find(isDenied);
        if (place !== undefined)
          return deny(
            `Write denied: ${describe(path, hop)} is protected, ${REASONS[place.holds]}. No setting allows it; the user can edit it outside the agent.`,
          );
      }
      if (safeRoots.length > 0 && !safeRoots.some((root) => isWithin(target, root)))
        return deny(
          `Write denied: ${describe(path, target)} is outside HERMES_WRITE_SAFE_ROOT (${writeSafeRoots.join(", ")}). Add its directory to that variable to allow it.`,
        );
      if (owner !== null && !crossProfile)
        return deny(
          `Write denied: ${describe(path, target)} belongs to the profile "${owner}". Pass cross_profile=true only if the user asked for a change there.`,
        );
      const asked = hops.flatMap(protectedPathsOf).find(({ write }) => write === "ask" || write === "tool");
      if (asked !== undefined) return { type: "ask", command: `tee ${asked.shown}` };
      return allow;
    },
  };
}

/** A protected path, and how the command that would write there names it. */
type Hit = ProtectedPath & { readonly shown: string };

const named =
  (start: string) =>
  (place: ProtectedPath): Hit => ({ ...place, shown: start + place.path });

const quoted = (path: string) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** The protected paths below one of these homes that cover a path. */
function below(path: string, homes: readonly string[], places: readonly ProtectedPath[]): ProtectedPath[] {
  return homes.flatMap((home) => {
    if (!isWithin(path, home) || path === home) return [];
    const rest = path.slice(home.endsWith(sep) ? home.length : home.length + 1).replaceAll(sep, "/");
    return places.filter((place) => covers(place, rest));
  });
}

/** The homes whose rules a path can fall under: the active ones, and any other profile's when the path lies in it. */
function hermesHomesOf(path: string, active: readonly string[], roots: readonly string[]): string[] {
  const homes = [...active];
  for (const root of roots) {
    const profiles = join(root, "profiles");
    if (path === profiles || !isWithin(path, profiles)) continue;
    const name = path.slice(profiles.length + 1).split(sep)[0];
    if (name) homes.push(join(profiles, name));
  }
  return homes;
}

/** The other profile whose skills, plugins, jobs or memories a path belongs to. */
function foreignOwner(path: string, profileHomes: readonly string[], rootHomes: readonly string[]): string | null {
  const isAreaOf = (home: string) => PROFILE_AREAS.some((area) => isWithin(path, join(home, area)));
  if (profileHomes.some(isAreaOf)) return null;
  for (const root of rootHomes) {
    const owner = hermesHomesOf(path, [], [root]).find(isAreaOf);
    if (owner !== undefined) return basename(owner);
    if (isAreaOf(root)) return "default";
  }
  return null;
}

function describe(path: string, place: string): string {
  return path === place ? path : `${path} (which is ${place})`;
}

function deny(message: string): FileVerdict {
  return { type: "deny", message };
}

// Files that never end, wait for a keyboard, or show a process from inside.

const DEVICES = /^\/dev\/(?:zero|random|urandom|full|stdin|tty|console|stdout|stderr|fd\/[012])$/;
const PROCESS =
  /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(?:fd\/[012]|environ|cmdline|maps|smaps[^/]*|numa_maps|mem|auxv|pagemap)$/;

export function isForbiddenDevice(path: string): boolean {
  return DEVICES.test(path) || PROCESS.test(path);
}

/** Nothing there is a file that could be written whole; `/dev/shm` is memory with files in it. */
export function isKernelPath(path: string): boolean {
  return /^\/(?:dev|proc|sys)\/(?!shm\/)/.test(path);
}

/** The forbidden device a path leads to, links followed one by one; null if it leads to none. */
export async function findForbiddenDevice(
  path: string,
  follow: (path: string) => Promise<readonly string[]> = followLinks,
): Promise<string | null> {
  // As written first: `/dev/stdin` is refused without being touched.
  if (isForbiddenDevice(path)) return path;
  return (await follow(path)).find(isForbiddenDevice) ?? null;
}

// The one table of paths that are protected against changes or reading. The file tools and the shell rules both read it.

export interface ProtectedPath {
  /** Below the home it belongs to, or absolute for the system; of a project's, wherever the project is. */
  readonly path: string;
  /** A directory stands for everything below it. */
  readonly type: "file" | "directory";
  readonly holds:
    | "credentials"
    | "start file"
    | "later start"
    | "settings"
    | "own state"
    | "own secrets"
    | "own code"
    | "own texts"
    | "system";
  /** What a file tool does when asked to write there; `tool`: only the tool made for it writes there. A shell command that writes there is always asked about. */
  readonly write: "deny" | "tool" | "ask" | "allow";
  readonly read: "deny" | "allow";
}

type Rest = Omit<ProtectedPath, "path" | "type">;

const files = (names: string, rest: Rest): ProtectedPath[] =>
  names.split(/\s+/).map((path) => ({ path, type: "file", ...rest }));
const directories = (names: string, rest: Rest): ProtectedPath[] =>
  names.split(/\s+/).map((path) => ({ path, type: "directory", ...rest }));

const START =
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout";

/** Not run by a shell's start, but by something else that starts later: a session, an editor, git, a build, a debugger. */
const LATER: Rest = { holds: "later start", write: "ask", read: "allow" };

/** In the home directory of a user. */
export const USER_PATHS: readonly ProtectedPath[] = [
  ...SECRET_PLACES.map(
    ({ path, type, runsLater }): ProtectedPath =>
      runsLater ? { path, type, ...LATER } : { path, type, holds: "credentials", write: "deny", read: "allow" },
  ),
  ...files(`${START} .kshrc .cshrc .tcshrc .config/fish/config.fish`, {
    holds: "start file",
    write: "ask",
    read: "allow",
  }),
  ...files(
    `.login .bash_completion .inputrc .pam_environment .xprofile .xinitrc .xsession .xsessionrc .xserverrc
    .vimrc .gvimrc .exrc .nvimrc .emacs .emacs.el .nanorc .gitconfig .hgrc .tmux.conf .screenrc .wgetrc .curlrc
    .gdbinit .lldbinit .pdbrc .pythonstartup .irbrc .pryrc .gemrc .Rprofile .juliarc.jl .sqliterc .psqlrc .perltidyrc
    .bunfig.toml .yarnrc .condarc .cargo/config .cargo/config.toml .cargo/env .gradle/init.gradle
    .config/Code/User/settings.json .config/Code/User/tasks.json .ssh-environment
    .direnvrc .mailcap .forward .procmailrc .lessfilter .lesskey .config/lesskey .config/mimeapps.list .ansible.cfg .terraformrc .wezterm.lua
    .mongorc.js .pythonrc .bazelrc`,
    LATER,
  ),
  ...directories(
    `.config/systemd .local/share/systemd .config/autostart .config/autostart-scripts .config/environment.d .config/upstart
    .config/fish .config/zsh .config/git .config/nvim .config/vim .config/emacs .config/direnv .config/tmux .config/pip .pip
    .vim .emacs.d .doom.d .ipython .gradle/init.d .local/bin .bashrc.d .bash_completion.d .zsh .oh-my-zsh
    .local/share/applications .local/share/dbus-1 .config/plasma-workspace .config/i3 .config/sway .config/hypr
    Library/LaunchAgents Library/LaunchDaemons .git-templates .githooks
    bin .cargo/bin go/bin .asdf/shims .asdf/plugins .pyenv/shims .pyenv/plugins .rbenv/shims .rbenv/plugins .nvm .volta/bin .deno/bin .bun/bin
    .local/share/mise .nix-profile .claude .codex .cursor .gemini .config/kitty .config/alacritty .config/wezterm .config/nushell
    .config/powershell .config/zed .config/helix .vscode .config/mpv .jupyter .config/containers .config/pnpm .sbt`,
    LATER,
  ),
];

/** In the home of a profile, and in the root home. */
export const HERMES_PATHS: readonly ProtectedPath[] = [
  ...files("config.yaml", { holds: "settings", write: "deny", read: "allow" }),
  ...files(".env auth.json .anthropic_oauth.json slack_tokens.json webhook_subscriptions.json", {
    holds: "own secrets",
    write: "deny",
    read: "deny",
  }),
  ...files("gateway.json", { holds: "settings", write: "deny", read: "allow" }),
  ...files("auth.lock auth/google_oauth.json", {
    holds: "own secrets",
    write: "allow",
    read: "deny",
  }),
  ...files(
    "state.db state.db-wal state.db-shm state.db-journal state.db-recall state.db-recall-wal state.db-recall-shm context_trust.json sandbox_rules.json trusted_folders.json shell-hooks-allowlist.json plugin_pins.json mcp_pins.json channel_directory.json",
    { holds: "own state", write: "deny", read: "allow" },
  ),
  ...directories("mcp-tokens", { holds: "own secrets", write: "deny", read: "deny" }),
  // git runs what the settings in its store name, so the store of checkpoints is nobody's to write; the driver runs inside Hermes.
  ...directories("pairing platforms sessions checkpoints browser-driver", {
    holds: "own state",
    write: "deny",
    read: "allow",
  }),
  ...directories("skills/.hub", { holds: "own secrets", write: "tool", read: "deny" }),
  ...directories("plugins hooks packages cache/code", { holds: "own code", write: "deny", read: "allow" }),
  // Every later prompt tells them, or every later day runs them.
  ...directories("memories skills cron", { holds: "own texts", write: "tool", read: "allow" }),
  ...files("SOUL.md BOOT.md", { holds: "own texts", write: "ask", read: "allow" }),
  ...directories("scripts", LATER),
];

/** Of the machine. */
export const SYSTEM_PATHS: readonly ProtectedPath[] = [
  ...directories("/etc /boot /usr/lib/systemd /private/etc", { holds: "system", write: "deny", read: "allow" }),
  ...files("/var/run/docker.sock /run/docker.sock", { holds: "system", write: "deny", read: "allow" }),
  ...directories(
    `/bin /sbin /lib /lib64 /usr/bin /usr/sbin /usr/lib /usr/local/bin /usr/local/sbin /usr/local/lib /var/spool/cron /var/spool/at
    /usr/share/applications /run/systemd /opt/homebrew/bin /Library/LaunchAgents /Library/LaunchDaemons`,
    LATER,
  ),
];

/** Where macOS really keeps these, and the switch that stops Linux at once; only a shell is asked about them. */
export const SHELL_SYSTEM_PATHS: readonly ProtectedPath[] = [
  ...directories("/private/var /private/tmp /private/home", { holds: "system", write: "allow", read: "allow" }),
  ...files("/proc/sysrq-trigger", { holds: "system", write: "allow", read: "allow" }),
];

/** Of whatever project: what runs when git, the shell or an editor is next used there. */
export const PROJECT_PATHS: readonly ProtectedPath[] = [
  ...files(
    ".git .git/config .git/config.worktree .envrc .vscode/tasks.json .exrc .nvimrc .nvim.lua .dir-locals.el sitecustomize.py usercustomize.py " +
      ".git/commondir .vscode/settings.json .claude/settings.json .cursor/mcp.json .mcp.json .devcontainer/devcontainer.json lefthook.yml",
    LATER,
  ),
  ...directories(
    ".git/hooks .git/info .git/modules .git/worktrees .git/rebase-merge .git/rebase-apply .git/sequencer .git/objects/info .githooks",
    LATER,
  ),
  ...directories(".hermes/plugins", { holds: "own code", write: "deny", read: "allow" }),
];

type ProtectedTables = Readonly<Record<"hermes" | "user" | "system" | "project", readonly ProtectedPath[]>>;

const PROTECTED: ProtectedTables = {
  hermes: HERMES_PATHS,
  user: USER_PATHS,
  system: SYSTEM_PATHS,
  project: PROJECT_PATHS,
};

const unreadable = (places: readonly ProtectedPath[]) => places.filter(({ read }) => read === "deny");

const UNREADABLE: ProtectedTables = {
  hermes: unreadable(HERMES_PATHS),
  user: unreadable(USER_PATHS),
  system: unreadable(SYSTEM_PATHS),
  project: unreadable(PROJECT_PATHS),
};

/** Whether a protected path covers a path that is written from the same start. */
export function covers({ path, type }: Pick<ProtectedPath, "path" | "type">, candidate: string): boolean {
  // On some file systems `CONFIG.YAML` and `config.yaml` are one file.
  const [place, given] = [path.toLowerCase(), candidate.toLowerCase()];
  return given === place || (type === "directory" && given.startsWith(`${place}/`));
}

/** The same for a path of a project, which may stand anywhere. */
export function coversAnywhere({ path, type }: ProtectedPath, candidate: string): boolean {
  const lower = `/${candidate.replaceAll("\\", "/").toLowerCase()}`;
  return lower.endsWith(`/${path}`) || (type === "directory" && lower.includes(`/${path}/`));
}
