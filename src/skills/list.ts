// `skills_list`: every skill there is for this platform, one line each.
import { truncateCodePoints } from "../kit/code-points.ts";
import { loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { activeEnvironments, disabledSkills, fitsEnvironment, fitsOs, isDisabled } from "./conditions.ts";
import { categoryLabel } from "./entry.ts";
import type { SkillsPlace } from "./roots.ts";
import { failure, type SkillResult } from "./run.ts";
import { compare } from "./tree.ts";

const MAX_DESCRIPTION = 1024;

export interface ListedSkill {
  readonly name: string;
  readonly description: string;
  readonly category: string | null;
}

export async function listSkills(
  place: SkillsPlace,
  request: { readonly category?: string | undefined; readonly platform: string },
): Promise<SkillResult> {
  const offered = await offeredSkills(place, request.platform);
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
export async function offeredSkills(place: SkillsPlace, platform: string): Promise<readonly Skill[]> {
  const catalogue = await loadCatalogue(place);
  const disabled = disabledSkills(place.config(), platform);
  const active = await activeEnvironments(place.env);
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

export function listed({ name, description, summary, category }: Skill): ListedSkill {
  return { name, description: truncateCodePoints(description || summary, MAX_DESCRIPTION, "..."), category };
}
