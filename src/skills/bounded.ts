// The list of skills in a prompt has a bound: a thousand skills would fill a window before anybody has said a word. What is used stands first, the
// rest is found with `skills_list`. Loaded only where there are so many.
import { estimateTokens } from "../llm/usage.ts";
import type { SkillsContext } from "./roots.ts";
import { readUsage } from "./usage.ts";
import type { SkillCategory } from "./visible.ts";

type Listed = SkillCategory["skills"][number];

interface Candidate {
  readonly category: SkillCategory;
  readonly skill: Listed;
  readonly pinned: boolean;
  readonly uses: number;
  /** ISO 8601, empty: never. */
  readonly lastUsed: string;
  /** Its place in its category. */
  readonly place: number;
}

export async function boundedList(
  categories: readonly SkillCategory[],
  context: SkillsContext,
  maxTokens: number,
): Promise<readonly SkillCategory[]> {
  const usage = (await readUsage(context)) ?? new Map<string, never>();
  const candidates = categories.flatMap((category) =>
    category.skills.map((skill, place): Candidate => {
      const {
        pinned = false,
        use_count = 0,
        view_count = 0,
        last_used_at,
        last_viewed_at,
      } = usage.get(skill.name) ?? {};
      const lastUsed = last_used_at ?? last_viewed_at ?? "";
      return { category, skill, pinned, uses: use_count + view_count, lastUsed, place };
    }),
  );
  const chosen = new Map<SkillCategory, Set<Listed>>();
  let left = maxTokens;
  for (const { category, skill } of candidates.sort(byUse)) {
    const opens = chosen.has(category) ? 0 : estimateTokens(headOf(category));
    left -= opens + estimateTokens(lineOf(skill));
    if (left < 0) break;
    chosen.set(category, (chosen.get(category) ?? new Set<Listed>()).add(skill));
  }
  return categories.map((category) => {
    const kept = category.skills.filter((skill) => chosen.get(category)?.has(skill));
    const more = category.skills.length - kept.length;
    return more === 0 ? category : { ...category, skills: kept, more };
  });
}

/** Pinned, used often, used lately. Of those that were never used every category has its first ones shown. */
function byUse(a: Candidate, b: Candidate): number {
  if (a.pinned !== b.pinned) return a.pinned ? -1 : 1;
  if (a.uses !== b.uses) return b.uses - a.uses;
  if (a.lastUsed !== b.lastUsed) return a.lastUsed < b.lastUsed ? 1 : -1;
  return a.place - b.place;
}

const headOf = ({ name, description }: SkillCategory) => `  ${name}: ${description} (1000 more)\n`;
const lineOf = ({ name, description }: Listed) => `    - ${name}: ${description}\n`;
