// One name, one skill: the only way from what somebody typed to a directory.
import { type Catalogue, loadRootSkills, type RootSkills, type Skill } from "./catalogue.ts";
import { categoryLabel } from "./entry.ts";
import { isRegistered, pluginRoots, type SkillsPlace } from "./roots.ts";

export type Resolution =
  | { readonly type: "found"; readonly skill: Skill; readonly shadows: readonly string[] }
  | { readonly type: "ambiguous"; readonly matches: readonly Skill[] }
  | { readonly type: "not_found" }
  | { readonly type: "bad_name"; readonly reason: string };

/**
 * Takes the front matter's name, the directory's, `category/name`, `category:name`, and `plugin:name` for skills of plugins.
 * The first root with a match has the say; what it hides in later roots is told, not dropped.
 */
export async function resolveSkill(name: string, catalogue: Catalogue, place: SkillsPlace): Promise<Resolution> {
  const wanted = name.trim().replace(/\/+$/, "");
  const reason = refuseName(wanted);
  if (reason !== null) return { type: "bad_name", reason };
  const plugin = await findInPlugin(wanted, place);
  if (plugin) return plugin;
  const perRoot = catalogue.roots.map((root) => matchesIn(root, wanted));
  const first = perRoot.findIndex((matches) => matches.length > 0);
  const matches = perRoot[first] ?? [];
  const [skill] = matches;
  if (!skill) return { type: "not_found" };
  if (matches.length > 1) return { type: "ambiguous", matches };
  const hidden = perRoot.slice(first + 1).flat();
  return { type: "found", skill, shadows: hidden.map(({ dir }) => dir) };
}

/** Why a name is no name, before anything is looked up. */
function refuseName(name: string): string | null {
  if (name === "") return "a skill name is needed";
  if (/^[/\\~]/.test(name) || /^[A-Za-z]:[/\\]/.test(name)) return "a skill is named, not given by its absolute path";
  if (name.split(/[/\\:]/).includes("..")) return "a skill name has no '..' in it";
  if (/\p{Cc}/u.test(name)) return "a skill name has no control characters in it";
  return null;
}

/** How to ask for a skill so that no other one is meant. */
export const pathName = (skill: Skill) => `${categoryLabel(skill.category)}/${skill.dirName}`;

function matchesIn({ skills }: RootSkills, wanted: string): readonly Skill[] {
  const path = wanted.replace(":", "/");
  const exact = skills.filter((skill) =>
    wanted.includes("/") || wanted.includes(":")
      ? [skill.dirName, skill.name].some((last) => `${categoryLabel(skill.category)}/${last}` === path)
      : false,
  );
  if (exact.length > 0) return exact;
  return skills.filter((skill) => skill.name === wanted || skill.dirName === wanted || skill.path === path);
}

async function findInPlugin(wanted: string, place: SkillsPlace): Promise<Resolution | null> {
  const [, namespace, rest] = /^([A-Za-z0-9_-]+):(.+)$/.exec(wanted) ?? [];
  if (namespace === undefined || rest === undefined) return null;
  const roots = await Promise.all(pluginRoots(place, namespace).map((root) => loadRootSkills(root, place)));
  const matches = roots
    .flatMap((root) => matchesIn(root, rest))
    .filter(({ dir }) => isRegistered(place, namespace, dir));
  const [skill] = matches;
  if (!skill) return null;
  return matches.length > 1 ? { type: "ambiguous", matches } : { type: "found", skill, shadows: [] };
}
