// The piece of a text around its first hit, hits marked, cuts shown.

export const MARK_START = ">>>";
export const MARK_END = "<<<";
export const CUT = "...";
const LENGTH = 120;
const BEFORE = 40;

/** 120 code points from 40 before the first term that occurs; every whole hit inside is marked. Case is ignored. */
export function makeSnippet(text: string, terms: readonly string[]): string {
  const longestFirst = terms.filter((term) => term !== "").sort((a, b) => b.length - a.length);
  const hit = new RegExp(longestFirst.map(RegExp.escape).join("|") || "(?!)", "giu");
  const first = Math.max(0, text.search(hit));
  // A code point is at most two UTF-16 units, so these slices are long enough, and short for any length of text.
  const before = [...text.slice(Math.max(0, first - 2 * BEFORE), first)].slice(-BEFORE).join("");
  const after = [...text.slice(first, first + 2 * LENGTH)].slice(0, LENGTH - [...before].length).join("");
  const start = first - before.length;
  const end = first + after.length;
  const marked = (before + after).replace(hit, (found) => `${MARK_START}${found}${MARK_END}`);
  return `${start > 0 ? CUT : ""}${marked}${end < text.length ? CUT : ""}`;
}
