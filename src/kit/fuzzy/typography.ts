// Keeps the file's typography where an edit leaves the words alone.
import { matchingBlocks } from "../similarity.ts";
import type { Pair } from "./strategies.ts";
import { fold } from "./unicode.ts";

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
