// search_files: lines by regular expression, or files by name.
import { join } from "node:path";
import { z } from "zod";
import { headUnits } from "../kit/code-points.ts";
import { isForbiddenDevice } from "../safety/file-guard.ts";
import { describeFileError, NotAFileError } from "./files/access.ts";
import { findRipgrep, ripgrepEngine, ripgrepIn } from "./files/ripgrep.ts";
import {
  type FoundLine,
  type PathFilter,
  type SearchEngine,
  SearchPatternError,
  walkerEngine,
  walkerOver,
} from "./files/search.ts";
import { findSimilar, openWorkspace, type Workspace } from "./files/workspace.ts";
import type { ToolContext } from "./toolset/context.ts";
import { toolError, toolResult } from "./toolset/dispatch.ts";
import { register } from "./toolset/registry.ts";
import { safeCut } from "./toolset/results.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;
const MAX_CONTENT = 500;
/** So much behind the cut is looked at too: a secret must be seen whole to be hidden. */
const BEYOND = 1024;
const MAX_CONTEXT = 20;
const MAX_MATCHES = 20_000;

const parameters = z.object({
  pattern: z.string().describe("content: regular expression; files: glob or name"),
  target: z.string().optional().describe("content (default) or files"),
  path: z.string().optional().describe("directory or file, default ."),
  file_glob: z.string().optional().describe("content: only files like *.ts"),
  limit: z.number().optional().describe(`default ${DEFAULT_LIMIT}`),
  offset: z.number().optional().describe("results to skip"),
  output_mode: z.enum(["content", "files_only", "count"]).optional(),
  context: z.number().optional().describe("lines around each match"),
});

type Arguments = z.infer<typeof parameters>;

register({
  name: "search_files",
  readOnly: true,
  toolset: "file",
  emoji: "🔎",
  description:
    "Search files: lines that match a regular expression, or files by name (newest first). Hidden and ignored files are left out.",
  parameters,
  handler: (args, ctx) => searchFiles(args, ctx),
});

export async function searchFiles(args: Arguments, ctx: ToolContext, engine?: SearchEngine): Promise<string> {
  const workspace = await openWorkspace(ctx);
  const asked = args.path?.trim() || ".";
  const inARow = workspace.activity.repeat(`search ${JSON.stringify(args)} ${workspace.absolute(asked)}`);
  if (inARow >= 4)
    return toolError(
      `BLOCKED: this is the same search for the ${inARow}th time in a row. Use its result or change it.`,
    );
  try {
    const result = await search(args, asked, workspace, ctx, engine ?? (await chooseEngine(ctx)));
    if (inARow === 3 && !("error" in result))
      return toolResult({ ...result, _warning: "The same search for the 3rd time in a row; the next one is refused." });
    return toolResult(result);
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (error instanceof SearchPatternError)
      return toolError(`The pattern was not understood: ${error.message}`, { total_count: 0 });
    return toolError(error instanceof NotAFileError ? error.message : describeFileError(error, asked));
  }
}

/** ripgrep where it is installed, else our own: here, or where commands run. */
async function chooseEngine({ environment: { files }, signal }: ToolContext): Promise<SearchEngine> {
  if (files) {
    const known = engines.get(files) ?? (await ripgrepIn(files, signal)) ?? walkerOver(files);
    engines.set(files, known);
    return known;
  }
  const program = await findRipgrep();
  return program === null ? walkerEngine : ripgrepEngine(program);
}

/** Looked for once in each environment. */
const engines = new WeakMap<object, SearchEngine>();

type Result = Readonly<Record<string, unknown>>;

async function search(
  args: Arguments,
  asked: string,
  workspace: Workspace,
  ctx: ToolContext,
  engine: SearchEngine,
): Promise<Result> {
  const target = targetOf(args.target);
  if (target === null) return { error: `target is "${args.target}"; it can be "content" or "files".` };
  if (args.pattern === "") return { error: "pattern is empty." };
  const path = workspace.absolute(asked);
  const refusal = await workspace.refuseRead(path);
  if (refusal !== null) return { error: refusal };
  const facts = await workspace.files.facts(path);
  if (!facts)
    return {
      error: `Path not found: ${asked}`,
      similar_files: await findSimilar(workspace.files, path, asked),
      total_count: 0,
    };
  if (facts.type === "other") throw new NotAFileError(asked);
  const root = await workspace.files.resolve(path);
  const isFile = facts.type === "file";
  const page: PageOf = {
    offset: Math.max(0, Math.trunc(args.offset ?? 0)),
    limit: Math.min(MAX_LIMIT, Math.max(1, Math.trunc(args.limit ?? DEFAULT_LIMIT))),
  };
  const show = (found: string) => (isFile ? asked : asked === "." ? found : join(asked, found));

  if (target === "files") {
    const paths = isFile ? [] : await engine.listFiles(root, ctx.signal);
    const { default: picomatch } = await import("picomatch");
    const accepts = nameFilter(picomatch, args.pattern);
    const wanted = paths.filter((found) => accepts(found) && !isHidden(join(root, found), workspace));
    const files = await newestFirst(wanted, root, workspace, ctx.signal);
    return {
      total_count: files.length,
      files: files.slice(page.offset, page.offset + page.limit).map(show),
      ...more(page, files.length),
    };
  }

  const glob = args.file_glob?.trim() || undefined;
  const accepts = await globFilter(glob, isFile);
  const found = await engine.findLines({
    root,
    isFile,
    pattern: args.pattern,
    accepts,
    context: Math.min(MAX_CONTEXT, Math.max(0, Math.trunc(args.context ?? 0))),
    maxMatches: MAX_MATCHES,
    signal: ctx.signal,
  });
  const lines = shownLines(found.lines, (file) => !isHidden(isFile ? root : join(root, file), workspace));
  const incomplete = found.complete ? {} : { hint: incompleteHint(lines.length) };
  return { ...render(lines, args.output_mode ?? "content", page, show, workspace), ...incomplete };
}

