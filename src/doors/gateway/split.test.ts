import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { codePoints, splitMessage, utf8Bytes, utf16 } from "./split.ts";

const bare = (part: string) => part.replace(/[ \n]\(\d+\/\d+\)$/, "");

test("what fits is one part, as it is", () => {
  assert.deepEqual(splitMessage("short", { max: 5 }), ["short"]);
  assert.deepEqual(splitMessage("", { max: 5 }), [""]);
});

test("prose is cut behind a line if one ends in the second half, else behind a word, else in the word", () => {
  const line = `${"a".repeat(30)}\n${"b".repeat(30)}`;
  assert.deepEqual(splitMessage(line, { max: 50 }), [`${"a".repeat(30)} (1/2)`, `${"b".repeat(30)} (2/2)`]);
  const words = `${"a".repeat(5)}\n${"b".repeat(20)} ${"c".repeat(30)}`;
  assert.equal(splitMessage(words, { max: 50 })[0], `${"a".repeat(5)}\n${"b".repeat(20)} (1/2)`);
  assert.equal(bare(splitMessage("d".repeat(60), { max: 50 })[0] ?? ""), "d".repeat(36));
});

test("code that is cut is closed and opened again with its language; indentation stays", () => {
  const code = ["```ts", "if (a) {", "    deep();", "}", ...Array(10).fill("    more();"), "```", "after"].join("\n");
  const parts = splitMessage(code, { max: 70 });
  assert.equal(parts.at(-1), "after (4/4)", "no empty block is left over");
  for (const part of parts.slice(0, -1)) assert.match(part, /\n```\n\(\d+\/\d+\)$/);
  for (const part of parts.slice(1, -1)) assert.match(part, /^```ts\n {4}more/);
});

test("inline code is not torn apart", () => {
  const [first] = splitMessage(`${"word ".repeat(6)}\`some code here\` ${"tail ".repeat(10)}`, { max: 54 });
  assert.equal(bare(first ?? ""), "word ".repeat(6).trimEnd());
});

test("a longer fence and one of tildes are closed by their like only", () => {
  const text = `~~~~md\n${"x\n```\n".repeat(12)}~~~~`;
  for (const part of splitMessage(text, { max: 60 })) {
    const lines = bare(part).split("\n");
    assert.match(lines[0] ?? "", /^~~~~md$/);
    assert.equal(lines.at(-1), "~~~~");
  }
});

test("no character is cut in two, and lengths are the platform's", () => {
  const emoji = "👍".repeat(60);
  for (const [length, max] of [
    [utf16, 41],
    [codePoints, 30],
    [utf8Bytes, 50],
  ] as const)
    for (const part of splitMessage(emoji, { max, length })) {
      assert.ok(length(part) <= max);
      assert.ok(part.isWellFormed());
    }
});

test("the limit holds after formatting", () => {
  const format = (text: string) => text.replace(/[.()/]/g, (sign) => `\\${sign}`);
  const text = "a.b.c. ".repeat(200);
  const parts = splitMessage(text, { max: 100, format });
  for (const part of parts) assert.ok(format(part).length <= 100);
  assert.ok(parts.length < 60);
});

const line = fc.oneof(
  fc.string({ maxLength: 40 }).map((text) => text.replace(/[`~\r\n]/g, "")),
  fc.constantFrom("```", "```ts", "~~~", "    indented code", "one `two` three", "", "中文没有空格的一行文字很长很长"),
);
const document = fc.array(line, { maxLength: 60 }).map((lines) => lines.join("\n"));

test("every part fits, has whole fences, and together they say what the text said", () => {
  fc.assert(
    fc.property(document, fc.integer({ min: 60, max: 300 }), (text, max) => {
      const parts = splitMessage(text, { max });
      for (const part of parts) {
        assert.ok(part.length <= max, `${part.length} > ${max}`);
        if (parts.length > 1) assert.ok(part.isWellFormed() || !text.isWellFormed());
      }
      const letters = (joined: string) => joined.replace(/[\s`~]|\bts\b/g, "");
      assert.equal(letters(parts.map(parts.length > 1 ? bare : (part) => part).join("")), letters(text));
    }),
  );
});

test("code comes back line by line", () => {
  const code = fc.array(fc.stringMatching(/^ {0,8}[a-z(){};]{1,30}$/), { minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(code, fc.integer({ min: 80, max: 200 }), (lines, max) => {
      const parts = splitMessage(`\`\`\`js\n${lines.join("\n")}\n\`\`\``, { max });
      const inside = parts.map((part) =>
        bare(part)
          .replace(/^```js\n/, "")
          .replace(/\n?```$/, ""),
      );
      assert.deepEqual(
        inside
          .filter((text) => text !== "")
          .join("\n")
          .split("\n"),
        lines,
      );
    }),
  );
});
