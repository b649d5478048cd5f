// Settings that skills declare: `skills.config.<key>` in config.yaml.
import type { FrontMatter } from "../kit/front-matter-plain.ts";
import { hermesFields, itemsField, mapField, textField } from "./fields.ts";
import { expandVariables, type SkillsPlace } from "./roots.ts";

export interface SkillSetting {
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
export function settingValue(setting: SkillSetting, place: SkillsPlace): string {
  return expandVariables(givenValue(setting, place) ?? setting.default, place);
}

/** What the user has set; null for nothing. */
export function givenValue({ key }: SkillSetting, place: SkillsPlace): string | null {
  const given = lookUp(place.config().skills.config, key);
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
