import { matchingBlocks, reachesSimilarity, similarity } from "../similarity.ts";

// What a strategy finds, and the text it looks in.

export const strategyNames = [
  "exact",
  "line_trimmed",
  "whitespace_normalized",
  "indentation_flexible",
  "escape_normalized",
  "trimmed_boundary",
  "unicode_normalized",
  "block_anchor",
  "context_aware",
] as const;

export type StrategyName = (typeof strategyNames)[number];

/** A region of the text, with how parts of `old` and of the region stand for each other where a strategy knows it. */
export interface Match {
  readonly start: number;
  readonly end: number;
  readonly pairs?: readonly Pair[];
}

/** `old` from..to reads the same as the text start..end once typography is folded. */
interface Pair {
  readonly oldStart: number;
  readonly oldEnd: number;
  readonly start: number;
  readonly end: number;
}

/** The text, with its lines split once for all strategies. */
export interface Haystack {
  readonly text: string;
  readonly lines: readonly string[];
  /** Where each line starts. */
  readonly starts: readonly number[];
}

export type Strategy = (haystack: Haystack, old: string) => readonly Match[];

export function haystackOf(text: string): Haystack {
  const lines = text.split("\n");
  const starts: number[] = [];
  let start = 0;
  for (const line of lines) {
    starts.push(start);
    start += line.length + 1;
  }
  return { text, lines, starts };
}

/** From the start of line `first` to the end of the last of `count` lines, without its line break. */
export function spanOfLines(haystack: Haystack, first: number, count: number): Match {
  const last = first + count - 1;
  return {
    start: haystack.starts[first] ?? 0,
    end: (haystack.starts[last] ?? 0) + (haystack.lines[last] ?? "").length,
  };
}

/** Leading blanks and tabs. */
export function indentOf(line: string): string {
  let end = 0;
  while (line[end] === " " || line[end] === "\t") end++;
  return line.slice(0, end);
}

export function isBlank(line: string): boolean {
  return line.trim() === "";
}

/** Every occurrence; after one the search goes on behind it. */
export function findExact(haystack: Haystack, old: string): Match[] {
  return occurrences(haystack.text, old).map((start) => ({ start, end: start + old.length }));
}

/** `\n`, `\t` and `\r` written as two characters are read as the characters they name. */
export function findEscaped(haystack: Haystack, old: string): Match[] {
  const unescaped = unescapeControls(old);
  return unescaped === old ? [] : findExact(haystack, unescaped);
}

export function unescapeControls(text: string): string {
  return text.replaceAll("\\n", "\n").replaceAll("\\t", "\t").replaceAll("\\r", "\r");
}

function occurrences(text: string, part: string): number[] {
  const found: number[] = [];
  if (part === "") return found;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}

/** Every run of blanks and tabs counts as one blank; line breaks stay what they are. */
export function findWhitespaceNormalized(haystack: Haystack, old: string): Match[] {
  const wanted = collapse(old);
  const found = occurrences(collapse(haystack.text), wanted);
  if (found.length === 0) return [];
  const starts = startsOf(haystack.text);
  return found.map((at) => ({
    start: starts[at] ?? 0,
    end: starts[at + wanted.length] ?? haystack.text.length,
  }));
}

const collapse = (text: string) => text.replace(/[ \t]+/g, " ");

/** Where each character of the collapsed text starts in the original; the last entry is the original's end. */
function startsOf(original: string): Int32Array {
  const starts = new Int32Array(original.length + 1);
  let length = 0;
  const run = /[ \t]+/g;
  let position = 0;
  for (let found = run.exec(original); found; found = run.exec(original)) {
    for (let index = position; index < found.index; index++) starts[length++] = index;
    starts[length++] = found.index;
    position = run.lastIndex;
  }
  for (let index = position; index < original.length; index++) starts[length++] = index;
  starts[length] = original.length;
  return starts;
}

// Strategies that compare whole lines.

export function findTrimmedLines(haystack: Haystack, old: string): Match[] {
  return findBlocks(haystack, old, (line) => line.trim());
}

export function findIndentedLines(haystack: Haystack, old: string): Match[] {
  return findBlocks(haystack, old, (line) => line.trimStart());
}

/** Only the first and the last line may differ, and only at their ends. */
export function findTrimmedBoundary(haystack: Haystack, old: string): Match[] {
  const wanted = old.split("\n");
  const last = wanted.length - 1;
  return collect(haystack, wanted.length, (first) =>
    wanted.every((line, index) => {
      const found = haystack.lines[first + index] ?? "";
      return index === 0 || index === last ? found.trim() === line.trim() : found === line;
    }),
  );
}

/** Blocks whose lines are equal after `fold`; both sides are folded once. */
function findBlocks(haystack: Haystack, old: string, fold: (line: string) => string): Match[] {
  const folded = haystack.lines.map(fold);
  const strict = findFoldedBlocks(haystack, folded, old.split("\n").map(fold));
  if (strict.length > 0 || !old.endsWith("\n")) return strict;
  // A final line break in `old` means "this whole line", not "and then an empty one".
  const whole = findFoldedBlocks(haystack, folded, old.slice(0, -1).split("\n").map(fold));
  return whole.map((match) => ({ ...match, end: Math.min(match.end + 1, haystack.text.length) }));
}

