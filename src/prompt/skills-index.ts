// The list of skills the model may load. Discovery and filtering happened before; here it becomes text.
import { compareCodePoints, truncateCodePoints } from "../kit/code-points.ts";
import type { SkillCategory } from "../skills/visible.ts";

const INDEX_TOOLS = ["skills_list", "skill_view", "skill_manage"];
const DESCRIPTION_CHARS = 60;

/** Everyday categories that code work rarely needs: in focus mode they keep their names and lose their descriptions. */
const COMPACT_CATEGORIES: readonly string[] = [
  ...[
    "apple",
    "communication",
    "cooking",
    "creative",
    "email",
    "finance",
    "gaming",
    "gifs",
    "health",
    "media",
    "music",
  ],
  ...["note-taking", "productivity", "shopping", "smart-home", "social-media", "travel", "yuanbao"],
];

export const SKILLS_INSTRUCTION =
  "Before you reply, look through the skills below. If one fits the task, even partly, load it with `skill_view(name)` and follow it. When in doubt, load: skills hold exact commands, known traps and the user's own standards, so load them for familiar work too. For questions about Hermes itself load `hermes-agent` first.";

const UPKEEP =
  " Repair a faulty skill with `skill_manage(action='patch')`; after hard work, offer to save what you learned as one.";

export function skillsIndex(
  categories: readonly SkillCategory[],
  toolNames: readonly string[],
  { focus }: { readonly focus: boolean },
): string | null {
  if (!INDEX_TOOLS.some((tool) => toolNames.includes(tool))) return null;
  const shown = merge(categories);
  if (shown.length === 0) return null;
  const isCompact = (name: string) => focus && COMPACT_CATEGORIES.includes(name.split("/")[0] ?? "");
  const lines = shown.flatMap((category) => (isCompact(category.name) ? [compactLine(category)] : linesOf(category)));
  const upkeep = toolNames.includes("skill_manage") ? UPKEEP : "";
  return [
    "## Skills (mandatory)",
    `${SKILLS_INSTRUCTION}${upkeep}`,
    "",
    "<available_skills>",
    ...lines,
    "</available_skills>",
    ...unlisted(categories, toolNames),
    "Go on without a skill only if none of them fits.",
    ...(shown.some(({ name }) => isCompact(name))
      ? ["([names only] = listed without descriptions; these skills load like the others.)"]
      : []),
  ].join("\n");
}

/** A list too long for a prompt shows the ones that are used most. */
function unlisted(categories: readonly SkillCategory[], toolNames: readonly string[]): readonly string[] {
  const count = categories.reduce((sum, { more = 0 }) => sum + more, 0);
  if (count === 0) return [];
  const how = toolNames.includes("skills_list")
    ? "`skills_list(category)` names them"
    : "`skill_view(name)` loads them too";
  return [`${count} more skills are not listed; ${how}.`];
}

interface Shown {
  readonly name: string;
  readonly description: string;
  readonly more: number;
  readonly skills: readonly (readonly [name: string, description: string])[];
}

/** Sorted, every name once, empty categories gone; whatever order the reader found them in. */
function merge(categories: readonly SkillCategory[]): readonly Shown[] {
  const found = new Map<string, { description: string; more: number; skills: Map<string, string> }>();
  for (const { name, description, skills, more = 0 } of categories) {
    const known = found.get(name) ?? { description: "", more: 0, skills: new Map<string, string>() };
    found.set(name, known);
    known.more += more;
    known.description ||= description;
    for (const skill of skills) if (!known.skills.has(skill.name)) known.skills.set(skill.name, skill.description);
  }
  return [...found]
    .filter(([, { skills }]) => skills.size > 0)
    .sort(([a], [b]) => compareCodePoints(a, b))
    .map(([name, { description, more, skills }]) => ({
      name,
      more,
      description: oneLine(description),
      skills: [...skills].sort(([a], [b]) => compareCodePoints(a, b)),
    }));
}

function linesOf({ name, description, more, skills }: Shown): readonly string[] {
  return [
    `  ${oneLine(name)}:${description === "" ? "" : ` ${description}`}${more === 0 ? "" : ` (${more} more)`}`,
    ...skills.map(([skill, text]) => {
      const short = truncateCodePoints(oneLine(text), DESCRIPTION_CHARS, "...");
      return `    - ${oneLine(skill)}${short === "" ? "" : `: ${short}`}`;
    }),
  ];
}

function compactLine({ name, skills }: Shown): string {
  return `  ${oneLine(name)} [names only]: ${skills.map(([skill]) => oneLine(skill)).join(", ")}`;
}

const oneLine = (text: string) =>
  text
    .replace(/[<>]/g, "")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
