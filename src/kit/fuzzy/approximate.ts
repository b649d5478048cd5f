// The two strategies that accept regions which are only similar. Callers show the resulting diff.
import { reachesSimilarity, similarity } from "../similarity.ts";
import { type Haystack, isBlank, type Match, spanOfLines } from "./strategies.ts";
import { foldTypography } from "./unicode.ts";

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
