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
 * Applies edits whose positions count in the LF form of `original`. Each replacement takes the line ending of the region it replaces (of its
 * line, if the region has no break of its own); every byte outside the regions stays.
 */
export function applyEdits(original: string, edits: readonly Edit[]): string {
  const rawOf = rawPositions(original);
  const out: string[] = [];
  let position = 0;
  for (const edit of [...edits].sort((one, other) => one.start - other.start)) {
    const start = rawOf(edit.start);
    const end = rawOf(edit.end);
    const ending = endingAt(original, start, end);
    out.push(original.slice(position, start), ending === "\n" ? edit.text : edit.text.replaceAll("\n", ending));
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

function endingAt(original: string, start: number, end: number): "\n" | "\r\n" {
  const inside = original.indexOf("\n", start);
  if (inside !== -1) return endingOf(original, inside);
  const before = original.lastIndexOf("\n", end - 1);
  return before === -1 ? "\n" : endingOf(original, before);
}

function endingOf(original: string, feed: number): "\n" | "\r\n" {
  return original[feed - 1] === "\r" ? "\r\n" : "\n";
}
