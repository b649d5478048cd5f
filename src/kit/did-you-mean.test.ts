import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { didYouMean, editDistance } from "./similarity.ts";

const keys = [
  "agent.max_turns",
  "display.streaming",
  "streaming.enabled",
  "terminal.timeout",
  "approvals.mode",
  "model",
];

const cases: readonly [string, string[]][] = [
  ["agent.max_turn", ["agent.max_turns"]],
  ["agent.mxa_turns", ["agent.max_turns"]],
  ["max_turns", ["agent.max_turns"]],
  ["terminal.timout", ["terminal.timeout"]],
  ["Approvals.Mode", ["approvals.mode"]],
  ["something.else.entirely", []],
];

for (const [word, expected] of cases) {
  test(`"${word}" suggests ${expected.join(", ") || "nothing"}`, () =>
    assert.deepEqual(didYouMean(word, keys), expected));
}

test("no more than the limit is suggested, nearest first", () => {
  assert.deepEqual(didYouMean("aaaa", ["aaab", "aaaa", "aaac", "aaad"], 2), ["aaaa", "aaab"]);
});

test("the distance is symmetric and zero only between equals", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
      assert.equal(editDistance(a, b), editDistance(b, a));
      assert.equal(editDistance(a, b) === 0, a === b);
    }),
  );
});
