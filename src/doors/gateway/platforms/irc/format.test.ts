import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toLines, toPlain } from "./format.ts";

test("Markdown becomes the words of it", () => {
  const cases: [string, string][] = [
    ["# Head\n\n**bold** *it* ~~gone~~ `code`", "Head\n\nbold it gone code"],
    ["[docs](https://x.test/a) and <https://y.test>", "docs (https://x.test/a) and https://y.test"],
    ["![cat](https://x.test/c.png)", "cat (https://x.test/c.png)"],
    ["* one\n- two\n  * three", "- one\n- two\n  - three"],
    ["```js\nif (a) {\n  **b**\n}\n```\nend", "if (a) {\n  **b**\n}\nend"],
    ["| a | b |\n|---|:--:|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"],
    ["> said", "> said"],
    ["2 * 3 * 4 and some_name_here", "2 * 3 * 4 and some_name_here"],
    ["~~~\ncode\n```\nstill\n~~~", "code\n```\nstill"],
  ];
  for (const [markdown, plain] of cases) assert.equal(toPlain(markdown), plain, markdown);
});

test("a long line is cut between words", () => {
  assert.deepEqual(toLines("one two three four", 9), ["one two", "three", "four"]);
  assert.deepEqual(toLines("äöü äöü", 6), ["äöü", "äöü"]);
  assert.deepEqual(toLines(" 🎉", 4), ["🎉"]);
  assert.deepEqual(toLines("abcdefgh", 3), ["abc", "def", "gh"]);
  assert.deepEqual(toLines("a\r\n\r\n \nb\rc", 10), ["a", "b", "c"]);
});

test("each line fits, holds no control character, and together they are the text", () => {
  const text = fc.string({ unit: fc.constantFrom(..." aü漢🎉\x02\x03\n\r4,\0\t"), maxLength: 300 });
  fc.assert(
    fc.property(text, fc.integer({ min: 4, max: 60 }), (said, max) => {
      const lines = toLines(said, max);
      for (const line of lines) {
        assert.ok(Buffer.byteLength(line) <= max, line);
        assert.ok(line.trim() !== "" && !/[\x00-\x1f\x7f]/.test(line));
      }
      const words = (some: string) => some.replace(/\s/g, "");
      assert.equal(words(lines.join("")), words(toLines(said, 1_000_000).join("")));
    }),
  );
});
