// The search engine for machines without ripgrep: a walk with JavaScript's regular expressions.
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { localFiles } from "./file-access.ts";
import { type IgnoreRules, rulesAbove } from "./file-ignore.ts";
import {
  type ContentQuery,
  type FoundLine,
  type FoundLines,
  type SearchEngine,
  SearchPatternError,
  sortLines,
} from "./file-search.ts";

/** A longer line is searched in its beginning only. */
const MAX_LINE = 1024 * 1024;

export const walkerEngine: SearchEngine = {
  name: "walker",
  async findLines(query) {
    const pattern = compile(query.pattern);
    const found: FoundLine[] = [];
    const files = query.isFile ? [basename(query.root)] : walk(query.root, query.signal);
    for await (const path of files) {
      if (!query.accepts(path)) continue;
      found.push(...(await searchFile(query.isFile ? query.root : join(query.root, path), path, pattern, query)));
      if (found.length >= query.maxMatches) return { lines: sortLines(found), complete: false };
    }
    return { lines: sortLines(found), complete: true } satisfies FoundLines;
  },
  async listFiles(root, signal) {
    const files: string[] = [];
    for await (const path of walk(root, signal)) files.push(path);
    return files;
  },
};

/** Leading flags are written as ripgrep takes them: `(?i)`. */
function compile(source: string): RegExp {
  const inline = /^\(\?([ims]+)\)/.exec(source);
  const body = inline ? source.slice(inline[0].length) : source;
  const flags = inline?.[1] ?? "";
  try {
    return new RegExp(body, `${flags}u`);
  } catch {
    // Some escapes that everybody writes are errors in Unicode mode only.
    try {
      return new RegExp(body, flags);
    } catch (error) {
      throw new SearchPatternError(error instanceof Error ? error.message : String(error));
    }
  }
}

async function* walk(root: string, signal: AbortSignal): AsyncGenerator<string> {
  yield* walkDirectory(root, "", await rulesAbove(root), signal);
}

async function* walkDirectory(
  root: string,
  below: string,
  outer: IgnoreRules,
  signal: AbortSignal,
): AsyncGenerator<string> {
  signal.throwIfAborted();
  const directory = join(root, below);
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => null);
  // Gone or not ours to read: the rest of the tree is still worth searching.
  if (entries === null) return;
  const rules = await outer.enter(
    directory,
    entries.map(({ name }) => name),
  );
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".")) continue;
    if (!entry.isFile() && !entry.isDirectory()) continue;
    if (rules.ignores(join(directory, entry.name), entry.isDirectory())) continue;
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isFile()) yield path;
    else yield* walkDirectory(root, path, rules, signal);
  }
}

async function searchFile(absolute: string, path: string, pattern: RegExp, query: ContentQuery): Promise<FoundLine[]> {
  const lines = await readLines(absolute, query.signal);
  if (lines === null) return [];
  return lines.flatMap((content, index) => {
    if (!pattern.test(content)) return [];
    const { context } = query;
    return [
      {
        path,
        line: index + 1,
        content,
        ...(context > 0 && {
          before: lines.slice(Math.max(0, index - context), index),
          after: lines.slice(index + 1, index + 1 + context),
        }),
      },
    ];
  });
}

/** Null for a binary file and for one that cannot be read. */
async function readLines(path: string, signal: AbortSignal): Promise<string[] | null> {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let rest = "";
  try {
    for await (const chunk of localFiles.chunks(path, signal)) {
      if (chunk.includes(0)) return null;
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = (parts.pop() ?? "").slice(0, MAX_LINE);
      for (const part of parts) lines.push(withoutReturn(part));
    }
  } catch {
    signal.throwIfAborted();
    return null;
  }
  if (rest !== "") lines.push(withoutReturn(rest));
  return lines;
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
