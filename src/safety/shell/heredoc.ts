import type { Word } from "./ast.ts";
import type { PendingHeredoc, Reader } from "./reader.ts";
import { readExpandingText } from "./word.ts";

/** What the word behind `<<` means: the end line, and whether the body expands. */
export function readDelimiter(word: Word): Pick<PendingHeredoc, "delimiter" | "expands" | "doubtful"> {
  let delimiter = "";
  let expands = true;
  let doubtful = false;
  for (const part of word.parts) {
    if (part.type === "literal") {
      delimiter += part.text;
      if (part.quoting !== "none") expands = false;
    } else {
      delimiter += part.source;
      doubtful = true;
    }
  }
  return { delimiter, expands, doubtful };
}

/** Steps over a newline and reads the bodies announced on the line before it. */
export function takeNewline(reader: Reader): void {
  reader.at++;
  if (reader.pending.length === 0) return;
  const pending = reader.pending;
  reader.pending = [];
  for (const heredoc of pending) readBody(reader, heredoc);
}

function readBody(reader: Reader, heredoc: PendingHeredoc): void {
  const start = reader.at;
  const { text } = reader;
  let at = start;
  let joined = false;
  let found = false;
  let end = text.length;
  while (at < text.length) {
    const newline = text.indexOf("\n", at);
    const lineEnd = newline < 0 ? text.length : newline;
    let line = text.slice(at, lineEnd).replace(/\r$/, "");
    if (heredoc.stripTabs) line = line.replace(/^\t+/, "");
    if (!joined && line === heredoc.delimiter) {
      found = true;
      end = at;
      at = Math.min(lineEnd + 1, text.length);
      break;
    }
    // In an expanding body a line that ends in a backslash swallows the next one, end line or not.
    joined = heredoc.expands && trailingBackslashes(line) % 2 === 1;
    at = lineEnd + 1;
  }
  const body = text.slice(start, end);
  reader.at = Math.min(at, text.length);
  const doubtful = heredoc.doubtful || !found;
  heredoc.fill({
    body,
    doubtful,
    parts: heredoc.expands ? readExpandingText(body, reader) : [{ type: "literal", text: body, quoting: "single" }],
  });
}

function trailingBackslashes(line: string): number {
  let count = 0;
  while (count < line.length && line[line.length - 1 - count] === "\\") count++;
  return count;
}
