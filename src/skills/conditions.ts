// Whether a skill is for this machine, this platform and these tools.
import { access } from "node:fs/promises";
import type { Config } from "../home/config/schema.ts";
import type { SkillConditions, SkillEntry } from "./entry.ts";

const OS_NAMES: Readonly<Record<string, readonly string[]>> = {
  darwin: ["macos", "darwin"],
  win32: ["windows", "win32"],
  linux: ["linux"],
  android: ["linux"], // Termux
};
const KNOWN = new Set(["macos", "darwin", "linux", "windows", "win32"]);

/** Tags nobody knows do not count; if none is left, the skill is for every machine. */
export function fitsOs(platforms: readonly string[], os: NodeJS.Platform = process.platform): boolean {
  const tags = platforms.map((tag) => tag.toLowerCase());
  if (tags.includes("all") || tags.includes("any")) return true;
  const known = tags.filter((tag) => KNOWN.has(tag));
  return known.length === 0 || known.some((tag) => (OS_NAMES[os] ?? [os]).includes(tag));
}

const ENVIRONMENTS = new Set(["kanban", "docker", "s6"]);

/** Hides from offers only: whoever asks for the skill by name gets it. */
export function fitsEnvironment(environments: readonly string[], active: ReadonlySet<string>): boolean {
  const tags = environments.map((tag) => tag.toLowerCase());
  return tags.length === 0 || tags.some((tag) => !ENVIRONMENTS.has(tag) || active.has(tag));
}

/** What of it surrounds this process. */
export async function activeEnvironments(env: (name: string) => string | undefined): Promise<ReadonlySet<string>> {
  const active = new Set<string>();
  if (env("HERMES_KANBAN_TASK")) active.add("kanban");
  if (env("HERMES_CONTAINER") || (await exists("/.dockerenv"))) active.add("docker");
  if (await exists("/run/s6")) active.add("s6");
  return active;
}

export interface LoadedTools {
  readonly tools: ReadonlySet<string>;
  readonly toolsets: ReadonlySet<string>;
}

export function fitsTools(conditions: SkillConditions, { tools, toolsets }: LoadedTools): boolean {
  return (
    conditions.requiresToolsets.every((name) => toolsets.has(name)) &&
    conditions.requiresTools.every((name) => tools.has(name)) &&
    !conditions.fallbackForToolsets.some((name) => toolsets.has(name)) &&
    !conditions.fallbackForTools.some((name) => tools.has(name))
  );
}

/** Names switched off on a platform: the global list and the platform's own, together. */
export function disabledSkills(config: Config, platform: string): ReadonlySet<string> {
  const { disabled, platform_disabled } = config.skills;
  const own: Readonly<Record<string, unknown>> = platform_disabled;
  return new Set([...namesIn(disabled), ...namesIn(Object.hasOwn(own, platform) ? own[platform] : [])]);
}

export const isDisabled = ({ name, dirName }: Pick<SkillEntry, "name" | "dirName">, names: ReadonlySet<string>) =>
  names.has(name) || names.has(dirName);

function namesIn(value: unknown): readonly string[] {
  const items = Array.isArray(value) ? value : [value];
  return items.filter((item): item is string => typeof item === "string").map((item) => item.trim());
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
