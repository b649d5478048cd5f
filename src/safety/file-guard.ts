// Which files the agent may read and write. Rules hold for the path as written and for where its links lead.
import { basename, join, sep } from "node:path";
import { expandPath, followLinks, isWithin, resolveLinks } from "./paths.ts";
import { covers, HERMES_PLACES, type ProtectedPlace, SYSTEM_PLACES, USER_PLACES } from "./protected-places.ts";

export type FileVerdict =
  | { readonly type: "allow" }
  | { readonly type: "deny"; readonly message: string }
  /** Like a command that writes this file: the command guard decides. */
  | { readonly type: "ask"; readonly command: string };

export interface FileGuardOptions {
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
  readonly watchedForWrites: readonly string[];
  /** For listings: a path whose directory is real already. */
  isUnreadable(path: string): boolean;
}

const PROFILE_AREAS = ["skills", "plugins", "cron", "memories"];

const ENV_FILE = /^\.env(?:\.(?:local|development|production|test|staging))?$|^\.envrc$/;

const allow: FileVerdict = { type: "allow" };

const REASONS: Readonly<Record<ProtectedPlace["holds"], string>> = {
  settings: 'it holds the settings; change them with "hermes config set"',
  "own secrets": "it belongs to Hermes itself (keys or tokens)",
  "own state": "it belongs to Hermes itself (trust, pairing, sessions or state)",
  credentials: "it holds credentials",
  "start file": "it runs with the next shell",
  system: "it belongs to the system",
};

export async function createFileGuard(options: FileGuardOptions): Promise<FileGuard> {
  const { userHome, profileHome, rootHome, writeSafeRoots = [], follow = followLinks } = options;
  const real = async (path: string) => (await follow(path)).at(-1) ?? path;
  const both = async (...paths: string[]) =>
    (await Promise.all(paths.map(async (path) => [path, await resolveLinks(path)]))).flat();
  const unique = (paths: readonly string[]) => [...new Set(paths)];
  const userHomes = unique(await both(userHome, ...(options.otherUserHomes ?? [])));
  const profileHomes = unique(await both(profileHome));
  const rootHomes = unique(await both(rootHome));
  const hermesHomes = [...profileHomes, ...rootHomes, ...(options.otherHermesHomes ?? [])];
  const safeRoots = await Promise.all(writeSafeRoots.map((root) => real(expandPath(root, process.cwd(), userHome))));

  const placesOf = (path: string): ProtectedPlace[] => [
    ...below(path, hermesHomesOf(path, hermesHomes, rootHomes), HERMES_PLACES),
    ...below(path, userHomes, USER_PLACES),
    ...SYSTEM_PLACES.filter((place) => covers(place, path)),
  ];
  const isUnreadable = (path: string) =>
    ENV_FILE.test(basename(path)) || placesOf(path).some(({ read }) => read === "deny");

  const guarded = (homes: readonly string[], places: readonly ProtectedPlace[]) =>
    places.filter(({ write }) => write !== "allow").flatMap(({ path }) => homes.map((home) => join(home, path)));

  return {
    isUnreadable,
    watchedForWrites: unique([
      ...guarded(hermesHomes, HERMES_PLACES),
      ...guarded(userHomes, USER_PLACES),
      ...guarded(["/"], SYSTEM_PLACES),
      // Rules of other profiles, and what is theirs.
      ...rootHomes.flatMap((home) => ["profiles", ...PROFILE_AREAS].map((area) => join(home, area))),
    ]),
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
      for (const hop of hops) {
        const place = placesOf(hop).find(({ write }) => write === "deny");
        if (place !== undefined)
          return deny(
            `Write denied: ${describe(path, hop)} is protected, ${REASONS[place.holds]}. No setting allows it; the user can edit it outside the agent.`,
          );
      }
      if (safeRoots.length > 0 && !safeRoots.some((root) => isWithin(target, root)))
        return deny(
          `Write denied: ${describe(path, target)} is outside HERMES_WRITE_SAFE_ROOT (${writeSafeRoots.join(", ")}). Add its directory to that variable to allow it.`,
        );
      const owner = crossProfile ? null : foreignOwner(target, profileHomes, rootHomes);
      if (owner !== null)
        return deny(
          `Write denied: ${describe(path, target)} belongs to the profile "${owner}". Pass cross_profile=true only if the user asked for a change there.`,
        );
      const asked = hops.flatMap(placesOf).find(({ write }) => write === "ask");
      if (asked !== undefined) return { type: "ask", command: `tee ~/${asked.path}` };
      return allow;
    },
  };
}

/** The places below one of these homes that cover a path. */
function below(path: string, homes: readonly string[], places: readonly ProtectedPlace[]): ProtectedPlace[] {
  return homes.flatMap((home) => {
    if (!isWithin(path, home) || path === home) return [];
    const rest = path.slice(home.endsWith(sep) ? home.length : home.length + 1).replaceAll(sep, "/");
    // Some file systems do not tell `CONFIG.YAML` from `config.yaml`.
    const lower = rest.toLowerCase();
    return places.filter((place) => covers(place, lower));
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
