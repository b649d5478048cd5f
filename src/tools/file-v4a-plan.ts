// The first phase of a patch over several files: everything is tried against an overlay, nothing is written.
import { applyEdits, toLf } from "../kit/fuzzy/line-endings.ts";
import { haystackOf, spanOfLines } from "../kit/fuzzy/match.ts";
import { fuzzyReplace, isAlreadyApplied } from "../kit/fuzzy/replace.ts";
import type { Hunk, PatchOperation } from "./file-v4a.ts";

/** What a file holds. `null` = it does not exist; one that is no text can be moved and removed, not changed. */
export type Content = string | null | NoText;

export interface NoText {
  /** Why it cannot be changed. */
  readonly reason: string;
}

/** One file after all operations. */
export interface PlannedFile {
  readonly before: Content;
  readonly after: Content;
}

/** What is done on disk, in order. */
export type PatchStep =
  /** `before`: what is there when this step is done, for the way back. */
  | { readonly type: "write"; readonly key: string; readonly text: string; readonly before: string | null }
  | { readonly type: "remove"; readonly key: string }
  | { readonly type: "move"; readonly key: string; readonly to: string };

export interface Plan {
  readonly steps: readonly PatchStep[];
  /** By the key `identify` gave: everything the patch touches. */
  readonly files: ReadonlyMap<string, PlannedFile>;
  readonly failures: readonly string[];
  readonly warnings: readonly string[];
}

export interface PlanSources {
  /** One key per file, whatever way it is spelled. */
  identify(path: string): string;
  /** Content on disk, or null; rejects with why it cannot be had. */
  read(key: string): Promise<Content>;
}

export async function planPatch(operations: readonly PatchOperation[], sources: PlanSources): Promise<Plan> {
  const before = new Map<string, Content>();
  const overlay = new Map<string, Content>();
  const steps: PatchStep[] = [];
  const failures: string[] = [];
  const warnings: string[] = [];
  const write = (key: string, text: string, old: string | null) => {
    overlay.set(key, text);
    steps.push({ type: "write", key, text, before: old });
  };
  const current = async (path: string) => {
    const key = sources.identify(path);
    if (!overlay.has(key)) {
      before.set(key, await sources.read(key));
      overlay.set(key, before.get(key) ?? null);
    }
    return overlay.get(key) ?? null;
  };
  for (const operation of operations) {
    const fail = (reason: string) => void failures.push(`${operation.path}: ${reason}`);
    try {
      await plan(operation, fail);
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
    }
  }
  const files = new Map([...overlay].map(([key, after]) => [key, { before: before.get(key) ?? null, after }]));
  return { steps, files, failures, warnings };

  async function plan(operation: PatchOperation, fail: (reason: string) => void): Promise<void> {
    const text = await current(operation.path);
    const key = sources.identify(operation.path);
    switch (operation.type) {
      case "add":
        if (text !== null) fail("file already exists — use Update File");
        else write(key, operation.content, null);
        break;
      case "delete":
        if (text === null) fail("file not found for deletion");
        else {
          overlay.set(key, null);
          steps.push({ type: "remove", key });
        }
        break;
      case "move":
        if (text === null) fail(`File not found: ${operation.path}`);
        else if ((await current(operation.to)) !== null) fail("destination already exists — move would overwrite");
        else {
          const to = sources.identify(operation.to);
          overlay.set(key, null);
          overlay.set(to, text);
          steps.push({ type: "move", key, to });
        }
        break;
      case "update":
        if (text === null) fail(`File not found: ${operation.path}`);
        else if (typeof text !== "string") fail(text.reason);
        else {
          const warn = (warning: string) => warnings.push(`${operation.path}: ${warning}`);
          write(key, applyHunks(text, operation.hunks, fail, warn), text);
        }
    }
  }
}

/** Hunks in order; one that does not fit is reported and left out, so that all failures are named at once. */
function applyHunks(
  text: string,
  hunks: readonly Hunk[],
  fail: (reason: string) => void,
  warn: (warning: string) => unknown,
): string {
  let result = text;
  for (const [index, hunk] of hunks.entries()) {
    const outcome = hunk.lines.some((line) => line.sign !== "+") ? replaceHunk(result, hunk) : insertHunk(result, hunk);
    if ("reason" in outcome) fail(`hunk ${index + 1} (${hunk.hint ?? "no hint"}) ${outcome.reason}`);
    else {
      result = outcome.text;
      if (outcome.warning !== undefined) warn(outcome.warning);
    }
  }
  return result;
}

