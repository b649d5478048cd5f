// Which plugins there are, from their folders and manifests alone. None of their code runs here.

import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { loadYaml, parseText } from "../home/config/yaml-text.ts";
import { messageOf } from "../kit/errors.ts";
import { isRecord } from "../kit/json.ts";
import { readPlainTyped } from "../kit/plain-yaml.ts";

type PluginSource = "bundled" | "home" | "project" | "package";

/** Folders with plugins; a later one wins over an earlier one by key. */
export interface PluginRoots {
  readonly bundled: string | null;
  readonly home: string;
  /** Null unless the user allows plugins of projects. */
  readonly project: string | null;
  /** Folders of installed npm packages. */
  readonly packages: readonly string[];
}

export interface FoundPlugin {
  /** `name`, or `category/name`: what settings call it. */
  readonly key: string;
  readonly category: string | null;
  readonly source: PluginSource;
  readonly folder: string;
  readonly manifest: Manifest;
  /** The code file; null when there is none that can run here. */
  readonly entry: string | null;
  /** Why it cannot be used. */
  readonly problem: string | null;
  /** What lies under the same key in an earlier root. */
  readonly hides: PluginSource | null;
}

const ENTRIES = ["index.js", "index.mjs", "index.ts"];
/** Categories of which one at a time is in use, chosen by a setting of its own. */
export const SINGLE_CATEGORIES: Readonly<Record<string, string>> = {
  memory: "memory.provider",
  context_engine: "context.engine",
};
const PACKAGE_FIELD = "hermes-agent-plugin";

/** Sorted by root and name; each key once. Never rejects: what cannot be read is a plugin with a problem, or not there. */
export async function findPlugins(roots: PluginRoots): Promise<FoundPlugin[]> {
  const found = new Map<string, FoundPlugin>();
  const groups = await Promise.all([
    roots.bundled === null ? [] : inFolder(roots.bundled, "bundled"),
    inFolder(roots.home, "home"),
    roots.project === null ? [] : inFolder(roots.project, "project"),
    ...roots.packages.map(inPackages),
  ]);
  for (const plugin of groups.flat()) {
    const hidden = found.get(plugin.key);
    found.delete(plugin.key);
    found.set(plugin.key, hidden ? { ...plugin, hides: hidden.source } : plugin);
  }
  return [...found.values()];
}

/** Names a person may call it by. */
export function namesOf({ key, folder, manifest }: Pick<FoundPlugin, "key" | "folder" | "manifest">): string[] {
  return [...new Set([key, manifest.name, basename(folder)])];
}

async function inFolder(root: string, source: PluginSource): Promise<FoundPlugin[]> {
  const found = await Promise.all(
    (await folders(root)).map(async (name) => {
      const folder = join(root, name);
      const own = await describe(folder, { source, category: null });
      if (own && !(name in SINGLE_CATEGORIES)) return [own];
      const inner = await folders(folder);
      const nested = await Promise.all(inner.map((child) => describe(join(folder, child), { source, category: name })));
      return nested.filter((plugin) => plugin !== null);
    }),
  );
  return found.flat();
}

/** Null for a folder that is no plugin: neither a manifest nor code where only plugins lie. */
export async function describe(
  folder: string,
  { source, category }: { readonly source: PluginSource; readonly category: string | null },
): Promise<FoundPlugin | null> {
  const name = basename(folder);
  const read = await readManifest(folder, name);
  if (read.type === "broken") return make(folder, source, category, unnamed(name), null, read.problem);
  if (read.type === "absent") {
    const entry = await findEntry(folder, null);
    if (typeof entry !== "string") return null;
    const known = category !== null && category in SINGLE_CATEGORIES;
    const problem = known ? null : "it has no plugin.yaml";
    return make(folder, source, category, unnamed(name), known ? entry : null, problem);
  }
  return withEntry(folder, source, category, read.manifest);
}

async function withEntry(folder: string, source: PluginSource, category: string | null, manifest: Manifest) {
  const entry = await findEntry(folder, manifest.main);
  if (typeof entry === "string") return make(folder, source, category, manifest, entry, null);
  return make(folder, source, category, manifest, null, entry.problem);
}

function make(
  folder: string,
  source: PluginSource,
  category: string | null,
  manifest: Manifest,
  entry: string | null,
  problem: string | null,
): FoundPlugin {
  const key = category === null ? manifest.name : `${category}/${basename(folder)}`;
  return { key, category, source, folder, manifest, entry, problem, hides: null };
}

function unnamed(name: string): Manifest {
  const answer = manifestOf({}, /^[\w.-]{1,100}$/.test(name) ? name : "unnamed");
  if (answer.type !== "manifest") throw new Error(`no manifest can be made for ${name}`);
  return answer.manifest;
}

async function findEntry(folder: string, main: string | null): Promise<string | { readonly problem: string }> {
  if (main !== null) {
    const path = join(folder, main);
    if (!(await isFile(path))) return { problem: `its code file ${main} does not exist` };
    const inside = relative(await realpath(folder), await realpath(path));
    return inside.startsWith("..") ? { problem: `its code file ${main} is outside its folder` } : path;
  }
  for (const name of ENTRIES) if (await isFile(join(folder, name))) return join(folder, name);
  const files = await readdir(folder).catch(() => []); // gone meanwhile
  if (files.some((name) => name.endsWith(".py")))
    return {
      problem: "not usable here: it is written in Python; this Hermes runs plugins in JavaScript or TypeScript",
    };
  return { problem: `it has no code file (${ENTRIES.join(", ")}, or "main" in plugin.yaml)` };
}

