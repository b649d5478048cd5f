import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sanitizeSurrogates, scrubSurrogates } from "./code-points.ts";

const anyString = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.nat(0xffff)), {
    maxLength: 12,
  })
  .map((codes) => String.fromCharCode(...codes));

test("a lone surrogate becomes the replacement character, a pair stays", () => {
  assert.equal(sanitizeSurrogates("a\ud83db"), "a\ufffdb");
  assert.equal(sanitizeSurrogates("\udc00"), "\ufffd");
  assert.equal(sanitizeSurrogates("😀"), "😀");
});

test("a value never holds a lone surrogate afterwards, in keys neither, and a literal backslash survives", () => {
  assert.deepEqual(scrubSurrogates({ a: ["\ud83d"], "\udc00": 1 }), { a: ["\ufffd"], "\ufffd": 1 });
  assert.deepEqual(scrubSurrogates({ a: "\\ud83d" }), { a: "\\ud83d" });
  fc.assert(
    fc.property(fc.dictionary(anyString, anyString), (value) => {
      const json = JSON.stringify(scrubSurrogates(value));
      assert.equal(Buffer.from(json, "utf8").toString("utf8"), json);
      assert.ok(JSON.stringify(JSON.parse(json)).isWellFormed());
    }),
  );
});