type HunkOutcome = { readonly text: string; readonly warning?: string } | { readonly reason: string };

function replaceHunk(text: string, hunk: Hunk): HunkOutcome {
  const oldLines = linesOf(hunk, "+");
  const newLines = linesOf(hunk, "-");
  const places = findWholeLines(text, oldLines);
  const place = places.length > 1 ? places.find((start) => start >= lineOfHint(text, hunk)) : places[0];
  if (place !== undefined) return { text: replaceLines(text, place, oldLines.length, newLines) };
  if (places.length > 1)
    return { reason: `is ambiguous — it fits in ${places.length} places; add context lines or a hint after @@` };

  // A hunk that leaves no line takes its line break along.
  const [old, wish] =
    newLines.length === 0 ? [`${oldLines.join("\n")}\n`, ""] : [oldLines.join("\n"), newLines.join("\n")];
  const found = fuzzyReplace(text, old, wish);
  if (found.ok) return found;
  if (found.code === "identical") return { text };
  if (found.code === "ambiguous" && hunk.hint !== null) {
    const start = offsetOfHint(text, hunk.hint);
    const below = start === null ? null : fuzzyReplace(text.slice(start), old, wish, { takeFirst: true });
    if (below?.ok && start !== null) return { ...below, text: text.slice(0, start) + below.text };
  }
  if (found.code === "not_found" && isAlreadyApplied(text, old, wish))
    return { text, warning: "a hunk was already applied" };
  return { reason: found.code === "ambiguous" ? `is ambiguous — ${found.message}` : `not found — ${found.message}` };
}

/** Line numbers at which all the lines stand, exactly. */
function findWholeLines(text: string, wanted: readonly string[]): number[] {
  const lines = toLf(text).split("\n");
  const places: number[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at++)
    if (wanted.every((line, index) => lines[at + index] === line)) places.push(at);
  return places;
}

/** Of several places only one at or below the hint will do. */
function lineOfHint(text: string, hunk: Hunk): number {
  if (hunk.hint === null) return Infinity;
  const wanted = hunk.hint.trim();
  const line = toLf(text)
    .split("\n")
    .findIndex((candidate) => candidate.includes(wanted));
  return line === -1 ? Infinity : line;
}

function replaceLines(text: string, first: number, count: number, newLines: readonly string[]): string {
  const haystack = haystackOf(toLf(text));
  const span = spanOfLines(haystack, first, count);
  if (newLines.length > 0) return applyEdits(text, [{ ...span, text: newLines.join("\n") }]);
  const isLast = first + count === haystack.lines.length;
  const removed = isLast
    ? { start: Math.max(0, span.start - 1), end: span.end }
    : { start: span.start, end: span.end + 1 };
  return applyEdits(text, [{ ...removed, text: "" }]);
}

/** A hunk of additions alone goes below its hint, or to the end. */
function insertHunk(text: string, hunk: Hunk): HunkOutcome {
  const ending = text.includes("\r\n") ? "\r\n" : "\n";
  const added = hunk.lines.map((line) => line.text).join(ending);
  if (hunk.hint === null) return { text: appendLines(text, added, ending) };
  const lines = text.split("\n");
  const wanted = hunk.hint.trim();
  const exact = lines.flatMap((line, index) => (line.trim() === wanted ? [index] : []));
  const places = exact.length > 0 ? exact : lines.flatMap((line, index) => (line.includes(wanted) ? [index] : []));
  const [place] = places;
  if (places.length > 1 || place === undefined)
    return {
      reason:
        places.length > 1 ? `is ambiguous — its hint is on ${places.length} lines` : "not found — no line has its hint",
    };
  if (place === lines.length - 1) return { text: appendLines(text, added, ending) };
  const above = lines.slice(0, place + 1).join("\n");
  return { text: `${above}\n${added}${ending}${lines.slice(place + 1).join("\n")}` };
}

function appendLines(text: string, added: string, ending: string): string {
  if (text === "") return added;
  return text.endsWith("\n") ? `${text}${added}${ending}` : `${text}${ending}${added}`;
}

/** Where the first line that holds the hint starts. */
function offsetOfHint(text: string, hint: string): number | null {
  const wanted = hint.trim();
  let start = 0;
  for (const line of text.split("\n")) {
    if (line.includes(wanted)) return start;
    start += line.length + 1;
  }
  return null;
}

function linesOf(hunk: Hunk, without: "-" | "+"): string[] {
  return hunk.lines.filter((line) => line.sign !== without).map((line) => line.text);
}
