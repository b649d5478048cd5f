import { type Clock, systemClock } from "../kit/clock.ts";
import type { MigrationResult } from "./config/migrate.ts";
import { collectOverrides } from "./config/overrides.ts";
import type { Config } from "./config/schema.ts";
import { ConfigStore } from "./config/store.ts";
import type { Finding } from "./config/structure.ts";
import type { Tree, YamlProblem } from "./config/yaml-text.ts";
import { ensureHome, mayChmod } from "./create.ts";
import { openEnvironment } from "./environment.ts";
import { createLogger, type RootLogger } from "./log.ts";
import { type Managed, managedBy } from "./managed.ts";
import { migrateHome } from "./migrate.ts";
import { displayPath, type HomePaths } from "./paths.ts";
import { selectProfile } from "./profiles.ts";
import { collectSecrets } from "./secrets.ts";

export { ConfigError } from "./errors.ts";

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
  /** A variable the program was started with for this run; .env does not count. */
  override(name: string): string | undefined;
  /** The environment that child processes start from; callers remove what a child must not see. */
  environment(): Readonly<Record<string, string>>;
  /**
   * Sets one key in config.yaml and leaves every other byte alone. A list is for keys that have dots in their names.
   * Throws `ConfigError` when the file is broken or managed.
   */
  setConfigKey(path: string | readonly string[], value: unknown): Promise<void>;
  /** Several keys in one write, by dotted path; `undefined` removes a key. With `backup` the file as it was is kept beside it. */
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
  /** config.yaml as it is written; null when it is broken. */
  configTree(): Tree | null;
  /** Brings an older config.yaml up to date, after making a copy of it. Nothing to do is not an error; a managed home is. */
  migrate(): Promise<MigrationResult>;
  /** Why nothing can be stored in this home, as the warnings say; null in an ordinary one. */
  readonly unwritable: string | null;
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
  /** What no memory or skill may hold. */
  forKeeping(text: string): string;
}

const unmasked: TextRedactor = Object.assign((text: string) => text, {
  forFile: (text: string) => text,
  forKeeping: (text: string) => text,
});

export interface RedactorSettings {
  readonly enabled: boolean;
  readonly knownSecrets: () => readonly string[];
}

/** Finds the profile, makes what is missing, reads .env and config.yaml. Throws `ProfileError` or, in a managed home, `ConfigError`. */
export async function openHome(options: OpenHomeOptions): Promise<OpenHome> {
  const { env, osHome, clock = systemClock } = options;
  const { paths, argv, warnings: selectionWarnings } = selectProfile(options);
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
    config: () => config.config(),
    env: environment.get,
    override: environment.override,
    environment: environment.all,
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
