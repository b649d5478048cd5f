// A word that nobody ever said is often one that was typed wrong.
import type { TermIndex } from "./term-index.ts";
import type { AskedWord } from "./words.ts";

interface NearTerm {
  readonly term: string;
  /** As it is shown. */
  readonly read: string;
  readonly share: number;
}

const SHORTEST = 4;
/** With this many letters two errors are forgiven. */
const LONG = 9;
const SHARE = 0.8;
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];

/** The term that an unknown word most likely means; null for a known one, or when nothing is near. */
export function nearTerm(index: TermIndex, { terms }: AskedWord): NearTerm | null {
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
  return best && { term: best.term, read: best.term, share: SHARE };
}

/** Errors in the first two letters, one at a time; the rest is as it was typed. */
function otherBeginnings(index: TermIndex, term: string): readonly (readonly [string, number])[] {
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
  return [...tries].flatMap((one) => {
    const { length } = index.postings(one).places;
    return length > 0 ? [[one, length] as const] : [];
  });
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
