// What plugins there are and how they stand, for people. No code of theirs runs.

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
  const found = await findPlugins(pluginRoots(request));
  return Promise.all(
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
    return { state: "on", note: plugin.hides ? `in place of the one that is ${plugin.hides}` : "" };
  const { setting } = standing;
  const names = [
    plugin.manifest.name,
    plugin.key.split("/").at(-1),
    ...plugin.manifest.providesMemory,
    ...plugin.manifest.providesEngines,
  ];
  if (names.includes(chosen.get(setting))) return { state: "on", note: `chosen by ${setting}` };
  return { state: "off", note: `in use when ${setting} names it` };
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
