// Finds a word in a text whatever it is spelled with: other case, full-width or styled letters, letters of other alphabets that look the
// same, and characters nobody sees between them. A model reads all of these as the word itself.

export interface FoldedMatch {
  /** UTF-16 offsets in the text. */
  readonly start: number;
  readonly end: number;
}

/** Where `word` (plain lower-case ASCII) stands in a text, left to right, without overlaps. */
export function foldedMatches(text: string, word: string): readonly FoldedMatch[] {
  // Most texts are plain: one pass of the engine settles those.
  if (!UNUSUAL.test(text)) return plainMatches(text, word);
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
  return plainMatches(folded, word).map(({ start, end }) => ({
    start: starts[start] ?? 0,
    end: ends[end - 1] ?? text.length,
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
