// The disk half of the index cache: what was read from every SKILL.md, valid for each file as long as it is as it was.
import { readFile, rm } from "node:fs/promises";
import type { HomePaths } from "../home/paths.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { boolean, listOf, mapOf, nullable, oneOf, parseAs, record, type Shape, text } from "../kit/json.ts";
import type { Manifest } from "./files.ts";

const VERSION = 3;

const texts = listOf(text);
const fileState: Shape<readonly [string, number]> = (value): value is readonly [string, number] =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "number";

const stored = record({
  version: oneOf([VERSION]),
  manifest: mapOf(fileState),
  skills: listOf(
    record({
      skill_name: text,
      category: nullable(text),
      path: text,
      frontmatter_name: text,
      description: text,
      summary: text,
      platforms: texts,
      environments: texts,
      conditions: record({
        requires_toolsets: texts,
        requires_tools: texts,
        fallback_for_toolsets: texts,
        fallback_for_tools: texts,
      }),
      user_only: boolean,
      problems: texts,
    }),
  ),
  category_descriptions: mapOf(text),
});

export interface SnapshotContent {
  readonly entries: readonly SkillEntry[];
  readonly categories: Readonly<Record<string, string>>;
}

const snapshotPath = (paths: HomePaths) => paths.at(".skills_prompt_snapshot.json");

/** What was read, and from which state of the files. */
export interface Snapshot extends SnapshotContent {
  readonly manifest: Manifest;
}

/** Null when there is none; a broken file counts as none. */
export async function readSnapshot(paths: HomePaths): Promise<Snapshot | null> {
  const read = parseAs(await readText(snapshotPath(paths)), stored);
  if (!read) return null;
  return {
    manifest: read.manifest,
    categories: read.category_descriptions,
    entries: read.skills.map(({ skill_name, frontmatter_name, user_only, conditions, ...rest }) => ({
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

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return ""; // missing or unreadable: the tree is read instead
  }
}

export function sameManifest(a: Manifest, b: Manifest): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && unchangedFiles(a, b).size === names.length;
}

/** Files that both know in the same state. */
export function unchangedFiles(a: Manifest, b: Manifest): ReadonlySet<string> {
  const same = Object.entries(a).filter(([name, [mtime, size]]) => {
    const other = Object.hasOwn(b, name) ? b[name] : undefined;
    return other !== undefined && other[0] === mtime && other[1] === size;
  });
  return new Set(same.map(([name]) => name));
}

// What is known of a skill without opening it again: enough to list it, filter it and find it.

export interface SkillEntry {
  /** The front matter's name; without a usable one, the directory's. */
  readonly name: string;
  readonly dirName: string;
  /** Path of the parent below the root; null directly in it. */
  readonly category: string | null;
  /** Of the skill's directory below the root, with `/`. */
  readonly path: string;
  /** As written, whole. */
  readonly description: string;
  /** The first line of the body that is no heading; stands in for a missing description. */
  readonly summary: string;
  readonly platforms: readonly string[];
  readonly environments: readonly string[];
  readonly conditions: SkillConditions;
  /** `disable-model-invocation`: a command for the user, not an offer to the model. */
  readonly userOnly: boolean;
  readonly problems: readonly string[];
}

export interface SkillConditions {
  readonly requiresToolsets: readonly string[];
  readonly requiresTools: readonly string[];
  readonly fallbackForToolsets: readonly string[];
  readonly fallbackForTools: readonly string[];
}

/** A category as people see it. */
export const categoryLabel = (category: string | null) => category ?? "general";
