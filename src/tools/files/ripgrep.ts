// The search engine that is ripgrep.

import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { EnvironmentFiles } from "../../sandbox/environment.ts";
import {
  type ContentQuery,
  type FoundLine,
  type FoundLines,
  keepText,
  type SearchEngine,
  SearchPatternError,
} from "./search.ts";

let program: Promise<string | null> | undefined;

/** The program that comes with the package, else the system's, else null. Looked for once. */
export function findRipgrep(): Promise<string | null> {
  program ??= locate();
  return program;
}

async function locate(): Promise<string | null> {
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    await access(rgPath, constants.X_OK);
    return rgPath;
  } catch {
    // The package is optional; a machine may have its own.
    return (await isRunnable("rg")) ? "rg" : null;
  }
}

function isRunnable(command: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, ["--version"], { stdio: "ignore" });
    child.on("error", () => resolve(false));
    child.on("exit", (code) => resolve(code === 0));
  });
}

const COMMON = ["--no-config", "--no-require-git", "--no-ignore-global", "--no-messages"];

/** One run of the program: its output as it comes; resolves with its exit code and what it complained about. */
type RunRipgrep = (run: {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: Buffer) => void;
}) => Promise<{ readonly code: number | null; readonly errors: string }>;

export function ripgrepEngine(path: string): SearchEngine {
  return engineOver((run) => runHere(path, run));
}

/** The ripgrep of an environment. Null when it has none. */
export async function ripgrepIn(files: EnvironmentFiles, signal: AbortSignal): Promise<SearchEngine | null> {
  const { ripgrep } = files;
  if (!ripgrep) return null;
  const program = await findRipgrep();
  const { code } = await ripgrep({ program, args: ["--version"], cwd: "/", signal, onBytes: () => undefined });
  return code === 0 ? engineOver((run) => ripgrep({ program, ...run })) : null;
}

function engineOver(runRipgrep: RunRipgrep): SearchEngine {
  return {
    name: "ripgrep",
    findLines: (query) => findLines(runRipgrep, query),
    async listFiles(root, signal) {
      const parts: Buffer[] = [];
      const args = ["--files", "--null", ...COMMON, "--", "."];
      // Copies: whoever reads the output may use the same memory again.
      await runRipgrep({ args, cwd: root, signal, onBytes: (bytes) => void parts.push(Buffer.from(bytes)) });
      const names = Buffer.concat(parts).toString("utf8").split("\0");
      return names.filter((name) => name !== "").map(plain);
    },
  };
}

async function findLines(runRipgrep: RunRipgrep, query: ContentQuery): Promise<FoundLines> {
  const { root, isFile, accepts } = query;
  const type = accepts.nameGlob !== undefined && /^[\w.*?-]+$/.test(accepts.nameGlob);
  // A type, not --glob: --glob would bring ignored files back.
  const filter = type ? ["--type-add", `wanted:${accepts.nameGlob}`, "--type", "wanted"] : [];
  const context = query.context > 0 ? ["--context", String(query.context), "--no-context-separator"] : [];
  const collector = createCollector(query);
  const stopper = new AbortController();
  const args = [
    ...[...AS_TEXT, "--crlf", ...COMMON, "--engine", "auto", ...filter, ...context],
    ...["--regexp", query.pattern, "--", isFile ? `./${basename(root)}` : "."],
  ];
  const finished = await runRipgrep({
    args,
    cwd: isFile ? dirname(root) : root,
    signal: AbortSignal.any([query.signal, stopper.signal]),
    onBytes(bytes) {
      collector.take(bytes);
      if (collector.isFull()) stopper.abort();
    },
  }).catch((error: unknown) => {
    if (!stopper.signal.aborted) throw error;
    return null;
  });
  query.signal.throwIfAborted();
  // Files that cannot be read end it with 2 as well, and without a word.
  if (finished && !(finished.code === 0 || finished.code === 1 || (finished.code === 2 && finished.errors === "")))
    throw new SearchPatternError(finished.errors.trim().slice(0, 1000) || `ripgrep ended with code ${finished.code}`);
  const { lines, tooLong } = collector.end();
  return { lines, complete: finished !== null && tooLong === 0 };
}

/** `path NUL 12:text` for a match, `path NUL 12-text` beside one. Its JSON takes ripgrep half as long again, and us as long as ripgrep. */
const AS_TEXT = ["--no-heading", "--with-filename", "--null", "--line-number", "--color", "never"];
/** Behind the lines of a file in which a NUL came up late, on a line without one. */
const BINARY = /^: (?:WARNING: stopped searching )?binary file (?:matches|after match)/;
const [LINE_FEED, CARRIAGE_RETURN, COLON, ZERO] = [10, 13, 58, 48] as const;

