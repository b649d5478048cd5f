// Settings that skills declare: `skills.config.<key>` in config.yaml.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseFrontMatter } from "../kit/front-matter.ts";
import type { FrontMatter } from "../kit/front-matter-plain.ts";
import { loadCatalogue, unshadowed } from "./catalogue.ts";
import { hermesFields, itemsField, mapField, textField } from "./read-entry.ts";
import { disabledSkills, fitsOs, isDisabled } from "./requirements.ts";
import { expandVariables, type SkillsContext } from "./roots.ts";

interface SkillSetting {
  readonly key: string;
  readonly description: string;
  readonly prompt: string;
  readonly default: string;
}

/** Entries without key or description, and repeated keys, are dropped. */
export function declaredSettings(fields: FrontMatter): readonly SkillSetting[] {
  const byKey = new Map<string, SkillSetting>();
  for (const item of itemsField(hermesFields(fields).config)) {
    const given = mapField(item);
    const key = textField(given.key);
    const description = textField(given.description);
    if (key === "" || description === "" || byKey.has(key)) continue;
    const prompt = textField(given.prompt) || description;
    byKey.set(key, { key, description, prompt, default: textField(given.default) });
  }
  return [...byKey.values()];
}

/** The value in force; empty when neither the user nor the skill says anything. */
export function settingValue(setting: SkillSetting, context: SkillsContext): string {
  return expandVariables(givenValue(setting, context) ?? setting.default, context);
}

/** What the user has set; null for nothing. */
function givenValue({ key }: SkillSetting, context: SkillsContext): string | null {
  const given = lookUp(context.config().skills.config, key);
  return given === undefined || given === null || given === "" ? null : String(given);
}

/** A key with dots is one key or a path, whichever is there. */
function lookUp(tree: Readonly<Record<string, unknown>>, key: string): unknown {
  if (Object.hasOwn(tree, key)) return tree[key];
  let node: unknown = tree;
  for (const part of key.split(".")) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, part)) return undefined;
    node = (node as Record<string, unknown>)[part]; // has it
  }
  return node;
}

// The settings that all skills together declare, and what the user has said about them.

interface DeclaredSetting {
  /** The first skill that declares it. */
  readonly skill: string;
  readonly setting: SkillSetting;
  /** The user has set it. */
  readonly isSet: boolean;
  /** In force now, the skill's own default included; empty when there is none. */
  readonly value: string;
}

/** Of the skills that can be used on this platform; each key once, by skill. */
export async function allSettings(context: SkillsContext, platform: string): Promise<readonly DeclaredSetting[]> {
  const disabled = disabledSkills(context.config(), platform);
  const byKey = new Map<string, DeclaredSetting>();
  for (const skill of unshadowed(await loadCatalogue(context))) {
    if (isDisabled(skill, disabled) || !fitsOs(skill.platforms)) continue;
    const text = await readFile(join(skill.dir, "SKILL.md"), "utf8").catch(() => ""); // hermes skills doctor reports it
    for (const setting of declaredSettings(parseFrontMatter(text).fields)) {
      if (byKey.has(setting.key)) continue;
      const isSet = givenValue(setting, context) !== null;
      byKey.set(setting.key, { skill: skill.name, setting, isSet, value: settingValue(setting, context) });
    }
  }
  return [...byKey.values()];
}
