// The search engine that is ripgrep.
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import {
  type ContentQuery,
  type FoundLine,
  type FoundLines,
  type SearchEngine,
  SearchPatternError,
  sortLines,
} from "./file-search.ts";

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

export function ripgrepEngine(path: string): SearchEngine {
  return {
    name: "ripgrep",
    findLines: (query) => findLines(path, query),
    async listFiles(root, signal) {
      const files: string[] = [];
      await run(
        path,
        ["--files", "--null", ...COMMON, "--", "."],
        root,
        signal,
        "\0",
        (name) => void files.push(plain(name)),
      );
      return files;
    },
  };
}

async function findLines(path: string, query: ContentQuery): Promise<FoundLines> {
  const { root, isFile, accepts } = query;
  const type = accepts.nameGlob !== undefined && /^[\w.*?-]+$/.test(accepts.nameGlob);
  // A type, not --glob: --glob would bring ignored files back.
  const filter = type ? ["--type-add", `wanted:${accepts.nameGlob}`, "--type", "wanted"] : [];
  const context = query.context > 0 ? ["--context", String(query.context)] : [];
  const args = [
    "--json",
    "--crlf",
    ...COMMON,
    "--engine",
    "auto",
    ...filter,
    ...context,
    "--regexp",
    query.pattern,
    "--",
  ];
  const collector = createCollector(query);
  const stopper = new AbortController();
  const finished = await run(
    path,
    [...args, isFile ? `./${basename(root)}` : "."],
    isFile ? dirname(root) : root,
    AbortSignal.any([query.signal, stopper.signal]),
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
    throw new SearchPatternError(finished.stderr.trim().slice(0, 1000) || `ripgrep ended with code ${finished.code}`);
  return { lines: sortLines(collector.lines()), complete: finished !== null };
}

const Text = z.union([
  z.object({ text: z.string() }).transform(({ text }) => text),
  z.object({ bytes: z.string() }).transform(({ bytes }) => Buffer.from(bytes, "base64").toString("utf8")),
]);
const Event = z.discriminatedUnion("type", [
  z.object({ type: z.literal("begin"), data: z.object({ path: Text }) }),
  z.object({ type: z.literal("match"), data: z.object({ path: Text, lines: Text, line_number: z.number() }) }),
  z.object({ type: z.literal("context"), data: z.object({ path: Text, lines: Text, line_number: z.number() }) }),
  z.object({ type: z.literal("end"), data: z.object({ path: Text, binary_offset: z.number().nullable() }) }),
  z.object({ type: z.literal("summary") }),
]);

/** Turns ripgrep's events into lines, file by file. */
function createCollector(query: ContentQuery) {
  const found: FoundLine[] = [];
  let summary = false;
  let file: { line: number; content: string; isMatch: boolean }[] = [];
  const finishFile = (path: string) => {
    const texts = new Map(file.map(({ line, content }) => [line, content]));
    for (const { line, content, isMatch } of file) {
      if (!isMatch) continue;
      const around = (from: number, to: number) => {
        const lines: string[] = [];
        for (let at = from; at <= to; at++) if (texts.has(at)) lines.push(texts.get(at) ?? "");
        return lines;
      };
      found.push({
        path,
        line,
        content,
        ...(query.context > 0 && {
          before: around(line - query.context, line - 1),
          after: around(line + 1, line + query.context),
        }),
      });
    }
  };
  return {
    take(json: string) {
      const event = Event.parse(JSON.parse(json));
      if (event.type === "begin") file = [];
      else if (event.type === "summary") summary = true;
      else if (event.type === "end") {
        const path = plain(event.data.path);
        if (event.data.binary_offset === null && query.accepts(path)) finishFile(path);
      } else {
        const content = event.data.lines.replace(/\r?\n$/, "");
        file.push({ line: event.data.line_number, content, isMatch: event.type === "match" });
      }
    },
    isFull: () => found.length >= query.maxMatches,
    sawSummary: () => summary,
    lines: () => found,
  };
}

function plain(path: string): string {
  return path.replace(/^\.[\\/]/, "").replaceAll("\\", "/");
}

function run(
  path: string,
  args: readonly string[],
  cwd: string,
  signal: AbortSignal,
  separator: "\n" | "\0",
  onRecord: (record: string) => void,
): Promise<{ code: number | null; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    let failure: unknown;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (stderr.length < 4000) stderr += text;
    });
    const take = (record: string) => {
      if (record === "" || failure !== undefined) return;
      try {
        onRecord(record);
      } catch (error) {
        failure = error;
        child.kill();
      }
    };
    if (separator === "\n") createInterface({ input: child.stdout, crlfDelay: Infinity }).on("line", take);
    else {
      let rest = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const records = (rest + text).split(separator);
        rest = records.pop() ?? "";
        for (const record of records) take(record);
      });
    }
    child.on("error", reject);
    child.on("close", (code) => (failure === undefined ? resolve({ code, stderr }) : reject(failure)));
  });
}
