import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type Clock, systemClock } from "../kit/clock.ts";
import { codeOf } from "../kit/errors.ts";
import type { Finding } from "./config/decode.ts";
import { type MigrationPlan, type MigrationResult, planMigration, versionOf } from "./config/migrate.ts";
import { CONFIG_VERSION, type Config, NEW_CONFIG } from "./config/schema.ts";
import { ConfigStore, collectOverrides, stampName } from "./config/store.ts";
import type { Tree, YamlProblem } from "./config/yaml-text.ts";
import { type HomeEnvironment, type Managed, managedBy, openEnvironment, refusal } from "./environment.ts";
import { FolderTrust } from "./folder-trust.ts";
import { createLogger, type RootLogger } from "./log.ts";
import { ConfigError, DEFAULT_IDENTITY, displayPath, type HomePaths, makeDirectory } from "./paths.ts";
import { selectProfile } from "./profiles.ts";
import { collectSecrets, keyNames } from "./secrets.ts";

export { ConfigError } from "./paths.ts";

/**
 * One opened home: its paths, its settings, its log. Made once by `main.ts` and handed down; nobody else reads config.yaml, .env or
 * process.env.
 */
export interface OpenHome {
  readonly paths: HomePaths;
  /** The user's own home directory. */
  readonly osHome: string;
  /** The arguments without the profile option. */
  readonly argv: readonly string[];
  /** Settings in force. Re-read when the file changed; a broken file leaves the last good ones in force. */
  config(): Config;
  /** One variable: the process environment first, then a fresh look at .env. */
  env(name: string): string | undefined;
  /** Where the value of a variable comes from, for people: the path of .env, or "the environment". Null when it is not set. */
  envSource(name: string): string | null;
  /** A variable the program was started with for this run; .env does not count. */
  override(name: string): string | undefined;
  /**
   * The environment that child processes start from. What .env holds and what a `key_env` names is not in it, unless
   * `terminal.env_passthrough` or `also` lists it; callers remove what else a child must not see.
   */
  environment(also?: readonly string[]): Readonly<Record<string, string>>;
  /** Every variable, keys included. Nothing of it goes to a child. */
  variables(): Readonly<Record<string, string>>;
  /** Variables that a `key_env` names and no child may see, whoever set them. */
  withheld(): readonly string[];
  /** Names more of them: what a plugin says is a secret. */
  withhold(names: readonly string[]): void;
  /**
   * Sets one key in config.yaml and leaves every other byte alone. A list is for keys that have dots in their names.
   * Throws `ConfigError` when the file is broken or managed.
   */
  setConfigKey(path: string | readonly string[], value: unknown): Promise<void>;
  /** Several keys in one write, by dotted path; `undefined` removes a key. With `backup` the file as it was is kept next to it. */
  setConfigKeys(values: Readonly<Record<string, unknown>>, options?: { readonly backup?: boolean }): Promise<void>;
  /** Removes one key from config.yaml, and sections it leaves empty. */
  unsetConfigKey(path: string | readonly string[]): Promise<void>;
  /** Stores a secret in .env (mode 0600) and in the process. */
  setEnv(name: string, value: string): Promise<void>;
  /** Resolves to whether .env had it. */
  removeEnv(name: string): Promise<boolean>;
  /** Reads .env again and says how many variables were set and removed. */
  reloadEnv(): { readonly set: number; readonly removed: number };
  readonly log: RootLogger;
  /** Masks secrets; the one redactor. */
  readonly redact: TextRedactor;
  /** What the user should see at start: config problems, ignored values, a missing sticky profile. */
  readonly warnings: readonly string[];
  /** Every secret value known to this home (from .env, auth.json and config), for the redactor. The same list until it changes. */
  secrets(): readonly string[];
  /** config.yaml cannot be used as it is: defaults are in force and nothing is written to it. */
  readonly configBroken: boolean;
  readonly configProblem: YamlProblem | null;
  /** Mistakes in config.yaml that do not stop the program. */
  configFindings(): readonly Finding[];
  /** Settings that hold the agent back and cannot be read, one sentence each. No agent may start while there are any. */
  unreadGuards(): readonly string[];
  /** config.yaml as it is written; null when it is broken. */
  configTree(): Tree | null;
  /** Brings an older config.yaml up to date, after making a copy of it. Nothing to do is not an error; a managed home is. */
  migrate(): Promise<MigrationResult>;
  /** Why nothing can be stored in this home, as the warnings say; null in an ordinary one. */
  readonly unwritable: string | null;
  /** Which folders the user trusts. */
  readonly folders: FolderTrust;
  /** Who manages this installation; settings are not written then. */
  readonly managed: Managed | null;
  /** A path as messages show it. */
  display(path: string): string;
  /** Writes out what is still queued for the log. */
  close(): Promise<void>;
}

