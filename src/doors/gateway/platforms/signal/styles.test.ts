import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { styledText } from "./styles.ts";

const CASES: readonly (readonly [markdown: string, text: string, ...ranges: string[]])[] = [
  ["plain, 2 * 3 * 4 and snake_case", "plain, 2 * 3 * 4 and snake_case"],
  ["a **bold** word", "a bold word", "2:4:BOLD"],
  ["*it* ~~no~~ ||hid|| `code`", "it no hid code", "0:2:ITALIC", "3:2:STRIKETHROUGH", "6:3:SPOILER", "10:4:MONOSPACE"],
  ["**a *b* c**", "a b c", "0:5:BOLD", "2:1:ITALIC"],
  ["👍 **ok**", "👍 ok", "3:2:BOLD"],
  ["# Title\ntext", "Title\ntext", "0:5:BOLD"],
  ["- one\n* two\n  - three", "• one\n• two\n  • three"],
  ["1. one\n2. two", "1. one\n2. two"],
  ["> quoted", "> quoted"],
  ["before\n```ts\nif (a) {\n  **b**\n}\n```\nafter", "before\nif (a) {\n  **b**\n}\nafter", "7:18:MONOSPACE"],
  ["```\nnever closed", "never closed", "0:12:MONOSPACE"],
  [
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "0:9:MONOSPACE",
    "10:9:MONOSPACE",
    "20:9:MONOSPACE",
  ],
  ["[text](https://e.org) <https://e.org>", "text (https://e.org) https://e.org"],
  ["a\n\n---\n\nb", "a\n\n———\n\nb"],
  ["**not closed", "**not closed"],
];

for (const [markdown, text, ...ranges] of CASES)
  test(`${JSON.stringify(markdown)} is shown as ${JSON.stringify(text)}`, () => {
    const styled = styledText(markdown);
    assert.equal(styled.text, text);
    assert.deepEqual(
      styled.ranges.map(({ start, length, style }) => `${start}:${length}:${style}`),
      ranges,
    );
  });

test("every range lies inside of the text and holds something", () => {
  const piece = fc.constantFrom(..."* ** ~~ || ` ``` # - | 👍 a \n".split(" "), " ", "\n", "[x](https://e.org)");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const { text, ranges } = styledText(pieces.join(""));
      for (const { start, length } of ranges) {
        assert.ok(length > 0);
        assert.ok(start >= 0 && start + length <= text.length);
        assert.ok(text.slice(start, start + length).isWellFormed());
      }
    }),
    { numRuns: 500 },
  );
});
