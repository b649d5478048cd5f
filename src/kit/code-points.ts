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

// Finds a word in a text whatever it is spelled with: other case, full-width or styled letters, letters of other alphabets that look the
// same, and characters nobody sees between them. A model reads all of these as the word itself.

interface FoldedMatch {
  /** UTF-16 offsets in the text. */
  readonly start: number;
  readonly end: number;
}

/** Where `word` (plain lower-case ASCII) stands in a text, left to right, without overlaps. */
export function foldedMatches(text: string, word: string): readonly FoldedMatch[] {
  const read = fold(text);
  return read === null ? plainMatches(text, word) : inText(plainMatches(read.folded, word), read);
}

/** The same for a pattern over lower-case letters, with the flag `g`; `plain` is what was matched in such letters. */
export function foldedPattern(text: string, pattern: RegExp): readonly (FoldedMatch & { readonly plain: string })[] {
  const read = fold(text);
  const matches = [...(read?.folded ?? text.toLowerCase()).matchAll(pattern)].map(({ index, 0: plain }) => ({
    start: index,
    end: index + plain.length,
    plain,
  }));
  return read === null ? matches : inText(matches, read);
}

interface FoldedText {
  readonly folded: string;
  /** Where each unit of it comes from. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Null for plain ASCII, which most texts are: one pass of the engine settles those. */
function fold(text: string): FoldedText | null {
  if (!UNUSUAL.test(text)) return null;
  let folded = "";
  const starts: number[] = [];
  const ends: number[] = [];
  let at = 0;
  for (const point of text) {
    const end = at + point.length;
    const letters = foldPoint(point);
    folded += letters;
    for (let unit = 0; unit < letters.length; unit++) {
      starts.push(at);
      ends.push(end);
    }
    at = end;
  }
  return { folded, starts, ends };
}

function inText<M extends FoldedMatch>(matches: readonly M[], { starts, ends }: FoldedText): readonly M[] {
  return matches.map((match) => ({
    ...match,
    start: starts[match.start] ?? 0,
    end: ends[match.end - 1] ?? match.start,
  }));
}

const UNUSUAL = /[^\t\n\r\x20-\x7e]/;
/** Not shown, or only as marks on the letter before. */
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Mn}\p{Me}\p{Cc}]$/u;

function plainMatches(text: string, word: string): readonly FoldedMatch[] {
  const lower = text.toLowerCase();
  // Lower-casing may change lengths outside ASCII; there the text is folded letter by letter already.
  const searched = lower.length === text.length ? lower : text;
  const matches: FoldedMatch[] = [];
  for (let at = searched.indexOf(word); at >= 0; at = searched.indexOf(word, at + word.length)) {
    matches.push({ start: at, end: at + word.length });
  }
  return matches;
}

const memory = new Map<string, string>();

function foldPoint(point: string): string {
  const code = point.codePointAt(0) ?? 0;
  // Tabs and line ends part words; every other control character is nothing to see.
  if (code === 9 || code === 10 || code === 13) return point;
  if (code >= 0x20 && code < 0x7f) return point.toLowerCase();
  const known = memory.get(point);
  if (known !== undefined) return known;
  const folded = UNSEEN.test(point) ? "" : foldLetters(point);
  if (memory.size < 4096) memory.set(point, folded);
  return folded;
}

function foldLetters(point: string): string {
  return [...point.normalize("NFKD").toLowerCase()]
    .map((one) => (UNSEEN.test(one) ? "" : (LOOKS_LIKE.get(one) ?? one)))
    .join("");
}

/** Lower-case letters and signs that look like ASCII ones; styled and full-width forms are undone by normalisation before. */
const LOOKS_LIKE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    a: "аɑα",
    b: "ьƅʙ",
    c: "сϲⅽᴄ",
    d: "ԁɗđᴅ",
    e: "еҽєεℯɛᴇ℮",
    f: "ƒꜰϝ",
    g: "ɡցɢ",
    i: "іıιɩ",
    l: "ӏǀ׀וɭłⅼʟ",
    m: "мᴍ",
    n: "ոռпηɴ",
    o: "оοօᴏ൦๐໐ơø",
    r: "гᴦⲅʀɍ",
    s: "ѕꜱʂſ",
    t: "тτᴛŧ†",
    u: "սυцᴜʋꭎ",
    x: "хχ",
    y: "уүγ",
    "-": "‐‑‒–—―−﹣－⁃",
    "[": "［⟦【〔",
    "/": "／⁄∕",
    _: "ˍ＿﹍﹎﹏‿⁀⎯‗",
  }).flatMap(([ascii, others]) => [...others].map((other) => [other, ascii] as const)),
);

// Half of a surrogate pair cannot be written as UTF-8; servers refuse the whole request because of one.

/** Lone surrogates become U+FFFD; everything else stays. */
export function sanitizeSurrogates(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** JSON.stringify writes a pair as it is and only a lone half as an escape; a literal backslash may look the same, which costs a walk. */
export function mayHoldLoneSurrogate(json: string): boolean {
  return json.includes("\\ud") && /\\ud[89a-f]/.test(json);
}

/** The value with every string in it, keys too, well formed. */
export function scrubSurrogates(value: unknown): unknown {
  if (typeof value === "string") return sanitizeSurrogates(value);
  if (Array.isArray(value)) return value.map(scrubSurrogates);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [sanitizeSurrogates(key), scrubSurrogates(entry)]),
  );
}

// White space at both ends. `trim` would also take U+FEFF away, which the threat scanner has to see.

export function strip(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

const OTHER_SPACES = /^[\s\x1c-\x1f\x85]$/;

function isSpace(unit: number): boolean {
  if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) return true;
  return unit > 0x1b && unit !== 0xfeff && OTHER_SPACES.test(String.fromCharCode(unit));
}

/** Order by code point, the same on every machine; JavaScript's own order differs beyond the basic plane. */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [x, y] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (x === y) continue;
    // A surrogate stands for a code point above every other unit.
    const [high, other] = [isSurrogate(x), isSurrogate(y)];
    return high === other ? x - y : high ? 1 : -1;
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;
