// The piece of a text that shows why it was found: hits marked, cuts shown.
import { type AskedWord, findWords, type Occurrence } from "./words.ts";

export const MARK_START = ">>>";
export const MARK_END = "<<<";
export const CUT = "...";
const LENGTH = 120;
const BEFORE = 40;
/** A passage that answers is read by itself, so it is longer. */
const PASSAGE_LENGTH = 240;

/** 120 code points from 40 before the first term that occurs; every whole hit inside is marked. Case is ignored. */
export function makeSnippet(text: string, terms: readonly string[]): string {
  const longestFirst = terms.filter((term) => term !== "").sort((a, b) => b.length - a.length);
  const hit = new RegExp(longestFirst.map(RegExp.escape).join("|") || "(?!)", "giu");
  const first = Math.max(0, text.search(hit));
  // A code point is at most two UTF-16 units, so these slices are long enough, and short for any length of text.
  const before = [...text.slice(Math.max(0, first - 2 * BEFORE), first)].slice(-BEFORE).join("");
  const after = [...text.slice(first, first + 2 * LENGTH)].slice(0, LENGTH - [...before].length).join("");
  const start = first - before.length;
  const end = first + after.length;
  const marked = (before + after).replace(hit, (found) => `${MARK_START}${found}${MARK_END}`);
  return `${start > 0 ? CUT : ""}${marked}${end < text.length ? CUT : ""}`;
}

/** The part of a text that has most of the words, rarely said ones first. Weights are per word. */
export function makePassage(text: string, asked: readonly AskedWord[], weights: readonly number[]): string {
  const hits = findWords(text, asked);
  const start = cutBefore(text, bestStart(hits, weights));
  const end = cutAfter(text, start);
  let marked = "";
  let at = start;
  for (const hit of hits) {
    if (hit.start < at || hit.end > end) continue;
    marked += `${text.slice(at, hit.start)}${MARK_START}${text.slice(hit.start, hit.end)}${MARK_END}`;
    at = hit.end;
  }
  marked += text.slice(at, end);
  return `${start > 0 ? CUT : ""}${marked.replace(/\s+/g, " ").trim()}${end < text.length ? CUT : ""}`;
}

/** Where the part of a text begins that has most of the words. */
export const passageStart = (text: string, asked: readonly AskedWord[]) => bestStart(findWords(text, asked), []);

function bestStart(hits: readonly Occurrence[], weights: readonly number[]): number {
  let best = 0;
  let most = -1;
  for (const [index, hit] of hits.entries()) {
    const words = new Set<number>();
    for (let n = index; n < hits.length && (hits[n]?.end ?? 0) <= hit.start + PASSAGE_LENGTH - BEFORE; n++)
      words.add(hits[n]?.word ?? 0);
    let sum = 0;
    for (const word of words) sum += weights[word] ?? 1;
    if (sum <= most) continue;
    most = sum;
    best = hit.start;
  }
  return best;
}

function cutBefore(text: string, hit: number): number {
  if (hit <= BEFORE) return 0;
  const start = hit - BEFORE;
  const blank = text.indexOf(" ", start);
  const clean = blank >= 0 && blank < hit ? blank + 1 : start;
  return isLowSurrogate(text, clean) ? clean + 1 : clean;
}

function cutAfter(text: string, start: number): number {
  const end = start + PASSAGE_LENGTH;
  if (end >= text.length) return text.length;
  return isLowSurrogate(text, end) ? end - 1 : end;
}

const isLowSurrogate = (text: string, at: number) => /^[\udc00-\udfff]/.test(text.slice(at, at + 1));
