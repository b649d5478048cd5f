// What a text is found by. Words are words; scripts without blanks are cut into pairs of characters, because most of their words are two
// characters long and nothing marks where one begins.
const CJK = String.raw`\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u3040-\u30ff\uac00-\ud7af`;
const PIECES = new RegExp(`[${CJK}]+|(?:(?![${CJK}])[\\p{L}\\p{N}_])+`, "gu");
const IS_CJK = new RegExp(`^[${CJK}]`, "u");

/** Too common to tell one conversation from another. */
const COMMON = new Set(
  (
    "a about all also am an and any are as at be because been but by can could did do does for from get go had has have he her here him " +
    "his how i if in into is it its just know let like make me my no not now of on one or our out please she should so some tell than " +
    "that the their them then there these they this those to up us use want was we were what when where which who why will with would " +
    "you your yes ok"
  ).split(" "),
);

/** The text as the word index takes it: words as they are, pairs of characters in place of runs without blanks. */
export function indexText(text: string): string {
  return pieces(text)
    .flatMap((piece) => (IS_CJK.test(piece) ? pairs(piece) : [piece]))
    .join(" ");
}

const MOST_TERMS = 24;

/** What of a question is worth looking for, each once, in the order said. */
export function queryTerms(query: string): readonly string[] {
  const terms = pieces(query.toLowerCase()).flatMap((piece) => {
    if (IS_CJK.test(piece)) return pairs(piece);
    return [...piece].length < 2 || COMMON.has(piece) ? [] : [piece];
  });
  return [...new Set(terms)].slice(0, MOST_TERMS);
}

/** How many of the terms a text has, as a share. Pairs that overlap count for what they are: more of the same word. */
export function coverage(terms: readonly string[], indexed: string): number {
  const has = new Set(indexed.toLowerCase().split(" "));
  const found = terms.filter((term) => has.has(term)).length;
  return terms.length === 0 ? 0 : found / terms.length;
}

function pieces(text: string): string[] {
  return text.normalize("NFKC").match(PIECES) ?? [];
}

function pairs(run: string): string[] {
  const points = [...run];
  if (points.length === 1) return points;
  return points.slice(1).map((point, index) => `${points[index]}${point}`);
}
