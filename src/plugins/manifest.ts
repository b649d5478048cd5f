// plugin.yaml: what a plugin says of itself. It is read before any of its code.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readSimpleYaml } from "../home/config/simple-yaml.ts";
import { loadYaml, parseText } from "../home/config/yaml-text.ts";
import { isRecord } from "../kit/json.ts";

export const KINDS = ["standalone", "backend", "exclusive", "platform", "model-provider"] as const;
export type PluginKind = (typeof KINDS)[number];

/** As npm packages are called; a name is a folder too, so no part of it begins with a dot. */
const NAME = /^@?\w[\w.-]*(?:\/\w[\w.-]*)?$/;

export interface Manifest {
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

export type ManifestAnswer =
  | { readonly type: "manifest"; readonly manifest: Manifest }
  | { readonly type: "broken"; readonly problem: string }
  | { readonly type: "absent" };

/** Never rejects. `fallbackName` is the name of a plugin whose manifest gives none. */
export async function readManifest(folder: string, fallbackName: string): Promise<ManifestAnswer> {
  let text: string;
  try {
    text = await readFile(join(folder, "plugin.yaml"), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return { type: "absent" };
    return { type: "broken", problem: `plugin.yaml cannot be read: ${error instanceof Error ? error.message : error}` };
  }
  const simple = readSimpleYaml(text);
  if (simple) return manifestOf(simple, fallbackName);
  const parsed = parseText(await loadYaml(), text);
  if (parsed.ok) return manifestOf(parsed.tree, fallbackName);
  const { line, message } = parsed.problem;
  return { type: "broken", problem: `plugin.yaml, line ${line}: ${message}` };
}

export function manifestOf(tree: Readonly<Record<string, unknown>>, fallbackName: string): ManifestAnswer {
  const name = words(tree.name) || fallbackName;
  if (name.length > 100 || !NAME.test(name))
    return { type: "broken", problem: `plugin.yaml: "${name}" is no name (letters, digits, - _ . and one /)` };
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

/** A list of names, a single one, or entries with a `name` beside other things. */
function names(value: unknown): string[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  return list.map((entry) => words(isRecord(entry) ? entry.name : entry)).filter((name) => name !== "");
}
