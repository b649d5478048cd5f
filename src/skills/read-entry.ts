// A SKILL.md as an entry of the index.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type FrontMatter,
  type FrontMatterValue,
  type Parsed,
  parsePlainFrontMatter,
  unquote,
} from "../kit/front-matter-plain.ts";
import { compare, type SkillTree } from "./files.ts";
import type { SkillRoot } from "./roots.ts";
import {
  type SkillConditions,
  type SkillEntry,
  type Snapshot,
  type SnapshotContent,
  unchangedFiles,
} from "./snapshot.ts";

export const MAX_NAME = 64;
const KNOWN_PLATFORMS = /^(macos|darwin|linux|windows|win32|all|any)$/i;

/** From a SKILL.md; null = the file could not be read. */
export function readEntry(path: string, parsed: Parsed | null): SkillEntry {
  const parts = path.split("/");
  const dirName = parts.at(-1) ?? path;
  const location = { dirName, path, category: parts.length > 1 ? parts.slice(0, -1).join("/") : null };
  const blank = { name: dirName, description: "", summary: "", platforms: [], environments: [], userOnly: false };
  if (parsed === null)
    return { ...location, ...blank, conditions: conditionsOf({}), problems: ["SKILL.md cannot be read"] };
  const { fields, body, present, problem } = parsed;
  const problems = problem === null ? [] : [problem];
  if (!present) {
    if (problem === null) problems.push("SKILL.md has no front matter");
    return { ...location, ...blank, conditions: conditionsOf({}), problems };
  }
  const given = textField(fields.name);
  const name = isShowable(given) ? given : dirName;
  if (given !== "" && name !== given)
    problems.push("the front matter's name cannot be used; using the directory's name");
  const platforms = listField(fields.platforms);
  const unknown = platforms.filter((platform) => !KNOWN_PLATFORMS.test(platform));
  if (unknown.length > 0) problems.push(`unknown platforms are ignored: ${unknown.join(", ")}`);
  return {
    ...location,
    name,
    description: unquote(textField(fields.description)),
    summary: firstBodyLine(body),
    platforms,
    environments: listField(fields.environments),
    conditions: conditionsOf(fields),
    userOnly: flagField(fields["disable-model-invocation"]),
    problems,
  };
}

function conditionsOf(fields: FrontMatter): SkillConditions {
  const own = hermesFields(fields);
  return {
    requiresToolsets: listField(own.requires_toolsets),
    requiresTools: listField(own.requires_tools),
    fallbackForToolsets: listField(own.fallback_for_toolsets),
    fallbackForTools: listField(own.fallback_for_tools),
  };
}

/** A name that can stand on one line of a prompt and cannot pass for a path. */
function isShowable(name: string): boolean {
  return name !== "" && [...name].length <= MAX_NAME && !/[\p{C}<>/\\]/u.test(name) && !/^\.+$/.test(name);
}

function firstBodyLine(body: string): string {
  for (const line of body.split("\n")) {
    const text = line.trim();
    if (text !== "" && !text.startsWith("#")) return text;
  }
  return "";
}

// Every SKILL.md and DESCRIPTION.md of a tree that is not known yet, read.

/** What `known` holds of files that are as they were is taken from there. */
export async function readTree(tree: SkillTree, root: SkillRoot, known?: Snapshot | null): Promise<SnapshotContent> {
  const same = known ? unchangedFiles(known.manifest, tree.manifest) : new Set();
  const kept = new Map(known?.entries.map((entry) => [entry.path, entry]));
  const entries = tree.skills.map(async (path) => {
    const old = same.has(`${path}/SKILL.md`) ? kept.get(path) : undefined;
    return old ?? readEntry(path, await parseFile(join(root.dir, path, "SKILL.md")));
  });
  const described = tree.described.map(async (path) => {
    if (same.has(`${path}/DESCRIPTION.md`)) return [path, known?.categories[path] ?? ""] as const;
    const parsed = await parseFile(join(root.dir, path, "DESCRIPTION.md"));
    return [path, unquote(textField(parsed?.fields.description))] as const;
  });
  return {
    entries: (await Promise.all(entries)).sort((a, b) => compare(a.path, b.path)),
    categories: Object.fromEntries((await Promise.all(described)).filter(([, text]) => text !== "")),
  };
}

async function parseFile(path: string): Promise<Parsed | null> {
  const text = await readText(path);
  if (text === null) return null;
  const plain = parsePlainFrontMatter(text);
  if (plain) return plain;
  const { parseFrontMatter } = await import("../kit/front-matter.ts"); // loads the YAML parser
  return parseFrontMatter(text);
}

export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return null; // the entry says so
  }
}

// Front matter fields come in several spellings; these read all of them.

type Value = FrontMatterValue | undefined;

/** Trimmed; empty for what is not a text and for YAML's words for nothing. */
export function textField(value: Value): string {
  if (typeof value !== "string") return "";
  const text = value.trim();
  return text === "~" || text === "null" ? "" : text;
}

/** A list, or a text with commas; each item once. */
export function listField(value: Value): readonly string[] {
  const items = Array.isArray(value) ? value.map(textField) : textField(value).split(",");
  return [...new Set(items.map((item) => item.trim()).filter((item) => item !== ""))];
}

export function mapField(value: Value): FrontMatter {
  return typeof value === "object" && !Array.isArray(value) ? (value as FrontMatter) : {}; // not a list: a mapping
}

/** A list as it stands, for items that are more than text. A single item, text or mapping, counts as a list of one. */
export function itemsField(value: Value): readonly FrontMatterValue[] {
  if (Array.isArray(value)) return value;
  if (value === undefined) return [];
  return typeof value === "string" && textField(value) === "" ? [] : [value];
}

export function flagField(value: Value): boolean {
  return /^(true|yes|on|1)$/i.test(textField(value));
}

/** `metadata.hermes`, where this product's own fields live. */
export function hermesFields(fields: FrontMatter): FrontMatter {
  return mapField(mapField(fields.metadata).hermes);
}
