// The first phase of a patch over several files: everything is tried against an overlay, nothing is written.
import { messageOf } from "../../kit/errors.ts";
import { applyEdits, type Edit, fuzzyReplace, isAlreadyApplied, toLf } from "../../kit/fuzzy/replace.ts";
import { type Haystack, haystackOf, spanOfLines } from "../../kit/fuzzy/strategies.ts";
import type { Hunk, PatchOperation } from "./v4a.ts";

/** What a file holds. `null` = it does not exist; one that is no text can be moved and removed, not changed. */
export type Content = string | null | NoText;

interface NoText {
  /** Why it cannot be changed. */
  readonly reason: string;
}

/** One file after all operations. */
interface PlannedFile {
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

interface PlanSources {
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
      fail(messageOf(error));
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
      case "move": {
        if (text === null) return fail(`File not found: ${operation.path}`);
        const to = sources.identify(operation.to);
        if ((await current(operation.to)) !== null && to !== key)
          return fail("destination already exists — move would overwrite");
        if (operation.hunks.length > 0) update(key, operation, fail);
        if (to === key) return;
        overlay.set(to, overlay.get(key) ?? null);
        overlay.set(key, null);
        steps.push({ type: "move", key, to });
        break;
      }
      case "update":
        update(key, operation, fail);
    }
  }

  function update(
    key: string,
    { path, hunks }: Pick<Updating, "path" | "hunks">,
    fail: (reason: string) => void,
  ): void {
    const text = overlay.get(key) ?? null;
    if (text === null) return fail(`File not found: ${path}`);
    if (typeof text !== "string") return fail(text.reason);
    const warn = (warning: string) => warnings.push(`${path}: ${warning}`);
    write(key, applyHunks(text, hunks, fail, warn), text);
  }
}

type Updating = Extract<PatchOperation, { type: "update" }>;

/** Hunks in order; one that does not fit is reported and left out, so that all failures are named at once. */
function applyHunks(
  text: string,
  hunks: readonly Hunk[],
  fail: (reason: string) => void,
  warn: (warning: string) => unknown,
): string {
  let result = text;
  /** The line behind what was changed last: the next hunk is rather below than above it. */
  let below = 0;
  for (const [index, hunk] of hunks.entries()) {
    const outcome = hunk.lines.some((line) => line.sign !== "+")
      ? replaceHunk(result, hunk, below)
      : insertHunk(result, hunk, below);
    if ("reason" in outcome) fail(`hunk ${index + 1} (${hunk.hints.join(" ") || "no hint"}) ${outcome.reason}`);
    else {
      if (outcome.text !== result) below = lineBehindChange(result, outcome.text);
      result = outcome.text;
      if (outcome.warning !== undefined) warn(outcome.warning);
    }
  }
  return result;
}

function lineBehindChange(before: string, after: string): number {
  const [old, now] = [linesIn(before), linesIn(after)];
  let same = 0;
  while (same < Math.min(old.length, now.length) && old.at(-1 - same) === now.at(-1 - same)) same++;
  return now.length - same;
}

type HunkOutcome = { readonly text: string; readonly warning?: string } | { readonly reason: string };

function replaceHunk(text: string, hunk: Hunk, below: number): HunkOutcome {
  const oldLines = linesOf(hunk, "+");
  const newLines = linesOf(hunk, "-");
  const lines = linesIn(text);
  const places = findWholeLines(lines, oldLines);
  const place = places.length > 1 ? choose(places, lines, hunk, below) : places[0];
  if (place !== undefined) return { text: editLines(text, hunk, place) };
  if (places.length > 1)
    return { reason: `is ambiguous — it fits in ${places.length} places; add context lines or a hint after @@` };

  // A hunk that leaves no line takes its line break along.
  const [old, replacement] =
    newLines.length === 0 ? [`${oldLines.join("\n")}\n`, ""] : [oldLines.join("\n"), newLines.join("\n")];
  const found = fuzzyReplace(text, old, replacement);
  if (found.ok) return found;
  if (found.code === "identical") return { text };
  if (found.code === "ambiguous") {
    const hinted = lineOfHints(lines, hunk.hints, below);
    const start = offsetOfLine(text, hinted ?? below);
    const rest = fuzzyReplace(text.slice(start), old, replacement, { takeFirst: hinted !== null });
    if (rest.ok) return { ...rest, text: text.slice(0, start) + rest.text };
  }
  if (found.code === "not_found" && isAlreadyApplied(text, old, replacement))
    return { text, warning: "a hunk was already applied" };
  return { reason: found.code === "ambiguous" ? `is ambiguous — ${found.message}` : `not found — ${found.message}` };
}

const linesIn = (text: string) => toLf(text).split("\n");

/** Line numbers at which all the lines stand, exactly. */
function findWholeLines(lines: readonly string[], wanted: readonly string[]): number[] {
  const places: number[] = [];
  for (let at = 0; at + wanted.length <= lines.length; at++)
    if (wanted.every((line, index) => lines[at + index] === line)) places.push(at);
  return places;
}