export interface OpenHomeOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's own home directory. */
  readonly osHome: string;
  readonly cwd: string;
  /** Makes the redactor; `enabled` is decided here, once. Without it nothing is masked. */
  readonly redactorFor?: (settings: RedactorSettings) => TextRedactor;
  /** Problems that come up after start, such as a config.yaml that is broken while the program runs. The log has them anyway. */
  readonly onWarning?: (message: string) => void;
  readonly ignoreUserConfig?: boolean;
  readonly clock?: Clock;
}

/** Masks secrets in a text; `forFile` in text that may be written back to its file. */
export interface TextRedactor {
  (text: string): string;
  forFile(text: string, path: string): string;
  /** What no memory or skill may hold: known values and secrets that show what they are. Names with a value next to them and numbers stay. */
  forKeeping(text: string): string;
  /** What a user said, without the keys in it. Only what is a key beyond doubt is taken out. */
  fromUser(text: string): PastedText;
}

export interface PastedText {
  readonly text: string;
  readonly keys: readonly PastedKey[];
}

/** A key that a user pasted. */
export interface PastedKey {
  readonly value: string;
  /** As it stands in the text now. */
  readonly shown: string;
  /** The variable it would be kept as; null when nothing tells, or when the home has it already. */
  readonly name: string | null;
}

const unmasked: TextRedactor = Object.assign((text: string) => text, {
  forFile: (text: string) => text,
  forKeeping: (text: string) => text,
  fromUser: (text: string) => ({ text, keys: [] }),
});

export interface RedactorSettings {
  /** Read once at start, so that nothing the agent does can switch it off. */
  readonly enabled: boolean;
  /** Every secret value of this home; asked on each call, so that new ones count at once. */
  readonly knownSecrets: () => readonly string[];
}

