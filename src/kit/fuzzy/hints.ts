// What to say when nothing, or too much, was found.
import { truncateCodePoints } from "../code-points.ts";
import { similarityTo } from "../similarity.ts";
import { type Haystack, indentOf, isBlank, type Match } from "./strategies.ts";

const MAX_ROWS = 5;
const MAX_SECTIONS = 3;
const CONTEXT = 2;
const WORTH_SHOWING = 0.3;

/** One row per match: `  L<line>: <text>`. */
export function describeMatches(haystack: Haystack, matches: readonly Match[]): string {
  const rows = matches.slice(0, MAX_ROWS).map((match) => {
    const line = lineAt(haystack, match.start);
    return `  L${line + 1}: ${truncateCodePoints((haystack.lines[line] ?? "").trim(), 80, "...")}`;
  });
  if (matches.length > MAX_ROWS) rows.push(`  ... and ${matches.length - MAX_ROWS} more`);
  return rows.join("\n");
}

/** The sections most like what was looked for, or an empty text when nothing is. */
export function describeNearest(haystack: Haystack, old: string): string {
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
