// A page of lines out of a file of any size: read as a stream, never held whole.
import { headUnits } from "../kit/code-points.ts";
import type { FileAccess } from "./files/access.ts";

export interface PageRequest {
  /** First line, from 1. */
  readonly offset: number;
  readonly limit: number;
  readonly maxLineLength: number;
}

export interface Page {
  /** A long line with what follows the limit for a while: what is hidden in it must be seen whole before it is cut. */
  readonly lines: readonly PageLine[];
  readonly totalLines: number;
  /** The page begins inside a private key that began before it. */
  readonly startsInKey: boolean;
}

export interface PageLine {
  readonly text: string;
  /** The line goes on behind `text`. */
  readonly goesOn: boolean;
}

const NEWLINE = 0x0a;
/** Longer than most secrets. */
const BEYOND = 1024;

export async function readPage(
  files: FileAccess,
  path: string,
  request: PageRequest,
  signal: AbortSignal,
): Promise<Page> {
  const { offset, limit, maxLineLength } = request;
  // Enough bytes for every character we might show; the rest of a longer line is counted, not kept.
  const maxLineBytes = (maxLineLength + BEYOND) * 4 + 8;
  const lines: PageLine[] = [];
  const keys = createKeyWatch();
  let number = 1;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let lineBytes = 0;

  const isWanted = () => number >= offset && number < offset + limit;
  const keep = (piece: Buffer) => {
    lineBytes += piece.length;
    if (!isWanted() || keptBytes >= maxLineBytes) return;
    const part = piece.subarray(0, maxLineBytes - keptBytes);
    kept.push(part);
    keptBytes += part.length;
  };
  const finishLine = () => {
    if (isWanted()) lines.push(lineOf(Buffer.concat(kept), lineBytes, number === 1, maxLineLength + BEYOND));
    kept = [];
    keptBytes = 0;
    lineBytes = 0;
    number++;
  };

  for await (const chunk of files.chunks(path, signal)) {
    let position = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, position)) {
      keep(chunk.subarray(position, end));
      finishLine();
      position = end + 1;
      if (number === offset) keys.look(chunk.subarray(0, position));
    }
    keep(chunk.subarray(position));
    if (number < offset) keys.look(chunk);
  }
  if (lineBytes > 0) finishLine();
  return { lines, totalLines: number - 1, startsInKey: keys.inside() };
}

function lineOf(bytes: Buffer, fullLength: number, isFirst: boolean, maxLength: number): PageLine {
  let text = bytes.toString("utf8");
  if (isFirst && text.startsWith("\ufeff")) text = text.slice(1);
  if (text.endsWith("\r") && bytes.length === fullLength) text = text.slice(0, -1);
  return { text: headUnits(text, maxLength), goesOn: text.length > maxLength || bytes.length < fullLength };
}

/** Watches the text before a page for the beginning and end of private keys. */
function createKeyWatch(): { look(chunk: Buffer): void; inside(): boolean } {
  const MARK = "PRIVATE KEY";
  const REACH = 64;
  let tail = Buffer.alloc(0);
  let inside = false;
  return {
    look(chunk) {
      const text = Buffer.concat([tail, chunk]);
      for (let at = text.indexOf(MARK); at !== -1; at = text.indexOf(MARK, at + 1)) {
        const before = text.toString("latin1", Math.max(0, at - REACH), at);
        const begin = before.lastIndexOf("-----BEGIN");
        const end = before.lastIndexOf("-----END");
        if (begin !== end) inside = begin > end;
      }
      tail = text.subarray(-(REACH + MARK.length));
    },
    inside: () => inside,
  };
}
