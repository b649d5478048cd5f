// Strategies that compare whole lines.
import { type Haystack, type Match, spanOfLines } from "./strategies.ts";

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
export function findBlocks(haystack: Haystack, old: string, fold: (line: string) => string): Match[] {
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
