// The settings of one home: read from config.yaml, re-read when it changes, written key by key.
import { isUtf8 } from "node:buffer";
import { copyFileSync, lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, messageOf } from "../../kit/errors.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { parseJson } from "../../kit/json.ts";
import { readPlainTyped } from "../../kit/plain-yaml.ts";
import { type Managed, refusal } from "../environment.ts";
import { withLock } from "../lock.ts";
import { FileStamp } from "../looks.ts";
import { ConfigError } from "../paths.ts";
import { asFlag, checkStructure, type Finding, isMapping, normalise } from "./decode.ts";
import { eachField, type Field } from "./field.ts";
import { CONFIG_VERSION, type Config, configSchema, decodeConfig } from "./schema.ts";
import { editYaml, type YamlChange } from "./yaml-edit.ts";
import { define, loadYaml, parseText, type Tree, type Yaml, type YamlProblem } from "./yaml-text.ts";

interface ConfigStoreOptions {
  readonly path: string;
  /** Guards read-modify-write against other processes. */
  readonly lockPath: string;
  readonly env: (name: string) => string | undefined;
  readonly overrides: readonly Override[];
  /** Defaults only; the file is not read. */
  readonly ignoreFile: boolean;
  readonly managed: Managed | null;
  readonly chmod: boolean;
  /** Local time, for the names of copies. */
  readonly now: () => Date;
  readonly warn: (message: string) => void;
}

/** What is in force. `tree` is the file as written; null when there is none or it cannot be used. */
interface Loaded {
  readonly tree: Tree | null;
  readonly config: Config;
  readonly findings: readonly Finding[];
  /** Settings that hold the agent back and cannot be read. */
  readonly unread: readonly string[];
  /** Variables the file refers to, with the values that went in. */
  readonly variables: ReadonlyMap<string, string | undefined>;
}

export class ConfigStore {
  readonly #options: ConfigStoreOptions;
  readonly #file: FileStamp;
  #yaml: Yaml | null = null;
  #stamp = "";
  #lastLoaded: Loaded | null = null;
  #problem: YamlProblem | null = null;

  private constructor(options: ConfigStoreOptions) {
    this.#options = options;
    this.#file = new FileStamp(options.path);
  }

  static async open(options: ConfigStoreOptions): Promise<ConfigStore> {
    const store = new ConfigStore(options);
    await store.reload();
    return store;
  }

