// What may follow an `@`: the kinds of things a message can point at, and the project's files, written so that they are found again.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { AutocompleteItem } from "@earendil-works/pi-tui";
import { formatReferenceValue } from "../../prompt/references/grammar.ts";
import { rankFiles } from "./file-score.ts";
import { completePath, readableSize } from "./path-completion.ts";

const KINDS: readonly (readonly [value: string, about: string])[] = [
  ["@file:", "a file, or lines of it: @file:PATH:10-20"],
  ["@folder:", "the tree of a folder"],
  ["@diff", "what git diff shows"],
  ["@staged", "what is staged"],
  ["@git:", "the last commits: @git:3"],
  ["@url:", "a page"],
];
const MOST_FILES = 20;

export interface ReferenceSources {
  /** Paths of project files, relative to the folder. */
  files(): Promise<readonly string[]>;
  readonly cwd: string;
}

/** `word` begins with `@`. */
export async function completeReference(word: string, sources: ReferenceSources): Promise<AutocompleteItem[]> {
  const [, kind, value = ""] = /^@(file|folder):["'`]?(.*)$/.exec(word) ?? [];
  if (kind !== undefined) return completeValue(kind, value, sources);
  const kinds = KINDS.filter(([name]) => name.startsWith(word));
  const items = kinds.map(([name, description]) => ({ value: name, label: name, description }));
  return [...items, ...(await projectFiles(word.slice(1), sources))];
}

async function completeValue(kind: string, typed: string, sources: ReferenceSources): Promise<AutocompleteItem[]> {
  const found = (await completePath(typed, sources.cwd)).filter(({ value }) => kind === "file" || value.endsWith("/"));
  const items = found.map((item) => ({ ...item, value: `@${kind}:${formatReferenceValue(item.value)}` }));
  if (items.length > 0 || kind === "folder") return items;
  return projectFiles(typed, sources);
}

async function projectFiles(query: string, { files, cwd }: ReferenceSources): Promise<AutocompleteItem[]> {
  const ranked = rankFiles(await files(), query, MOST_FILES);
  return Promise.all(
    ranked.map(async (path) => {
      const facts = await stat(join(cwd, path)).catch(() => null); // gone since it was listed
      const size = facts ? { description: readableSize(facts.size) } : {};
      return { value: `@file:${formatReferenceValue(path)}`, label: path, ...size };
    }),
  );
}
