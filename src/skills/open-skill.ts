// From a name to an opened skill: found, allowed here, read. Views, slash commands and preloading all come this way.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseFrontMatter } from "../kit/front-matter.ts";
import type { Parsed } from "../kit/front-matter-plain.ts";
import { loadCatalogue, type Skill } from "./catalogue.ts";
import { disabledSkills, fitsOs, isDisabled } from "./conditions.ts";
import { offeredSkills } from "./list.ts";
import { type InlineShell, preprocess } from "./preprocess.ts";
import { trustOf } from "./provenance.ts";
import { pathName, resolveSkill } from "./resolve.ts";
import type { SkillsPlace } from "./roots.ts";
import { failure, type SkillResult } from "./run.ts";

/** What a surface that shows skills brings along beside the place. */
export interface Opening {
  readonly platform: string;
  readonly sessionId?: string | undefined;
  /** Runs the commands of a skill's text when `skills.inline_shell` is on. */
  readonly inlineShell?: InlineShell | undefined;
}

export interface OpenedSkill {
  readonly type: "opened";
  readonly skill: Skill;
  readonly shadows: readonly string[];
  /** As it is on disk. */
  readonly text: string;
  readonly parsed: Parsed;
}

export type OpenSkillResult = OpenedSkill | { readonly type: "refused"; readonly result: SkillResult };

const LISTED_NAMES = 20;

export async function openSkill(name: string, place: SkillsPlace, opening: Opening): Promise<OpenSkillResult> {
  const refused = (...args: Parameters<typeof failure>) => ({ type: "refused", result: failure(...args) }) as const;
  const found = await resolveSkill(name, await loadCatalogue(place), place);
  if (found.type === "bad_name") return refused("bad_name", `'${name}': ${found.reason}.`);
  if (found.type === "ambiguous") {
    const matches = found.matches.map(pathName);
    return refused("ambiguous", `Several skills are called '${name}'. Use the category path.`, { matches });
  }
  if (found.type === "not_found") {
    const names = (await offeredSkills(place, opening.platform)).map((skill) => skill.name);
    return refused("not_found", `There is no skill '${name}'.`, { available_skills: names.slice(0, LISTED_NAMES) });
  }
  const { skill, shadows } = found;
  if (!fitsOs(skill.platforms)) {
    const only = skill.platforms.join(", ");
    return refused("unsupported_platform", `Skill '${skill.name}' is for ${only} only.`, {
      readiness_status: "unsupported",
    });
  }
  if (isDisabled(skill, disabledSkills(place.config(), opening.platform))) {
    const how = "Its user can allow it with `hermes skills config`.";
    return refused("disabled", `Skill '${skill.name}' is switched off. ${how}`);
  }
  try {
    const text = await readFile(join(skill.dir, "SKILL.md"), "utf8");
    return { type: "opened", skill, shadows, text, parsed: parseFrontMatter(text) };
  } catch (error) {
    return refused("unreadable", `SKILL.md of '${skill.name}' cannot be read: ${reason(error)}`);
  }
}

/** The text as the model reads it. */
export async function skillContent(
  { skill, text }: Pick<OpenedSkill, "skill" | "text">,
  place: SkillsPlace,
  opening: Opening,
): Promise<string> {
  const { template_vars, inline_shell, inline_shell_timeout } = place.config().skills;
  // What strangers wrote never runs by being looked at.
  const run = inline_shell && (await trustOf(skill, place)) !== "community" ? opening.inlineShell : undefined;
  return preprocess(text, {
    variables: template_vars,
    skillDir: skill.dir,
    sessionId: opening.sessionId,
    shell: run && { run, timeoutSeconds: inline_shell_timeout },
  });
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
