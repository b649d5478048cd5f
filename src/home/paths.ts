import { basename, dirname, join, relative, resolve, sep } from "node:path";

/** Every path below one home, computed on use. `root` is where profiles live; for the default profile it is `dir` itself. */
export interface HomePaths {
  readonly dir: string;
  readonly root: string;
  readonly profile: string;
  readonly configFile: string;
  readonly envFile: string;
  readonly stateDb: string;
  readonly soulFile: string;
  readonly memoriesDir: string;
  readonly skillsDir: string;
  readonly logsDir: string;
  readonly sessionsDir: string;
  readonly cacheDir: string;
  readonly pastesDir: string;
  readonly historyFile: string;
  readonly processesFile: string;
  /** For what has no name of its own yet. */
  at(...parts: string[]): string;
}

export function homePaths(dir: string, root: string, profile: string): HomePaths {
  const at = (...parts: string[]) => join(dir, ...parts);
  return {
    dir,
    root,
    profile,
    configFile: at("config.yaml"),
    envFile: at(".env"),
    stateDb: at("state.db"),
    soulFile: at("SOUL.md"),
    memoriesDir: at("memories"),
    skillsDir: at("skills"),
    logsDir: at("logs"),
    sessionsDir: at("sessions"),
    cacheDir: at("cache"),
    pastesDir: at("pastes"),
    historyFile: at(".hermes_history"),
    processesFile: at("processes.json"),
    at,
  };
}

export interface HomeLocation {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's own home directory. */
  readonly osHome: string;
  readonly platform?: NodeJS.Platform;
}

/** Where the home is before any profile is looked at: HERMES_HOME, else the default place. */
export function resolveHomeDir(location: HomeLocation): string {
  const given = location.env.HERMES_HOME?.trim();
  if (!given) return defaultHomeDir(location);
  if (given === "~") return location.osHome;
  return resolve(given.startsWith("~/") || given.startsWith("~\\") ? join(location.osHome, given.slice(2)) : given);
}

function defaultHomeDir({ env, osHome, platform = process.platform }: HomeLocation): string {
  if (platform !== "win32") return join(osHome, ".hermes");
  return join(env.LOCALAPPDATA?.trim() || join(osHome, "AppData", "Local"), "hermes");
}

/** Where `profiles/` and `active_profile` live for a home. */
export function rootOf(dir: string, location: HomeLocation): string {
  const standard = defaultHomeDir(location);
  if (dir === standard || dir.startsWith(standard + sep)) return standard;
  return basename(dirname(dir)) === "profiles" ? dirname(dirname(dir)) : dir;
}

/** `default`, the profile's name, or `custom` for a home that is no profile of its root. */
export function profileOf(dir: string, root: string): string {
  if (dir === root) return "default";
  return dirname(dir) === join(root, "profiles") ? basename(dir) : "custom";
}

/** A path as messages show it: `~/...` below the user's home. */
export function displayPath(path: string, osHome = ""): string {
  if (osHome === "" || (path !== osHome && !path.startsWith(osHome + sep))) return path;
  return path === osHome ? "~" : join("~", relative(osHome, path));
}
