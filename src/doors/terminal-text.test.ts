import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellWidth, cut, padCells, singleKeys, wrapColumns, wrapLines } from "./terminal-text.ts";

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
      const shown = cut(value, cells, "…");
      assert.ok(cellWidth(shown) <= cells);
      if (cellWidth(value) <= cells) assert.equal(shown, value);
      else if (cells > 0) assert.ok(shown.endsWith("…") && value.startsWith(shown.slice(0, -1)));
      assert.equal(cellWidth(padCells(shown, cells)), cells);
    }),
  );
});

test("text is wrapped at blanks, and inside a word only where it must be", () => {
  assert.deepEqual(wrapLines("one two three", 7), ["one two", "three"]);
  assert.deepEqual(wrapLines("你好世界", 5), ["你好", "世界"]);
  assert.deepEqual(wrapLines("a verylongword b", 6), ["a", "verylo", "ngword", "b"]);
  assert.deepEqual(wrapLines("", 5), [""]);
});

test("text in columns is wrapped below its column, or below its beginning where the column is far to the right", () => {
  assert.deepEqual(wrapColumns("  /new   start another one", 18), [
    "  /new   start",
    "         another",
    "         one",
  ]);
  assert.deepEqual(wrapColumns("  /a [b|c|d]  what it does", 18), ["  /a [b|c|d]  what", "  it does"]);
  assert.deepEqual(wrapColumns("  one two three", 9), ["  one two", "  three"]);
  assert.deepEqual(wrapColumns("one two", 5), ["one", "two"]);
  assert.deepEqual(wrapColumns("Model:  one two three", 16), ["Model:  one two", "        three"]);
});

test("the rest of an item stands below its text, also when the item is indented or has a number", () => {
  for (const mark of ["✓ ", "  ✓ ", "  2. "])
    assert.deepEqual(wrapColumns(`${mark}first second`, mark.length + 7), [
      `${mark}first`,
      `${" ".repeat(mark.length)}second`,
    ]);
});

const characters = new Intl.Segmenter();

test("no wrapped line is wider than asked, and nothing but blanks at its ends is lost", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\n")),
      fc.integer({ min: 2, max: 30 }),
      (text, cells) => {
        const lines = wrapLines(text, cells);
        // A character for music may take three cells, and there are more blanks than the one on the keyboard.
        for (const line of lines)
          assert.ok(cellWidth(line) <= cells || [...characters.segment(line)].length === 1, line);
        assert.equal(lines.join("").replace(/\s/g, ""), text.replace(/\s/g, ""));
      },
    ),
    {
      examples: [
        ["\u00a0\u2003\u3000", 2],
        ["\u{1d158}\u{1d165}\u{1d16e}", 2],
      ],
    },
  );
});

test("on a narrow terminal the text of a wide column stands below it", () => {
  const line = "  /resume [name, id or number]  resume an earlier conversation of yours";
  assert.deepEqual(wrapColumns(line, 40), [
    "  /resume [name, id or number]",
    "      resume an earlier conversation of",
    "      yours",
  ]);
  const short = `  ${"/new".padEnd(28)}  start`;
  assert.deepEqual(wrapColumns(short, 40), [short]);
  assert.deepEqual(wrapColumns(`${short}\n${line}`, 40).slice(0, 3), [
    "  /new",
    "      start",
    "  /resume [name, id or number]",
  ]);
  for (let cells = 4; cells < 80; cells++)
    for (const row of wrapColumns(line, cells)) assert.ok(cellWidth(row) <= cells, `${cells}: ${row}`);
});

test("two quick presses of Escape are two keys, whatever a terminal makes of them", () => {
  const keys: string[] = [];
  const read = singleKeys((data) => void keys.push(data));
  for (const data of ["a", "\u001b\u001b", "\u001b[A"]) read(data);
  assert.deepEqual(keys, ["a", "\u001b", "\u001b", "\u001b[A"]);
});
