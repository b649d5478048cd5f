import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withoutMarks } from "./format.ts";

const cases: readonly (readonly [string, string])[] = [
  ["**bold**, *italic*, ~~gone~~ and `code`", "bold, italic, gone and code"],
  ["***both***", "both"],
  ["# Title\n\ntext", "Title\n\ntext"],
  ["###### Small", "Small"],
  ["#hash stays", "#hash stays"],
  ["[docs](https://example.com/a)", "docs (https://example.com/a)"],
  ["<https://example.com>", "https://example.com"],
  ["[https://example.com](https://example.com)", "https://example.com"],
  ["[a@b.example](mailto:a@b.example)", "a@b.example"],
  ["![a cat](https://example.com/cat.png)", "a cat (https://example.com/cat.png)"],
  ["* one\n* two\n  * three", "- one\n- two\n  - three"],
  ["1. one\n2. two", "1. one\n2. two"],
  ["> quoted\n> more", "quoted\nmore"],
  ["before\n\n```ts\nconst a = 1;\n  indented * 2\n```\n\nafter", "before\n\nconst a = 1;\n  indented * 2\n\nafter"],
  ["```\nnever closed\n**x**", "never closed\n**x**"],
  ["| a | b |\n|---|:-:|\n| 1 | **2** |", "a | b\n1 | 2"],
  ["one\n\n---\n\ntwo", "one\n\ntwo"],
  ["2 * 3 * 4 and some_name_here", "2 * 3 * 4 and some_name_here"],
  ["\\*not bold\\*", "*not bold*"],
  ["", ""],
];

for (const [markdown, text] of cases)
  test(`${JSON.stringify(markdown)} is sent as ${JSON.stringify(text)}`, () => {
    assert.equal(withoutMarks(markdown), text);
  });

test("words that are no marks are never lost", () => {
  const words = fc.array(fc.stringMatching(/^[a-zäöü0-9]{1,12}$/), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(words, fc.constantFrom("**", "*", "`", "~~", "# ", "> ", "- ", ""), (list, mark) => {
      const text = withoutMarks(list.map((word) => `${mark}${word}${mark.trim() === mark ? mark : ""}`).join(" "));
      for (const word of list) assert.ok(text.includes(word), `${word} in ${text}`);
    }),
  );
});

test("a text without marks is sent as it is, whatever it says", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z0-9 ,.?äöü]{1,80}$/), (text) => {
      assert.equal(withoutMarks(text), text.trim());
    }),
  );
});
