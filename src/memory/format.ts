// The two memory files as text: entries joined by a line that holds nothing but a section sign.
import { countCodePoints } from "../kit/code-points.ts";

export const TARGETS = ["memory", "user"] as const;
export type MemoryTarget = (typeof TARGETS)[number];

export const FILE_NAMES: Readonly<Record<MemoryTarget, string>> = { memory: "MEMORY.md", user: "USER.md" };

const SIGN = "§";
const DELIMITER = `\n${SIGN}\n`;

/** The entries of a file, trimmed, the first of equal ones kept. Blank lines around a delimiter, CRLF and one BOM mean nothing. */
export function parseEntries(text: string): readonly string[] {
  const pieces: string[][] = [[]];
  for (const line of plainLines(text.startsWith("\ufeff") ? text.slice(1) : text)) {
    if (trimText(line) === SIGN) pieces.push([]);
    else pieces.at(-1)?.push(line);
  }
  const entries = pieces.map((lines) => trimText(lines.join("\n"))).filter((entry) => entry !== "");
  return [...new Set(entries)];
}

export function renderEntries(entries: readonly string[]): string {
  const text = entries.join(DELIMITER);
  // Reading drops one BOM; a first entry that begins with one, as only a hand edit makes it, must keep it to be found and removed.
  return text.startsWith("\ufeff") ? `\ufeff${text}` : text;
}

/** What limits are measured by: code points of the file. */
export function lengthOf(entries: readonly string[]): number {
  return countCodePoints(entries.join(DELIMITER));
}

/** A text as it is stored: trimmed, line ends as LF, no halves of surrogate pairs (a file cannot hold them). */
export function tidyText(text: string): string {
  return trimText(plainLines(text.toWellFormed()).join("\n"));
}

/** A line of its own with the sign would read as two entries. */
export function hasDelimiterLine(text: string): boolean {
  return plainLines(text).some((line) => trimText(line) === SIGN);
}

/** Unlike `String.prototype.trim` it leaves U+FEFF, so that the threat scan sees it. */
function trimText(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && BLANK.test(text.charAt(start))) start++;
  while (end > start && BLANK.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

const BLANK = /^\p{White_Space}$/u;

function plainLines(text: string): string[] {
  const lines = text.split("\n");
  const last = lines.length - 1;
  return lines.map((line, index) => (index < last ? withoutReturns(line) : line));
}

function withoutReturns(line: string): string {
  let end = line.length;
  while (end > 0 && line.charAt(end - 1) === "\r") end--;
  return line.slice(0, end);
}
