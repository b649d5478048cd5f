// The variables of one home: the process environment with .env on top.
import { readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import {
  decodeEnvBytes,
  type EnvText,
  encodeEnvText,
  parseEnv,
  refusedEnvName,
  removeEnvLine,
  setEnvLine,
  steersPrograms,
  withoutLookAlikes,
} from "./env-file.ts";
import { ConfigError } from "./errors.ts";
import { withLock } from "./lock.ts";
import { type Managed, refusal } from "./managed.ts";
import type { HomePaths } from "./paths.ts";

export interface EnvironmentOptions {
  readonly paths: HomePaths;
  /** The environment the program was started with; copied, never changed. */
  readonly processEnv: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly managed: Managed | null;
  readonly chmod: boolean;
  readonly warn: (message: string) => void;
}

export interface HomeEnvironment {
  /** One variable as it stands, then a fresh look at .env. */
  get(name: string): string | undefined;
  /** What the program was started with for this run; .env does not count. */
  override(name: string): string | undefined;
  /** What .env says, whatever the process environment says. */
  fromFile(name: string): string | undefined;
  /** The same object until a variable changes. */
  all(): Readonly<Record<string, string>>;
  set(name: string, value: string): Promise<void>;
  /** Resolves to whether it was there. */
  remove(name: string): Promise<boolean>;
  /** Reads .env again; what vanished from it goes back to what the program was started with. */
  reload(): { readonly set: number; readonly removed: number };
}

export function openEnvironment(options: EnvironmentOptions): HomeEnvironment {
  const { paths, managed, warn } = options;
  const started = new Map<string, string>();
  for (const [name, value] of Object.entries(options.processEnv)) if (value !== undefined) started.set(name, value);
  started.set("HERMES_HOME", paths.dir); // children stay in this profile

  const warned = new Set<string>();
  const clean = (name: string, value: string): string => {
    const found = withoutLookAlikes(name, value);
    if (!found) return value;
    if (!warned.has(name)) {
      warned.add(name);
      const letters = found.removed.join(", ");
      warn(
        `${name} in ${paths.envFile} contains characters that no key has (${letters}); they were left out. Copy the key again.`,
      );
    }
    return found.value;
  };

  const read = () => readEnvFile(paths.envFile, clean, warn);
  let file = read();
  const project = projectVariables(options.cwd, paths.envFile);
  const values = new Map(file.exists ? [...project, ...started] : [...started, ...project]);
  for (const [name, value] of file.values) if (name !== "HERMES_HOME") values.set(name, value);
  let applied = [...file.values.keys()]; // `file` may be refreshed in between
  let snapshot: Readonly<Record<string, string>> | null = null;

  function refresh(): void {
    const stamp = stampOf(paths.envFile);
    if (stamp !== file.stamp) file = read();
  }

  async function edit(change: (text: string) => string): Promise<boolean> {
    if (managed) throw new ConfigError(refusal(managed, paths.envFile));
    return withLock(paths.at(".lock.db"), async () => {
      const old = stampOf(paths.envFile) === "" ? null : readText(paths.envFile);
      const text = change(old?.text ?? "");
      if (old && text === old.text) return false;
      const mode = options.chmod || !old ? 0o600 : undefined;
      await writeFileAtomic(paths.envFile, encodeEnvText({ text, encoding: old?.encoding ?? "utf8" }), { mode });
      return true;
    });
  }

  return {
    get(name) {
      const value = values.get(name);
      if (value !== undefined) return value;
      refresh();
      return file.values.get(name);
    },
    override: (name) => started.get(name),
    fromFile(name) {
      refresh();
      return file.values.get(name);
    },
    all() {
      snapshot ??= Object.freeze(Object.fromEntries(values));
      return snapshot;
    },
    async set(name, value) {
      const reason = refusedEnvName(name);
      if (reason) throw new ConfigError(reason);
      await edit((text) => setEnvLine(text, name, value));
      file = read();
      values.set(name, file.values.get(name) ?? "");
      applied.push(name);
      snapshot = null;
    },
    async remove(name) {
      const there = await edit((text) => removeEnvLine(text, name));
      values.delete(name);
      snapshot = null;
      file = read();
      return there;
    },
    reload() {
      file = read();
      let set = 0;
      let removed = 0;
      for (const [name, value] of file.values) {
        if (name === "HERMES_HOME" || values.get(name) === value) continue;
        values.set(name, value);
        set++;
      }
      for (const name of applied) {
        if (file.values.has(name) || name === "HERMES_HOME") continue;
        const original = started.get(name);
        if (original === undefined) values.delete(name);
        else values.set(name, original);
        removed++;
      }
      applied = [...file.values.keys()];
      snapshot = null;
      return { set, removed };
    },
  };
}

// A project's .env comes with the project, not from the user: it may bring keys for the project's own work, but nothing that moves
// the home, switches checks off or sends the user's keys to another address.
function projectVariables(cwd: string, userFile: string): Map<string, string> {
  const path = join(cwd, ".env");
  if (sameFile(path, userFile)) return new Map();
  const { values } = readEnvFile(
    path,
    (_name, value) => value,
    () => undefined, // one that cannot be read is as good as none
  );
  for (const name of values.keys()) {
    const steers = steersPrograms(name) || /^(?:HERMES_|TERMINAL_|API_SERVER_|GATEWAY_)|_BASE_URL$|_PROXY$/i.test(name);
    if (steers) values.delete(name);
  }
  return values;
}

interface EnvFile {
  readonly exists: boolean;
  readonly stamp: string;
  readonly values: Map<string, string>;
}

function readEnvFile(
  path: string,
  clean: (name: string, value: string) => string,
  warn: (message: string) => void,
): EnvFile {
  const stamp = stampOf(path);
  if (stamp === "") return { exists: false, stamp, values: new Map() };
  try {
    const values = parseEnv(readText(path).text);
    for (const [name, value] of values) values.set(name, clean(name, value));
    return { exists: true, stamp, values };
  } catch (error) {
    warn(
      `${path} cannot be read (${error instanceof Error && "code" in error ? error.code : error}); its keys are missing.`,
    );
    return { exists: true, stamp, values: new Map() };
  }
}

function readText(path: string): EnvText {
  return decodeEnvBytes(readFileSync(path));
}

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat?.isFile() ? `${stat.mtimeNs}:${stat.size}:${stat.ino}` : "";
}

function sameFile(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false; // one of them does not exist
  }
}
