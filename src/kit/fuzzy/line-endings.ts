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
