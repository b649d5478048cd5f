// Which files the agent may read and write. Rules hold for the path as written and for where its links lead.
import { basename, join, sep } from "node:path";
import { followLinks, isWithin, resolveLinks } from "./paths.ts";

export type FileVerdict =
  | { readonly type: "allow" }
  | { readonly type: "deny"; readonly message: string }
  /** Like a command that writes this file: the command guard decides. */
  | { readonly type: "ask"; readonly command: string };

export interface FileGuardOptions {
  /** The user's home directory. */
  readonly userHome: string;
  /** The active profile's home and the root home (the same for the default profile). */
  readonly profileHome: string;
  readonly rootHome: string;
  /** HERMES_WRITE_SAFE_ROOT: outside these nothing is written. Absent or empty: no such limit. */
  readonly writeSafeRoots?: readonly string[];
}

export interface FileGuard {
  canRead(path: string): Promise<FileVerdict>;
  canWrite(path: string, options?: { readonly crossProfile?: boolean }): Promise<FileVerdict>;
  /** For listings: a path whose directory is real already. */
  isUnreadable(path: string): boolean;
}

const USER_FILES = [".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"];
const USER_DIRECTORIES = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh", ".config/gcloud"];
const SYSTEM_DIRECTORIES = ["/etc", "/boot", "/usr/lib/systemd", "/private/etc"];
const SYSTEM_FILES = ["/var/run/docker.sock", "/run/docker.sock"];
const SHELL_START_FILES = [
  ...[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile"],
  ...[".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/fish/config.fish"],
];

const HERMES_UNWRITABLE_FILES = [
  ...[".env", ".anthropic_oauth.json", "auth.json", "config.yaml", "state.db", "state.db-wal", "state.db-shm"],
  ...["context_trust.json", "shell-hooks-allowlist.json"],
];
const HERMES_UNWRITABLE_DIRECTORIES = ["mcp-tokens", "pairing", "sessions"];
const HERMES_UNREADABLE_FILES = [
  ...[".env", "auth.json", "auth.lock", ".anthropic_oauth.json", "webhook_subscriptions.json"],
  "auth/google_oauth.json",
];
const HERMES_UNREADABLE_DIRECTORIES = ["mcp-tokens", "skills/.hub"];
const PROFILE_AREAS = ["skills", "plugins", "cron", "memories"];

const ENV_FILE = /^\.env(?:\.(?:local|development|production|test|staging))?$|^\.envrc$/;

const allow: FileVerdict = { type: "allow" };

export async function createFileGuard(options: FileGuardOptions): Promise<FileGuard> {
  const { userHome, profileHome, rootHome, writeSafeRoots = [] } = options;
  const both = async (path: string) => [...new Set([path, await resolveLinks(path)])];
  const userHomes = await both(userHome);
  const profileHomes = await both(profileHome);
  const rootHomes = await both(rootHome);
  const safeRoots = await Promise.all(writeSafeRoots.map(resolveLinks));

  const homesOf = (path: string) => hermesHomesOf(path, [...profileHomes, ...rootHomes], rootHomes);
  const isUnreadable = (path: string) =>
    ENV_FILE.test(basename(path)) ||
    homesOf(path).some(
      (home) =>
        HERMES_UNREADABLE_FILES.some((file) => path === join(home, file)) ||
        HERMES_UNREADABLE_DIRECTORIES.some((directory) => isWithin(path, join(home, directory))),
    );

  const protectedReason = (path: string): string | null => {
    for (const home of homesOf(path)) {
      if (path === join(home, "config.yaml")) return 'it holds the settings; change them with "hermes config set"';
      if (HERMES_UNWRITABLE_FILES.some((file) => path === join(home, file)))
        return "it belongs to Hermes itself (keys, trust or state)";
      if (HERMES_UNWRITABLE_DIRECTORIES.some((directory) => isWithin(path, join(home, directory))))
        return "it belongs to Hermes itself (tokens, pairing or sessions)";
    }
    const ofUser = userHomes.some(
      (home) =>
        USER_FILES.some((file) => path === join(home, file)) ||
        USER_DIRECTORIES.some((directory) => isWithin(path, join(home, directory))),
    );
    if (ofUser) return "it holds credentials";
    if (SYSTEM_FILES.includes(path) || SYSTEM_DIRECTORIES.some((directory) => isWithin(path, directory)))
      return "it belongs to the system";
    return null;
  };

  return {
    isUnreadable,
    async canRead(path) {
      const blocked = (await followLinks(path)).find(isUnreadable);
      if (blocked === undefined) return allow;
      return deny(
        `Read denied: ${describe(path, blocked)} may hold secrets, which never enter a conversation. The user can say which value is needed; a template such as .env.example can be read.`,
      );
    },
    async canWrite(path, { crossProfile = false } = {}) {
      const hops = await followLinks(path);
      const real = hops.at(-1) ?? path;
      for (const hop of hops) {
        const reason = protectedReason(hop);
        if (reason !== null)
          return deny(
            `Write denied: ${describe(path, hop)} is protected, ${reason}. No setting allows it; the user can edit it outside the agent.`,
          );
      }
      if (safeRoots.length > 0 && !safeRoots.some((root) => isWithin(real, root)))
        return deny(
          `Write denied: ${describe(path, real)} is outside HERMES_WRITE_SAFE_ROOT (${writeSafeRoots.join(", ")}). Add its directory to that variable to allow it.`,
        );
      const owner = crossProfile ? null : foreignOwner(real, profileHomes, rootHomes);
      if (owner !== null)
        return deny(
          `Write denied: ${describe(path, real)} belongs to the profile "${owner}". Pass cross_profile=true only if the user asked for a change there.`,
        );
      for (const home of userHomes) {
        const file = SHELL_START_FILES.find((name) => hops.includes(join(home, name)));
        if (file !== undefined) return { type: "ask", command: `tee ~/${file}` };
      }
      return allow;
    },
  };
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