/** A match in a line longer than this is not shown: the line comes whole, and nobody reads it. */
const MAX_RECORD = 8 * 1024 * 1024;
/** A line of this length may stay a part of the text that it came in. */
const SHORT = 1024;

interface Line {
  readonly line: number;
  readonly content: string;
  readonly isMatch: boolean;
}

/** Turns the output into lines, file by file. Lines come by the ten thousand: what stands between two of them is looked at where it lies. */
function createCollector(query: ContentQuery) {
  const files: { readonly path: string; readonly matches: FoundLine[] }[] = [];
  let count = 0;
  /** The name as it came, which is compared without being read, and as it is shown. */
  let file: { readonly name: Buffer; readonly path: string; readonly isWanted: boolean } | null = null;
  let lines: Line[] = [];
  let rest = Buffer.alloc(0);
  let passing = false;
  let tooLong = 0;

  const finishFile = () => {
    if (lines.length === 0 || !file) return;
    const matches = withContext(file.path, lines, query.context);
    files.push({ path: file.path, matches });
    count += matches.length;
    lines = [];
  };
  const begin = (bytes: Buffer) => {
    let name = bytes;
    const said = file !== null && bytes.subarray(0, file.name.length).equals(file.name) ? file.name.length : -1;
    const end = said < 0 ? -1 : bytes.indexOf(LINE_FEED, said);
    if (end >= 0 && BINARY.test(bytes.toString("utf8", said, end))) {
      lines = [];
      name = bytes.subarray(end + 1);
    }
    finishFile();
    const path = plain(name.toString("utf8"));
    file = { name: Buffer.from(name), path, isWanted: query.accepts(path) };
  };
  /** A whole record: its path ends before `nul`, its text before `end`. */
  const read = (bytes: Buffer, start: number, nul: number, end: number) => {
    if (!file || bytes.compare(file.name, 0, file.name.length, start, nul) !== 0) begin(bytes.subarray(start, nul));
    if (!file?.isWanted) return;
    let at = nul + 1;
    let line = 0;
    for (; isDigit(bytes[at]); at++) line = line * 10 + (bytes[at] ?? 0) - ZERO;
    const isMatch = bytes[at] === COLON;
    const textEnd = bytes[end - 1] === CARRIAGE_RETURN && end - 1 > at ? end - 1 : end;
    const text = bytes.toString("utf8", at + 1, textEnd);
    lines.push({ line, content: text.length > SHORT ? keepText(text) : text, isMatch });
  };

  return {
    take(chunk: Buffer) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let at = 0;
      if (passing) {
        const end = bytes.indexOf(LINE_FEED);
        passing = end < 0;
        at = passing ? bytes.length : end + 1;
      }
      while (at < bytes.length) {
        const nul = bytes.indexOf(0, at);
        const end = nul < 0 ? -1 : bytes.indexOf(LINE_FEED, nul);
        if (end < 0) break;
        read(bytes, at, nul, end);
        at = end + 1;
      }
      if (bytes.length - at > MAX_RECORD) {
        passing = true;
        tooLong++;
        at = bytes.length;
      }
      // A copy: whoever reads the output may use the same memory again.
      rest = Buffer.from(bytes.subarray(at));
    },
    isFull: () => count >= query.maxMatches,
    end() {
      if (rest.length > 0) begin(rest);
      else finishFile();
      files.sort((a, b) => (a.path < b.path ? -1 : 1));
      return { lines: files.flatMap(({ matches }) => matches), tooLong };
    },
  };
}

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= ZERO && byte < COLON;

/** The matches among the lines of a file, each with what stands around it where that was asked for. */
function withContext(path: string, lines: readonly Line[], context: number): FoundLine[] {
  if (context === 0) return lines.map(({ line, content }) => ({ path, line, content }));
  const texts = new Map(lines.map(({ line, content }) => [line, content]));
  const between = (from: number, to: number) => {
    const around: string[] = [];
    for (let at = from; at <= to; at++) if (texts.has(at)) around.push(texts.get(at) ?? "");
    return around;
  };
  return lines
    .filter(({ isMatch }) => isMatch)
    .map(({ line, content }) => ({
      path,
      line,
      content,
      before: between(line - context, line - 1),
      after: between(line + 1, line + context),
    }));
}

function plain(path: string): string {
  return path.replace(/^\.[\\/]/, "").replaceAll("\\", "/");
}

const MAX_ERRORS = 4000;

function runHere(
  path: string,
  { args, cwd, signal, onBytes }: Parameters<RunRipgrep>[0],
): Promise<{ code: number | null; errors: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length < MAX_ERRORS) errors += text;
    });
    child.stdout.on("data", onBytes);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, errors }));
  });
}
