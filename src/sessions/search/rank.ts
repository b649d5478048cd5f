// How much of a question each group of texts holds. Pure: the same index and question give the same order, whatever else happens.
import type { Postings } from "./postings.ts";
import type { TextTable } from "./term-index.ts";

interface TermEvidence {
  readonly postings: Postings;
  /** The share of the word that the term stands for. */
  readonly share: number;
  /** How much it says that a conversation, and that a message has the term; worked out from how many do. */
  readonly rarity?: { readonly group: number; readonly text: number };
}

/** One word of the question with where it stands. */
export interface WordEvidence {
  readonly weight: number;
  readonly terms: readonly TermEvidence[];
  /** Groups whose title has the word. */
  readonly titled?: ReadonlySet<number>;
}

export interface RankRequest {
  readonly texts: TextTable;
  readonly words: readonly WordEvidence[];
  /** Texts that may count, by kind; all when absent. */
  readonly kinds?: ReadonlySet<number>;
  /** Groups that are left out. */
  readonly without?: ReadonlySet<number>;
  /** Places of texts that count no more. */
  readonly hidden?: ReadonlySet<number>;
  /** Times a group gets more for: 1 outside, more within. */
  readonly favour?: (at: number) => number;
  readonly limit: number;
}

export interface RankedGroup {
  readonly group: number;
  readonly score: number;
  /** The text with the passage that says most. */
  readonly place: number;
  /** Indexes of the words that the group, or its title, has. */
  readonly matched: readonly number[];
  /** What it counts for the time at which it has any of the words. */
  readonly favour: number;
  /** Its texts with most of the question, each with the words (by bit) of the texts beside it, and what it counts for its time. */
  readonly best: readonly { readonly place: number; readonly beside: number; readonly favour: number }[];
}

// A word that comes again says less each time (K1), and a long conversation has more words by chance (B).
const GROUP_K1 = 1.8;
const GROUP_B = 0.4;
const TEXT_K1 = 0.8;
const TEXT_B = 0.75;
/** What the best passage counts beside the whole conversation. */
const PASSAGE = 2;
/** What a neighbour adds to a text: an answer does not repeat the words of its question. */
const NEIGHBOUR = 0.5;
const SECOND_NEIGHBOUR = 0.25;
/** What asks is not what answers: most of all not what somebody asked about the past before. */
export const ASKING = 0.7;
/** A word of the title counts as often as this, and once more as the best passage would. */
const TITLE_COUNT = 3;
/** A part of a word that is this large counts as the word when it is told which ones matched. */
const WHOLE_SHARE = 0.3;

