// The search engine for places without ripgrep: a walk with JavaScript's regular expressions.
import { basename, join } from "node:path";
import { MAX_TEXT_BYTES } from "../sandbox/environment.ts";
import { type IgnoreRules, rulesAbove } from "./file-ignore.ts";
import { type FileAccess, localFiles } from "./files/access.ts";
import {
  type ContentQuery,
  type FoundLine,
  type FoundLines,
  keepText,
  type SearchEngine,
  SearchPatternError,
  sortLines,
} from "./files/search.ts";

/** A longer line is searched in its beginning only. */
const MAX_LINE = 1024 * 1024;
/** Files asked for together: where they are far away, each trip costs more than what it carries. */
const TOGETHER = 200;

export function walkerOver(files: FileAccess): SearchEngine {
  return {
    name: "walker",
    async findLines(query) {
      const pattern = compile(query.pattern);
      const found: FoundLine[] = [];
      let complete = true;
      const paths = query.isFile ? [[basename(query.root)]] : walk(files, query.root, query.signal);
      for await (const level of paths) {
        const wanted = level.filter(query.accepts);
        for (let at = 0; at < wanted.length; at += TOGETHER) {
          const absolute = new Map(
            wanted.slice(at, at + TOGETHER).map((path) => [query.isFile ? query.root : join(query.root, path), path]),
          );
          for await (const { path, data } of files.readTexts([...absolute.keys()], query.signal)) {
            const { lines, cut } = linesOf(data);
            if (cut || data.length >= MAX_TEXT_BYTES) complete = false;
            found.push(...searchLines(lines, absolute.get(path) ?? path, pattern, query));
            if (found.length >= query.maxMatches) return { lines: sortLines(found), complete: false };
          }
        }
      }
      return { lines: sortLines(found), complete } satisfies FoundLines;
    },
    async listFiles(root, signal) {
      const all: string[] = [];
      for await (const level of walk(files, root, signal)) all.push(...level);
      return all;
    },
  };
}

export const walkerEngine = walkerOver(localFiles);

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

/** The files below a root, one level of directories at a time. */
async function* walk(files: FileAccess, root: string, signal: AbortSignal): AsyncGenerator<string[]> {
  let level: { readonly below: string; readonly outer: IgnoreRules }[] = [
    { below: "", outer: await rulesAbove(root, files) },
  ];
  while (level.length > 0) {
    signal.throwIfAborted();
    const listed = await files.entries(
      level.map(({ below }) => join(root, below)),
      signal,
    );
    const found: string[] = [];
    const next: typeof level = [];
    for (const { below, outer } of level) {
      const directory = join(root, below);
      const entries = [...(listed.get(directory) ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
      const rules = await outer.enter(
        directory,
        entries.map(({ name }) => name),
      );
      for (const { name, type } of entries) {
        if (name.startsWith(".") || type === "other") continue;
        if (rules.ignores(join(directory, name), type === "directory")) continue;
        const path = below === "" ? name : `${below}/${name}`;
        if (type === "file") found.push(path);
        else next.push({ below: path, outer: rules });
      }
    }
    yield found;
    level = next;
  }
}

function searchLines(lines: readonly string[], path: string, pattern: RegExp, query: ContentQuery): FoundLine[] {
  return lines.flatMap((content, index) => {
    if (!pattern.test(content)) return [];
    const { context } = query;
    return [
      {
        path,
        line: index + 1,
        content: keepText(content),
        ...(context > 0 && {
          before: lines.slice(Math.max(0, index - context), index).map(keepText),
          after: lines.slice(index + 1, index + 1 + context).map(keepText),
        }),
      },
    ];
  });
}

function linesOf(data: Buffer): { readonly lines: string[]; readonly cut: boolean } {
  const lines = new TextDecoder().decode(data).split("\n");
  if (lines.at(-1) === "") lines.pop();
  let cut = false;
  const short = lines.map((line) => {
    cut ||= line.length > MAX_LINE;
    return (line.endsWith("\r") ? line.slice(0, -1) : line).slice(0, MAX_LINE);
  });
  return { lines: short, cut };
}