function findFoldedBlocks(haystack: Haystack, folded: readonly string[], wanted: readonly string[]): Match[] {
  if (wanted.every((line) => line === "")) return [];
  return collect(haystack, wanted.length, (first) => wanted.every((line, index) => folded[first + index] === line));
}

function collect(haystack: Haystack, count: number, matchesAt: (first: number) => boolean): Match[] {
  const matches: Match[] = [];
  for (let first = 0; first + count <= haystack.lines.length; ) {
    if (!matchesAt(first)) {
      first++;
      continue;
    }
    matches.push(spanOfLines(haystack, first, count));
    first += count;
  }
  return matches;
}

// Typographic characters read as their ASCII look-alikes.

const TYPOGRAPHY = /[“”‘’—–…\u2212\u00a0\u2000-\u200a\u202f\u205f\u3000]/g;

const ascii: Readonly<Record<string, string>> = {
  "“": '"',
  "”": '"',
  "‘": "'",
  "’": "'",
  "—": "--",
  "–": "-",
  "…": "...",
  "\u2212": "-",
};

function foldTypography(text: string): string {
  return text.replace(TYPOGRAPHY, (character) => ascii[character] ?? " ");
}

/** A folded text that remembers where its characters come from. */
interface Folded {
  readonly text: string;
  /** Offset in the original of the character that the folded offset belongs to. */
  originalOf(offset: number): number;
  /** Whether an original character begins at this folded offset (and none is cut by it). */
  isBoundary(offset: number): boolean;
  foldedOf(originalOffset: number): number;
}

