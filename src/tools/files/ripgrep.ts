// The search engine that is ripgrep.

import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { asRecord } from "../../kit/json.ts";
import type { EnvironmentFiles } from "../../sandbox/environment.ts";
import {
  type ContentQuery,
  type FoundLine,
  type FoundLines,
  keepText,
  type SearchEngine,
  SearchPatternError,
  sortLines,
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
      const files: string[] = [];
      const args = ["--files", "--null", ...COMMON, "--", "."];
      await runRecords(runRipgrep, { args, cwd: root, signal }, "\0", (name) => void files.push(plain(name)));
      return files;
    },
  };
}

async function findLines(runRipgrep: RunRipgrep, query: ContentQuery): Promise<FoundLines> {
  const { root, isFile, accepts } = query;
  const type = accepts.nameGlob !== undefined && /^[\w.*?-]+$/.test(accepts.nameGlob);
  // A type, not --glob: --glob would bring ignored files back.
  const filter = type ? ["--type-add", `wanted:${accepts.nameGlob}`, "--type", "wanted"] : [];
  const context = query.context > 0 ? ["--context", String(query.context)] : [];
  const collector = createCollector(query);
  const stopper = new AbortController();
  const args = [
    ...["--json", "--crlf", ...COMMON, "--engine", "auto", ...filter, ...context],
    ...["--regexp", query.pattern, "--", isFile ? `./${basename(root)}` : "."],
  ];
  const finished = await runRecords(
    runRipgrep,
    { args, cwd: isFile ? dirname(root) : root, signal: AbortSignal.any([query.signal, stopper.signal]) },
    "\n",
    (line) => {
      collector.take(line);
      if (collector.isFull()) stopper.abort();
    },
  ).catch((error: unknown) => {
    if (!stopper.signal.aborted) throw error;
    return null;
  });
  query.signal.throwIfAborted();
  if (finished && !collector.sawSummary())
    throw new SearchPatternError(finished.errors.trim().slice(0, 1000) || `ripgrep ended with code ${finished.code}`);
  return { lines: sortLines(collector.lines()), complete: finished !== null && finished.tooLong === 0 };
}

/** One event of `rg --json`. A search brings them by the ten thousand, so they are looked at by hand: a schema takes longer than their JSON. */
type Event =
  | { readonly type: "begin" }
  | { readonly type: "summary" }
  | { readonly type: "end"; readonly path: string; readonly isBinary: boolean }
  | { readonly type: "match" | "context"; readonly text: string; readonly line: number };

function readEvent(json: string): Event {
  const { type, data } = asRecord(JSON.parse(needed(json)));
  const { path, lines, line_number: line, binary_offset } = asRecord(data);
  if (type === "begin" || type === "summary") return { type };
  if (type === "end") return { type, path: textIn(path), isBinary: binary_offset !== null };
  if ((type === "match" || type === "context") && typeof line === "number") return { type, text: textIn(lines), line };
  throw new Error(`ripgrep said something unknown: ${json.slice(0, 200)}`);
}

/** Without where in the line it matched, which nobody asks. Inside a text these quotes would be escaped. */
function needed(json: string): string {
  const end = json.indexOf(',"absolute_offset":');
  return end < 0 ? json : `${json.slice(0, end)}}}`;
}

/** What is no UTF-8 comes as base64. */
function textIn(value: unknown): string {
  const { text, bytes } = asRecord(value);
  if (typeof text === "string") return text;
  if (typeof bytes === "string") return Buffer.from(bytes, "base64").toString("utf8");
  throw new Error("ripgrep named no text");
}

/** A line of this length may stay a part of the text that it came in. */
const SHORT = 1024;

/** Turns ripgrep's events into lines, file by file. */
function createCollector(query: ContentQuery) {
  const found: FoundLine[] = [];
  let summary = false;
  let file: { line: number; content: string; isMatch: boolean }[] = [];
  const finishFile = (path: string) => {
    const { context } = query;
    const texts = context > 0 ? new Map(file.map(({ line, content }) => [line, content])) : null;
    for (const { line, content, isMatch } of file) {
      if (!isMatch) continue;
      if (!texts) {
        found.push({ path, line, content });
        continue;
      }
      const around = (from: number, to: number) => {
        const lines: string[] = [];
        for (let at = from; at <= to; at++) if (texts.has(at)) lines.push(texts.get(at) ?? "");
        return lines;
      };
      found.push({
        path,
        line,
        content,
        before: around(line - context, line - 1),
        after: around(line + 1, line + context),
      });
    }
  };
  return {
    take(json: string) {
      const event = readEvent(json);
      if (event.type === "begin") file = [];
      else if (event.type === "summary") summary = true;
      else if (event.type === "end") {
        const path = plain(event.path);
        if (!event.isBinary && query.accepts(path)) finishFile(path);
      } else {
        const text = withoutEnd(event.text);
        const content = text.length > SHORT ? keepText(text) : text;
        file.push({ line: event.line, content, isMatch: event.type === "match" });
      }
    },
    isFull: () => found.length >= query.maxMatches,
    sawSummary: () => summary,
    lines: () => found,
  };
}

function withoutEnd(line: string): string {
  if (!line.endsWith("\n")) return line;
  return line.slice(0, line.endsWith("\r\n") ? -2 : -1);
}

function plain(path: string): string {
  return path.replace(/^\.[\\/]/, "").replaceAll("\\", "/");
}

/** A match in a line longer than this is not shown: the line comes whole, and nobody reads it. */
const MAX_RECORD = 8 * 1024 * 1024;

/** Cuts the output into records; one that cannot be taken ends the run, one that is too long is left out and counted. */
async function runRecords(
  runRipgrep: RunRipgrep,
  { args, cwd, signal }: { args: readonly string[]; cwd: string; signal: AbortSignal },
  separator: "\n" | "\0",
  onRecord: (record: string) => void,
): Promise<{ code: number | null; errors: string; tooLong: number }> {
  const stopper = new AbortController();
  const mark = separator.charCodeAt(0);
  let rest: Buffer[] = [];
  let length = 0;
  let tooLong = 0;
  const failures: unknown[] = [];
  const keep = (bytes: Buffer) => {
    length += bytes.length;
    // A copy: whoever reads the output may use the same memory again.
    if (length <= MAX_RECORD) rest.push(Buffer.from(bytes));
  };
  const take = (record: string) => {
    if (record !== "" && failures.length === 0) onRecord(record);
  };
  const finish = () => {
    const record = length <= MAX_RECORD ? Buffer.concat(rest).toString("utf8") : "";
    if (length > MAX_RECORD) tooLong++;
    rest = [];
    length = 0;
    take(record);
  };
  const ended = await runRipgrep({
    args,
    cwd,
    signal: AbortSignal.any([signal, stopper.signal]),
    onBytes(bytes) {
      let from = 0;
      try {
        for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, from)) {
          // Most records come whole.
          if (length === 0 && at - from <= MAX_RECORD) take(bytes.toString("utf8", from, at));
          else {
            keep(bytes.subarray(from, at));
            finish();
          }
          from = at + 1;
        }
      } catch (error) {
        failures.push(error);
        stopper.abort();
      }
      keep(bytes.subarray(from));
    },
  }).catch((error: unknown) => {
    throw failures.length > 0 ? failures[0] : error;
  });
  if (failures.length > 0) throw failures[0];
  return { ...ended, tooLong };
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
