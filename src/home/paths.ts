import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { codeOf, UserError } from "../kit/errors.ts";
import { isWithin } from "../kit/files.ts";

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
  if (isWithin(dir, standard)) return standard;
  return basename(dirname(dir)) === "profiles" ? dirname(dirname(dir)) : dir;
}

/** `default`, the profile's name, or `custom` for a home that is not a profile of its root. */
export function profileOf(dir: string, root: string): string {
  if (dir === root) return "default";
  return dirname(dir) === join(root, "profiles") ? basename(dir) : "custom";
}

/** A path as messages show it: `~/...` below the user's home. */
export function displayPath(path: string, osHome = ""): string {
  if (osHome === "" || !isWithin(path, osHome)) return path;
  return path === osHome ? "~" : join("~", relative(osHome, path));
}

/** With its parents, step by step: Node's own recursive mkdir never ends below a place like /proc, where every new name is "no such file". */
export function makeDirectory(dir: string, mode: number): void {
  const parent = dirname(dir);
  if (parent !== dir && !existsSync(parent)) makeDirectory(parent, mode);
  try {
    mkdirSync(dir, { mode });
  } catch (error) {
    const exists = codeOf(error) === "EEXIST"; // another process was faster
    if (!exists) throw error;
  }
}

// Name and version of the product: the one place that knows them.

export const PRODUCT = "Hermes Agent";
export const VERSION = "0.1.0";
const RELEASED = "2026-11-15";

export const versionLine = () => `${PRODUCT} v${VERSION} (${RELEASED})`;

/** The folder of the installed package, from source and from the bundle alike. */
export function installRoot(): string {
  root ??= findRoot();
  return root;
}

let root: string | undefined;

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** What to type for a command here: in a clone that was started with npm, `hermes` is not on the PATH. */
export function hermesCommand(args = "", env: Readonly<Record<string, string | undefined>> = process.env): string {
  const manifest = env.npm_lifecycle_event === "start" ? env.npm_package_json : undefined;
  const throughNpm = manifest !== undefined && dirname(resolve(manifest)) === installRoot();
  if (args === "") return throughNpm ? "npm start" : "hermes";
  return `${throughNpm ? "npm start --" : "hermes"} ${args}`;
}

/** The same for the profile of a home: `hermes -p work gateway run`. */
export function profileCommand({ profile }: Pick<HomePaths, "profile">, args: string): string {
  return hermesCommand(profile === "default" || profile === "custom" ? args : `-p ${profile} ${args}`);
}

/** A text that names commands of ours, as they are typed in the profile of a home. */
export function inProfile({ profile }: Pick<HomePaths, "profile">, text: string): string {
  if (profile === "default" || profile === "custom") return text;
  return text.replace(/\bhermes (?=(?:gateway|pairing|config|setup|plugins|send)\b)/g, `hermes -p ${profile} `);
}

/** What runs: the source of a clone, or what was built from it. */
export const runsFromSource = () => import.meta.url.endsWith(".ts");

/** A build lies next to the source. */
export const hasBuild = () => existsSync(join(installRoot(), "dist", "main.js"));

/** The plugins that came with the program. */
export const bundledPlugins = () => join(installRoot(), "plugins");

/** The user wants the program without anybody else's code: no plugins, no hooks, whatever the settings name. */
export function isSafeMode({ env }: { env(name: string): string | undefined }): boolean {
  return !["", "0", "false", "no", "off"].includes((env("HERMES_SAFE_MODE") ?? "").trim().toLowerCase());
}

/** Who the agent is when the user has not said otherwise; also what a new SOUL.md starts with. */
export const DEFAULT_IDENTITY =
  "You are Hermes Agent, an intelligent AI assistant made by Nous Research. You are helpful, knowledgeable and direct. People bring " +
  "you work of every kind: you answer questions, write and edit code, analyse information, help with creative projects, and act on " +
  "their behalf through your tools. Say things clearly, admit it when you are not certain, and care more about being useful than " +
  "about being thorough in words, unless the instructions below ask for something else. When you explore files, systems or the " +
  "web, be targeted and efficient: look where the answer is likely to be, and stop once you have it.";

/** A settings problem in words for the user: what, where (file, line), what to do. */
export class ConfigError extends UserError {
  override name = "ConfigError";
}