function fold(original: string): Folded {
  // Only characters that grow shift the offsets; between them the distance is constant.
  const grown: { folded: number; original: number; width: number }[] = [];
  let shift = 0;
  const text = original.replace(TYPOGRAPHY, (character, at: number) => {
    const replacement = ascii[character] ?? " ";
    if (replacement.length > 1) {
      grown.push({ folded: at + shift, original: at, width: replacement.length });
      shift += replacement.length - 1;
    }
    return replacement;
  });
  const lastBefore = (key: "folded" | "original", offset: number) => {
    let low = 0;
    let high = grown.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((grown[middle]?.[key] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return grown[low - 1];
  };
  return {
    text,
    originalOf: (offset) => {
      const near = lastBefore("folded", offset);
      if (!near) return offset;
      return offset < near.folded + near.width ? near.original : near.original + 1 + offset - near.folded - near.width;
    },
    isBoundary: (offset) => {
      const near = lastBefore("folded", offset);
      return !near || offset === near.folded || offset >= near.folded + near.width;
    },
    foldedOf: (offset) => {
      const near = lastBefore("original", offset);
      if (!near) return offset;
      return offset === near.original ? near.folded : near.folded + near.width + offset - near.original - 1;
    },
  };
}

/** Exact, else by trimmed lines, on the folded text. */
export function findUnicodeNormalized(haystack: Haystack, old: string): Match[] {
  const foldedOld = foldTypography(old);
  const folded = fold(haystack.text);
  if (foldedOld === old && folded.text === haystack.text) return [];
  const exact = occurrences(folded.text, foldedOld)
    .filter((at) => folded.isBoundary(at) && folded.isBoundary(at + foldedOld.length))
    .map((at) => {
      const start = folded.originalOf(at);
      const end = folded.originalOf(at + foldedOld.length);
      return { start, end, pairs: [{ oldStart: 0, oldEnd: old.length, start, end }] };
    });
  if (exact.length > 0) return exact;
  return findTrimmedLines(haystackOf(folded.text), foldedOld).map((match) => {
    const start = folded.originalOf(match.start);
    const end = folded.originalOf(match.end);
    return { start, end, pairs: pairLines(old, haystack.text.slice(start, end), start) };
  });
}

/** The trimmed cores of aligned lines. */
function pairLines(old: string, region: string, regionStart: number): Pair[] {
  const regionLines = region.split("\n");
  const pairs: Pair[] = [];
  let oldAt = 0;
  let regionAt = regionStart;
  for (const [index, line] of old.split("\n").entries()) {
    const regionLine = regionLines[index] ?? "";
    const core = line.trim();
    const regionCore = regionLine.trim();
    if (core !== "" && regionCore !== "") {
      const oldStart = oldAt + line.indexOf(core);
      const start = regionAt + regionLine.indexOf(regionCore);
      pairs.push({ oldStart, oldEnd: oldStart + core.length, start, end: start + regionCore.length });
    }
    oldAt += line.length + 1;
    regionAt += regionLine.length + 1;
  }
  return pairs;
}

// Keeps the file's typography where an edit leaves the words alone.

/**
 * `replacement` with every stretch it shares with `old` taken from the file instead, so that curly quotes and dashes survive an edit
 * that was written with plain ones.
 */
export function keepTypography(text: string, old: string, replacement: string, pairs: readonly Pair[]): string {
  const oldUnits = unitOffsets(old);
  const newUnits = unitOffsets(replacement);
  const out: string[] = [];
  let position = 0;
  for (const block of matchingBlocks(old, replacement)) {
    const blockStart = newUnits[block.right] ?? 0;
    out.push(replacement.slice(position, blockStart));
    position = newUnits[block.right + block.size] ?? replacement.length;
    out.push(asInFile(text, old, oldUnits[block.left] ?? 0, oldUnits[block.left + block.size] ?? old.length, pairs));
  }
  out.push(replacement.slice(position));
  return out.join("");
}

/** The part `from..to` of old, spelled as the file spells it where a pair covers it. */
function asInFile(text: string, old: string, from: number, to: number, pairs: readonly Pair[]): string {
  const out: string[] = [];
  let position = from;
  for (const pair of pairs) {
    const start = Math.max(position, pair.oldStart);
    const end = Math.min(to, pair.oldEnd);
    if (start >= end) continue;
    out.push(old.slice(position, start), spelled(text.slice(pair.start, pair.end), old, pair, start, end));
    position = end;
  }
  out.push(old.slice(position, to));
  return out.join("");
}

function spelled(region: string, old: string, pair: Pair, start: number, end: number): string {
  const foldedOld = fold(old.slice(pair.oldStart, pair.oldEnd));
  const foldedRegion = fold(region);
  let low = foldedOld.foldedOf(start - pair.oldStart);
  let high = foldedOld.foldedOf(end - pair.oldStart);
  // A file character of which only a part is kept (one hyphen of a dash) can only be spelled plainly.
  const head: string[] = [];
  const tail: string[] = [];
  while (low < high && !foldedRegion.isBoundary(low)) head.push(foldedOld.text[low++] ?? "");
  while (high > low && !foldedRegion.isBoundary(high)) tail.unshift(foldedOld.text[--high] ?? "");
  return head.join("") + region.slice(foldedRegion.originalOf(low), foldedRegion.originalOf(high)) + tail.join("");
}

/** UTF-16 offset of every code point. */
function unitOffsets(text: string): number[] {
  const offsets: number[] = [];
  let at = 0;
  for (const character of text) {
    offsets.push(at);
    at += character.length;
  }
  return offsets;
}

// The two strategies that accept regions which are only similar. Callers show the resulting diff.

const ONE_CANDIDATE = 0.5;
const SEVERAL_CANDIDATES = 0.7;
const LINE = 0.8;

/** Comparing by character takes the product of both lengths; beyond this, lines are compared as wholes. */
const MAX_CHARACTER_PAIRS = 4_000_000;

/** First and last line equal, the middle alike. */
export function findBlockAnchor(haystack: Haystack, old: string): Match[] {
  const wanted = foldTypography(old).split("\n");
  const count = wanted.length;
  if (count < 2) return [];
  const first = (wanted[0] ?? "").trim();
  const last = (wanted[count - 1] ?? "").trim();
  const lines = haystack.lines.map(foldTypography);
  const candidates: number[] = [];
  for (let at = 0; at + count <= lines.length; at++)
    if ((lines[at] ?? "").trim() === first && (lines[at + count - 1] ?? "").trim() === last) candidates.push(at);
  const floor = candidates.length > 1 ? SEVERAL_CANDIDATES : ONE_CANDIDATE;
  const middle = wanted.slice(1, -1);
  return candidates
    .filter((at) => count === 2 || likeness(lines.slice(at + 1, at + count - 1), middle) >= floor)
    .map((at) => spanOfLines(haystack, at, count));
}

/** First and last line alike, and every line that is not blank as well. */
export function findContextAware(haystack: Haystack, old: string): Match[] {
  const wanted = old.split("\n").map((line) => ({
    blank: isBlank(line),
    isLike: reachesSimilarity(line.trim(), LINE),
  }));
  const count = wanted.length;
  const lines = haystack.lines.map((line) => line.trim());
  const alike = (at: number, index: number) => wanted[index]?.isLike(lines[at + index] ?? "") ?? false;
  const matches: Match[] = [];
  for (let at = 0; at + count <= lines.length; at++) {
    if (!alike(at, 0) || !alike(at, count - 1)) continue;
    const isAnchor = (index: number) => index === 0 || index === count - 1;
    if (wanted.every((line, index) => isAnchor(index) || line.blank || alike(at, index)))
      matches.push(spanOfLines(haystack, at, count));
  }
  return matches;
}

function likeness(found: readonly string[], wanted: readonly string[]): number {
  const foundText = found.join("\n");
  const wantedText = wanted.join("\n");
  if (foundText.length * wantedText.length <= MAX_CHARACTER_PAIRS) return similarity(foundText, wantedText);
  return similarity(
    found.map((line) => line.trim()),
    wanted.map((line) => line.trim()),
  );
}
