// What a skill needs from its user before it works: variables and credential files.
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { FrontMatter, FrontMatterValue } from "../kit/front-matter-plain.ts";
import { flagField, itemsField, listField, mapField, textField } from "./fields.ts";
import type { SkillsPlace } from "./roots.ts";

export interface RequiredVariable {
  readonly name: string;
  readonly prompt: string;
  readonly help?: string;
  readonly required_for?: string;
  readonly optional?: true;
}

export interface CredentialFile {
  /** Below the home. */
  readonly path: string;
  readonly description: string;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Old and new spellings together, each name once, invalid names dropped. */
export function requiredVariables(fields: FrontMatter): readonly RequiredVariable[] {
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

export function credentialFiles(fields: FrontMatter): readonly CredentialFile[] {
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

export async function checkRequirements(fields: FrontMatter, place: SkillsPlace): Promise<Readiness> {
  const variables = requiredVariables(fields);
  const files = credentialFiles(fields);
  const there = await Promise.all(files.map(({ path }) => exists(join(place.paths.dir, path))));
  return {
    variables,
    missingVariables: variables.filter(({ name, optional }) => !optional && !place.env(name)),
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

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
