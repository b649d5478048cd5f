// What a skill needs from its user before it works: variables and credential files.

import { join } from "node:path";
import type { Config } from "../home/config/schema.ts";
import { exists } from "../kit/files.ts";
import type { FrontMatter, FrontMatterValue } from "../kit/front-matter-plain.ts";
import { lazy } from "../kit/lazy.ts";
import { flagField, itemsField, listField, mapField, textField } from "./read-entry.ts";
import type { SkillsContext } from "./roots.ts";
import type { SkillRun } from "./run.ts";
import type { SkillConditions, SkillEntry } from "./snapshot.ts";
import type { ViewPorts } from "./view.ts";

interface RequiredVariable {
  readonly name: string;
  readonly prompt: string;
  readonly help?: string;
  readonly required_for?: string;
  readonly optional?: true;
}

interface CredentialFile {
  /** Below the home. */
  readonly path: string;
  readonly description: string;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Old and new spellings together, each name once, invalid names dropped. */
function requiredVariables(fields: FrontMatter): readonly RequiredVariable[] {
  const setup = mapField(fields.setup);
  const generalHelp = textField(setup.help);
  const given = [
    ...itemsField(fields.required_environment_variables).map((item) => readVariable(item, "")),
    ...listField(mapField(fields.prerequisites).env_vars).map((name) => readVariable(name, generalHelp)),
    ...itemsField(setup.collect_secrets).map((item) => readVariable(item, generalHelp)),
  ];
  const byName = new Map<string, RequiredVariable>();
  for (const variable of given) {
    if (variable && !byName.has(variable.name)) byName.set(variable.name, variable);
  }
  return [...byName.values()];
}

function readVariable(item: FrontMatterValue, generalHelp: string): RequiredVariable | null {
  const fields = typeof item === "string" ? { name: item } : mapField(item);
  const name = textField(fields.name) || textField(fields.env_var);
  if (!VARIABLE.test(name)) return null;
  const help = textField(fields.help) || textField(fields.provider_url) || textField(fields.url) || generalHelp;
  const requiredFor = textField(fields.required_for);
  return {
    name,
    prompt: textField(fields.prompt) || `Enter value for ${name}`,
    ...(help !== "" && { help }),
    ...(requiredFor !== "" && { required_for: requiredFor }),
    ...(flagField(fields.optional) && { optional: true as const }),
  };
}

function credentialFiles(fields: FrontMatter): readonly CredentialFile[] {
  return itemsField(fields.required_credential_files).flatMap((item) => {
    const given = typeof item === "string" ? { path: item } : mapField(item);
    const path = textField(given.path);
    const outside = path === "" || /^[/\\~]|^[A-Za-z]:/.test(path) || path.split(/[/\\]/).includes("..");
    return outside ? [] : [{ path, description: textField(given.description) }];
  });
}

export interface Readiness {
  readonly variables: readonly RequiredVariable[];
  readonly missingVariables: readonly RequiredVariable[];
  readonly missingFiles: readonly string[];
}

export async function checkRequirements(fields: FrontMatter, context: SkillsContext): Promise<Readiness> {
  const variables = requiredVariables(fields);
  const files = credentialFiles(fields);
  const there = await Promise.all(files.map(({ path }) => exists(join(context.paths.dir, path))));
  return {
    variables,
    missingVariables: variables.filter(({ name, optional }) => !optional && !context.env(name)),
    missingFiles: files.filter((_, index) => !there[index]).map(({ path }) => path),
  };
}

/** One sentence about what is missing; null when nothing is. */
export function setupNote({ missingVariables, missingFiles }: Readiness): string | null {
  const parts = [
    ...(missingVariables.length > 0 ? [`set ${missingVariables.map(({ name }) => name).join(", ")}`] : []),
    ...(missingFiles.length > 0 ? [`put ${missingFiles.join(", ")} into the home directory`] : []),
  ];
  return parts.length > 0 ? `Before everything in this skill works: ${parts.join("; ")}.` : null;
}

// Whether a skill is for this machine, this platform and these tools.

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
  if (env("HERMES_CONTAINER") || (await inDocker())) active.add("docker");
  if (await underS6()) active.add("s6");
  return active;
}

// Neither comes or goes while we run.
const inDocker = lazy(() => exists("/.dockerenv"));
const underS6 = lazy(() => exists("/run/s6"));

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

// Getting a skill ready as it is loaded: missing secrets are asked for where a user can type them unseen.

/** The skill loads in every case; the values never reach the model. */
export async function prepareSkill(
  fields: FrontMatter,
  context: SkillsContext,
  run: SkillRun,
  ports: Pick<ViewPorts, "setEnv">,
): Promise<{ readonly readiness: Readiness; readonly skipped: boolean }> {
  let readiness = await checkRequirements(fields, context);
  let skipped = false;
  if (readiness.missingVariables.length > 0 && run.interactive && run.chat === undefined && ports.setEnv) {
    for (const { name, prompt, help } of readiness.missingVariables) {
      const question = { kind: "secret", name, prompt: help === undefined ? prompt : `${prompt} (${help})` } as const;
      const { text } = await run.ask(question, run.signal);
      if (text === null || text.trim() === "") skipped = true;
      else await ports.setEnv(name, text.trim());
    }
    readiness = await checkRequirements(fields, context);
  }
  return { readiness, skipped };
}
