import assert from "node:assert/strict";
import { test } from "node:test";
import { codePointName, findInvisible, scanForThreats, showInvisible } from "./scan.ts";

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, offset) => from + offset);
const FORBIDDEN = [
  ...[0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0xfeff, 0x180e, 0xe0001],
  ...range(0x202a, 0x202e),
  ...range(0x2066, 0x2069),
  ...range(0xfff9, 0xfffb),
  ...range(0xe0020, 0xe007f),
  ...range(0xe0100, 0xe01ef),
];

test("each invisible character between two letters is found in every scope", () => {
  for (const codePoint of FORBIDDEN) {
    const text = `a${String.fromCodePoint(codePoint)}b`;
    for (const scope of ["all", "context", "strict"] as const) {
      assert.deepEqual(
        scanForThreats(text, scope).map(({ id }) => id),
        [`invisible_unicode_${codePointName(codePoint)}`],
      );
    }
  }
});

test("emoji sequences, joiners of spelling, region flags and harmless marks pass", () => {
  for (const text of [
    "\u{1f408}\u200d\u2b1b", // black cat
    "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}", // family
    "\u{1f3f3}\ufe0f\u200d\u{1f308}", // rainbow flag
    "\u{1f937}\u{1f3fd}\u200d\u2642\ufe0f", // shrug with skin tone
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", // Persian
    "\u0915\u094d\u200d\u0937", // Devanagari
    "\u0d9a\u0dca\u200d\u0dbb", // Sinhala
    "\u0d05\u0d35\u0d28\u0d4d\u200d", // Malayalam, at the end of a word
    "\u0d05\u0d35\u0d28\u0d4d\u200d, \u0d15\u0d23\u0d4d\u200c.",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", // England
    "a\u200eb\u200fc\u00add\ufe0fe\ufe00",
    "plain",
  ]) {
    assert.deepEqual(findInvisible(text), [], text);
  }
});

test("the same characters in other company do not pass", () => {
  for (const [text, codePoint, index] of [
    ["foo\u200dbar", 0x200d, 3],
    ["\u{1f408}\u200dx", 0x200d, 2],
    ["x\u200d\u{1f408}", 0x200d, 1],
    ["\u0645\u200cx", 0x200c, 1],
    ["\u{1f408}\u200c\u{1f408}", 0x200c, 2],
    ["\u0d28\u0d4d\u200dx", 0x200d, 2],
    ["\u0d28\u200d ", 0x200d, 1],
    ["\u0d28\u0d4d\u200d\u200d", 0x200d, 2],
    ["\u{1f3f4}\u{e0067}", 0xe0067, 2], // a flag without its end
    ["\u{1f3f4}\u{e007f}", 0xe007f, 2],
  ] as const) {
    assert.deepEqual(findInvisible(text), [{ codePoint, index }], text);
  }
});

test("findings come in the order of their code points, each once, at its first place", () => {
  assert.deepEqual(findInvisible("a\ufeffb\u200bc\ufeffd\u200b"), [
    { codePoint: 0x200b, index: 3 },
    { codePoint: 0xfeff, index: 1 },
  ]);
});

test("invisible characters can be shown", () => {
  assert.equal(showInvisible("a\u200bb\u{e0041}"), "a<U+200B>b<U+E0041>");
});
