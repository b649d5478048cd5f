// A question put to an index of terms: its words with where they stand, its time, and what was typed wrong.
import { type RankRequest, rankGroups, type WordEvidence } from "./rank.ts";
import type { TermIndex } from "./term-index.ts";
import { type ReadTimes, readTimes, type TimeReading } from "./times.ts";
import { type AskedWord, readQuestion } from "./words.ts";

export interface AskedIndex {
  readonly words: readonly AskedWord[];
  /** Of each word. */
  readonly evidence: readonly WordEvidence[];
  readonly times: ReadTimes;
  /** Also the time of an event that the question names. */
  readonly time: TimeReading | null;
  /** Words that nobody ever said, and what they were taken for. */
  readonly typed: readonly { readonly typed: string; readonly read: string }[];
}

type Scope = Pick<RankRequest, "kinds" | "without">;

export function askIndex(index: TermIndex, question: string, nowMs: number, scope: Scope): AskedIndex {
  const times = readTimes(question, nowMs);
  const event = times.event && timeOfEvent(index, times.event, scope);
  const typed: { typed: string; read: string }[] = [];
  const words = readQuestion(times.event && !event ? `${times.rest} ${times.event.event}` : times.rest).map(
    (word): AskedWord => {
      const near = nearTerm(index, word);
      if (near === null) return word;
      typed.push({ typed: word.word, read: near.term });
      return { ...word, terms: [near] };
    },
  );
  return { words, evidence: evidenceOf(index, words), times, time: times.time ?? event, typed };
}

function evidenceOf(index: TermIndex, words: readonly AskedWord[]): readonly WordEvidence[] {
  return words.map(({ weight, terms }) => ({
    weight,
    terms: terms.map(({ term, share }) => ({ postings: index.postings(term), share })),
  }));
}

/** "Before the move": the move is when a conversation was about it most. */
function timeOfEvent(
  index: TermIndex,
  { phrase, relation, event }: NonNullable<ReadTimes["event"]>,
  scope: Scope,
): TimeReading | null {
  const texts = index.texts();
  const [best] = rankGroups({ texts, words: evidenceOf(index, readQuestion(event)), limit: 1, ...scope });
  if (!best || best.place < 0) return null;
  const at = texts.at[best.place] ?? 0;
  return { phrase, from: relation === "after" ? at : null, to: relation === "before" ? at : null, guessed: true };
}

// A word that nobody ever said is often one that was typed wrong.

interface NearTerm {
  readonly term: string;
  readonly share: number;
}

const SHORTEST = 4;
/** With this many letters two errors are forgiven. */
const LONG = 9;
const SHARE = 0.8;
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];

/** The term that an unknown word most likely means; null for a known one, or when nothing is near. */
function nearTerm(index: TermIndex, { terms }: AskedWord): NearTerm | null {
  const [only, ...others] = terms;
  if (!only || others.length > 0 || only.term.length < SHORTEST || !/^\p{L}+$/u.test(only.term)) return null;
  if (index.postings(only.term).places.length > 0) return null;
  const { term } = only;
  const most = term.length >= LONG ? 2 : 1;
  const candidates = new Map([...index.termsFrom(term.slice(0, 2)), ...otherBeginnings(index, term)]);
  let best: { term: string; errors: number; size: number } | null = null;
  for (const [candidate, size] of candidates) {
    if (Math.abs(candidate.length - term.length) > most || candidate.length < SHORTEST - 1) continue;
    const errors = distance(term, candidate, most);
    if (errors > most) continue;
    const better =
      best === null ||
      errors < best.errors ||
      (errors === best.errors && (size > best.size || (size === best.size && candidate < best.term)));
    if (better) best = { term: candidate, errors, size };
  }
  return best && { term: best.term, share: SHARE };
}

/** Errors in the first two letters, one at a time; the rest is as it was typed. */
function otherBeginnings(index: TermIndex, term: string): ReadonlyMap<string, number> {
  const [first = "", second = ""] = term;
  const rest = term.slice(2);
  const tries = new Set([
    second + first + rest,
    second + rest,
    first + rest,
    ...LETTERS.flatMap((letter) => [
      letter + second + rest,
      first + letter + rest,
      letter + first + second + rest,
      first + letter + second + rest,
    ]),
  ]);
  return index.termsAmong([...tries]);
}

/** Letters left out, added, changed or swapped; more than `most` is not counted out. */
export function distance(a: string, b: string, most: number): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let value = Math.min((last[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        value = Math.min(value, (before[j - 2] ?? 0) + 1);
      current.push(value);
      least = Math.min(least, value);
    }
    if (least > most) return most + 1;
    before = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
