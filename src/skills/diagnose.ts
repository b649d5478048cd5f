// Everything about a home's skills that is not as its user would expect.
import { stat } from "node:fs/promises";
import { loadCatalogue, type Skill, unshadowed } from "./catalogue.ts";
import { disabledSkills } from "./conditions.ts";
import { pathName } from "./resolve.ts";
import { expandDir, type SkillsPlace } from "./roots.ts";
import { readUsage } from "./usage.ts";

export async function diagnoseSkills(
  place: SkillsPlace,
): Promise<{ readonly count: number; readonly problems: readonly string[] }> {
  const catalogue = await loadCatalogue(place);
  const all = catalogue.roots.flatMap(({ skills }) => skills);
  const problems = [
    ...(await missingFolders(place)),
    ...all.flatMap((skill) => skill.problems.map((problem) => `${skill.dir}: ${problem}`)),
    ...catalogue.roots.flatMap(({ skills }) => doubles(skills)),
    ...shadows(all, unshadowed(catalogue)),
    ...unknownDisabled(all, place),
    ...((await readUsage(place)) === null
      ? [
          "skills/.usage.json cannot be read: use and pins are unknown. The next use puts it aside and starts a new one.",
        ]
      : []),
  ];
  return { count: all.length, problems };
}

async function missingFolders(place: SkillsPlace): Promise<string[]> {
  const given = place.config().skills.external_dirs;
  const there = await Promise.all(
    given.map((dir) =>
      stat(expandDir(dir, place)).then(
        (facts) => facts.isDirectory(),
        () => false,
      ),
    ),
  );
  return given.filter((_, index) => !there[index]).map((dir) => `skills.external_dirs: ${dir} is no folder`);
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

function unknownDisabled(all: readonly Skill[], place: SkillsPlace): string[] {
  const names = new Set(all.flatMap(({ name, dirName }) => [name, dirName]));
  const platforms = Object.keys(place.config().skills.platform_disabled);
  const off = new Set(["", ...platforms].flatMap((platform) => [...disabledSkills(place.config(), platform)]));
  return [...off]
    .filter((name) => name !== "" && !names.has(name))
    .map((name) => `skills.disabled: there is no skill ${name}`);
}
