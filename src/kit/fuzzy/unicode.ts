// Typographic characters read as their ASCII look-alikes.
import { occurrences } from "./exact.ts";
import { findTrimmedLines } from "./lines.ts";
import { type Haystack, haystackOf, type Match, type Pair } from "./strategies.ts";

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

export function foldTypography(text: string): string {
  return text.replace(TYPOGRAPHY, (character) => ascii[character] ?? " ");
}

/** A folded text that remembers where its characters come from. */
export interface Folded {
  readonly text: string;
  /** Offset in the original of the character that the folded offset belongs to. */
  originalOf(offset: number): number;
  /** Whether an original character begins at this folded offset (and none is cut by it). */
  isBoundary(offset: number): boolean;
  foldedOf(originalOffset: number): number;
}

export function fold(original: string): Folded {
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