/** Packages that say they are plugins, by keyword or by a field of that name, which may hold the manifest. */
async function inPackages(root: string): Promise<FoundPlugin[]> {
  const names = await Promise.all(
    (await folders(root)).map(async (name) =>
      name.startsWith("@") ? (await folders(join(root, name))).map((inner) => `${name}/${inner}`) : [name],
    ),
  );
  const found = await Promise.all(names.flat().map((name) => packaged(join(root, name), name)));
  return found.filter((plugin) => plugin !== null);
}

async function packaged(folder: string, name: string): Promise<FoundPlugin | null> {
  const facts = await packageFacts(folder);
  if (!facts) return null;
  const own = facts[PACKAGE_FIELD];
  const keywords = Array.isArray(facts.keywords) ? facts.keywords : [];
  if (own === undefined && !keywords.includes(PACKAGE_FIELD)) return null;
  const read = await readManifest(folder, name);
  const { version, description } = facts;
  const main = facts.main ?? exportOf(facts.exports);
  const answer =
    read.type === "absent" ? manifestOf({ version, description, main, ...(isRecord(own) ? own : {}) }, name) : read;
  if (answer.type !== "manifest") {
    const problem = answer.type === "broken" ? answer.problem : "it has no manifest";
    return make(folder, "package", null, unnamed(name.replace("/", "-")), null, problem);
  }
  return withEntry(folder, "package", null, answer.manifest);
}

/** The file that `import "package"` would load, in the spellings of package.json. */
function exportOf(exported: unknown): unknown {
  if (!isRecord(exported)) return exported;
  return exportOf(exported["."] ?? exported.import ?? exported.default);
}

async function packageFacts(folder: string): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    const facts: unknown = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return isRecord(facts) ? facts : null;
  } catch {
    return null; // not a package
  }
}

/** Names of the folders in a folder, links to folders too; hidden ones are left alone. */
async function folders(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => []); // none there
  const kept = await Promise.all(
    entries.map(async (entry) => {
      if (entry.name.startsWith(".") || entry.name === "node_modules" || entry.name === "__pycache__") return null;
      if (entry.isDirectory()) return entry.name;
      if (!entry.isSymbolicLink()) return null;
      const target = await stat(join(root, entry.name)).catch(() => null); // a link to nowhere
      return target?.isDirectory() ? entry.name : null;
    }),
  );
  return kept.filter((name) => name !== null).sort();
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true; // absent is no file
}

// plugin.yaml: what a plugin says of itself. It is read before any of its code.

const KINDS = ["standalone", "backend", "exclusive", "platform", "model-provider"] as const;
type PluginKind = (typeof KINDS)[number];

/** As npm packages are called; a name is a folder too, so no part of it begins with a dot. */
const NAME = /^@?\w[\w.-]*(?:\/\w[\w.-]*)?$/;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly author: string;
  readonly kind: PluginKind;
  /** Variables it is given; others of the home it does not see. */
  readonly requiresEnv: readonly string[];
  readonly providesTools: readonly string[];
  readonly providesHooks: readonly string[];
  /** Memories that `memory.provider` may name. */
  readonly providesMemory: readonly string[];
  /** Engines that `context.engine` may name. */
  readonly providesEngines: readonly string[];
  readonly main: string | null;
}

type ManifestAnswer =
  | { readonly type: "manifest"; readonly manifest: Manifest }
  | { readonly type: "broken"; readonly problem: string }
  | { readonly type: "absent" };

/** Never rejects. `fallbackName` is the name of a plugin whose manifest gives none. */
async function readManifest(folder: string, fallbackName: string): Promise<ManifestAnswer> {
  let text: string;
  try {
    text = await readFile(join(folder, "plugin.yaml"), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return { type: "absent" };
    return { type: "broken", problem: `plugin.yaml cannot be read: ${messageOf(error)}` };
  }
  const simple = readPlainTyped(text);
  if (simple) return manifestOf(simple, fallbackName);
  const parsed = parseText(await loadYaml(), text);
  if (parsed.ok) return manifestOf(parsed.tree, fallbackName);
  const { line, message } = parsed.problem;
  return { type: "broken", problem: `plugin.yaml, line ${line}: ${message}` };
}

function manifestOf(tree: Readonly<Record<string, unknown>>, fallbackName: string): ManifestAnswer {
  const name = words(tree.name) || fallbackName;
  if (name.length > 100 || !NAME.test(name))
    return { type: "broken", problem: `plugin.yaml: "${name}" is not a valid name (letters, digits, - _ . and one /)` };
  const kind = words(tree.kind) || "standalone";
  if (!isKind(kind)) {
    return { type: "broken", problem: `plugin.yaml: kind "${kind}" is unknown; there are ${KINDS.join(", ")}` };
  }
  return {
    type: "manifest",
    manifest: {
      name,
      version: words(tree.version),
      description: words(tree.description),
      author: words(tree.author),
      kind,
      requiresEnv: names(tree.requires_env),
      providesTools: names(tree.provides_tools),
      providesHooks: names(tree.provides_hooks),
      providesMemory: names(tree.provides_memory),
      providesEngines: names(tree.provides_context_engine),
      main: words(tree.main) || null,
    },
  };
}

const isKind = (value: string): value is PluginKind => KINDS.some((kind) => kind === value);

function words(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
}

/** A list of names, a single one, or entries with a `name` among other things. */
function names(value: unknown): string[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  return list.map((entry) => words(isRecord(entry) ? entry.name : entry)).filter((name) => name !== "");
}
