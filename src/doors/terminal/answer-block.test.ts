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

test("a long answer costs what is new in it", () => {
  let drawn = 0;
  const block = new AnswerBlock("strip", plain, (line) => {
    drawn++;
    return line;
  });
  const linesDrawnFor = (appended: number) => {
    drawn = 0;
    for (let i = 0; i < appended; i++) {
      block.append("some words of an answer that goes on\n");
      block.render(80);
    }
    return drawn;
  };
  const early = linesDrawnFor(200);
  for (let i = 0; i < 20_000; i++) block.append("more words\n");
  block.render(80);
  assert.equal(drawn - early, 20_001);
  assert.equal(linesDrawnFor(200), early);
  assert.ok(early < 200 * 45, `${early} lines for 200`);
});

test("control sequences of an answer do not reach the terminal", () => {
  assert.deepEqual(streamed("a\u001b[2Jb", "raw", 100).render(80), ["ab"]);
});
