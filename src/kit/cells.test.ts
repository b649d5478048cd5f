import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellWidth, cutCells, padCells, wrapCells } from "./terminal-text.ts";

const widths: readonly (readonly [text: string, width: number])[] = [
  ["", 0],
  ["hello", 5],
  ["你好", 4],
  ["ab中", 4],
  ["ｱｲ", 2],
  ["Ａ", 2],
  ["e\u0301", 1],
  ["👍", 2],
  ["👍🏽", 2],
  ["👨‍👩‍👧", 2],
  ["🇩🇪", 2],
  ["❤\ufe0f", 2],
  ["a\u200bb", 2],
  ["한국", 4],
  ["\u001b", 0],
];
for (const [text, width] of widths) {
  test(`${JSON.stringify(text)} is ${width} cells wide`, () => assert.equal(cellWidth(text), width));
}

test("a cut fits its cells, keeps a beginning of the text, and is whole when it fitted", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "中", "👍🏽", "e\u0301", " ") });
  fc.assert(
    fc.property(text, fc.nat(20), (value, cells) => {
      const cut = cutCells(value, cells, "…");
      assert.ok(cellWidth(cut) <= cells);
      if (cellWidth(value) <= cells) assert.equal(cut, value);
      else if (cells > 0) assert.ok(cut.endsWith("…") && value.startsWith(cut.slice(0, -1)));
      assert.equal(cellWidth(padCells(cut, cells)), cells);
    }),
  );
});

test("text is wrapped at blanks, and inside a word only where it must be", () => {
  assert.deepEqual(wrapCells("one two three", 7), ["one two", "three"]);
  assert.deepEqual(wrapCells("你好世界", 5), ["你好", "世界"]);
  assert.deepEqual(wrapCells("a verylongword b", 6), ["a", "verylo", "ngword", "b"]);
  assert.deepEqual(wrapCells("", 5), [""]);
});

test("no wrapped line is wider than asked, and nothing but blanks at its ends is lost", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\n")),
      fc.integer({ min: 2, max: 30 }),
      (text, cells) => {
        const lines = wrapCells(text, cells);
        for (const line of lines) assert.ok(cellWidth(line) <= cells || [...line].length === 1, line);
        assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
      },
    ),
  );
});
