import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { matchingBlocks, reachesSimilarity, similarity, similarityTo } from "./similarity.ts";

const cases: [string, string, number][] = [
  ["", "", 1],
  ["", "a", 0],
  ["abc", "abc", 1],
  ["abcd", "bcde", 0.75],
  ["abc", "xyz", 0],
  ["WIKIMEDIA", "WIKIMANIA", 14 / 18],
  ["GESTALT PATTERN MATCHING", "GESTALT PRACTICE", (2 * 12) / 40],
  ["return x", "return y", 14 / 16],
  ["héllo", "hello", 0.8],
  ["😀😁", "😀😂", 0.5],
];

test("the ratio is twice the matched part over both lengths, counted in code points", () => {
  for (const [a, b, expected] of cases) assert.ok(Math.abs(similarity(a, b) - expected) < 1e-12, `${a} | ${b}`);
});

test("arrays are compared element by element", () => {
  assert.equal(similarity(["a", "b", "c"], ["a", "x", "c"]), 4 / 6);
});

test("a character that fills half of a long text still counts", () => {
  const text = `${"x ".repeat(300)}`;
  assert.ok(similarity(text, `${text}y`) > 0.99);
});

/** The definition, read off the page. */
function naiveMatched(a: string[], b: string[]): number {
  let size = 0;
  let bestA = 0;
  let bestB = 0;
  for (let i = 0; i < a.length; i++)
    for (let j = 0; j < b.length; j++) {
      let k = 0;
      while (i + k < a.length && j + k < b.length && a[i + k] === b[j + k]) k++;
      if (k > size) [size, bestA, bestB] = [k, i, j];
    }
  if (size === 0) return 0;
  return (
    size +
    naiveMatched(a.slice(0, bestA), b.slice(0, bestB)) +
    naiveMatched(a.slice(bestA + size), b.slice(bestB + size))
  );
}

test("it equals the definition for every pair of texts", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", " ", "é", "😀"), maxLength: 14 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      const total = [...a].length + [...b].length;
      const expected = total === 0 ? 1 : (2 * naiveMatched([...a], [...b])) / total;
      assert.equal(similarity(a, b), expected);
    }),
    { numRuns: 500 },
  );
});

test("a floor only ever turns ratios below it into 0, and says exactly which reach it", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "😀"), maxLength: 12 });
  fc.assert(
    fc.property(text, text, fc.constantFrom(0.3, 0.5, 2 / 3, 0.7, 0.75, 0.8, 1), (a, b, floor) => {
      const ratio = similarity(a, b);
      const bounded = similarityTo(b)(a, floor);
      assert.ok(bounded === ratio || (bounded === 0 && ratio < floor));
      assert.equal(reachesSimilarity(b, floor)(a), ratio >= floor);
    }),
  );
});

test("blocks come in order and hold equal elements on both sides", () => {
  assert.deepEqual(matchingBlocks("abxcd", "abcd"), [
    { left: 0, right: 0, size: 2 },
    { left: 3, right: 2, size: 2 },
  ]);
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "😀"), maxLength: 20 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      let left = 0;
      let right = 0;
      for (const block of matchingBlocks(a, b)) {
        assert.ok(block.left >= left && block.right >= right && block.size > 0);
        left = block.left + block.size;
        right = block.right + block.size;
        assert.deepEqual([...a].slice(block.left, left), [...b].slice(block.right, right));
      }
    }),
  );
});
