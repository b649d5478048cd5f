// A secret that `base64` or `xxd -p` printed over two lines: the lines are read as one, and what is found is masked in both.
import type { Marks } from "./marks.ts";

/** Shorter lines are words of some text, not a piece of an encoding. */
const SHORTEST_LINE = 32;
const LINE_END = /(\r?\n|(?:\\r)?\\n)/;

export function redactWrapped(text: string, known: readonly string[], marks: Marks): string {
  if (known.length === 0 || !(text.includes("\n") || text.includes("\\n"))) return text;
  // Lines at even places, what parts them between.
  const parts = text.split(LINE_END);
  let changed = false;
  for (let first = 0; first + 2 < parts.length; ) {
    const line = parts[first] ?? "";
    const from = tailStart(line);
    let last = first + 2;
    if (line.length - from >= SHORTEST_LINE) {
      while (last + 2 < parts.length && isWhole(parts[last] ?? "")) last += 2;
      if (maskAcross(parts, { first, last, from }, known, marks)) changed = true;
    }
    first = last;
  }
  return changed ? parts.join("") : text;
}

interface Block {
  readonly first: number;
  readonly last: number;
  /** Where in the first line it begins. */
  readonly from: number;
}

function maskAcross(parts: string[], { first, last, from }: Block, known: readonly string[], marks: Marks): boolean {
  const pieces: { readonly at: number; readonly before: string; readonly text: string; readonly after: string }[] = [];
  for (let at = first; at <= last; at += 2) {
    const line = parts[at] ?? "";
    const start = at === first ? from : 0;
    const end = at === last ? headEnd(line) : line.length;
    pieces.push({ at, before: line.slice(0, start), text: line.slice(start, end), after: line.slice(end) });
  }
  const joined = pieces.map(({ text }) => text).join("");
  const found = known.filter((secret) => joined.includes(secret));
  if (found.length === 0) return false;
  const cells = [...joined];
  for (const secret of found) {
    for (let at = joined.indexOf(secret); at >= 0; at = joined.indexOf(secret, at + secret.length)) {
      if (cells.slice(at, at + secret.length).some((cell) => cell.length !== 1)) continue;
      cells.fill("", at, at + secret.length);
      cells[at] = marks.token(secret, "");
    }
  }
  let offset = 0;
  for (const { at, before, text, after } of pieces) {
    parts[at] = before + cells.slice(offset, offset + text.length).join("") + after;
    offset += text.length;
  }
  return true;
}

/** Letters, digits and the signs that encodings use. */
function isEncoded(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x2f && code <= 0x39) ||
    code === 0x2b ||
    code === 0x2d ||
    code === 0x3d ||
    code === 0x5f
  );
}

function tailStart(line: string): number {
  let at = line.length;
  while (at > 0 && isEncoded(line.charCodeAt(at - 1))) at--;
  return at;
}

function headEnd(line: string): number {
  let at = 0;
  while (at < line.length && isEncoded(line.charCodeAt(at))) at++;
  return at;
}

const isWhole = (line: string) => line.length >= SHORTEST_LINE && headEnd(line) === line.length;
