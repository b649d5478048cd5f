// The variables of one home: the process environment with .env on top.
// The file is read and edited by hand: `util.parseEnv` and dotenv cut a value at `#`, which keys may hold, and neither changes one line in place.

import { readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { withLock } from "./lock.ts";
import { FileStamp } from "./looks.ts";
import { ConfigError, type HomePaths } from "./paths.ts";

interface EnvironmentOptions {
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
  /** What child processes start from: what .env holds stays here, unless its name is allowed, and so does every withheld name. */
  forChildren(rule: ChildRule): Readonly<Record<string, string>>;
  set(name: string, value: string): Promise<void>;
  /** Resolves to whether it was there. */
  remove(name: string): Promise<boolean>;
  /** Reads .env again; what vanished from it goes back to what the program was started with. */
  reload(): { readonly set: number; readonly removed: number };
}

interface ChildRule {
  readonly allowed: ReadonlySet<string>;
  /** Names that hold a key, wherever they were set. */
  readonly withheld: ReadonlySet<string>;
}

/** Gives a child NAME on purpose; the sandbox takes the prefix off. */
const FORCE = "_HERMES_FORCE_";

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
        `${name} in ${paths.envFile} contains characters that keys never contain (${letters}); they were removed. Copy the key again.`,
      );
    }
    return found.value;
  };

  const read = () => readEnvFile(paths.envFile, clean, warn);
  const stamp = new FileStamp(paths.envFile);
  let applies = stamp.fresh();
  let file = read();
  const project = projectVariables(options.cwd, paths.envFile);
  const values = new Map(file.exists ? [...project, ...started] : [...started, ...project]);
  for (const [name, value] of file.values) if (name !== "HERMES_HOME") values.set(name, value);
  let applied = [...file.values.keys()]; // `file` may be refreshed in between
  let snapshot: Readonly<Record<string, string>> | null = null;

  function refresh(): void {
    if (stamp.now() === applies) return;
    applies = stamp.now();
    file = read();
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
    forChildren({ allowed, withheld }) {
      const stored = new Set([...applied, ...file.values.keys()]);
      const child: Record<string, string> = {};
      for (const [name, value] of values) {
        if (allowed.has(name) || name.startsWith(FORCE)) child[name] = value;
        else if (withheld.has(name)) continue;
        else if (!stored.has(name)) child[name] = value;
        else {
          // The user's own shell had it before: a child sees what it would see without us.
          const original = started.get(name);
          if (original !== undefined) child[name] = original;
        }
      }
      return child;
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
  if (stamp === "") {
    if (statSync(path, { throwIfNoEntry: false }))
      warn(
        `${path} is not a file, so no keys were read. Rename it and set your keys again: hermes config set NAME KEY`,
      );
    return { exists: false, stamp, values: new Map() };
  }
  try {
    const { text } = readText(path);
    if (isBinary(text))
      warn(`${path} is not a text file, so keys may be missing. Write one NAME=KEY per line, or remove it.`);
    const values = parseEnv(text);
    for (const [name, value] of values) values.set(name, clean(name, value));
    return { exists: true, stamp, values };
  } catch (error) {
    warn(
      `${path} cannot be read (${error instanceof Error && "code" in error ? error.code : error}); its keys are missing.`,
    );
    return { exists: true, stamp, values: new Map() };
  }
}

/** Letters that no editor writes, and more than a slip of the hand. */
function isBinary(text: string): boolean {
  return (text.match(/[\x01-\x08\x0e-\x1f]/g)?.length ?? 0) > text.length / 100;
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

// The .env file: KEY=VALUE lines with secrets. Reading is lenient, writing touches one line.

interface EnvText {
  readonly text: string;
  /** Older files are Latin-1; they are written back as they were where that is possible. */
  readonly encoding: "utf8" | "latin1";
}

export function decodeEnvBytes(bytes: Uint8Array): EnvText {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), encoding: "utf8" };
  } catch {
    return { text: Buffer.from(bytes).toString("latin1"), encoding: "latin1" };
  }
}

export function encodeEnvText({ text, encoding }: EnvText): Buffer {
  const fits = encoding === "utf8" || /^[\x00-\xff]*$/.test(text);
  return Buffer.from(text, fits ? encoding : "utf8");
}

/** Every variable the text defines; of several definitions the last one counts. */
export function parseEnv(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text
    .replace(/^\ufeff/, "")
    .replaceAll("\0", "")
    .split(/\r?\n/)) {
    const match = definition.exec(line);
    if (match) values.set(match[2] ?? "", unquote((match[3] ?? "").trim()));
  }
  return values;
}

