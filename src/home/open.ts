import type { Config } from "./config/schema.ts";
import type { Logger } from "./log.ts";
import type { HomePaths } from "./paths.ts";

/**
 * One opened home: its paths, its settings, its log. Made once by `main.ts` and handed down; nobody else reads config.yaml, .env or
 * process.env.
 */
export interface OpenHome {
  readonly paths: HomePaths;
  /** Settings in force. Re-read when the file changed; a broken file leaves the last good ones in force. */
  config(): Config;
  /** One variable: the process environment first, then a fresh look at .env. */
  env(name: string): string | undefined;
  /** The environment that child processes start from; callers remove what a child must not see. */
  environment(): Readonly<Record<string, string>>;
  /** Sets one key in config.yaml and leaves every other byte alone. Throws `ConfigError` when the file is broken or managed. */
  setConfigKey(path: string, value: unknown): Promise<void>;
  /** Stores a secret in .env (mode 0600) and in the process. */
  setEnv(name: string, value: string): Promise<void>;
  readonly log: Logger;
  /** What the user should see at start: config problems, ignored values, a missing sticky profile. */
  readonly warnings: readonly string[];
  /** Every secret value known to this home (from .env, auth.json and config), for the redactor. */
  secrets(): readonly string[];
}

/** A settings problem in words for the user: what, where (file, line), what to do. */
export class ConfigError extends Error {
  override name = "ConfigError";
}
