// The disk half of the index cache: what was read from every SKILL.md, valid as long as the files are as they were.
import { readFile, rm } from "node:fs/promises";
import { z } from "zod";
import type { HomePaths } from "../home/paths.ts";
import { writeFileAtomic } from "../kit/atomic-file.ts";
import type { SkillEntry } from "./entry.ts";
import type { Manifest } from "./tree.ts";

const VERSION = 3;

const texts = z.array(z.string());
const stored = z.object({
  version: z.literal(VERSION),
  manifest: z.record(z.string(), z.tuple([z.string(), z.number()])),
  skills: z.array(
    z.object({
      skill_name: z.string(),
      category: z.string().nullable(),
      path: z.string(),
      frontmatter_name: z.string(),
      description: z.string(),
      summary: z.string(),
      platforms: texts,
      environments: texts,
      conditions: z.object({
        requires_toolsets: texts,
        requires_tools: texts,
        fallback_for_toolsets: texts,
        fallback_for_tools: texts,
      }),
      user_only: z.boolean(),
      problems: texts,
    }),
  ),
  category_descriptions: z.record(z.string(), z.string()),
});

export interface SnapshotContent {
  readonly entries: readonly SkillEntry[];
  readonly categories: Readonly<Record<string, string>>;
}

export const snapshotPath = (paths: HomePaths) => paths.at(".skills_prompt_snapshot.json");

/** Null when there is none for exactly this tree; a broken file counts as none. */
export async function readSnapshot(paths: HomePaths, manifest: Manifest): Promise<SnapshotContent | null> {
  const parsed = stored.safeParse(await readJson(snapshotPath(paths)));
  if (!parsed.success || !sameManifest(parsed.data.manifest, manifest)) return null;
  return {
    categories: parsed.data.category_descriptions,
    entries: parsed.data.skills.map(({ skill_name, frontmatter_name, user_only, conditions, ...rest }) => ({
      ...rest,
      name: frontmatter_name,
      dirName: skill_name,
      userOnly: user_only,
      conditions: {
        requiresToolsets: conditions.requires_toolsets,
        requiresTools: conditions.requires_tools,
        fallbackForToolsets: conditions.fallback_for_toolsets,
        fallbackForTools: conditions.fallback_for_tools,
      },
    })),
  };
}

/** Resolves to why it could not be written, or null. Nobody depends on it. */
export async function writeSnapshot(paths: HomePaths, manifest: Manifest, content: SnapshotContent): Promise<unknown> {
  const skills = content.entries.map(({ name, dirName, userOnly, conditions, ...rest }) => ({
    skill_name: dirName,
    frontmatter_name: name,
    ...rest,
    conditions: {
      requires_toolsets: conditions.requiresToolsets,
      requires_tools: conditions.requiresTools,
      fallback_for_toolsets: conditions.fallbackForToolsets,
      fallback_for_tools: conditions.fallbackForTools,
    },
    user_only: userOnly,
  }));
  const data = { version: VERSION, manifest, skills, category_descriptions: content.categories };
  try {
    await writeFileAtomic(snapshotPath(paths), `${JSON.stringify(data)}\n`);
    return null;
  } catch (error) {
    return error;
  }
}

export async function removeSnapshot(paths: HomePaths): Promise<void> {
  await rm(snapshotPath(paths), { force: true });
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return null; // missing or broken: the tree is read instead
  }
}

function sameManifest(a: Manifest, b: Manifest): boolean {
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => {
    const [x, y] = [a[name], b[name]];
    return x !== undefined && y !== undefined && x[0] === y[0] && x[1] === y[1];
  });
}