/** Finds the profile, makes what is missing, reads .env and config.yaml. Throws `ProfileError`, or `ConfigError` when the home cannot be used. */
export async function openHome(options: OpenHomeOptions): Promise<OpenHome> {
  const { env, osHome, clock = systemClock } = options;
  const { paths, argv, warnings: selectionWarnings } = selectProfile(options);
  requireReadable(paths.dir);
  const managed = managedBy(paths.dir, env);
  const ensured = ensureHome(paths, { env, managed });
  const warnings = [...selectionWarnings, ...ensured.warnings];
  let started = false;
  const warn = (message: string) => {
    if (!started) {
      warnings.push(message);
      return;
    }
    log.warn(message);
    options.onWarning?.(message);
  };

  const chmod = mayChmod(env, managed);
  const kept = new Set<string>();
  const environment = openEnvironment({ paths, processEnv: env, cwd: options.cwd, managed, chmod, warn });
  const config = await ConfigStore.open({
    path: paths.configFile,
    lockPath: paths.at(".lock.db"),
    env: environment.get,
    overrides: collectOverrides(environment.override, environment.fromFile),
    ignoreFile: options.ignoreUserConfig ?? isOn(environment.get("HERMES_IGNORE_USER_CONFIG")),
    managed,
    chmod,
    now: () => new Date(clock.now()),
    warn,
  });

  const settings = config.config();
  const secrets = collectSecrets({
    environment: environment.all,
    config: () => config.config(),
    authFile: paths.at("auth.json"),
  });
  const enabled = settings.security.redact_secrets; // once: a tool that edits the file later changes nothing
  const redact = options.redactorFor?.({ enabled, knownSecrets: secrets }) ?? unmasked;
  const log = createLogger({
    dir: paths.logsDir,
    level: settings.logging.level,
    maxBytes: settings.logging.max_size_mb * 1024 * 1024,
    backups: settings.logging.backup_count,
    redact,
    clock,
    onTrouble: (note) => options.onWarning?.(note),
  });
  for (const { message } of config.findings()) warnings.push(`${displayPath(paths.configFile, osHome)}: ${message}`);
  if (!enabled) warnings.push("Secrets are not masked in output and logs (security.redact_secrets is off).");
  for (const message of warnings) log.child("home").warn(message);
  started = true;

  return {
    paths,
    osHome,
    argv,
    managed,
    unwritable: ensured.unwritable,
    warnings,
    log,
    redact,
    secrets,
    folders: new FolderTrust(paths, osHome),
    config: () => config.config(),
    env: environment.get,
    envSource(name) {
      if (environment.fromFile(name) !== undefined) return displayPath(paths.envFile, osHome);
      return environment.get(name) === undefined ? null : "the environment";
    },
    override: environment.override,
    environment: (also = []) => {
      const allowed = new Set([...config.config().terminal.env_passthrough, ...also]);
      return environment.forChildren({ allowed, withheld: new Set([...keyNames(config.config()), ...kept]) });
    },
    withhold: (names) => {
      for (const name of names) kept.add(name);
    },
    variables: environment.all,
    withheld() {
      const { env_passthrough } = config.config().terminal;
      return [...keyNames(config.config()), ...kept].filter((name) => !env_passthrough.includes(name));
    },
    setConfigKey: (path, value) => config.set(keys(path), value),
    setConfigKeys: (values, options) => config.setAll(values, options),
    unsetConfigKey: (path) => config.unset(keys(path)),
    setEnv: environment.set,
    removeEnv: environment.remove,
    reloadEnv: environment.reload,
    get configBroken() {
      return config.problem() !== null;
    },
    get configProblem() {
      return config.problem();
    },
    configFindings: () => config.findings(),
    unreadGuards: () => config.unread(),
    configTree: () => config.tree(),
    migrate: () => migrateHome({ paths, config, environment, managed, now: () => new Date(clock.now()) }),
    display: (path) => displayPath(path, osHome),
    close: () => log.flush(),
  };
}

function keys(path: string | readonly string[]): readonly string[] {
  return typeof path === "string" ? path.split(".") : path;
}

function isOn(value: string | undefined): boolean {
  return /^(?:1|true|yes|on)$/i.test(value?.trim() ?? "");
}

// First use of a home: its directories and its identity file.

type Env = Readonly<Record<string, string | undefined>>;

const directories = [
  "cron",
  "sessions",
  "logs",
  "logs/curator",
  "memories",
  "pairing",
  "hooks",
  "image_cache",
  "audio_cache",
  "skills",
];
/** Made like the others, but a home that somebody else manages may do without. */
const optionalDirectories = ["plugins"];

interface EnsuredHome {
  /** Why nothing can be stored here; null in an ordinary home. */
  readonly unwritable: string | null;
  readonly warnings: readonly string[];
}

/** A home that does not exist is made later; a file, or a folder this user may not enter, cannot be one. */
function requireReadable(dir: string): void {
  const otherwise = "or set HERMES_HOME to another folder";
  const failed = failureOf(() => {
    const found = statSync(dir, { throwIfNoEntry: false });
    if (found?.isDirectory()) accessSync(dir, constants.R_OK | constants.X_OK);
    else if (found) throw new ConfigError(`The home ${dir} is a file, not a folder. Rename it, ${otherwise}.`);
  });
  if (failed instanceof ConfigError) throw failed;
  if (codeOf(failed) === "EACCES")
    throw new ConfigError(`The home ${dir} cannot be read (EACCES). Change its permissions or owner, ${otherwise}.`);
}

