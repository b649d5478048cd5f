// Every SKILL.md and DESCRIPTION.md of a tree, read anew.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseFrontMatter } from "../kit/front-matter.ts";
import { unquote } from "../kit/quotes.ts";
import { textField } from "./fields.ts";
import { readEntry } from "./read-entry.ts";
import type { SkillRoot } from "./roots.ts";
import type { SnapshotContent } from "./snapshot.ts";
import { compare, type SkillTree } from "./tree.ts";

export async function readTree(tree: SkillTree, root: SkillRoot): Promise<SnapshotContent> {
  const entries = await Promise.all(
    tree.skills.map(async (path) => readEntry(path, await readText(join(root.dir, path, "SKILL.md")))),
  );
  const described = await Promise.all(
    tree.described.map(async (path) => {
      const { fields } = parseFrontMatter((await readText(join(root.dir, path, "DESCRIPTION.md"))) ?? "");
      return [path, unquote(textField(fields.description))] as const;
    }),
  );
  return {
    entries: entries.sort((a, b) => compare(a.path, b.path)),
    categories: Object.fromEntries(described.filter(([, text]) => text !== "")),
  };
}

export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return null; // the entry says so
  }
}
