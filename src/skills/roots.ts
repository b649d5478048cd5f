// Where skills live: the home's own folder first, then what the settings add.

import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../home/config/schema.ts";
import type { Logger } from "../home/log.ts";
import { realPathNow } from "../home/looks.ts";
import type { HomePaths } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { isDirectory, isWithin } from "../kit/files.ts";

/** The home whose skills are meant. Read on every call: one process may serve several profiles. */
export interface SkillsContext {
  readonly paths: HomePaths;
  config(): Config;
  env(name: string): string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Folders of skills provided by plugins, by namespace. */
  readonly plugins?: ReadonlyMap<string, readonly string[]>;
}

export interface SkillRoot {
  readonly dir: string;
  readonly kind: "local" | "external" | "plugin";
  /** Plugin skills are asked for as `namespace:name`. */
  readonly namespace?: string;
}

/** What writes the counts of use that wait, by folder of skills. `usage.ts` fills it, which most runs never load. */
export const waitingUsage = new Map<string, () => Promise<void>>();

/** Never rejects: a lost count breaks nothing. */
export async function flushUsage({ paths }: Pick<SkillsContext, "paths">): Promise<void> {
  await waitingUsage.get(paths.skillsDir)?.();
}

/** The roots in the order they are searched. Missing, doubled and local-equal folders are left out. */
export async function skillRoots(context: SkillsContext): Promise<readonly SkillRoot[]> {
  const local = context.paths.skillsDir;
  const seen = new Set([realOr(local)]);
  const roots: SkillRoot[] = [{ dir: local, kind: "local" }];
  for (const given of externalDirs(context.config())) {
    const dir = expandDir(given, context);
    const real = realOr(dir);
    if (seen.has(real) || !(await isDirectory(dir))) continue;
    seen.add(real);
    roots.push({ dir, kind: "external" });
  }
  return roots;
}

/** Around the folders a plugin registered: a skill is known by its path below a root. */
export function pluginRoots(context: SkillsContext, namespace: string): readonly SkillRoot[] {
  const around = new Set((context.plugins?.get(namespace) ?? []).map((folder) => dirname(folder)));
  return [...around].map((dir) => ({ dir, kind: "plugin", namespace }));
}

/** A neighbour of what the plugin registered is not part of it. */
export function isRegistered({ plugins }: SkillsContext, namespace: string, dir: string): boolean {
  return (plugins?.get(namespace) ?? []).some((folder) => isWithin(dir, folder));
}

/** `~` and `${VAR}` filled in; relative paths are relative to the home. */
export function expandDir(given: string, context: Pick<SkillsContext, "paths" | "env">): string {
  const filled = expandVariables(given.trim(), context);
  return resolve(context.paths.dir, filled);
}

export function expandVariables(text: string, context: Pick<SkillsContext, "env">): string {
  const home = context.env("HOME") || homedir();
  const filled = text.replace(/\$\{([A-Za-z_]\w*)\}/g, (whole, name: string) => context.env(name) ?? whole);
  if (filled === "~") return home;
  return filled.startsWith("~/") ? join(home, filled.slice(2)) : filled;
}

function externalDirs(config: Config): readonly string[] {
  return config.skills.external_dirs.filter((dir): dir is string => typeof dir === "string" && dir.trim() !== "");
}

/** A folder may not be there yet. */
const realOr = (path: string) => realPathNow(path) ?? path;
