// What a plugin registered when it last ran. As long as its files stay the same, a session offers its tools and listens for it without
// running any of its code.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import { isRecord, listOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import { type FoundPlugin, namesOf, SINGLE_CATEGORIES } from "./find.ts";
import type { Registrations } from "./registrations.ts";

const anything = (value: unknown): value is Readonly<Record<string, unknown>> => isRecord(value);
const flag = (value: unknown): value is boolean => typeof value === "boolean";
const count = (value: unknown): value is number => typeof value === "number";

const toolOutline = record({
  name: text,
  description: text,
  parameters: optional(anything),
  toolset: optional(text),
  emoji: optional(text),
  requiresEnv: optional(listOf(text)),
  maxResultChars: optional(count),
  deferred: optional(flag),
  timeout: optional(count),
  override: optional(flag),
  /** It has to be asked whether it is available. */
  asks: flag,
});
const named = record({ name: text, description: text, argsHint: optional(text) });
const outline = record({
  stamp: text,
  tools: listOf(toolOutline),
  hooks: listOf(text),
  commands: listOf(named),
  cliCommands: listOf(named),
  memories: listOf(text),
  engines: listOf(text),
  providers: listOf(record({ kind: text, name: text })),
  platforms: listOf(text),
  skills: listOf(text),
});
const failure = record({ stamp: text, problem: text });
const file = record({ version: count, plugins: anything, failures: optional(anything) });

interface Known {
  readonly plugins: Record<string, unknown>;
  readonly failures: Record<string, unknown>;
}

export type Outline = ShapeOf<typeof outline>;
export type ToolOutline = ShapeOf<typeof toolOutline>;

const VERSION = 1;
const MAX_FILES = 500;

export function outlineOf(taken: Registrations, stamp: string): Outline {
  return {
    stamp,
    tools: taken.tools.map(({ handler: _, available, ...tool }) => ({ ...tool, asks: available !== undefined })),
    hooks: [...new Set(taken.hooks.map(({ event }) => event))],
    commands: taken.commands.map(({ run: _, ...command }) => command),
    cliCommands: taken.cliCommands.map(({ name, description }) => ({ name, description })),
    memories: taken.memories.map(({ name }) => name),
    engines: taken.engines.map(({ name }) => name),
    providers: taken.providers.map(({ kind, name }) => ({ kind, name })),
    platforms: taken.platforms.map(({ name }) => name),
    skills: [...taken.skills],
  };
}

interface StampFacts {
  /** Of all plugins. */
  readonly entries: Readonly<Record<string, unknown>>;
  env(name: string): string | undefined;
}

/** Changes with everything that could change what it registers: its files, its settings, and which of its variables are there. */
export async function stampOf(plugin: FoundPlugin, { entries, env }: StampFacts): Promise<string> {
  const { folder, manifest } = plugin;
  const there = manifest.requiresEnv.filter((name) => env(name) !== undefined);
  const hash = createHash("sha256").update(JSON.stringify([entryOf(entries, plugin), there]));
  let left = MAX_FILES;
  const walk = async (at: string, lead: string): Promise<void> => {
    const entries = await readdir(at, { withFileTypes: true }).catch(() => []); // gone meanwhile
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name === "node_modules" || entry.name.startsWith(".") || left <= 0) continue;
      const path = join(at, entry.name);
      if (entry.isDirectory()) await walk(path, `${lead}${entry.name}/`);
      else if (/\.(?:[cm]?[jt]s|json|ya?ml)$/.test(entry.name)) {
        left--;
        const facts = await stat(path).catch(() => null); // gone meanwhile
        hash.update(`${lead}${entry.name}\n${facts?.mtimeMs}\n${facts?.size}\n`);
      }
    }
  };
  await walk(folder, "");
  return hash.digest("hex").slice(0, 32);
}

/** The outlines of a home, in one file of its cache. A file that cannot be read or written costs time, nothing else. */
export class OutlineStore {
  readonly #path: string;
  #known: Promise<Known> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  async get(folder: string, stamp: string): Promise<Outline | null> {
    const known = (await this.#read()).plugins[folder];
    return outline(known) && known.stamp === stamp ? known : null;
  }

  /** Why it could not be loaded when it was last tried. */
  async failureOf(folder: string, stamp: string): Promise<string | null> {
    const known = (await this.#read()).failures[folder];
    return failure(known) && known.stamp === stamp ? known.problem : null;
  }

  async set(folder: string, known: Outline | { readonly stamp: string; readonly problem: string }): Promise<void> {
    const { plugins, failures } = await this.#read();
    const [into, outOf] = "problem" in known ? [failures, plugins] : [plugins, failures];
    if (JSON.stringify(into[folder]) === JSON.stringify(known)) return;
    into[folder] = known;
    delete outOf[folder];
    await mkdir(dirname(this.#path), { recursive: true });
    await writeFileAtomic(this.#path, JSON.stringify({ version: VERSION, plugins, failures }));
  }

  #read(): Promise<Known> {
    this.#known ??= readFile(this.#path, "utf8").then(
      (json) => {
        const parsed = parseAs(json, file);
        if (parsed?.version !== VERSION) return { plugins: {}, failures: {} };
        return { plugins: { ...parsed.plugins }, failures: { ...parsed.failures } };
      },
      () => ({ plugins: {}, failures: {} }), // none yet
    );
    return this.#known;
  }
}

// Which of the plugins that are there may run: those the user named, without those the user switched off.

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
  if (named(settings.disabled)) return { type: "off", why: "disabled (plugins.disabled)" };
  const setting = settingOf(plugin);
  if (setting !== null) return { type: "single", setting };
  const { kind } = plugin.manifest;
  if (plugin.source === "bundled" && (kind === "backend" || kind === "platform")) return { type: "on" };
  if (named(settings.enabled ?? [])) return { type: "on" };
  return { type: "off", why: "not enabled" };
}

/** The setting that chooses it, for plugins of which one at a time is in use. */
function settingOf({ category, manifest }: FoundPlugin): string | null {
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
