// Find and replace that forgives how a model quotes a file: nine strategies, from exact to similar. Pure.
// Hand-written: fuzzy search packages rank candidates; here one place must be found beyond doubt, or none.

import { truncateCodePoints } from "../code-points.ts";
import { matchingBlocks, similarityTo } from "../similarity.ts";
import {
  findBlockAnchor,
  findContextAware,
  findEscaped,
  findExact,
  findIndentedLines,
  findTrimmedBoundary,
  findTrimmedLines,
  findUnicodeNormalized,
  findWhitespaceNormalized,
  type Haystack,
  haystackOf,
  indentOf,
  isBlank,
  keepTypography,
  type Match,
  type Strategy,
  type StrategyName,
  strategyNames,
  unescapeControls,
} from "./strategies.ts";

export type FuzzyErrorCode =
  | "empty_old"
  | "blank_old"
  | "identical"
  | "ambiguous"
  | "approximate_replace_all"
  | "escape_drift"
  | "not_found";

export type FuzzyResult =
  | {
      readonly ok: true;
      readonly text: string;
      readonly strategy: StrategyName;
      readonly count: number;
      /** The region was only similar: show the diff. */
      readonly warning?: string;
    }
  | { readonly ok: false; readonly code: FuzzyErrorCode; readonly message: string };

interface FuzzyOptions {
  readonly replaceAll?: boolean;
  /** Of several matches take the first instead of refusing: for callers that already know where to look. */
  readonly takeFirst?: boolean;
}

const strategies: Readonly<Record<StrategyName, Strategy>> = {
  exact: findExact,
  line_trimmed: findTrimmedLines,
  whitespace_normalized: findWhitespaceNormalized,
  indentation_flexible: findIndentedLines,
  escape_normalized: findEscaped,
  trimmed_boundary: findTrimmedBoundary,
  unicode_normalized: findUnicodeNormalized,
  block_anchor: findBlockAnchor,
  context_aware: findContextAware,
};

const approximate: ReadonlySet<StrategyName> = new Set(["block_anchor", "context_aware"]);

/** Replaces `old` by `replacement`. The first strategy with a match decides; line endings and everything outside the match stay. */
export function fuzzyReplace(
  text: string,
  old: string,
  replacement: string,
  { replaceAll = false, takeFirst = false }: FuzzyOptions = {},
): FuzzyResult {
  const wanted = toLf(old);
  const request = toLf(replacement);
  if (wanted === "")
    return refuse("empty_old", "old_string cannot be empty. To create or overwrite a file, write it whole.");
  if (wanted.trim() === "")
    return refuse("blank_old", "old_string is only whitespace. Include the text around the place to change.");
  if (wanted === request)
    return refuse("identical", "old_string and new_string are identical: there is nothing to change.");

  const haystack = haystackOf(toLf(text));
  const found = findFirst(haystack, wanted);
  if (!found) {
    const nearest = describeNearest(haystack, wanted);
    const reason = "Could not find a match for old_string in the file.";
    return refuse("not_found", nearest === "" ? reason : `${reason}\n\n${nearest}`);
  }
  const { strategy } = found;
  const matches = takeFirst && !replaceAll ? found.matches.slice(0, 1) : found.matches;
  if (matches.length > 1 && !replaceAll)
    return refuse(
      "ambiguous",
      `Found ${matches.length} matches for old_string. Provide more context to make it unique, or use replace_all=True.\n${describeMatches(haystack, matches)}`,
    );
  if (matches.length > 1 && approximate.has(strategy))
    return refuse(
      "approximate_replace_all",
      `Found ${matches.length} regions that are only similar to old_string (${strategy}); replace_all needs an exact text.\n${describeMatches(haystack, matches)}`,
    );

  const edits: Edit[] = [];
  for (const match of matches) {
    const region = haystack.text.slice(match.start, match.end);
    const drift = strategy === "exact" ? null : findEscapeDrift(wanted, request, region);
    if (drift !== null)
      return refuse(
        "escape_drift",
        `Escape-drift detected: old_string and new_string hold ${drift}, the file has a plain ${drift.slice(1)} there. Send both again without the backslash.`,
      );
    edits.push({
      start: match.start,
      end: match.end,
      text: fitReplacement(haystack, strategy, match, wanted, request),
    });
  }
  return {
    ok: true,
    text: applyEdits(text, edits),
    strategy,
    count: edits.length,
    ...(approximate.has(strategy) && {
      warning: `The replaced region was only similar to old_string (${strategy}); check the diff.`,
    }),
  };
}

