// Long laws run a part of their cases each time, drawn anew, and all of them with HERMES_TEST_WHOLE=1. `npm test` prints the seed.

/** The figures of a corpus are those of all its rows. */
export const whole = process.env.HERMES_TEST_WHOLE === "1" || Boolean(process.env.HERMES_TRUST_FIGURES);
const seed = Number(process.env.HERMES_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How often to repeat what is repeated `times` times in a whole run. */
export function fewer(times: number, part: number): number {
  return whole ? times : Math.ceil(times / part);
}

/** One of `part` cases, in their order; another choice for every `name`. */
export function sampleOf<Case>(cases: readonly Case[], part: number, name: string): readonly Case[] {
  if (whole) return cases;
  const random = randomFrom(`${seed} ${name}`);
  return cases.filter(() => random() < 1 / part);
}

/** A single case of them. */
export function oneOf<Case>(cases: readonly Case[], name: string): readonly Case[] {
  if (whole) return cases;
  const at = Math.floor(randomFrom(`${seed} ${name}`)() * cases.length);
  return cases.slice(at, at + 1);
}

/** For what draws by itself, as fast-check does: another number for every `name`. */
export const seedFor = (name: string): number => Math.floor(randomFrom(`${seed} ${name}`)() * 2 ** 31);

/** mulberry32: the same numbers for the same words. */
function randomFrom(words: string): () => number {
  let state = 0;
  for (const letter of words) state = (Math.imul(state, 31) + (letter.codePointAt(0) ?? 0)) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
