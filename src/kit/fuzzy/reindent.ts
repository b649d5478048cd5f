// Moves a replacement from the indentation it was written in to that of the region it replaces.
import { matchingBlocks } from "../similarity.ts";
import { indentOf, isBlank } from "./strategies.ts";

interface Swap {
  readonly from: string;
  readonly to: string;
}

export function reindent(old: string, region: string, replacement: string): string {
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
