import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { HomePaths } from "../../home/paths.ts";
import { walkSkills } from "../tree.ts";

/** Profiles beside this one that have a skill directory of this name. They are named, never used. */
export async function profilesWith(name: string, paths: HomePaths): Promise<readonly string[]> {
  const folder = join(paths.root, "profiles");
  const names = await readdir(folder).catch(() => []);
  const homes = [
    { profile: "default", dir: paths.root },
    ...names.sort().map((profile) => ({ profile, dir: join(folder, profile) })),
  ].filter(({ dir }) => dir !== paths.dir);
  const holds = await Promise.all(
    homes.map(async ({ dir }) => {
      const { skills } = await walkSkills(join(dir, "skills"));
      return skills.some((path) => path === name || path.endsWith(`/${name}`));
    }),
  );
  return homes.filter((_, index) => holds[index]).map(({ profile }) => profile);
}
