// The settings that all skills together declare, and what the user has said about them.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseFrontMatter } from "../kit/front-matter.ts";
import { loadCatalogue, unshadowed } from "./catalogue.ts";
import { disabledSkills, fitsOs, isDisabled } from "./conditions.ts";
import type { SkillsPlace } from "./roots.ts";
import { declaredSettings, givenValue, type SkillSetting, settingValue } from "./settings.ts";

export interface DeclaredSetting {
  /** The first skill that declares it. */
  readonly skill: string;
  readonly setting: SkillSetting;
  /** The user has set it. */
  readonly isSet: boolean;
  /** In force now, the skill's own default included; empty when there is none. */
  readonly value: string;
}

/** Of the skills that can be used on this platform; each key once, by skill. */
export async function allSettings(place: SkillsPlace, platform: string): Promise<readonly DeclaredSetting[]> {
  const disabled = disabledSkills(place.config(), platform);
  const byKey = new Map<string, DeclaredSetting>();
  for (const skill of unshadowed(await loadCatalogue(place))) {
    if (isDisabled(skill, disabled) || !fitsOs(skill.platforms)) continue;
    const text = await readFile(join(skill.dir, "SKILL.md"), "utf8").catch(() => ""); // hermes skills doctor tells
    for (const setting of declaredSettings(parseFrontMatter(text).fields)) {
      if (byKey.has(setting.key)) continue;
      const isSet = givenValue(setting, place) !== null;
      byKey.set(setting.key, { skill: skill.name, setting, isSet, value: settingValue(setting, place) });
    }
  }
  return [...byKey.values()];
}