const definition = /^(\s*(?:export\s+)?)([^\s=#]+)\s*=(.*)$/s;

function unquote(value: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/s.exec(value);
  if (quoted) return (quoted[1] ?? "").replace(/\\(["\\])/g, "$1");
  const raw = /^'([^']*)'$/s.exec(value);
  return raw ? (raw[1] ?? "") : value;
}

/** One line that reads back as this value; line breaks and NUL cannot be stored and are dropped. */
export function renderEnvValue(value: string): string {
  const line = value.replace(/[\r\n\0]/g, "");
  return /[\s#"'\\\ufeff]/.test(line) ? `"${line.replace(/["\\]/g, "\\$&")}"` : line;
}

/** The text with one variable set: its last definition replaced in place, or a new line at the end. */
export function setEnvLine(text: string, name: string, value: string): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split("\n");
  const index = lines.findLastIndex((line) => definedName(line) === name);
  if (index === -1) {
    const gap = text === "" || text === "\ufeff" || text.endsWith("\n") ? "" : eol;
    return `${text}${gap}${name}=${renderEnvValue(value)}${eol}`;
  }
  const old = lines[index] ?? "";
  const prefix = /^\ufeff?\s*(?:export\s+)?/.exec(old)?.[0] ?? "";
  lines[index] = `${prefix}${name}=${renderEnvValue(value)}${old.endsWith("\r") ? "\r" : ""}`;
  return lines.join("\n");
}

/** The text without any definition of the variable. */
export function removeEnvLine(text: string, name: string): string {
  const lines = text.split("\n");
  return lines.filter((line) => definedName(line) !== name).join("\n");
}

function definedName(line: string): string | undefined {
  return definition.exec(line.replace(/^\ufeff/, "").replaceAll("\0", ""))?.[2];
}

/** Why a variable must not be stored in .env, or null when it may. */
export function refusedEnvName(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return `${JSON.stringify(name)} is not a variable name; use letters, digits and _, not starting with a digit.`;
  }
  if (!steersPrograms(name)) return null;
  return `${name} is not stored in .env: it changes how programs are found or started. Set it in your shell instead.`;
}

const denied = new Set(
  `NODE_OPTIONS NODE_PATH PATH SHELL BROWSER EDITOR VISUAL PAGER GIT_SSH_COMMAND GIT_EXEC_PATH GIT_SHELL HERMES_HOME HERMES_PROFILE
  HERMES_CONFIG HERMES_ENV`.split(/\s+/),
);

function steersPrograms(name: string): boolean {
  const upper = name.toUpperCase();
  return denied.has(upper) || /^(?:LD_|DYLD_|PYTHON)/.test(upper);
}

/** Keys and tokens are ASCII: look-alike letters that came with a copied key are taken out. Null when there are none. */
export function withoutLookAlikes(name: string, value: string): { value: string; removed: string[] } | null {
  if (!/_(?:API_KEY|TOKEN|SECRET|KEY)$/.test(name) || /^[\x00-\x7f]*$/.test(value)) return null;
  const removed = new Set<string>();
  const clean = [...value].filter((char) => {
    const point = char.codePointAt(0) ?? 0;
    if (point < 0x80) return true;
    removed.add(`U+${point.toString(16).toUpperCase().padStart(4, "0")}`);
    return false;
  });
  return { value: clean.join(""), removed: [...removed] };
}

// Installations that belong to a package manager: settings and secrets are written there, not here.

export interface Managed {
  /** Who manages this installation, as messages name it. */
  readonly manager: string;
  /** How a setting is changed there. */
  readonly how: string;
}

const known: Readonly<Record<string, Managed>> = {
  nixos: {
    manager: "NixOS",
    how: "change the hermes options in your NixOS configuration and run nixos-rebuild switch",
  },
  nix: { manager: "Nix", how: "change your Nix expression and rebuild the profile" },
  homebrew: { manager: "Homebrew", how: "use brew (brew upgrade, brew uninstall) and its service settings" },
};

/** Who manages the home at `dir`, or null when its user does. */
export function managedBy(dir: string, env: Readonly<Record<string, string | undefined>>): Managed | null {
  const word = env.HERMES_MANAGED?.trim().toLowerCase() ?? "";
  if (word === "true" || word === "1" || word === "yes") return known.nixos ?? null;
  if (word !== "" && word !== "false" && word !== "0" && word !== "no") return named(word);
  const marker = readMarker(join(dir, ".managed"));
  return marker === null ? null : named(marker.trim());
}

function named(name: string): Managed {
  const word = name.toLowerCase();
  const entry = known[word === "brew" ? "homebrew" : word];
  if (entry) return entry;
  const manager = name || "a package manager";
  return { manager, how: `change it with ${manager}` };
}

export function refusal({ manager, how }: Managed, what: string): string {
  return `${what} is managed by ${manager} and cannot be changed here. To change it, ${how}.`;
}

function readMarker(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "EACCES") return ""; // it is there
    return null;
  }
}
