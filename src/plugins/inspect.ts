// What plugins there are and how they stand, for people. No code of theirs runs.

import { join } from "node:path";
import type { Config } from "../home/config/schema.ts";
import { isSafeMode } from "../home/paths.ts";
import { type FoundPlugin, findPlugins, namesOf } from "./find.ts";
import { type Outline, OutlineStore, type Standing, stampOf, standingOf } from "./outlines.ts";
import { type PluginHome, pluginRoots } from "./shared.ts";

export interface PluginRow {
  readonly plugin: FoundPlugin;
  readonly standing: Standing;
  /** `on`, `off`, `failed` or `unusable`. */
  readonly state: "on" | "off" | "failed" | "unusable";
  /** In a few words, why. */
  readonly note: string;
  readonly missingEnv: readonly string[];
  /** What it registered when it last ran; null when it never did. */
  readonly outline: Outline | null;
}

export async function inspectPlugins(request: PluginHome): Promise<readonly PluginRow[]> {
  const { home } = request;
  const config = home.config();
  const outlines = new OutlineStore(home.paths.at("cache", "plugin_outlines.json"));
  const chosen = new Map([
    ["memory.provider", config.memory.provider.trim()],
    ["context.engine", config.context.engine],
  ]);
  const safe = isSafeMode(request.home);
  const roots = pluginRoots(request);
  const found = await findPlugins(roots);
  const rows = await Promise.all(
    found.map(async (plugin): Promise<PluginRow> => {
      const standing = standingOf(plugin, config.plugins);
      const stamp = await stampOf(plugin, { entries: config.plugins.entries, env: (name) => home.env(name) });
      const failure = standing.type === "on" ? await outlines.failureOf(plugin.folder, stamp) : null;
      return {
        plugin,
        standing,
        ...(safe && standing.type !== "unusable"
          ? { state: "off", note: "HERMES_SAFE_MODE is set" }
          : stateOf(plugin, standing, failure, chosen)),
        missingEnv: plugin.manifest.requiresEnv.filter((name) => !home.env(name)),
        outline: await outlines.get(plugin.folder, stamp),
      };
    }),
  );
  const there = new Set(found.map(({ key }) => key));
  const heldBack = roots.project === null ? await projectPlugins(request) : [];
  return [...rows, ...heldBack.filter(({ plugin }) => !there.has(plugin.key))];
}

/** Plugins of a folder that may not load here, with what would change that. With projects switched off only those that are asked for. */
async function projectPlugins({ home, cwd }: PluginHome): Promise<readonly PluginRow[]> {
  const none = { bundled: null, home: "", packages: [] };
  const found = await findPlugins({ ...none, project: join(cwd, ".hermes", "plugins") });
  const { project_enabled, enabled = [] } = home.config().plugins;
  const asked = new Set(enabled.map(String));
  const folder = home.display(home.folders.standing(cwd).folder);
  const note = project_enabled
    ? `${folder} is not trusted; hermes trust add ${folder}`
    : "project plugins are disabled; hermes config set plugins.project_enabled true";
  return found
    .filter((plugin) => project_enabled || namesOf(plugin).some((name) => asked.has(name)))
    .map((plugin) => ({
      plugin,
      standing: { type: "unusable", why: note },
      state: "unusable",
      note,
      missingEnv: [],
      outline: null,
    }));
}

/** Names in `plugins.enabled` that belong to no plugin that is there. */
export function missingPlugins(rows: readonly PluginRow[], { plugins }: Config): readonly string[] {
  const there = new Set(rows.flatMap(({ plugin }) => namesOf(plugin)));
  return (plugins.enabled ?? []).map(String).filter((name) => !there.has(name));
}

function stateOf(
  plugin: FoundPlugin,
  standing: Standing,
  failure: string | null,
  chosen: ReadonlyMap<string, string>,
): Pick<PluginRow, "state" | "note"> {
  if (standing.type === "unusable") return { state: "unusable", note: standing.why };
  if (standing.type === "off") return { state: "off", note: standing.why };
  if (failure !== null) return { state: "failed", note: failure };
  if (standing.type === "on")
    return { state: "on", note: plugin.hides ? `replaces the one that is ${plugin.hides}` : "" };
  const { setting } = standing;
  const names = [
    plugin.manifest.name,
    plugin.key.split("/").at(-1),
    ...plugin.manifest.providesMemory,
    ...plugin.manifest.providesEngines,
  ];
  if (names.includes(chosen.get(setting))) return { state: "on", note: `chosen by ${setting}` };
  return { state: "off", note: `used when ${setting} selects it` };
}

const MARKS = { on: "✓", off: "✗", failed: "!", unusable: "–" } as const;

export function describePlugin({ plugin, state, note, missingEnv, outline }: PluginRow): string {
  const { manifest, key, source } = plugin;
  const needs = missingEnv.length > 0 && state !== "unusable" ? `needs ${missingEnv.join(", ")}` : "";
  const about = [state === "unusable" || state === "failed" ? "" : state, note, needs]
    .filter((text) => text !== "")
    .join("; ");
  const offers = [
    listed("tools", outline?.tools.map(({ name }) => name) ?? manifest.providesTools),
    listed("hooks", outline?.hooks ?? manifest.providesHooks),
    listed("commands", outline?.commands.map(({ name }) => `/${name}`) ?? []),
  ].filter((text) => text !== "");
  return [
    `${MARKS[state]} ${key}${manifest.version === "" ? "" : ` ${manifest.version}`} (${source}): ${about}`,
    ...(manifest.description === "" ? [] : [`    ${manifest.description}`]),
    ...(offers.length === 0 ? [] : [`    ${offers.join("; ")}`]),
  ].join("\n");
}

const listed = (what: string, names: readonly string[]) => (names.length === 0 ? "" : `${what}: ${names.join(", ")}`);
