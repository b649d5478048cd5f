import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { codePoints, splitMessage } from "../../split.ts";
import { whatsappText } from "./format.ts";

const cases: readonly (readonly [string, string])[] = [
  ["**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"],
  ["__bold__ and _italic_", "*bold* and _italic_"],
  ["***both***", "_*both*_"],
  ["**bold with *italic* inside**", "*bold with _italic_ inside*"],
  ["# Title", "*Title*"],
  ["## A **bold** title ##", "*A bold title*"],
  ["`code` stays `*raw*`", "`code` stays `*raw*`"],
  ["```ts\nconst a = '**x**';\n```", "```\nconst a = '**x**';\n```"],
  ["```\nopen\n# no title", "```\nopen\n# no title\n```"],
  ["[docs](https://example.com)", "docs (https://example.com)"],
  ["[**docs**](https://example.com)", "*docs* (https://example.com)"],
  ["<https://example.com>", "https://example.com"],
  ["![cat](https://example.com/c.png)", "cat (https://example.com/c.png)"],
  ["* one\n+ two\n- three\n1. four", "- one\n- two\n- three\n1. four"],
  ["> **quoted**", "> *quoted*"],
  ["| Name | Age |\n|---|---|\n| Ann | 3 |\n| Bob | **4** |", "- *Ann*, Age: 3\n- *Bob*, Age: *4*"],
  ["a\n\n---\n\nb", "a\n\nb"],
  ["2 * 3 * 4 and some_name_here", "2 * 3 * 4 and some_name_here"],
  ["a || b || c", "a || b || c"],
  ["", ""],
];

for (const [markdown, text] of cases)
  test(`${JSON.stringify(markdown)} is sent as ${JSON.stringify(text)}`, () => {
    assert.equal(whatsappText(markdown), text);
  });

test("code arrives as it was written, whatever is in it", () => {
  const line = fc.stringMatching(/^[ -_a-~]{0,60}$/).filter((text) => !/[`~]{3}/.test(text));
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
      const code = lines.join("\n");
      assert.equal(whatsappText(`\`\`\`js\n${code}\n\`\`\``), `\`\`\`\n${code}\n\`\`\``.replace(/\n{3,}/g, "\n\n"));
    }),
  );
});

test("words that are no marks are never lost", () => {
  const words = fc.array(fc.stringMatching(/^[a-zäöü0-9]{1,12}$/), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(words, fc.constantFrom("**", "*", "`", "~~", "# ", "> ", "- ", "| ", ""), (list, mark) => {
      const text = whatsappText(list.map((word) => `${mark}${word}${mark.trim() === mark ? mark : ""}`).join(" "));
      for (const word of list) assert.ok(text.includes(word), `${word} in ${text}`);
    }),
  );
});

test("every part of a long answer fits after formatting", () => {
  const block = fc.oneof(
    fc.string({ maxLength: 400 }),
    fc.string({ maxLength: 900 }).map((code) => `\`\`\`\n${code}\n\`\`\``),
    fc.constant("| a | b |\n|---|---|\n| 1 | 2 |"),
    fc.string({ maxLength: 60 }).map((text) => `# ${text}`),
  );
  fc.assert(
    fc.property(fc.array(block, { minLength: 5, maxLength: 30 }), (blocks) => {
      for (const part of splitMessage(blocks.join("\n\n"), { max: 500, format: whatsappText, length: codePoints }))
        assert.ok(codePoints(whatsappText(part)) <= 500);
    }),
    { numRuns: 50 },
  );
});
