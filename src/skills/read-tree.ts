// Every SKILL.md and DESCRIPTION.md of a tree that is not known yet, read.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Parsed, parsePlainFrontMatter } from "../kit/front-matter-plain.ts";
import { unquote } from "../kit/quotes.ts";
import { textField } from "./fields.ts";
import { readEntry } from "./read-entry.ts";
import type { SkillRoot } from "./roots.ts";
import { type Snapshot, type SnapshotContent, unchangedFiles } from "./snapshot.ts";
import { compare, type SkillTree } from "./tree.ts";

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
  const { parseFrontMatter } = await import("../kit/front-matter.ts"); // brings the YAML parser along
  return parseFrontMatter(text);
}

export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return null; // the entry says so
  }
}
