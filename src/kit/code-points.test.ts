import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unicodeText } from "../../test/support/unicode-text.ts";
import { countCodePoints, headUnits, sliceCodePoints, tailUnits, truncateCodePoints } from "./code-points.ts";

const anyText = unicodeText({ maxLength: 30 });
const at = fc.integer({ min: -35, max: 35 });

test("counting and slicing agree with the array of code points", () => {
  fc.assert(
    fc.property(anyText, at, fc.option(at, { nil: undefined }), (text, start, end) => {
      const points = [...text];
      assert.equal(countCodePoints(text), points.length);
      assert.equal(sliceCodePoints(text, start, end), points.slice(start, end).join(""));
    }),
  );
});

test("a truncated text has at most the allowed code points and ends with the mark", () => {
  assert.equal(truncateCodePoints("hello", 5, "..."), "hello");
  assert.equal(truncateCodePoints("hello world", 8, "..."), "hello...");
  assert.equal(truncateCodePoints("😀😁😂🤣", 3, "…"), "😀😁…");
  assert.equal(truncateCodePoints("hello", 2, "..."), "..");
  assert.equal(truncateCodePoints("😀😁", 2), "😀😁");
  fc.assert(
    fc.property(anyText, fc.nat(40), (text, max) => {
      assert.ok([...truncateCodePoints(text, max, "...")].length <= max);
    }),
  );
});

test("a cut by units never leaves half a pair", () => {
  assert.equal(headUnits("a😀b", 2), "a");
  assert.equal(headUnits("a😀b", 3), "a😀");
  assert.equal(tailUnits("a😀b", 2), "b");
  assert.equal(tailUnits("a😀b", 3), "😀b");
  assert.equal(headUnits("abc", 0), "");
  assert.equal(tailUnits("abc", 9), "abc");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(30), (text, max) => {
      assert.ok(headUnits(text, max).isWellFormed() && tailUnits(text, max).isWellFormed());
      assert.ok(headUnits(text, max).length <= max && tailUnits(text, max).length <= max);
    }),
  );
});
