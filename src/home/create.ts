// First use of a home: its directories and its identity file.
import { accessSync, chmodSync, constants, existsSync, writeFileSync } from "node:fs";
import { ConfigError } from "./errors.ts";
import { makeDirectory } from "./make-directory.ts";
import type { Managed } from "./managed.ts";
import type { HomePaths } from "./paths.ts";
import { DEFAULT_IDENTITY } from "./soul.ts";

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

export interface EnsuredHome {
  /** Why nothing can be stored here; null in an ordinary home. */
  readonly unwritable: string | null;
  readonly warnings: readonly string[];
}

/** Makes what is missing and touches nothing that is there. A home that cannot be written to is still usable for reading. */
export function ensureHome(
  paths: HomePaths,
  { env, managed, identity = DEFAULT_IDENTITY }: { env: Env; managed: Managed | null; identity?: string },
): EnsuredHome {
  const names = managed ? directories : [...directories, ...optionalDirectories];
  const wanted = [paths.dir, ...names.map((name) => paths.at(name))];
  const missing = wanted.filter((dir) => !existsSync(dir));
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
  });
  const refused = failureOf(() => accessSync(paths.dir, constants.W_OK));
  if (refused === null && failed === null) return { unwritable: null, warnings: [] };
  const where = `Cannot write to ${paths.dir} (${codeOf(failed ?? refused)})`;
  if (refused === null) return { unwritable: null, warnings: [`${where}: some of its folders are missing.`] };
  const unwritable = `${where}: conversations are kept in memory until the program ends, and no setting can be changed.`;
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
export function mayChmod(env: Env, managed: Managed | null): boolean {
  return !managed && !env.HERMES_SKIP_CHMOD && !env.HERMES_CONTAINER && !existsSync("/.dockerenv");
}

function directoryMode(env: Env): number {
  const given = env.HERMES_HOME_MODE?.trim() ?? "";
  return /^0?[0-7]{3,4}$/.test(given) ? Number.parseInt(given, 8) : 0o700;
}

/** Another process may be seeding too; whoever comes first wins. */
function seed(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