/** Best first; equal ones the newest first. Groups without any of the words are not there. */
export function rankGroups(request: RankRequest): readonly RankedGroup[] {
  const { texts, words, limit } = request;
  const counted = countedTexts(request);
  const whole = new Float64Array(texts.groups);
  const matched: Uint32Array = new Uint32Array(texts.groups);
  const { lengths, filled, averageGroup, averageText, here, words: has } = measure(texts);
  here.fill(0);
  has.fill(0);
  const counts = new Float64Array(texts.groups);
  for (const [index, word] of words.entries()) {
    const bit = 2 ** Math.min(index, 31);
    for (const { postings, share, rarity } of word.terms) {
      const { places, counts: times } = postings;
      const touched: number[] = [];
      let holders = 0;
      for (let n = 0; n < places.length; n++) {
        const place = places[n] ?? 0;
        if (counted[place] === 0) continue;
        holders++;
        const group = texts.group[place] ?? 0;
        if (counts[group] === 0) touched.push(group);
        counts[group] = (counts[group] ?? 0) + (times[n] ?? 1) * (texts.asks[place] === 1 ? ASKING : 1);
      }
      if (share >= WHOLE_SHARE)
        for (const group of word.titled ?? []) {
          if (request.without?.has(group)) continue;
          if (counts[group] === 0) touched.push(group);
          counts[group] = (counts[group] ?? 0) + TITLE_COUNT;
        }
      if (touched.length === 0) continue;
      const rareGroup = word.weight * share * (rarity?.group ?? rare(touched.length, filled));
      const rareText = word.weight * share * (rarity?.text ?? rare(holders, texts.count));
      for (const group of touched) {
        const relative = (lengths[group] ?? 0) / averageGroup;
        const named = share >= WHOLE_SHARE && word.titled?.has(group) ? rareGroup : 0;
        whole[group] =
          (whole[group] ?? 0) + named + rareGroup * saturate(counts[group] ?? 0, GROUP_K1, GROUP_B, relative);
        counts[group] = 0;
        if (share >= WHOLE_SHARE) matched[group] = (matched[group] ?? 0) | bit;
      }
      for (let n = 0; n < places.length; n++) {
        const place = places[n] ?? 0;
        if (counted[place] === 0) continue;
        const relative = (texts.length[place] ?? 0) / averageText;
        const says = rareText * (texts.asks[place] === 1 ? ASKING : 1);
        if (share >= WHOLE_SHARE) has[place] = (has[place] ?? 0) | bit;
        here[place] = (here[place] ?? 0) + says * saturate(times[n] ?? 1, TEXT_K1, TEXT_B, relative);
      }
    }
  }
  return choose({ request, whole, here, has, matched, limit });
}

interface Scored {
  readonly request: RankRequest;
  readonly whole: Float64Array;
  readonly here: Float64Array;
  readonly has: Uint32Array;
  readonly matched: Uint32Array;
  readonly limit: number;
}

function choose({ request, whole, here, has, matched, limit }: Scored): readonly RankedGroup[] {
  const { texts, favour, words } = request;
  const best = new Float64Array(texts.groups);
  const bestPlace = new Int32Array(texts.groups).fill(-1);
  const newest = new Float64Array(texts.groups);
  const favoured = new Float64Array(texts.groups).fill(1);
  for (let place = 0; place < texts.count; place++) {
    const group = texts.group[place] ?? 0;
    if (whole[group] === 0) continue;
    const at = texts.at[place] ?? 0;
    if (at > (newest[group] ?? 0)) newest[group] = at;
    const own = here[place] ?? 0;
    const asThen = favour && (own > 0 || matchedByTitle(request, group)) ? favour(at) : 1;
    if (asThen > (favoured[group] ?? 1)) favoured[group] = asThen;
    if (bestPlace[group] === -1) bestPlace[group] = place; // a group that was found by its title alone begins at its beginning
    if (own === 0) continue;
    const passage = asThen * (own + around(texts, here, place));
    if (passage <= (best[group] ?? 0)) continue;
    best[group] = passage;
    bestPlace[group] = place;
  }
  const scores = new Float64Array(texts.groups);
  const found: number[] = [];
  for (let group = 0; group < texts.groups; group++) {
    const sum = whole[group] ?? 0;
    if (sum === 0) continue;
    scores[group] = sum * (favoured[group] ?? 1) + PASSAGE * (best[group] ?? 0);
    found.push(group);
  }
  const chosen = found
    .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || (newest[b] ?? 0) - (newest[a] ?? 0) || b - a)
    .slice(0, limit);
  const places = bestPlaces(request, here, chosen);
  return chosen.map((group) => ({
    favour: favoured[group] ?? 1,
    best: (places.get(group) ?? []).map((place) => ({
      place,
      beside: besides(texts, has, place),
      favour: favour?.(texts.at[place] ?? 0) ?? 1,
    })),
    group,
    score: scores[group] ?? 0,
    place: bestPlace[group] ?? -1,
    matched: words.flatMap((_, index) => ((matched[group] ?? 0) & (2 ** Math.min(index, 31)) ? [index] : [])),
  }));
}

const LOOKED_AT = 3;