/** The edit is already in the text: a repeated call is no failure. */
export function isAlreadyApplied(text: string, old: string, replacement: string): boolean {
  const content = toLf(text);
  const wanted = toLf(old);
  const request = toLf(replacement);
  return request.trim().length >= 8 && content.includes(request) && (wanted === request || !content.includes(wanted));
}

function findFirst(haystack: Haystack, old: string): { strategy: StrategyName; matches: readonly Match[] } | null {
  for (const strategy of strategyNames) {
    const matches = strategies[strategy](haystack, old);
    if (matches.length > 0) return { strategy, matches };
  }
  return null;
}

/** The replacement as this region needs it. */
function fitReplacement(
  haystack: Haystack,
  strategy: StrategyName,
  match: Match,
  old: string,
  request: string,
): string {
  if (strategy === "exact") return request;
  const region = haystack.text.slice(match.start, match.end);
  const unescaped = unescapeLikeRegion(request, region);
  const kept = match.pairs ? keepTypography(haystack.text, old, unescaped, match.pairs) : unescaped;
  return reindent(strategy === "escape_normalized" ? unescapeControls(old) : old, region, kept);
}

function refuse(code: FuzzyErrorCode, message: string): FuzzyResult {
  return { ok: false, code, message };
}

// Moves a replacement from the indentation it was written in to that of the region it replaces.

interface Swap {
  readonly from: string;
  readonly to: string;
}

function reindent(old: string, region: string, replacement: string): string {
  if (replacement === "") return "";
  const oldLines = old.split("\n");
  const regionLines = region.split("\n");
  const whole = { from: firstIndent(oldLines), to: firstIndent(regionLines) };
  if (whole.from === whole.to) return replacement;
  const newLines = replacement.split("\n");
  if (oldLines.length !== regionLines.length || everyLineFits(oldLines, regionLines, whole))
    return newLines.map((line) => applySwap(line, whole)).join("\n");
  const swaps = swapsByLine(oldLines, regionLines, newLines, whole);
  return newLines.map((line, index) => applySwap(line, swaps[index] ?? whole)).join("\n");
}

function applySwap(line: string, swap: Swap): string {
  if (isBlank(line)) return line;
  return line.startsWith(swap.from)
    ? swap.to + line.slice(swap.from.length)
    : swap.to + line.slice(indentOf(line).length);
}

function firstIndent(lines: readonly string[]): string {
  return indentOf(lines.find((line) => !isBlank(line)) ?? "");
}

function everyLineFits(oldLines: readonly string[], regionLines: readonly string[], swap: Swap): boolean {
  return oldLines.every((line, index) => {
    const regionLine = regionLines[index] ?? "";
    if (isBlank(line) || isBlank(regionLine)) return true;
    const indent = indentOf(line);
    return indent.startsWith(swap.from) && indentOf(regionLine) === swap.to + indent.slice(swap.from.length);
  });
}

/**
 * Lines are aligned by their words: a line that stands for an old one moves as that one does in the file. A new line moves with the
 * aligned line before it, or with the one after it when only that one was written at the same depth.
 */
