import { basename, dirname, join, relative, sep } from "node:path";
import picomatch from "picomatch";
import { messageOf } from "../../kit/errors.ts";
import { type EnvironmentFiles, MAX_TEXT_BYTES } from "../../sandbox/environment.ts";
import { localFiles } from "./access.ts";

// Searching below a directory: what an engine promises.

export interface FoundLine {
  /** Relative to the root, with `/`; the file's own name when the root is a file. */
  readonly path: string;
  readonly line: number;
  /** Of a long line its beginning. */
  readonly content: string;
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}

export interface ContentQuery {
  /** Absolute and real: a directory or a file. */
  readonly root: string;
  readonly isFile: boolean;
  /** A regular expression of the engine's dialect. */
  readonly pattern: string;
  readonly accepts: PathFilter;
  /** Lines of context on each side. */
  readonly context: number;
  readonly maxMatches: number;
  readonly signal: AbortSignal;
}

export interface PathFilter {
  (path: string): boolean;
  /** The filter as one glob on the file's name, where it is no more than that. */
  readonly nameGlob?: string;
}

export interface FoundLines {
  /** Sorted by path, then line. */
  readonly lines: readonly FoundLine[];
  /** False when the search stopped at `maxMatches`, or passed lines by that are too long to be shown. */
  readonly complete: boolean;
}

/**
 * Looks through the files below a root.
 *
 * - Hidden and ignored files (.gitignore, .ignore) are left out, unless the root itself is one; binary files and links are left out.
 * - A pattern it cannot read makes it reject with `SearchPatternError` in its own words.
 */
export interface SearchEngine {
  readonly name: string;
  findLines(query: ContentQuery): Promise<FoundLines>;
  /** All files below a directory, in no particular order. */
  listFiles(root: string, signal: AbortSignal): Promise<string[]>;
}

export class SearchPatternError extends Error {
  override name = "SearchPatternError";
}

/** More than any result shows. */
const MAX_KEPT = 4096;

/** The beginning of a line, as a text of its own: a piece of a larger text would keep all of that in memory. */
export function keepText(line: string): string {
  return Buffer.from(line.slice(0, MAX_KEPT), "utf16le").toString("utf16le");
}

function sortLines(lines: FoundLine[]): FoundLine[] {
  return lines.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}

// The search engine for environments without ripgrep: a walk with JavaScript's regular expressions.

/** A longer line is searched in its beginning only. */
const MAX_LINE = 1024 * 1024;
/** Files asked for together: where they are far away, each trip costs more than what it carries. */
const TOGETHER = 200;

export function walkerOver(files: EnvironmentFiles): SearchEngine {
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
      throw new SearchPatternError(messageOf(error));
    }
  }
}

/** The files below a root, one level of directories at a time. */
async function* walk(files: EnvironmentFiles, root: string, signal: AbortSignal): AsyncGenerator<string[]> {
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

// Which files a .gitignore leaves out.

interface Rule {
  readonly negated: boolean;
  readonly directoriesOnly: boolean;
  /** Matches the path below the file's directory, or the bare name when the pattern has no slash. */
  readonly matches: (path: string, name: string) => boolean;
}

interface RuleFile {
  readonly directory: string;
  readonly rules: readonly Rule[];
}

/** Rules in force at one directory, outermost first: the last rule that matches decides. */
export interface IgnoreRules {
  ignores(path: string, isDirectory: boolean): boolean;
  /** The rules below, with the files of this directory added. A repository of its own starts with none. */
  enter(directory: string, names: readonly string[]): Promise<IgnoreRules>;
}

function rulesOf(files: readonly RuleFile[], access: Pick<EnvironmentFiles, "read">): IgnoreRules {
  return {
    ignores(path, isDirectory) {
      let ignored = false;
      for (const { directory, rules } of files) {
        const below = relative(directory, path).split(sep).join("/");
        const name = below.slice(below.lastIndexOf("/") + 1);
        for (const rule of rules)
          if ((isDirectory || !rule.directoriesOnly) && rule.matches(below, name)) ignored = !rule.negated;
      }
      return ignored;
    },
    async enter(directory, names) {
      const inherited = names.includes(".git") ? [] : files;
      const own: RuleFile[] = [];
      for (const name of [".gitignore", ".ignore"])
        if (names.includes(name))
          own.push({ directory, rules: parseRules(await readRules(join(directory, name), access)) });
      return own.length === 0 && inherited === files ? this : rulesOf([...inherited, ...own], access);
    },
  };
}

/** The rules that directories above a root impose on it, up to the root of its repository. */
export async function rulesAbove(root: string, access: EnvironmentFiles = localFiles): Promise<IgnoreRules> {
  const upwards = [root];
  for (let at = root; dirname(at) !== at; at = dirname(at)) upwards.push(dirname(at));
  const names = await access.entries(upwards, new AbortController().signal);
  const namesIn = (directory: string) => (names.get(directory) ?? []).map(({ name }) => name);
  const repository = upwards.findIndex((directory) => namesIn(directory).includes(".git"));
  let rules = rulesOf([], access);
  for (const parent of upwards.slice(1, repository === -1 ? undefined : repository + 1).reverse())
    rules = await rules.enter(parent, namesIn(parent));
  return rules;
}

function parseRules(text: string): Rule[] {
  return text.split(/\r?\n/).flatMap((line) => {
    let pattern = line.replace(/(?:(?<![\\\s])|(?<=\\\s))\s+$/, "");
    if (pattern === "" || pattern.startsWith("#")) return [];
    const negated = pattern.startsWith("!");
    if (negated) pattern = pattern.slice(1);
    const directoriesOnly = pattern.endsWith("/");
    if (directoriesOnly) pattern = pattern.slice(0, -1);
    const anchored = pattern.includes("/");
    const isMatch = picomatch(pattern.replace(/^\//, ""), {
      dot: true,
      nonegate: true,
      noextglob: true,
      nobrace: true,
    });
    return [{ negated, directoriesOnly, matches: (path: string, name: string) => isMatch(anchored ? path : name) }];
  });
}

async function readRules(path: string, access: Pick<EnvironmentFiles, "read">): Promise<string> {
  // Unreadable, or gone meanwhile: then it imposes nothing.
  return access.read(path).then(
    (bytes) => bytes.toString("utf8"),
    () => "",
  );
}
