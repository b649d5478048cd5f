// A text as a model reads it whatever it is spelled with. Patterns are written for plain words; a view of a text is the same words
// without what hides them from a pattern and from nobody else. Each view knows where its characters came from.

export interface View {
  readonly text: string;
  /** Where in the text it was made from a character of this one stands. */
  originalIndex(index: number): number;
}

interface Step {
  readonly pattern: RegExp;
  readonly to: (match: string) => string;
  /** It finds nothing in plain ASCII, which most texts are. */
  readonly beyondAscii?: true;
}

/** Full-width and other compatibility forms become plain; after that only A to Z have lower-case twins that patterns use. */
export function fold(text: string): string {
  return text.normalize("NFKC").replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

/** Without entities, accents, look-alike letters, fillers, emphasis, tags, quote and comment signs. Null when that changes nothing. */
export function bareView(folded: string): View | null {
  return viewOf(folded, BARE);
}

/**
 * Also without what divides a sentence: items of a list, cells of a table, punctuation inside it, letters that stand apart. Fillers
 * stand for blanks here. `bare` is the bare view of the same text.
 */
export function looseView(folded: string, bare: View | null): View | null {
  if (folded.search(ROOM) !== -1) return viewOf(folded, WITH_ROOM);
  const loose = viewOf(bare?.text ?? folded, LOOSE);
  if (!bare || !loose) return loose;
  return { text: loose.text, originalIndex: (index) => bare.originalIndex(loose.originalIndex(index)) };
}

function viewOf(folded: string, all: readonly Step[]): View | null {
  const steps = BEYOND_ASCII.test(folded) ? all : all.filter(({ beyondAscii }) => !beyondAscii);
  const made = [folded];
  for (const { pattern, to } of steps) made.push((made.at(-1) ?? "").replace(pattern, (match) => to(match)));
  const text = made.at(-1) ?? "";
  if (text === folded) return null;
  return {
    text,
    originalIndex: (index) => steps.reduceRight((at, step, which) => before(made[which] ?? "", step, at), index),
  };
}

// An entity may bring any character into the text.
const BEYOND_ASCII = /[^\x00-\x7f]|&#/;

/** Where a character stood before a step was taken. */
function before(text: string, { pattern, to }: Step, index: number): number {
  let shift = 0;
  for (const { 0: match, index: at } of text.matchAll(pattern)) {
    const start = at + shift;
    if (start > index) break;
    const made = to(match).length;
    if (index < start + made) return at + Math.min(index - start, match.length - 1);
    shift += made - match.length;
  }
  return index - shift;
}

const nothing = () => "";
const blank = () => " ";

// Entities of HTML: by number, and those names that spell a letter apart or hide between letters.
const ENTITY = /&(?:#\d{1,7}|#x[0-9a-f]{1,6}|nbsp|ensp|emsp|thinsp|zwnj|zwj|shy|lrm|rlm|newline|tab);/g;
const ENTITIES: Readonly<Record<string, string>> = { zwnj: "", zwj: "", shy: "", lrm: "", rlm: "" };

function entity(match: string): string {
  const name = match.slice(1, -1);
  if (!name.startsWith("#")) return ENTITIES[name] ?? " ";
  const code = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code > 0x10ffff ? match : fold(String.fromCodePoint(code).toWellFormed());
}

// Letters that are ours with something added or in another style. Cyrillic loses its marks too: й is written и in the patterns.
const STYLED =
  /[\u00c0-\u02af\u0400-\u0481\u1d00-\u1d7f\u1e00-\u1eff\ua726-\ua7ff\u{1f150}-\u{1f189}\u{1f1e6}-\u{1f1ff}]/gu;
const MARKS =
  /(?:[\u0300-\u036f]|[\u0483-\u0489]|[\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]|[\u064b-\u0652]|\u0640|\u093c)+/g;
const SMALL = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢıłøđħŧƒɡɑɐɔǝɟɥɯɹʇʌʍʎʞæœßðþ";
const PLAIN = "abcdefghijklmnopqrstuvwyzilodhtfgaaceftmrtvwykaesdt";
const STYLES: ReadonlyMap<string, string> = new Map([...SMALL].map((letter, at) => [letter, PLAIN[at] ?? letter]));

function styled(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  const circled = code >= 0x1f1e6 ? code - 0x1f1e6 : code >= 0x1f170 ? code - 0x1f170 : code - 0x1f150;
  if (code > 0xffff) return circled >= 0 && circled < 26 ? String.fromCharCode(0x61 + circled) : letter;
  const small = letter.toLowerCase();
  return STYLES.get(small) ?? small.normalize("NFD").replace(MARKS, "");
}

/** Nothing to see, or nothing but room: variation selectors, fillers of Hangul and Khmer, the empty cell of Braille, zero-width ones. */
const FILLERS =
  /(?:[\u00ad\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0]|[\ufe00-\ufe0f]|[\u{e0000}-\u{e0fff}]|[\u180b-\u180d]|[\u17b4\u17b5])+/gu;

// Cyrillic and Greek letters, small and capital, each above the Latin letter it is taken for.
const FOREIGN = "аеорсухіјѕһԁԛԝѵгкмтвнАЕОРСУХІЈЅКМТВНαοερυικντχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
const LATIN = "aeopcyxijshdqwvrkmtbhaeopcyxijskmtbhaoepuikvtxyabezhikmnoptyx";
const TWINS: ReadonlyMap<string, string> = new Map([...FOREIGN].map((letter, at) => [letter, LATIN[at] ?? letter]));
const WORD = /[a-z\u0370-\u052f]{2,}/gu;
const MIXED = /[a-z][\u0370-\u052f]|[\u0370-\u052f][a-z]/;
/** Two alphabets in one word: no language writes like that. */
function plainWord(word: string): string {
  return MIXED.test(word) ? Array.from(word, (letter) => TWINS.get(letter) ?? letter).join("") : word;
}

const DECORATION =
  /[*`~]+|(?<![a-z0-9])_+|_+(?![a-z0-9])|^[ \t]*(?:>|#|\/\/|;)[ \t>#/;]*|<\/?[a-z][^<>\n]{0,80}>|<!--[^<>\n]{0,80}-->/gmu;
/** Where these stand, words end. */
const BREAKS = /<\/?(?:br|p|li|td|th|tr|div|h[1-6])(?![a-z0-9])[^<>\n]{0,80}>/g;
/** The address of a link behind its words, and the bracket before them. */
const LINK = /\]\([^()\s]{0,300}\)|\[(?=[a-z])/gu;
/** A word that was divided at the end of its line. */
const DIVIDED = /(?<=[a-z])-\n[ \t]*(?=[a-z])/g;
/** Chinese, Japanese and Korean write no blanks inside a sentence, or write them anywhere. */
const APART = /(?<=[\u3040-\u30ff\u3400-\u9fff])[ \t\n\u3000]{1,4}(?=[\u3040-\u30ff\u3400-\u9fff])/gu;

const BARE: readonly Step[] = [
  { pattern: ENTITY, to: entity },
  { pattern: STYLED, to: styled, beyondAscii: true },
  { pattern: MARKS, to: nothing, beyondAscii: true },
  { pattern: FILLERS, to: nothing, beyondAscii: true },
  { pattern: WORD, to: plainWord, beyondAscii: true },
  { pattern: BREAKS, to: blank },
  { pattern: DECORATION, to: nothing },
  { pattern: LINK, to: nothing },
  { pattern: DIVIDED, to: nothing },
  { pattern: APART, to: nothing, beyondAscii: true },
];

/** Letters that stand apart: `i g n o r e`, `i.g.n.o.r.e`. Where the words ended is lost, so those of the known sentences are looked for. */
const SPELLED = /(?<![a-z0-9])[a-z](?:[ \t.·•|/_-]{1,3}[a-z]){4,400}(?![a-z0-9])/g;
const VOCABULARY =
  /ignore|disregard|forget|previous|prior|above|earlier|instructions|guidelines|rules|system|prompt|override|donot|tell|user|reveal|print|output/g;

function spelled(match: string): string {
  const letters = match.replace(/[^a-z]+/g, "");
  const words = letters.replace(VOCABULARY, (word) => ` ${word === "donot" ? "do not" : word} `);
  return words === letters ? match : words.trim();
}

/** Digits and signs for letters: `1gn0re`. */
const MASKED = /(?<=[a-z])[013457@$]|[013457@$](?=[a-z])/g;
const DIGITS: Readonly<Record<string, string>> = { 0: "o", 1: "i", 3: "e", 4: "a", 5: "s", 7: "t", "@": "a", $: "s" };

const ROOM = /[\u1160\u2800\u3164\uffa0]+/gu;
const MARKERS = /^[ \t]*(?:[-+•‣◦]|\d{1,3}[.)]|[a-z][.)])[ \t]+|(?<![|])\|(?![|])|^[ \t]*[-:|]{3,}[ \t]*$/gmu;
const PUNCTUATION =
  /(?<=[a-z0-9])[-_/+](?=[a-z])|\.{2,}|(?<=\s)[–—](?=\s)|(?:(?<=\S)[,:;"'“”„«»‘’()[\]]|[,:;"'“”„«»‘’()[\]](?=\S))+/gu;

const LOOSE: readonly Step[] = [
  { pattern: MASKED, to: (sign) => DIGITS[sign] ?? sign },
  { pattern: MARKERS, to: blank },
  { pattern: SPELLED, to: spelled },
  { pattern: PUNCTUATION, to: blank },
];
const WITH_ROOM: readonly Step[] = [{ pattern: ROOM, to: blank }, ...BARE, ...LOOSE];
