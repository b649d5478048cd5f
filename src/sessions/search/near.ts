// Of the conversations with most of a question, first those that say it in one breath: a name here and a thing there is no answer. The index
// of terms does not know where in a text a word stands, so the best texts of the best conversations are read.
import type { AskedIndex } from "./ask.ts";
import { ASKING, type RankedGroup, rare } from "./rank.ts";
import type { TextTable } from "./term-index.ts";
import { type AskedWord, findWords } from "./words.ts";

interface Reading {
  readonly texts: TextTable;
  readonly asked: Pick<AskedIndex, "words" | "evidence">;
  /** Texts by their ids. */
  readonly read: (ids: readonly number[]) => ReadonlyMap<number, string>;
}

const GROUPS = 40;
/** What a word counts that does not stand in the sentence itself. */
const NEXT_SENTENCE = 0.6;
const NEXT_TEXT = 0.4;
const SAME_TEXT = 0.3;
/** What the whole question in one sentence counts, beside the words by themselves. */
const NEAR = 2;
/** What a name counts, beside the word that says most: whoever answers may say all other words otherwise. */
const NAME = 1.5;
const SENTENCE_END = /[.!?;:](?=\s|$)|[。！？；\n]/g;

/** The groups in a new order, each with the text that says most of the question in one place. */
export function byNearness(groups: readonly RankedGroup[], reading: Reading): readonly RankedGroup[] {
  const { texts, asked } = reading;
  const weights = weightsOf(asked, texts.count);
  const total = weights.reduce((sum, one) => sum + one, 0);
  const looked = groups.slice(0, GROUPS);
  const ids = looked.flatMap(({ best }) => best.map(({ place }) => texts.id[place] ?? 0));
  if (ids.length === 0 || weights.length < 2) return groups;
  const read = reading.read(ids);
  const scored = looked.map((group) => {
    let most = 0;
    let at = group.place;
    for (const { place, beside, favour } of group.best) {
      const share = closeness(read.get(texts.id[place] ?? 0) ?? "", beside, { words: asked.words, weights }) / total;
      // Squared: half of a question in one place is no half of an answer.
      const says = share * share * favour * (texts.asks[place] === 1 ? ASKING : 1);
      if (says <= most) continue;
      most = says;
      at = place;
    }
    return { ...group, place: at, score: group.score + NEAR * total * most };
  });
  // What was not read has less of the question than the least that was, by words alone.
  return [...scored.sort((a, b) => b.score - a.score), ...groups.slice(GROUPS)];
}

function weightsOf({ words, evidence }: Reading["asked"], all: number): readonly number[] {
  const weights = evidence.map(({ weight, terms: [first] }) =>
    first ? weight * rare(first.postings.places.length, all) : 0,
  );
  const most = Math.max(...weights);
  return weights.map((weight, at) => (words[at]?.name ? Math.max(weight, NAME * most) : weight));
}

interface Weighed {
  readonly words: readonly AskedWord[];
  readonly weights: readonly number[];
}

/** The most that any sentence of a text has of the words, its surroundings counting in part. `beside` are the words of its neighbours, by bit. */
function closeness(text: string, beside: number, { words, weights }: Weighed): number {
  let sentence = 0;
  let before = 0;
  const places = findWords(text, words).map(({ start, end, word }) => {
    sentence += text.slice(before, start).match(SENTENCE_END)?.length ?? 0;
    before = end;
    return { word, sentence };
  });
  let most = 0;
  for (const here of new Set(places.map((place) => place.sentence))) {
    const levels = words.map((_, word): number => (beside & (2 ** Math.min(word, 31)) ? NEXT_TEXT : 0));
    for (const place of places) {
      const apart = Math.abs(place.sentence - here);
      const level = apart === 0 ? 1 : apart === 1 ? NEXT_SENTENCE : SAME_TEXT;
      levels[place.word] = Math.max(levels[place.word] ?? 0, level);
    }
    most = Math.max(
      most,
      levels.reduce((sum, level, word) => sum + level * (weights[word] ?? 0), 0),
    );
  }
  return most;
}
