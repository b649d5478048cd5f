import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unicodeText } from "../../../test/support/unicode-text.ts";
import { quickHash } from "./sketch.ts";

const KNOWN = [3338908027751811, 7929297801672961, 3382748631033682, 697135493569599];

test("the same text has the same number, a safe integer, for ever", () => {
  assert.deepEqual(["", "a", "ab", "你好"].map(quickHash), KNOWN);
  fc.assert(fc.property(unicodeText(), (text) => Number.isSafeInteger(quickHash(text)) && quickHash(text) >= 0));
});

test("one changed character is seen, wherever it stands", () => {
  const text = "The prompt, word for word, as it was sent before. ".repeat(40);
  const seen = new Set([quickHash(text)]);
  for (let at = 0; at < text.length; at++) seen.add(quickHash(`${text.slice(0, at)}#${text.slice(at + 1)}`));
  assert.equal(seen.size, text.length + 1);
});

test("short texts do not meet", () => {
  const seen = new Set<number>();
  for (let n = 0; n < 100_000; n++) seen.add(quickHash(String(n)));
  assert.equal(seen.size, 100_000);
});
