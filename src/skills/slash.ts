// Skills as slash commands: which names they get, and what a typed line means.
import { type Bundle, loadBundles } from "./bundles.ts";
import { loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { disabledSkills, fitsOs, isDisabled } from "./conditions.ts";
import type { SkillsPlace } from "./roots.ts";
import { slugOf } from "./slug.ts";

export const MAX_STACKED = 5;

export interface SkillCommands {
  /** By slug; never a name that a built-in command has. */
  readonly skills: ReadonlyMap<string, Skill>;
  readonly bundles: ReadonlyMap<string, Bundle>;
  readonly warnings: readonly string[];
}

/** The commands there are on a platform. `taken` are the names and aliases of built-in commands. */
export async function skillCommands(
  place: SkillsPlace,
  options: { readonly platform: string; readonly taken: ReadonlySet<string> },
): Promise<SkillCommands> {
  const warnings: string[] = [];
  const disabled = disabledSkills(place.config(), options.platform);
  const taken = new Set([...options.taken].map(slugOf));
  const skills = new Map<string, Skill>();
  for (const skill of unshadowed(await loadCatalogue(place))) {
    if (isDisabled(skill, disabled) || !fitsOs(skill.platforms)) continue;
    const slug = slugOf(skill.name);
    if (slug === "") warnings.push(`Skill '${skill.name}' has no letters for a command: use /skill ${skill.name}`);
    else if (taken.has(slug)) warnings.push(`/${slug} is a command already; use /skill ${skill.name}`);
    else if (!skills.has(slug)) skills.set(slug, skill);
  }
  const found = await loadBundles(place);
  const bundles = new Map([...found.bundles].filter(([slug]) => !taken.has(slug)));
  return { skills, bundles, warnings: [...warnings, ...found.warnings] };
}

export type TypedSkills =
  | { readonly type: "skills"; readonly skills: readonly Skill[]; readonly instruction: string }
  | { readonly type: "bundle"; readonly bundle: Bundle; readonly instruction: string };

/** `/a /b do this`: up to five skills, or one bundle, and the rest. Null = the line begins with neither. */
export function parseTypedSkills(text: string, commands: SkillCommands): TypedSkills | null {
  const stacked: Skill[] = [];
  let rest = text.trim();
  while (stacked.length < MAX_STACKED) {
    const [, word = "", after = ""] = /^\/(\S+)([\s\S]*)$/.exec(rest) ?? [];
    const slug = isCommandWord(word) ? slugOf(word) : "";
    const bundle = stacked.length === 0 ? commands.bundles.get(slug) : undefined;
    if (bundle) return { type: "bundle", bundle, instruction: after.trim() };
    const skill = commands.skills.get(slug);
    if (!skill || stacked.includes(skill)) break;
    stacked.push(skill);
    rest = after.trim();
  }
  return stacked.length > 0 ? { type: "skills", skills: stacked, instruction: rest } : null;
}

/** `/etc/hosts` is a path, not a command. */
const isCommandWord = (word: string) => /^[\p{L}\p{N}_.-]+$/u.test(word);