  /** The settings in force, after a look whether the file or a variable it refers to has changed. */
  config(): Config {
    if (this.#options.ignoreFile) return this.#loaded.config;
    if (this.#file.now() !== this.#stamp) {
      if (!this.#read()) void this.reload(); // counts as soon as the parser is here
    }
    const changed = [...this.#loaded.variables].some(([name, value]) => this.#options.env(name) !== value);
    if (changed) {
      const loaded = this.#build(this.#loaded.tree);
      this.#lastLoaded = loaded.unread.length > 0 ? { ...this.#loaded, variables: loaded.variables } : loaded;
    }
    return this.#loaded.config;
  }

  /** The file as it is written: no defaults, nothing moved or filled in. Null when it cannot be read. */
  tree(): Tree | null {
    this.config();
    return this.#problem ? null : (this.#loaded.tree ?? {});
  }

  findings(): readonly Finding[] {
    return this.#loaded.findings;
  }

  /** Settings that hold the agent back and cannot be read, one sentence each; no agent starts while there are any. */
  unread(): readonly string[] {
    this.config();
    return this.#loaded.unread;
  }

  /** Why the file cannot be used, or null. */
  problem(): YamlProblem | null {
    return this.#problem;
  }

  get #loaded(): Loaded {
    this.#lastLoaded ??= this.#build(null);
    return this.#lastLoaded;
  }

  async reload(): Promise<void> {
    if (this.#options.ignoreFile || this.#file.fresh() === this.#stamp || this.#read()) return;
    this.#yaml = await loadYaml();
    this.#read();
  }

  set(path: readonly string[], value: unknown): Promise<void> {
    return this.update((tree) => this.#settingOf(tree, path, value));
  }

  /** Several keys in one write; `undefined` removes one. */
  setAll(values: Readonly<Record<string, unknown>>, options?: { readonly backup?: boolean }): Promise<void> {
    return this.update((tree) => {
      const changes = Object.entries(values).map(([name, value]): readonly YamlChange[] => {
        const path = name.split(".");
        return value === undefined ? [{ type: "remove", path }] : this.#settingOf(tree, path, value);
      });
      return changes.flat();
    }, options);
  }

  #settingOf(tree: Tree, path: readonly string[], value: unknown): YamlChange[] {
    const old = path.reduce<unknown>((node, key) => child(node, key), tree);
    return [...modelFirst(tree, path), { type: "set", path, value: restoreTemplates(value, old, this.#options.env) }];
  }

  unset(path: readonly string[]): Promise<void> {
    return this.update(() => [{ type: "remove", path }]);
  }

  /** Applies changes to the newest state of the file; other processes wait. No change, no write. */
  async update(
    changesFor: (tree: Tree) => readonly YamlChange[],
    { backup = false }: { readonly backup?: boolean } = {},
  ): Promise<void> {
    const { path, managed, lockPath, chmod } = this.#options;
    if (managed) throw new ConfigError(refusal(managed, path));
    const yaml = await loadYaml();
    await withLock(lockPath, async () => {
      const { text: old, parsed } = parseFile(yaml, path);
      if (!parsed.ok)
        throw new ConfigError(`${describe(path, parsed.problem)}. Nothing was saved; fix the file first.`);
      const start = old ?? `_config_version: ${CONFIG_VERSION}\n`; // a file of our own making needs no migration
      const text = changesFor(parsed.tree).reduce((before, change) => edit(yaml, before, change, path), start);
      if (text === old) return;
      if (backup && old !== null) copyFileSync(path, `${path}.bak.${stampName(this.#options.now())}`);
      await writeFileAtomic(path, text, { mode: chmod || old === null ? 0o600 : undefined });
    });
    this.#yaml = yaml;
    if (!this.#options.ignoreFile) this.#read();
  }

  /** Takes the file in; false when it needs the parser and that is not loaded yet. */
  #read(): boolean {
    const { path, warn } = this.#options;
    const stamp = this.#file.fresh();
    const { text, parsed } = stamp === "" ? { text: null, parsed: null } : parseFile(this.#yaml, path);
    if (parsed === "needs parser") return false;
    const fresh = this.#stamp === "";
    this.#stamp = stamp;
    this.#problem = parsed?.ok === false ? parsed.problem : null;
    if (parsed === null || parsed.ok) {
      const loaded = this.#build(parsed?.tree ?? null);
      // What runs goes on as it was held before.
      const keep = !fresh && loaded.unread.length > 0;
      if (keep)
        warn(
          `${loaded.unread.map((problem) => `${path}: ${problem}`).join("; ")}. The previous settings stay in effect.`,
        );
      else this.#lastLoaded = loaded;
      return true;
    }
    if (fresh) this.#lastLoaded = this.#buildBroken(text);
    const instead = fresh ? "Using the built-in defaults" : "The previous settings stay in effect";
    const kept = keepCorruptCopy(path, this.#options.now());
    warn(`${describe(path, parsed.problem)}. ${instead}, and nothing is saved until it is fixed.${kept}`);
    return true;
  }

  #build(tree: Tree | null): Loaded {
    const { env, overrides, warn, path } = this.#options;
    const variables = new Map<string, string | undefined>();
    const unknown = new Set<string>();
    const expanded = expand(tree ?? {}, {
      env,
      onName: (name) => variables.set(name, env(name)),
      onUnknownSource: (template) => unknown.add(template),
    }) as Tree; // a mapping stays a mapping
    for (const template of unknown) warn(`${path}: ${template} is not expanded; only environment variables are.`);
    const { config, problems } = decodeConfig(applyOverrides(normalise(expanded), overrides));
    const wrong = problems.map(({ guard, message }): Finding => ({ severity: guard ? "error" : "warning", message }));
    return {
      tree,
      config: freeze(config),
      findings: [...checkStructure(tree ?? {}), ...wrong],
      unread: problems.filter(({ guard }) => guard).map(({ message }) => message),
      variables,
    };
  }

  #buildBroken(text: string | null): Loaded {
    const loaded = this.#build(gatesIn(text));
    const guards = text === null ? ["all of them"] : guardsIn(text);
    if (guards.length === 0) return loaded;
    return {
      ...loaded,
      unread: [
        ...loaded.unread,
        `it cannot be read, including settings that restrict the agent (${guards.join(", ")})`,
      ],
    };
  }
}

/** The settings that hold the agent back in a file that cannot be parsed, as far as its lines show. */
function guardsIn(text: string): string[] {
  const blocks = text.split(/^(?=[A-Za-z_"'])/m);
  return [...eachField(configSchema.fields)].flatMap(({ path, field }) => {
    if (!field.guard) return [];
    const keys = path.split(".");
    const [first, last] = [keys[0], keys.at(-1)];
    return blocks.some((block) => keyIn(block) === first && isWritten(block, last ?? "", field.fallback)) ? [path] : [];
  });
}

const keyIn = (block: string) => /^["']?([\w-]+)["']?[ \t]*:/.exec(block)?.[1];

function isWritten(block: string, key: string, fallback: unknown): boolean {
  const value = new RegExp(`(?:^|[\\s{,"'])${key}["']?[ \\t]*:[ \\t]*([^\\n,}#]*)`).exec(block)?.[1];
  if (value === undefined) return false;
  const plain = value.trim().replace(/^["']|["']$/g, "");
  return typeof fallback === "object" ? plain !== "[]" && plain !== "{}" : plain !== "" && plain !== String(fallback);
}

/** A file that nobody can read may still say that writes need leave: then they do, both kinds. */
function gatesIn(text: string | null): Tree | null {
  const wanted = /^[ \t]*write_approval[ \t]*:[ \t]*["']?(?:on|true|yes|1|approve|enabled)\b/im.test(text ?? "");
  return wanted ? { memory: { write_approval: true }, skills: { write_approval: true } } : null;
}

/** A plain text under `model` becomes `model.default` before a key next to it is set. */
function modelFirst(tree: Tree, path: readonly string[]): YamlChange[] {
  if (path[0] !== "model" || path.length < 2 || typeof tree.model !== "string") return [];
  const section = tree.model === "" ? {} : { default: tree.model };
  return [{ type: "set", path: ["model"], value: section }];
}

function edit(yaml: Yaml, text: string, change: YamlChange, path: string): string {
  try {
    return editYaml(yaml, text, change);
  } catch (error) {
    throw new ConfigError(`${path}: ${messageOf(error)}.`);
  }
}

function describe(path: string, { line, column, message }: YamlProblem): string {
  return `${path} is broken at line ${line}, column ${column}: ${message}`;
}

type FileContent = { readonly ok: true; readonly tree: Tree } | { readonly ok: false; readonly problem: YamlProblem };

const NOT_TEXT: YamlProblem = { line: 1, column: 1, message: "it is not UTF-8 text" };

function parseFile(yaml: Yaml, path: string): { text: string | null; parsed: FileContent };
function parseFile(yaml: Yaml | null, path: string): { text: string | null; parsed: FileContent | "needs parser" };
function parseFile(yaml: Yaml | null, path: string): { text: string | null; parsed: FileContent | "needs parser" } {
  try {
    const bytes = readFileSync(path);
    if (!isUtf8(bytes)) return { text: bytes.toString("latin1"), parsed: { ok: false, problem: NOT_TEXT } };
    const text = bytes.toString("utf8");
    const tree = readPlainTyped(text);
    if (tree !== null) return { text, parsed: { ok: true, tree } };
    return { text, parsed: yaml ? parseText(yaml, text) : "needs parser" };
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return { text: null, parsed: { ok: true, tree: {} } };
    const problem = { line: 1, column: 1, message: `it cannot be read (${code})` };
    return { text: null, parsed: { ok: false, problem } };
  }
}

/** A copy of the broken file, once per state, so that a user who fixes it by deleting has not lost anything. */
function keepCorruptCopy(path: string, now: Date): string {
  try {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink() || stat.size === 0) return "";
    const prefix = `${basename(path)}.corrupt.`;
    const copies = readdirSync(dirname(path)).filter((name) => name.startsWith(prefix));
    if (copies.some((name) => statSync(join(dirname(path), name)).size === stat.size)) return "";
    const copy = `${path}.corrupt.${stampName(now)}.bak`;
    copyFileSync(path, copy);
    return ` A copy is in ${basename(copy)}.`;
  } catch (error) {
    return ` It could not be copied (${codeOf(error) ?? error}).`;
  }
}

/** YYYYMMDD-HHMMSS, local time. */
export function stampName(now: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}

export function child(node: unknown, key: string): unknown {
  if (Array.isArray(node)) return /^\d+$/.test(key) ? node[Number(key)] : undefined;
  return isMapping(node) && Object.hasOwn(node, key) ? node[key] : undefined;
}

/** One shared, frozen copy. */
function freeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}

// Settings that come from environment variables.

interface Override {
  readonly path: readonly string[];
  readonly name: string;
  readonly value: unknown;
  /** The file wins over this one. */
  readonly belowConfig: boolean;
}

/** The overrides in force. `runEnv` is what the program was started with, `fileEnv` what .env says; the former wins. */
export function collectOverrides(
  runEnv: (name: string) => string | undefined,
  fileEnv: (name: string) => string | undefined,
): Override[] {
  const found: Override[] = [];
  for (const { path, field } of eachField(configSchema.fields)) {
    if (field.env === undefined) continue;
    const text = runEnv(field.env) ?? fileEnv(field.env);
    if (text === undefined || text.trim() === "") continue;
    found.push({
      path: path.split("."),
      name: field.env,
      value: fromText(field, text),
      belowConfig: field.envBelowConfig === true,
    });
  }
  return found;
}

/** The normalised tree with overrides in it; the given one is not touched. */
function applyOverrides(tree: Tree, overrides: readonly Override[]): Tree {
  return overrides.reduce((result, override) => put(result, override.path, override), tree);
}

function put(tree: Tree, [key = "", ...rest]: readonly string[], override: Override): Tree {
  const old = tree[key];
  if (rest.length === 0) {
    const taken = override.belowConfig && old !== undefined && old !== null && old !== "";
    return taken ? tree : { ...tree, [key]: override.value };
  }
  if (old !== undefined && old !== null && !isMapping(old)) return tree;
  const copy: Tree = { ...tree };
  define(copy, key, put(isMapping(old) ? old : {}, rest, override));
  return copy;
}

/**
 * A text from the command line or the environment as a value of that field; what does not fit stays a text.
 * `parse` reads lists and mappings; undefined means it is none.
 */
export function fromText(field: Field, text: string, parse: (text: string) => unknown = parseJson): unknown {
  const trimmed = text.trim();
  const structured = /^[[{]/.test(trimmed) ? parse(trimmed) : undefined;
  if (Array.isArray(structured) && field.kinds.some((kind) => kind === "list" || kind === "items")) return structured;
  if (isMapping(structured) && field.kinds.includes("record")) return structured;
  for (const kind of field.kinds) {
    if (kind === "null" && /^(?:null|none|~)$/i.test(trimmed)) return null;
    if (kind === "flag" && asFlag(trimmed) !== undefined) return asFlag(trimmed);
    if ((kind === "whole" || kind === "number") && isNumber(trimmed)) return Number(trimmed);
    if (kind === "list" && field.kinds.length === 1) {
      return trimmed
        .split(",")
        .map((item) => item.trim())
        .filter(Boolean);
    }
    if (kind === "text" || kind === "choice") return text;
  }
  return text;
}

export function isNumber(text: string): boolean {
  return /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i.test(text);
}

// ${NAME} and ${env:NAME} in texts of config.yaml.

interface Expansion {
  /** A variable's value, undefined when it is not set. */
  readonly env: (name: string) => string | undefined;
  /** Called for each variable looked up. */
  readonly onName?: (name: string) => void;
  /** Called for each template whose source is unknown. */
  readonly onUnknownSource?: (template: string) => void;
}

/** Fills templates in, through lists and mappings but not in keys. What was filled in is not looked at again. */
export function expand(value: unknown, expansion: Expansion): unknown {
  if (typeof value === "string") return expandText(value, expansion);
  if (Array.isArray(value)) return value.map((item) => expand(item, expansion));
  if (!isMapping(value)) return value;
  const result: Tree = {};
  for (const [key, inner] of Object.entries(value)) define(result, key, expand(inner, expansion));
  return result;
}

function hasTemplate(text: string): boolean {
  return /\$\{[^{}]+\}/.test(text);
}

function expandText(text: string, { env, onName, onUnknownSource }: Expansion): string {
  return text.replace(/\$\{([^{}]*)\}/g, (whole, inside: string) => {
    const source = /^\s*([A-Za-z_]\w*)\s*:(.*)$/s.exec(inside);
    if (source && source[1] !== "env") {
      onUnknownSource?.(whole);
      return whole;
    }
    const name = (source?.[2] ?? inside).trim();
    if (!/^[A-Za-z_]\w*$/.test(name)) return whole;
    onName?.(name);
    return env(name) ?? whole;
  });
}

/** A value on its way into the file: parts that are unchanged since a template was filled in become that template again. */
export function restoreTemplates(value: unknown, raw: unknown, env: Expansion["env"]): unknown {
  if (typeof value === "string") {
    return typeof raw === "string" && hasTemplate(raw) && expandText(raw, { env }) === value ? raw : value;
  }
  if (Array.isArray(value)) {
    const old = Array.isArray(raw) ? raw : [];
    return value.map((item, index) => restoreTemplates(item, counterpart(item, index, old, env), env));
  }
  if (!isMapping(value)) return value;
  const result: Tree = {};
  for (const [key, inner] of Object.entries(value)) {
    define(result, key, restoreTemplates(inner, isMapping(raw) ? raw[key] : undefined, env));
  }
  return result;
}

/** In a list an item may have moved: a template with the same outcome anywhere in it is the item's own. */
function counterpart(item: unknown, index: number, old: readonly unknown[], env: Expansion["env"]): unknown {
  if (typeof item !== "string") return old[index];
  return old.find((raw) => typeof raw === "string" && expandText(raw, { env }) === item);
}