/** A file is asked about once, however many lines of it were found: they stand together. */
function shownLines(lines: readonly FoundLine[], isShown: (file: string) => boolean): readonly FoundLine[] {
  let file: string | null = null;
  let shown = false;
  return lines.filter(({ path }) => {
    if (path !== file) {
      file = path;
      shown = isShown(path);
    }
    return shown;
  });
}

const incompleteHint = (shown: number) =>
  shown >= MAX_MATCHES
    ? `The search stopped after ${shown} matches; narrow the pattern.`
    : "Matches in lines of many megabytes are left out; look for them with a command.";

const isHidden = (path: string, { guard }: Workspace) => guard.isUnreadable(path) || isForbiddenDevice(path);

interface PageOf {
  readonly offset: number;
  readonly limit: number;
}

function render(
  lines: readonly FoundLine[],
  mode: "content" | "files_only" | "count",
  page: PageOf,
  show: (path: string) => string,
  workspace: Workspace,
): Result {
  const end = page.offset + page.limit;
  if (mode === "content") {
    const matches = lines.slice(page.offset, end).map((line) => ({
      path: show(line.path),
      line: line.line,
      content: showContent(line.content, line.path, workspace),
      before: line.before?.map((text) => showContent(text, line.path, workspace)),
      after: line.after?.map((text) => showContent(text, line.path, workspace)),
    }));
    return { total_count: lines.length, matches, ...more(page, lines.length) };
  }
  const counts = new Map<string, number>();
  for (const { path } of lines) counts.set(show(path), (counts.get(show(path)) ?? 0) + 1);
  const entries = [...counts];
  const shown = entries.slice(page.offset, end);
  return mode === "count"
    ? { total_count: lines.length, counts: Object.fromEntries(shown), ...more(page, entries.length) }
    : { total_count: entries.length, files: shown.map(([path]) => path), ...more(page, entries.length) };
}

function more(page: PageOf, total: number): Result {
  const next = page.offset + page.limit;
  return next < total ? { truncated: true, next_offset: next } : { truncated: false };
}

const KEY_FILE = /(?:\.pem|\.key|\.p8|(?:^|\/)id_[a-z0-9]+)$/i;

/** A line torn out of a private key no longer shows that it is one; the file's name does. */
function showContent(content: string, path: string, workspace: Workspace): string {
  if (KEY_FILE.test(path) && /^[A-Za-z0-9+/=]{16,}$/.test(content.trim())) return "«redacted private key»";
  const redact = (text: string) => workspace.redact(text, path);
  if (content.length <= MAX_CONTENT) return redact(content);
  const near = headUnits(content, MAX_CONTENT + BEYOND);
  return redact(near.slice(0, safeCut(near, MAX_CONTENT, -1, redact)));
}

function targetOf(target: string | undefined): "content" | "files" | null {
  const name = target?.trim().toLowerCase() ?? "content";
  if (name === "content" || name === "grep" || name === "") return "content";
  return name === "files" || name === "find" ? "files" : null;
}

async function globFilter(glob: string | undefined, isFile: boolean): Promise<PathFilter> {
  if (glob === undefined || isFile) return () => true;
  const { default: picomatch } = await import("picomatch");
  const accepts = globMatcher(picomatch, glob);
  return Object.assign((path: string) => accepts(path), glob.includes("/") ? {} : { nameGlob: glob });
}

/** A bare name also finds what ends with it. */
function nameFilter(picomatch: typeof import("picomatch"), pattern: string): (path: string) => boolean {
  const isBare = !/[*?[\]{}/]/.test(pattern);
  return globMatcher(picomatch, isBare ? `*${pattern}` : pattern);
}

/** Without a slash a glob speaks of the file's name, with one of its path from any directory on. */
function globMatcher(picomatch: typeof import("picomatch"), glob: string): (path: string) => boolean {
  const cleaned = glob.replace(/^\.?\//, "");
  if (!cleaned.includes("/")) return picomatch(cleaned, { basename: true, dot: true });
  return picomatch([cleaned, `**/${cleaned}`], { dot: true });
}

async function newestFirst(
  paths: readonly string[],
  root: string,
  { files }: Workspace,
  signal: AbortSignal,
): Promise<string[]> {
  const times = await files.changeTimes(
    paths.map((path) => join(root, path)),
    signal,
  );
  const timeOf = (path: string) => times.get(join(root, path)) ?? 0;
  return [...paths].sort((a, b) => timeOf(b) - timeOf(a) || (a < b ? -1 : 1));
}
