import { occurrences } from "./exact.ts";
import type { Haystack, Match } from "./strategies.ts";

/** Every run of blanks and tabs counts as one blank; line breaks stay what they are. */
export function findWhitespaceNormalized(haystack: Haystack, old: string): Match[] {
  const wanted = collapse(old);
  const found = occurrences(collapse(haystack.text), wanted);
  if (found.length === 0) return [];
  const starts = startsOf(haystack.text);
  return found.map((at) => ({
    start: starts[at] ?? 0,
    end: starts[at + wanted.length] ?? haystack.text.length,
  }));
}

const collapse = (text: string) => text.replace(/[ \t]+/g, " ");

/** Where each character of the collapsed text starts in the original; the last entry is the original's end. */
function startsOf(original: string): Int32Array {
  const starts = new Int32Array(original.length + 1);
  let length = 0;
  const run = /[ \t]+/g;
  let position = 0;
  for (let found = run.exec(original); found; found = run.exec(original)) {
    for (let index = position; index < found.index; index++) starts[length++] = index;
    starts[length++] = found.index;
    position = run.lastIndex;
  }
  for (let index = position; index < original.length; index++) starts[length++] = index;
  starts[length] = original.length;
  return starts;
}