function swapsByLine(
  oldLines: readonly string[],
  regionLines: readonly string[],
  newLines: readonly string[],
  whole: Swap,
): Swap[] {
  const aligned = alignLines(oldLines, newLines);
  const swapOf = (oldIndex: number | undefined): Swap | undefined =>
    oldIndex === undefined || isBlank(oldLines[oldIndex] ?? "")
      ? undefined
      : { from: indentOf(oldLines[oldIndex] ?? ""), to: indentOf(regionLines[oldIndex] ?? "") };
  const own = newLines.map((_, index) => swapOf(aligned.get(index)));
  const following: (Swap | undefined)[] = [];
  for (let index = own.length - 1, next: Swap | undefined; index >= 0; index--) {
    following[index] = next;
    next = own[index] ?? next;
  }
  let before: Swap | undefined;
  return newLines.map((line, index) => {
    const swap = own[index];
    if (swap) {
      before = swap;
      return swap;
    }
    const depth = indentOf(line);
    const after = following[index];
    if (after && after.from === depth && before?.from !== depth) return after;
    return before ?? whole;
  });
}

/** New line index → old line index, for lines that are equal or replace one another at the same offset of a changed run. */
function alignLines(oldLines: readonly string[], newLines: readonly string[]): Map<number, number> {
  const aligned = new Map<number, number>();
  const trim = (line: string) => line.trim();
  const end = { left: oldLines.length, right: newLines.length, size: 0 };
  let left = 0;
  let right = 0;
  for (const block of [...matchingBlocks(oldLines.map(trim), newLines.map(trim)), end]) {
    while (left < block.left && right < block.right) aligned.set(right++, left++);
    for (let offset = 0; offset < block.size; offset++) aligned.set(block.right + offset, block.left + offset);
    left = block.left + block.size;
    right = block.right + block.size;
  }
  return aligned;
}

// Backslashes that only the serialisation of a tool call put there.

/** The escape that `old` and `replacement` hold and the file does not: writing it would damage the code. */
function findEscapeDrift(old: string, replacement: string, region: string): string | null {
  for (const sequence of ["\\'", '\\"'])
    if (old.includes(sequence) && replacement.includes(sequence) && !region.includes(sequence)) return sequence;
  return null;
}

/**
 * `\t` and `\r` written as two characters become the real one where the region holds it. Inside a line only if the region has one inside
 * a line too: tabs that merely indent say nothing about a string literal. `\n` is never touched, it is too often meant literally.
 */
function unescapeLikeRegion(replacement: string, region: string): string {
  let text = replacement;
  if (region.includes("\t") && !region.includes("\\t")) {
    text = /\S[^\S\n]*\t/.test(region)
      ? text.replaceAll("\\t", "\t")
      : text.replace(/^(?:[ \t]|\\t)+/gm, (indent) => indent.replaceAll("\\t", "\t"));
  }
  return region.includes("\r") && !region.includes("\\r") ? text.replaceAll("\\r", "\r") : text;
}

// What to say when nothing, or too much, was found.

const MAX_ROWS = 5;
const MAX_SECTIONS = 3;
const CONTEXT = 2;
const WORTH_SHOWING = 0.3;

/** One row per match: `  L<line>: <text>`. */
function describeMatches(haystack: Haystack, matches: readonly Match[]): string {
  const rows = matches.slice(0, MAX_ROWS).map((match) => {
    const line = lineAt(haystack, match.start);
    return `  L${line + 1}: ${truncateCodePoints((haystack.lines[line] ?? "").trim(), 80, "...")}`;
  });
  if (matches.length > MAX_ROWS) rows.push(`  ... and ${matches.length - MAX_ROWS} more`);
  return rows.join("\n");
}

/** The sections most like what was looked for, or an empty text when nothing is. */
function describeNearest(haystack: Haystack, old: string): string {
  const oldLines = old.split("\n");
  const anchor = oldLines.find((line) => !isBlank(line)) ?? "";
  const nearest = findNearestLines(haystack.lines, anchor.trim());
  const best = nearest[0];
  if (best === undefined) return "";
  const sections = nearest.map((line) => {
    const from = Math.max(0, line - CONTEXT);
    return haystack.lines
      .slice(from, line + oldLines.length + CONTEXT)
      .map((text, offset) => `${String(from + offset + 1).padStart(4)}| ${text}`)
      .join("\n");
  });
  const found = haystack.lines[best] ?? "";
  const invisible =
    found.trim() === anchor.trim() && found !== anchor
      ? `\n\nThe first line is there, with other white space (→ = tab, · = blank):\n  old_string: ${showIndent(anchor)}\n  file:       ${showIndent(found)}`
      : "";
  return `Did you mean one of these sections?\n${sections.join("\n---\n")}${invisible}`;
}

