// Characters nobody sees and a model reads: zero-width ones, direction overrides, tags. Some writing needs a few of them.

export interface InvisibleCharacter {
  readonly codePoint: number;
  /** Where it stands first, in UTF-16 units. */
  readonly index: number;
}

/** Each forbidden code point once, ascending. */
export function findInvisible(text: string): readonly InvisibleCharacter[] {
  const first = new Map<number, number>();
  for (const match of text.matchAll(INVISIBLE_OR_FLAG)) {
    const codePoint = match[0].codePointAt(0) ?? 0;
    if (codePoint === BLACK_FLAG || first.has(codePoint) || isNeeded(text, match.index, codePoint)) continue;
    first.set(codePoint, match.index);
  }
  return [...first].map(([codePoint, index]) => ({ codePoint, index })).sort((a, b) => a.codePoint - b.codePoint);
}

/** `U+200B`: at least four digits. */
export function codePointName(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The text with every character of the forbidden kind shown as `<U+200B>`. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE_OR_FLAG, (match) => {
    const codePoint = match.codePointAt(0) ?? 0;
    return codePoint === BLACK_FLAG ? match : `<${codePointName(codePoint)}>`;
  });
}

const BLACK_FLAG = 0x1f3f4;
const ZWNJ = 0x200c;
const ZWJ = 0x200d;

// A flag of a region (England, Wales) is a black flag spelled on in tag letters; matched whole, so that its tags are not looked at alone.
const FLAG = "\\u{1F3F4}[\\u{E0030}-\\u{E0039}\\u{E0061}-\\u{E007A}]{1,8}\\u{E007F}";
const INVISIBLE =
  "[\\u200B-\\u200D\\u2060-\\u2064\\u2066-\\u2069\\uFEFF\\u202A-\\u202E\\u180E\\uFFF9-\\uFFFB" +
  "\\u{E0001}\\u{E0020}-\\u{E007F}\\u{E0100}-\\u{E01EF}]";
const INVISIBLE_OR_FLAG = new RegExp(`${FLAG}|${INVISIBLE}`, "gu");

function isNeeded(text: string, index: number, codePoint: number): boolean {
  if (codePoint !== ZWNJ && codePoint !== ZWJ) return false;
  // An emoji, a skin tone and a selector take at most four units; a letter of these scripts takes two.
  const before = text.slice(Math.max(0, index - 5), index);
  const after = text.slice(index + 1, index + 6);
  if (spelling().before.test(before) && spelling().after.test(after)) return true;
  if (VIRAMA_AT_END.test(before) && WORD_ENDS.test(after)) return true;
  return codePoint === ZWJ && EMOJI_AT_END.test(before) && EMOJI_AT_START.test(after);
}

// A consonant that has lost its vowel at the end of a word is written with a joiner in older Malayalam and Bengali.
const VIRAMA_AT_END = /[\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA]$/;
const WORD_ENDS = /^(?:$|[\s!-/:-@[-`{-~\u0964\u0965\u2010-\u201F])/;
const EMOJI_AT_END = /\p{Extended_Pictographic}(?:\uFE0F|[\u{1F3FB}-\u{1F3FF}]){0,2}$/u;
const EMOJI_AT_START = /^(?:\uFE0F|[\u{1F3FB}-\u{1F3FF}]){0,2}\p{Extended_Pictographic}/u;

// Scripts whose spelling needs the joiners. Script extensions, because vowel signs shared by several scripts belong to none.
const JOINING_SCRIPTS = [
  ...["Arabic", "Syriac", "Nko", "Mongolian", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya"],
  ...["Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Khmer", "Myanmar"],
];
const spelling = once(() => {
  const letter = `(?=[\\p{L}\\p{M}])[${JOINING_SCRIPTS.map((script) => `\\p{scx=${script}}`).join("")}]`;
  return { before: new RegExp(`${letter}$`, "u"), after: new RegExp(`^${letter}`, "u") };
});

/** Putting such classes together takes milliseconds, and few texts ever need them. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