/** Makes what is missing and touches nothing that is there. A home that cannot be written to is still usable for reading. */
function ensureHome(
  paths: HomePaths,
  { env, managed, identity = DEFAULT_IDENTITY }: { env: Env; managed: Managed | null; identity?: string },
): EnsuredHome {
  const names = managed ? directories : [...directories, ...optionalDirectories];
  const wanted = [paths.dir, ...names.map((name) => paths.at(name))];
  const missing = wanted.filter((dir) => !existsSync(dir));
  const isNew = missing.includes(paths.dir) || (missing.length > 0 && readdirSync(paths.dir).length === 0);
  if (managed && missing.length > 0) {
    throw new ConfigError(
      `${missing[0]} does not exist. This home is managed by ${managed.manager}, which has to create it: ${managed.how}.`,
    );
  }
  const failed = failureOf(() => {
    const mode = directoryMode(env);
    for (const dir of missing) {
      makeDirectory(dir, mode);
      if (mayChmod(env, managed)) chmodSync(dir, mode); // mkdir's mode is cut by the umask
    }
    if (!managed && !existsSync(paths.soulFile)) seed(paths.soulFile, `${identity}\n`);
    // A home that somebody else made is never given settings: the program that made it may not know them.
    if (!managed && isNew) seed(paths.configFile, NEW_CONFIG);
  });
  const refused = failureOf(() => accessSync(paths.dir, constants.W_OK));
  if (refused === null && failed === null) return { unwritable: null, warnings: [] };
  const where = `Cannot write to ${paths.dir} (${codeOf(failed ?? refused) ?? failed ?? refused})`;
  if (refused === null) return { unwritable: null, warnings: [`${where}: some of its folders are missing.`] };
  const unwritable = `${where}: conversations are kept in memory only, and settings cannot be changed.`;
  return { unwritable, warnings: [unwritable] };
}

function failureOf(attempt: () => void): unknown {
  try {
    attempt();
    return null;
  } catch (error) {
    return error;
  }
}

/** Whether modes of existing files may be tightened. Containers and package managers set their own. */
function mayChmod(env: Env, managed: Managed | null): boolean {
  return !managed && !env.HERMES_SKIP_CHMOD && !env.HERMES_CONTAINER && !existsSync("/.dockerenv");
}

function directoryMode(env: Env): number {
  const given = env.HERMES_HOME_MODE?.trim() ?? "";
  return /^0?[0-7]{3,4}$/.test(given) ? Number.parseInt(given, 8) : 0o700;
}

/** Another process may be seeding too; the first one wins. */
function seed(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

// Runs the migration of a home: config.yaml, .env, directories.

interface MigrationParts {
  readonly paths: HomePaths;
  readonly config: ConfigStore;
  readonly environment: HomeEnvironment;
  readonly managed: Managed | null;
  readonly now: () => Date;
}

async function migrateHome(parts: MigrationParts): Promise<MigrationResult> {
  const { paths, config, environment } = parts;
  const tree = config.tree();
  if (tree === null || !existsSync(paths.configFile)) {
    return { from: CONFIG_VERSION, to: CONFIG_VERSION, changed: [], warnings: [], envRemoved: [] };
  }
  const from = versionOf(tree);
  if (from >= CONFIG_VERSION) return { from, to: from, changed: [], warnings: [], envRemoved: [] };
  if (parts.managed) throw new ConfigError(refusal(parts.managed, paths.configFile));

  const facts = { env: environment.get, plugins: installedPlugins(paths.at("plugins")) };
  let plan: MigrationPlan = planMigration(tree, facts);
  await config.update(
    (current) => {
      plan = planMigration(current, facts); // another process may have been faster
      return plan.changes;
    },
    { backup: true },
  );
  const envRemoved = await removeObsolete(plan.obsoleteEnv, parts);
  mkdirSync(paths.at("logs", "curator"), { recursive: true, mode: 0o700 });
  const changed = [...plan.notes, ...envRemoved.map((name) => `${name} removed from .env: it is no longer used`)];
  return { from: plan.from, to: plan.to, changed, warnings: plan.warnings, envRemoved };
}

async function removeObsolete(
  names: readonly string[],
  { paths, environment, now }: MigrationParts,
): Promise<string[]> {
  const present = names.filter((name) => environment.fromFile(name) !== undefined);
  if (present.length === 0) return [];
  copyFileSync(paths.envFile, `${paths.envFile}.bak.${stampName(now())}`);
  for (const name of present) await environment.remove(name);
  return present;
}

function installedPlugins(dir: string): string[] {
  if (!existsSync(dir)) return [];
  const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders
    .map((entry) => entry.name)
    .filter((name) => existsSync(`${dir}/${name}/plugin.yaml`))
    .sort();
}
