import assert from "node:assert/strict";
import { test } from "node:test";
import { stripTerminalSequences } from "@earendil-works/pi-tui";
import fc from "fast-check";
import { plainMarkdown } from "../plain-markdown.ts";
import { makeTheme } from "../terminal-text.ts";
import { AnswerBlock, type AnswerStyle } from "./answer-block.ts";

const plain = makeTheme(false);

function streamed(text: string, style: AnswerStyle, size = 7): AnswerBlock {
  const block = new AnswerBlock(style, plain);
  for (let at = 0; at < text.length; at += size) block.append(text.slice(at, at + size));
  block.finish(text);
  return block;
}

const long = Array.from({ length: 300 }, (_, i) =>
  i % 50 === 20 ? "```ts" : i % 50 === 40 ? "```" : i % 7 === 0 ? "" : `**line** ${i} with \`code\` and __init__`,
).join("\n");

test("an answer in pieces looks like the whole answer", () => {
  const whole = plainMarkdown(long, 200).replace(/^\n+/, "").split("\n");
  assert.deepEqual(streamed(long, "strip").render(200), whole);
  assert.deepEqual(streamed(long, "raw").render(200), long.replace(/^\n+/, "").split("\n"));
});

test("however an answer is cut into pieces, the end is the same", () => {
  const line = fc.constantFrom("text", "", "- item", "```", "| a | b |", "|---|---|", "**bold**", "2*3*4", "# Title");
  fc.assert(
    fc.property(fc.array(line, { maxLength: 150 }), fc.integer({ min: 1, max: 30 }), (lines, size) => {
      const text = lines.join("\n");
      const once = new AnswerBlock("raw", plain);
      once.finish(text);
      assert.deepEqual(streamed(text, "raw", size).render(80), once.render(80));
      assert.deepEqual(streamed(text, "strip", size).render(80), streamed(text, "strip", 1000).render(80));
    }),
  );
});

test("rendered Markdown keeps every word of a long answer", () => {
  const text = Array.from({ length: 60 }, (_, i) => `Paragraph ${i} is **here**.\n\n- item ${i}\n\n`).join("");
  const shown = streamed(text, "render").render(80).map(stripTerminalSequences).join("\n");
  for (let i = 0; i < 60; i++) assert.match(shown, new RegExp(`Paragraph ${i} is here[^]*item ${i}`));
});

test("rendered Markdown looks the same however it comes, also in the middle of long code", () => {
  const line = fc.constantFrom(
    "text",
    "",
    "- item",
    "```ts",
    "```",
    "| a | b |",
    "|---|---|",
    "**bold**",
    "1. one",
    "# Title",
    "/*",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 250 }), fc.integer({ min: 1, max: 60 }), (lines, size) => {
      const text = lines.join("\n");
      const once = new AnswerBlock("render", plain);
      once.finish(text);
      assert.deepEqual(streamed(text, "render", size).render(80), once.render(80));
    }),
  );
  const items = Array.from({ length: 100 }, (_, i) => `- item ${i}\n  - inner\n    - last`).join("\n");
  assert.deepEqual(streamed(items, "render").render(80), items.split("\n"), "a list is cut between its items");
  const code = Array.from({ length: 500 }, (_, i) => `line ${i}`);
  const shown = streamed(["Look:", "```", ...code, "```", "", "after"].join("\n"), "render").render(80);
  assert.deepEqual(
    shown.slice(2, 502),
    code.map((each) => `  ${each}`),
  );
  assert.deepEqual(shown.slice(-3), ["```", "", "after"]);
});

test("a table is shown when its last row is there", () => {
  const block = new AnswerBlock("strip", plain);
  block.append("Prices:\n| a | b |\n|---|---|\n| long name | 1 |\n");
  assert.deepEqual(block.render(80), ["Prices:", "(a table, 3 rows so far)"]);
  block.append("done");
  assert.deepEqual(block.render(80), [
    "Prices:",
    "| a         | b   |",
    "| --------- | --- |",
    "| long name | 1   |",
    "done",
  ]);
});

const endless: [string, AnswerStyle, string][] = [
  ["a stripped answer", "strip", ""],
  ["a rendered answer", "render", ""],
  ["rendered code", "render", "```ts\n"],
  ["a rendered list", "render", "- "],
];
for (const [name, style, start] of endless)
  test(`${name} costs what is new in it, however long it is`, () => {
    let drawn = 0;
    const block = new AnswerBlock(style, plain, (line) => {
      drawn++;
      return line;
    });
    block.append(start);
    const linesDrawnFor = (appended: number) => {
      drawn = 0;
      for (let i = 0; i < appended; i++) {
        block.append("some words of an answer that goes on\n");
        block.render(80);
      }
      return drawn;
    };
    linesDrawnFor(320);
    const early = linesDrawnFor(320);
    for (let i = 0; i < 19_200; i++) block.append("more words\n");
    block.render(80);
    const later = linesDrawnFor(320);
    assert.ok(later <= early * 1.1, `${later} lines for what cost ${early} before`);
    assert.ok(early < 320 * 165, `${early} lines for 320`);
  });

test("control sequences of an answer do not reach the terminal", () => {
  assert.deepEqual(streamed("a\u001b[2Jb", "raw", 100).render(80), ["ab"]);
});
