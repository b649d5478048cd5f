import { occurrences } from "./exact.ts";
import type { Haystack, Match } from "./match.ts";

/** Every run of blanks and tabs counts as one blank; line breaks stay what they are. */
export function findWhitespaceNormalized(haystack: Haystack, old: string): Match[] {
  const wanted = collapse(old).text;
  const { text, starts } = collapse(haystack.text);
  return occurrences(text, wanted).map((at) => ({
    start: starts[at] ?? 0,
    end: starts[at + wanted.length] ?? haystack.text.length,
  }));
}

/** The collapsed text and where each of its characters starts in the original; the last entry is the original's end. */
function collapse(original: string): { text: string; starts: Int32Array } {
  const starts = new Int32Array(original.length + 1);
  const units: string[] = [];
  let length = 0;
  const run = /[ \t]+/g;
  let position = 0;
  for (let found = run.exec(original); found; found = run.exec(original)) {
    for (let index = position; index < found.index; index++) starts[length++] = index;
    units.push(original.slice(position, found.index), " ");
    starts[length++] = found.index;
    position = run.lastIndex;
  }
  for (let index = position; index < original.length; index++) starts[length++] = index;
  units.push(original.slice(position));
  starts[length] = original.length;
  return { text: units.join(""), starts };
}