/** Of several places: the file's end if that is meant, the first one below the hints, or the only one that is left below the last change. */
function choose(places: readonly number[], lines: readonly string[], hunk: Hunk, below: number): number | undefined {
  const last = places.at(-1) ?? 0;
  const behind = lines.slice(last + linesOf(hunk, "+").length);
  if (hunk.atEnd && behind.join("") === "" && behind.length <= 1) return last;
  const hinted = lineOfHints(lines, hunk.hints, below);
  if (hinted !== null) return places.find((place) => place >= hinted);
  const left = places.filter((place) => place >= below);
  return left.length === 1 ? left[0] : undefined;
}

/** The line of the last hint, each looked for below the one before it; first below the last change, then in the whole file. */
function lineOfHints(lines: readonly string[], hints: readonly string[], below: number): number | null {
  if (hints.length === 0) return null;
  for (const from of [below, 0]) {
    let at = from - 1;
    for (const hint of hints) at = at === -2 ? -2 : (linesWithHint(lines, hint, at + 1)[0] ?? -2);
    if (at >= 0) return at;
  }
  return null;
}

/** A line that is the hint rather than one that holds it. */
function linesWithHint(lines: readonly string[], hint: string, from: number): number[] {
  const wanted = hint.trim();
  const those = (fits: (line: string) => boolean) =>
    lines.flatMap((line, index) => (index >= from && fits(line) ? [index] : []));
  const exact = those((line) => line.trim() === wanted);
  return exact.length > 0 ? exact : those((line) => line.includes(wanted));
}

/** Context is not touched: every line keeps the end it has. */
function editLines(text: string, hunk: Hunk, place: number): string {
  const haystack = haystackOf(toLf(text));
  const edits: Edit[] = [];
  let at = place;
  for (let index = 0; index < hunk.lines.length; ) {
    if (hunk.lines[index]?.sign === " ") {
      at++;
      index++;
      continue;
    }
    const length = hunk.lines.slice(index).findIndex((line) => line.sign === " ");
    const run = hunk.lines.slice(index, length === -1 ? undefined : index + length);
    const removed = run.filter((line) => line.sign === "-").length;
    edits.push(
      editRun(
        haystack,
        at,
        removed,
        run.filter((line) => line.sign === "+").map((line) => line.text),
      ),
    );
    at += removed;
    index += run.length;
  }
  return applyEdits(text, edits);
}

/** `count` lines from `first` on give way to others. */
function editRun(haystack: Haystack, first: number, count: number, added: readonly string[]): Edit {
  const { lines, starts, text } = haystack;
  const inserted = added.join("\n");
  if (count === 0) {
    const start = starts[first];
    if (start === undefined) return { start: text.length, end: text.length, text: `\n${inserted}` };
    return { start, end: start, text: `${inserted}\n` };
  }
  const span = spanOfLines(haystack, first, count);
  if (added.length > 0) return { ...span, text: inserted };
  const isLast = first + count === lines.length;
  return isLast
    ? { start: Math.max(0, span.start - 1), end: span.end, text: "" }
    : { start: span.start, end: span.end + 1, text: "" };
}

/** A hunk of additions alone goes below its hint, or to the end. */
function insertHunk(text: string, hunk: Hunk, below: number): HunkOutcome {
  const lines = linesIn(text);
  const added = hunk.lines.map((line) => line.text);
  const hint = hunk.hints.at(-1);
  if (hint === undefined || hunk.atEnd) return { text: appendLines(text, added) };
  const place = lineOfHint(lines, hunk.hints, below);
  if ("reason" in place) return place;
  if (place.line === lines.length - 1) return { text: appendLines(text, added) };
  return { text: applyEdits(text, [editRun(haystackOf(toLf(text)), place.line + 1, 0, added)]) };
}

/** Only the hint says where, so it must be unambiguous. */
function lineOfHint(
  lines: readonly string[],
  hints: readonly string[],
  below: number,
): { readonly line: number } | { readonly reason: string } {
  const [hint = "", outer] = [hints.at(-1), hints.slice(0, -1)];
  const scope = outer.length === 0 ? 0 : lineOfHints(lines, outer, below);
  if (scope === null) return { reason: "not found — no line has its hint" };
  const all = linesWithHint(lines, hint, outer.length === 0 ? 0 : scope + 1);
  const left = all.filter((line) => line >= below);
  const [line] = all.length > 1 && left.length === 1 ? left : all;
  if (line === undefined) return { reason: "not found — no line has its hint" };
  if (all.length > 1 && left.length !== 1 && outer.length === 0)
    return { reason: `is ambiguous — its hint is on ${all.length} lines` };
  return { line };
}

function appendLines(text: string, added: readonly string[]): string {
  const lines = haystackOf(toLf(text));
  if (text === "") return `${added.join("\n")}\n`;
  const at = text.endsWith("\n") ? lines.lines.length - 1 : lines.lines.length;
  return applyEdits(text, [editRun(lines, at, 0, added)]);
}

/** Where a line starts. */
function offsetOfLine(text: string, line: number): number {
  let start = 0;
  for (let at = 0; at < line; at++) start = text.indexOf("\n", start) + 1;
  return start;
}

function linesOf(hunk: Hunk, without: "-" | "+"): string[] {
  return hunk.lines.filter((line) => line.sign !== without).map((line) => line.text);
}
