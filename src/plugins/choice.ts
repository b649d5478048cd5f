// Which of the plugins that are there may run: those the user named, without those the user switched off.
import { isRecord } from "../kit/json.ts";
import { type FoundPlugin, namesOf, SINGLE_CATEGORIES } from "./find.ts";

export interface PluginSettings {
  readonly enabled?: readonly unknown[] | undefined;
  readonly disabled: readonly unknown[];
}

export type Standing =
  | { readonly type: "on" }
  | { readonly type: "off"; readonly why: string }
  /** In use when a setting names it. */
  | { readonly type: "single"; readonly setting: string }
  | { readonly type: "unusable"; readonly why: string };

export function standingOf(plugin: FoundPlugin, settings: PluginSettings): Standing {
  if (plugin.problem !== null) return { type: "unusable", why: plugin.problem };
  const named = (list: readonly unknown[]) => namesOf(plugin).some((name) => list.includes(name));
  if (named(settings.disabled)) return { type: "off", why: "switched off (plugins.disabled)" };
  const setting = settingOf(plugin);
  if (setting !== null) return { type: "single", setting };
  const { kind } = plugin.manifest;
  if (plugin.source === "bundled" && (kind === "backend" || kind === "platform")) return { type: "on" };
  if (named(settings.enabled ?? [])) return { type: "on" };
  return { type: "off", why: "not switched on" };
}

/** The setting that chooses it, for plugins of which one at a time is in use. */
export function settingOf({ category, manifest }: FoundPlugin): string | null {
  if (category !== null && Object.hasOwn(SINGLE_CATEGORIES, category)) return SINGLE_CATEGORIES[category] ?? null;
  if (manifest.kind !== "exclusive") return null;
  return manifest.providesEngines.length > 0 ? "context.engine" : "memory.provider";
}

/** What `plugins.entries` says of it, by any of its names. */
export function entryOf(
  entries: Readonly<Record<string, unknown>>,
  plugin: FoundPlugin,
): Readonly<Record<string, unknown>> {
  return (
    namesOf(plugin)
      .map((name) => entries[name])
      .find(isRecord) ?? {}
  );
}
