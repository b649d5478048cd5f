// From a name to an opened skill: found, allowed here, read. Views, slash commands and preloading all come this way.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { truncateCodePoints } from "../kit/code-points.ts";
import { messageOf } from "../kit/errors.ts";
import { parseFrontMatter } from "../kit/front-matter.ts";
import type { Parsed } from "../kit/front-matter-plain.ts";
import { loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { compare } from "./files.ts";
import { type InlineShell, preprocess } from "./preprocess.ts";
import { trustOf } from "./provenance.ts";
import { activeEnvironments, disabledSkills, fitsEnvironment, fitsOs, isDisabled } from "./requirements.ts";
import { pathName, resolveSkill } from "./resolve.ts";
import type { SkillsContext } from "./roots.ts";
import { failure, type SkillResult } from "./run.ts";
import { categoryLabel } from "./snapshot.ts";

/** What a surface that shows skills passes besides the context. */
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

type OpenSkillResult = OpenedSkill | { readonly type: "refused"; readonly result: SkillResult };

const LISTED_NAMES = 20;

export async function openSkill(name: string, context: SkillsContext, opening: Opening): Promise<OpenSkillResult> {
  const refused = (...args: Parameters<typeof failure>) => ({ type: "refused", result: failure(...args) }) as const;
  const found = await resolveSkill(name, await loadCatalogue(context), context);
  if (found.type === "bad_name") return refused("bad_name", `'${name}': ${found.reason}.`);
  if (found.type === "ambiguous") {
    const matches = found.matches.map(pathName);
    return refused("ambiguous", `Several skills are called '${name}'. Use the category path.`, { matches });
  }
  if (found.type === "not_found") {
    const names = (await offeredSkills(context, opening.platform)).map((skill) => skill.name);
    return refused("not_found", `There is no skill '${name}'.`, { available_skills: names.slice(0, LISTED_NAMES) });
  }
  const { skill, shadows } = found;
  if (!fitsOs(skill.platforms)) {
    const only = skill.platforms.join(", ");
    return refused("unsupported_platform", `Skill '${skill.name}' is for ${only} only.`, {
      readiness_status: "unsupported",
    });
  }
  if (isDisabled(skill, disabledSkills(context.config(), opening.platform))) {
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
  context: SkillsContext,
  opening: Opening,
): Promise<string> {
  const { template_vars, inline_shell, inline_shell_timeout } = context.config().skills;
  // What strangers wrote never runs by being looked at.
  const run = inline_shell && (await trustOf(skill, context)) !== "community" ? opening.inlineShell : undefined;
  return preprocess(text, {
    variables: template_vars,
    skillDir: skill.dir,
    sessionId: opening.sessionId,
    shell: run && { run, timeoutSeconds: inline_shell_timeout },
  });
}

export function reason(error: unknown): string {
  return messageOf(error);
}

// `skills_list`: every skill there is for this platform, one line each.

const MAX_DESCRIPTION = 1024;

interface ListedSkill {
  readonly name: string;
  readonly description: string;
  readonly category: string | null;
}

export async function listSkills(
  context: SkillsContext,
  request: { readonly category?: string | undefined; readonly platform: string },
): Promise<SkillResult> {
  const offered = await offeredSkills(context, request.platform);
  const categories = [...new Set(offered.map(({ category }) => categoryLabel(category)))].sort(compare);
  const wanted = request.category?.trim();
  if (wanted && !categories.includes(wanted) && offered.length > 0)
    return failure("not_found", `There is no category '${wanted}'.`, { categories });
  const skills = offered.filter(({ category }) => !wanted || categoryLabel(category) === wanted).map(listed);
  if (skills.length === 0)
    return { success: true, skills: [], categories: [], count: 0, message: "There are no skills yet." };
  return { success: true, skills, categories, count: skills.length, hint: "skill_view(name) loads one." };
}

/** All skills that are for this platform and machine, by category (none first) and name. */
export async function offeredSkills(context: SkillsContext, platform: string): Promise<readonly Skill[]> {
  const catalogue = await loadCatalogue(context);
  const disabled = disabledSkills(context.config(), platform);
  const active = await activeEnvironments(context.env);
  return unshadowed(catalogue)
    .filter(
      (skill) =>
        !skill.userOnly &&
        !isDisabled(skill, disabled) &&
        fitsOs(skill.platforms) &&
        fitsEnvironment(skill.environments, active),
    )
    .sort((a, b) => compare(a.category ?? "", b.category ?? "") || compare(a.name, b.name));
}

function listed({ name, description, summary, category }: Skill): ListedSkill {
  return { name, description: truncateCodePoints(description || summary, MAX_DESCRIPTION, "..."), category };
}
