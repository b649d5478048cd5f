import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellWidth, cutCells, padCells } from "./cells.ts";

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