function findNearestLines(lines: readonly string[], anchor: string): number[] {
  const ratioOf = similarityTo(anchor);
  const nearest: { line: number; ratio: number }[] = [];
  for (const [line, text] of lines.entries()) {
    const trimmed = text.trim();
    if (trimmed === "") continue;
    const floor = nearest.length < MAX_SECTIONS ? WORTH_SHOWING : (nearest[MAX_SECTIONS - 1]?.ratio ?? 0);
    const ratio = ratioOf(trimmed, floor);
    if (ratio <= floor) continue;
    nearest.push({ line, ratio });
    nearest.sort((one, other) => other.ratio - one.ratio || one.line - other.line);
    nearest.length = Math.min(nearest.length, MAX_SECTIONS);
  }
  return nearest.map(({ line }) => line);
}

function showIndent(line: string): string {
  const indent = indentOf(line);
  return indent.replaceAll("\t", "→").replaceAll(" ", "·") + line.slice(indent.length);
}

function lineAt(haystack: Haystack, offset: number): number {
  let low = 0;
  let high = haystack.starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((haystack.starts[middle] ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Matching happens on LF text; the edits land in the original bytes.

const CRLF = /\r\n/g;

export function toLf(text: string): string {
  return text.includes("\r\n") ? text.replace(CRLF, "\n") : text;
}

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Applies edits whose positions count in the LF form of `original`. Each line of a replacement ends as the line whose place it takes; where
 * there is none, as the line before. Every byte outside the regions stays.
 */
export function applyEdits(original: string, edits: readonly Edit[]): string {
  const rawOf = rawPositions(original);
  const out: string[] = [];
  let position = 0;
  for (const edit of [...edits].sort((one, other) => one.start - other.start)) {
    const start = rawOf(edit.start);
    const end = rawOf(edit.end);
    out.push(original.slice(position, start), withEndings(edit.text, original, start, end));
    position = end;
  }
  out.push(original.slice(position));
  return out.join("");
}

/** LF position → original position. A break belongs to the region as a whole, its carriage return included. */
function rawPositions(original: string): (position: number) => number {
  if (!original.includes("\r\n")) return (position) => position;
  const breaks: number[] = [];
  for (const found of original.matchAll(CRLF)) breaks.push(found.index - breaks.length);
  return (position) => {
    let low = 0;
    let high = breaks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((breaks[middle] ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return position + low;
  };
}

function withEndings(text: string, original: string, start: number, end: number): string {
  if (!text.includes("\n") || !original.includes("\r\n")) return text;
  const region = original.slice(start, end);
  const endings = region.match(/\r?\n/g) ?? [];
  if (new Set(endings).size < 2) return text.replaceAll("\n", endings[0] ?? endingAt(original, start, end));
  const [old, lines] = [toLf(region).split("\n"), text.split("\n")];
  let same = 0; // lines at the end that stay as they are
  while (same < Math.min(old.length, lines.length) && old.at(-1 - same) === lines.at(-1 - same)) same++;
  const replaced = old.length - same;
  let line = -1;
  return text.replaceAll("\n", () => {
    line++;
    const stays = line >= lines.length - same;
    return endings[stays ? line - lines.length + old.length : Math.min(line, Math.max(0, replaced - 1))] ?? "\n";
  });
}

function endingAt(original: string, start: number, end: number): string {
  if (start === end && original[start - 1] === "\n") return endingOf(original, start - 1);
  const inside = original.indexOf("\n", start);
  if (inside !== -1) return endingOf(original, inside);
  const before = original.lastIndexOf("\n", end - 1);
  return before === -1 ? "\n" : endingOf(original, before);
}

function endingOf(original: string, feed: number): "\n" | "\r\n" {
  return original[feed - 1] === "\r" ? "\r\n" : "\n";
}