/** Of each group the texts that say most, by themselves. */
function bestPlaces(
  { texts, favour }: RankRequest,
  here: Float64Array,
  groups: readonly number[],
): ReadonlyMap<number, readonly number[]> {
  const best = new Map<number, number[]>(groups.map((group) => [group, []]));
  const says = (place: number) => (here[place] ?? 0) * (favour?.(texts.at[place] ?? 0) ?? 1);
  for (let place = 0; place < texts.count; place++) {
    const list = here[place] === 0 ? undefined : best.get(texts.group[place] ?? 0);
    if (!list) continue;
    if (list.length === LOOKED_AT && says(place) <= says(list.at(-1) ?? 0)) continue;
    if (list.length === LOOKED_AT) list.pop();
    list.push(place);
    list.sort((a, b) => says(b) - says(a));
  }
  return best;
}

const matchedByTitle = ({ words }: RankRequest, group: number) => words.some(({ titled }) => titled?.has(group));

function besides(texts: TextTable, has: Uint32Array, place: number): number {
  const before = texts.previous[place] ?? -1;
  const after = texts.next[place] ?? -1;
  return (before < 0 ? 0 : (has[before] ?? 0)) | (after < 0 ? 0 : (has[after] ?? 0));
}

function around(texts: TextTable, here: Float64Array, place: number): number {
  const before = texts.previous[place] ?? -1;
  const after = texts.next[place] ?? -1;
  const value = (at: number) => (at < 0 ? 0 : (here[at] ?? 0));
  const second =
    value(before < 0 ? -1 : (texts.previous[before] ?? -1)) + value(after < 0 ? -1 : (texts.next[after] ?? -1));
  return NEIGHBOUR * (value(before) + value(after)) + SECOND_NEIGHBOUR * second;
}

/** Rare words say more. */
export const rare = (holders: number, all: number) => Math.log(1 + (all - holders + 0.5) / (holders + 0.5));

const saturate = (count: number, k1: number, b: number, relativeLength: number) =>
  (count * (k1 + 1)) / (count + k1 * (1 - b + b * relativeLength));

/** 1 for each text that counts. */
function countedTexts({ texts, kinds, without, hidden }: RankRequest): Uint8Array {
  const counted = new Uint8Array(texts.count).fill(1);
  if (kinds || without?.size)
    for (let place = 0; place < texts.count; place++)
      if ((kinds && !kinds.has(texts.kind[place] ?? 0)) || without?.has(texts.group[place] ?? 0)) counted[place] = 0;
  for (const place of hidden ?? []) counted[place] = 0;
  return counted;
}

interface Measured {
  readonly lengths: Float64Array;
  /** What each text says, anew for each question: large, and so not made each time. */
  readonly here: Float64Array;
  /** Which words each text has, by bit. */
  readonly words: Uint32Array;
  /** Groups that have texts. */
  readonly filled: number;
  readonly averageGroup: number;
  readonly averageText: number;
}

const measured = new WeakMap<TextTable, Measured>();

function measure(texts: TextTable): Measured {
  const known = measured.get(texts);
  if (known) return known;
  const lengths = new Float64Array(texts.groups);
  let sum = 0;
  let spoken = 0;
  for (let place = 0; place < texts.count; place++) {
    const length = texts.length[place] ?? 0;
    const group = texts.group[place] ?? 0;
    lengths[group] = (lengths[group] ?? 0) + length;
    sum += length;
    if (length > 0) spoken++;
  }
  const filled = lengths.reduce((count, length) => count + (length > 0 ? 1 : 0), 0);
  const found = {
    lengths,
    here: new Float64Array(texts.count),
    words: new Uint32Array(texts.count),
    filled,
    averageGroup: Math.max(1, sum / Math.max(1, filled)),
    averageText: Math.max(1, sum / Math.max(1, spoken)),
  };
  measured.set(texts, found);
  return found;
}
