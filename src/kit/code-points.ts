// Lengths and cuts in Unicode code points, so that no emoji is ever cut in half.

const SURROGATE = /[\ud800-\udfff]/;

export function countCodePoints(text: string): number {
  if (!SURROGATE.test(text)) return text.length;
  let count = 0;
  for (let index = 0; index < text.length; index += width(text, index)) count++;
  return count;
}

/** Like `String.prototype.slice`, negative positions included, with positions in code points. */
export function sliceCodePoints(text: string, start: number, end?: number): string {
  if (!SURROGATE.test(text)) return text.slice(start, end);
  const total = start < 0 || (end ?? 0) < 0 ? countCodePoints(text) : 0;
  const from = start < 0 ? Math.max(0, total + start) : start;
  const to = end === undefined ? Infinity : end < 0 ? total + end : end;
  if (to <= from) return "";
  const startIndex = indexAfter(text, 0, from);
  return to === Infinity ? text.slice(startIndex) : text.slice(startIndex, indexAfter(text, startIndex, to - from));
}

/** At most `max` code points; what was cut ends with `mark`, which counts towards `max`. */
export function truncateCodePoints(text: string, max: number, mark = ""): string {
  if (text.length <= max || countCodePoints(text) <= max) return text;
  const kept = max - countCodePoints(mark);
  return kept > 0 ? sliceCodePoints(text, 0, kept) + mark : sliceCodePoints(mark, 0, Math.max(0, max));
}

/** At most `max` UTF-16 units from the start, one fewer where the cut would fall inside a pair. */
export function headUnits(text: string, max: number): string {
  if (max <= 0) return "";
  return text.slice(0, isInsidePair(text, max) ? max - 1 : max);
}

/** At most `max` UTF-16 units from the end, one fewer where the cut would fall inside a pair. */
export function tailUnits(text: string, max: number): string {
  if (max <= 0) return "";
  if (text.length <= max) return text;
  const start = text.length - max;
  return text.slice(isInsidePair(text, start) ? start + 1 : start);
}

function isInsidePair(text: string, index: number): boolean {
  return index > 0 && index < text.length && width(text, index - 1) === 2;
}

function width(text: string, index: number): number {
  return (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
}

function indexAfter(text: string, start: number, count: number): number {
  let index = start;
  for (let left = count; left > 0 && index < text.length; left--) index += width(text, index);
  return index;
}
