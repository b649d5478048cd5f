// One name, one skill: the only way from a typed name to a directory.

import { stat } from "node:fs/promises";
import { type Catalogue, loadCatalogue, loadRootSkills, type RootSkills, type Skill, unshadowed } from "./catalogue.ts";
import { disabledSkills } from "./requirements.ts";
import { expandDir, isRegistered, pluginRoots, type SkillsContext } from "./roots.ts";
import { categoryLabel } from "./snapshot.ts";
import { readUsage } from "./usage.ts";

type Resolution =
  | { readonly type: "found"; readonly skill: Skill; readonly shadows: readonly string[] }
  | { readonly type: "ambiguous"; readonly matches: readonly Skill[] }
  | { readonly type: "not_found" }
  | { readonly type: "bad_name"; readonly reason: string };

/**
 * Takes the front matter's name, the directory's, `category/name`, `category:name`, and `plugin:name` for skills of plugins.
 * The first root with a match wins; what it shadows in later roots is reported, not dropped.
 */
export async function resolveSkill(name: string, catalogue: Catalogue, context: SkillsContext): Promise<Resolution> {
  const wanted = name.trim().replace(/(?<!\/)\/+$/, "");
  const reason = refuseName(wanted);
  if (reason !== null) return { type: "bad_name", reason };
  const plugin = await findInPlugin(wanted, context);
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

async function findInPlugin(wanted: string, context: SkillsContext): Promise<Resolution | null> {
  const [, namespace, rest] = /^([A-Za-z0-9_-]+):(.+)$/.exec(wanted) ?? [];
  if (namespace === undefined || rest === undefined) return null;
  const roots = await Promise.all(pluginRoots(context, namespace).map((root) => loadRootSkills(root, context)));
  const matches = roots
    .flatMap((root) => matchesIn(root, rest))
    .filter(({ dir }) => isRegistered(context, namespace, dir));
  const [skill] = matches;
  if (!skill) return null;
  return matches.length > 1 ? { type: "ambiguous", matches } : { type: "found", skill, shadows: [] };
}

// Everything about a home's skills that is not as its user would expect.

export async function diagnoseSkills(
  context: SkillsContext,
): Promise<{ readonly count: number; readonly problems: readonly string[] }> {
  const catalogue = await loadCatalogue(context);
  const all = catalogue.roots.flatMap(({ skills }) => skills);
  const problems = [
    ...(await missingFolders(context)),
    ...all.flatMap((skill) => skill.problems.map((problem) => `${skill.dir}: ${problem}`)),
    ...catalogue.roots.flatMap(({ skills }) => doubles(skills)),
    ...shadows(all, unshadowed(catalogue)),
    ...unknownDisabled(all, context),
    ...((await readUsage(context)) === null
      ? [
          "skills/.usage.json cannot be read: use and pins are unknown. The next use puts it aside and starts a new one.",
        ]
      : []),
  ];
  return { count: all.length, problems };
}

async function missingFolders(context: SkillsContext): Promise<string[]> {
  const given = context.config().skills.external_dirs;
  const there = await Promise.all(
    given.map((dir) =>
      stat(expandDir(dir, context)).then(
        (facts) => facts.isDirectory(),
        () => false,
      ),
    ),
  );
  return given.filter((_, index) => !there[index]).map((dir) => `skills.external_dirs: ${dir} is not a folder`);
}

function doubles(skills: readonly Skill[]): string[] {
  const byName = Map.groupBy(skills, ({ name }) => name);
  return [...byName].flatMap(([name, same]) =>
    same.length > 1 ? [`several skills are called ${name}: ask for ${same.map(pathName).join(" or ")}`] : [],
  );
}

function shadows(all: readonly Skill[], seen: readonly Skill[]): string[] {
  const shown = new Set(seen.map(({ dir }) => dir));
  return all
    .filter(({ dir }) => !shown.has(dir))
    .map(({ dir, name }) => `${dir}: hidden by another skill called ${name}`);
}

function unknownDisabled(all: readonly Skill[], context: SkillsContext): string[] {
  const names = new Set(all.flatMap(({ name, dirName }) => [name, dirName]));
  const platforms = Object.keys(context.config().skills.platform_disabled);
  const off = new Set(["", ...platforms].flatMap((platform) => [...disabledSkills(context.config(), platform)]));
  return [...off]
    .filter((name) => name !== "" && !names.has(name))
    .map((name) => `skills.disabled: there is no skill ${name}`);
}
