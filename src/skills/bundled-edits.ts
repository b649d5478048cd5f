// What the user did to shipped skills: seeing it, accepting it, undoing it, opting out of all of them.
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { withLock } from "../home/lock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { unifiedDiff } from "../kit/unified-diff.ts";
import { bundledSkills, optOutFile, stagingDir } from "./bundled.ts";
import { readBundledManifest, writeBundledManifest } from "./bundled-manifest.ts";
import type { Skill } from "./catalogue.ts";
import { filesBelow } from "./files.ts";
import { removeEmptyUpTo } from "./manage/write.ts";
import type { SkillsPlace } from "./roots.ts";
import { archiveSkill, copySkill, exists, hashSkill } from "./skill-copy.ts";
import { compare } from "./tree.ts";
import { skillsLock } from "./usage.ts";
import { clearSkillsPromptCache } from "./visible.ts";

const copyOf = (skill: Skill, place: SkillsPlace) => join(place.paths.skillsDir, skill.path);

/** Shipped skills whose copy the user changed. */
export async function modifiedSkills(place: SkillsPlace): Promise<readonly Skill[]> {
  const { lines } = await readBundledManifest(place);
  const changed = await Promise.all(
    (await bundledSkills(place)).map(async (skill) => {
      const line = lines.get(skill.name);
      const dir = copyOf(skill, place);
      if (!line?.origin || !(await exists(dir))) return [];
      return (await hashSkill(dir)) === (line.user ?? line.origin) ? [] : [skill];
    }),
  );
  return changed.flat();
}

export async function findBundled(name: string, place: SkillsPlace): Promise<Skill | null> {
  return (await bundledSkills(place)).find((skill) => skill.name === name || skill.path === name) ?? null;
}

/** From what the program ships to what the user has, file by file. */
export async function diffBundled(skill: Skill, place: SkillsPlace): Promise<string> {
  const mine = copyOf(skill, place);
  const paths = [...new Set([...(await filesBelow(skill.dir)), ...(await filesBelow(mine))])].sort(compare);
  const diffs = await Promise.all(
    paths.map(async (path) => {
      const name = `${skill.path}/${path}`;
      const [before, after] = await Promise.all([side(join(skill.dir, path), name), side(join(mine, path), name)]);
      if (before?.text.includes("\0") || after?.text.includes("\0"))
        return before?.text === after?.text ? "" : `Binary file ${name} differs\n`;
      return unifiedDiff(before, after);
    }),
  );
  return diffs.join("");
}

async function side(file: string, path: string) {
  const text = await readFile(file, "utf8").catch(() => null);
  return text === null ? null : { path, text };
}

/** The user's version becomes the accepted one: the next version of the program that changes this skill replaces it. */
export async function acceptBundled(skill: Skill, place: SkillsPlace): Promise<void> {
  await withLock(skillsLock(place), async () => {
    const { lines } = await readBundledManifest(place);
    const shipped = await hashSkill(skill.dir);
    const mine = await hashSkill(copyOf(skill, place));
    lines.set(skill.name, mine === shipped ? { origin: shipped } : { origin: shipped, user: mine });
    await writeBundledManifest(place, lines);
  });
}

/** The shipped version is back; what was there is in the archive. Resolves to where, or null when nothing was there. */
export async function restoreBundled(skill: Skill, place: SkillsPlace): Promise<string | null> {
  const archived = await withLock(skillsLock(place), async () => {
    const target = copyOf(skill, place);
    const old = (await exists(target)) ? await archiveSkill(target, place.paths.skillsDir, place.clock.now()) : null;
    await copySkill({ from: skill.dir, to: target, staging: stagingDir(place, skill.name) });
    const { lines } = await readBundledManifest(place);
    lines.set(skill.name, { origin: await hashSkill(skill.dir) });
    await writeBundledManifest(place, lines);
    return old;
  });
  await clearSkillsPromptCache(place, { snapshot: true });
  return archived;
}

/** From now on nothing is copied into this home. With `remove`, copies the user did not change go, too. */
export async function optOut(place: SkillsPlace, { remove }: { readonly remove: boolean }): Promise<readonly string[]> {
  await writeFileAtomic(optOutFile(place), "");
  if (!remove) return [];
  const removed = await withLock(skillsLock(place), async () => {
    const { lines } = await readBundledManifest(place);
    const names: string[] = [];
    for (const skill of await bundledSkills(place)) {
      const dir = copyOf(skill, place);
      const origin = lines.get(skill.name)?.origin;
      if (!origin || !(await exists(dir)) || (await hashSkill(dir)) !== origin) continue;
      await rm(dir, { recursive: true });
      await removeEmptyCategory(skill, place);
      lines.delete(skill.name);
      names.push(skill.name);
    }
    await writeBundledManifest(place, lines);
    return names;
  });
  await clearSkillsPromptCache(place, { snapshot: true });
  return removed;
}

/** A category that only has its description left is empty. */
async function removeEmptyCategory(skill: Skill, place: SkillsPlace): Promise<void> {
  if (skill.category === null) return;
  const category = join(place.paths.skillsDir, skill.category);
  const left = await filesBelow(category);
  if (left.some((path) => path !== "DESCRIPTION.md")) return;
  await rm(join(category, "DESCRIPTION.md"), { force: true });
  await removeEmptyUpTo(category, place.paths.skillsDir);
}

export async function optIn(place: SkillsPlace): Promise<void> {
  await rm(optOutFile(place), { force: true });
}
