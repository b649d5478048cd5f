// The words of a text without what may hide them from a pattern and from nobody else: emphasis, quote and comment signs at the
// beginning of lines, inline tags, characters without a width of their own, letters of another alphabet that look like ours.

export interface BareText {
  readonly text: string;
  /** Where in the text it was made from a character of this one stands. */
  originalIndex(index: number): number;
}

/** Null when nothing hides anything: then there is nothing to search again. `folded` is in lower case. */
export function bareText(folded: string): BareText | null {
  const spelled = LOOK_ALIKE.test(folded) ? folded.replace(WORD, plainWord) : folded;
  const text = spelled.replace(DECORATION, "");
  if (text === folded) return null;
  return { text, originalIndex: (index) => beforeRemoval(spelled, index) };
}

const DECORATION =
  /[*`~\u00ad\u200e\u200f]+|[\ufe00-\ufe0f]+|(?<![a-z0-9])_+|_+(?![a-z0-9])|^[ \t]*(?:>|#|\/\/|;)[ \t>#/;]*|<\/?[a-z][^<>\n]{0,80}>/gmu;

// Cyrillic and Greek letters, small and capital, each above the Latin letter it is taken for.
const FOREIGN = "аеорсухіјѕһԁԛԝѵгкмтвнАЕОРСУХІЈЅКМТВНαοερυικντχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
const LATIN = "aeopcyxijshdqwvrkmtbhaeopcyxijskmtbhaoepuikvtxyabezhikmnoptyx";
const TWINS: ReadonlyMap<string, string> = new Map([...FOREIGN].map((letter, at) => [letter, LATIN[at] ?? letter]));
const LOOK_ALIKE = /[\u0370-\u052f]/;
const WORD = /[a-z\u0370-\u052f]+/gu;
const MIXED = /[a-z][\u0370-\u052f]|[\u0370-\u052f][a-z]/;

/** Both alphabets in one word: no language writes like that. */
function plainWord(word: string): string {
  return MIXED.test(word) ? Array.from(word, (letter) => TWINS.get(letter) ?? letter).join("") : word;
}

function beforeRemoval(spelled: string, index: number): number {
  let removed = 0;
  for (const match of spelled.matchAll(DECORATION)) {
    if (match.index - removed > index) break;
    removed += match[0].length;
  }
  return index + removed;
}
