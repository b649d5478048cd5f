import assert from "node:assert/strict";
import { test } from "node:test";
import { type Component, type TUI, visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import { makeTheme } from "../terminal-text.ts";
import { AnswerBlock } from "./answer-block.ts";
import { CutLines, Lines, Rule } from "./blocks.ts";
import { InputHistory, PromptEditor } from "./input-line.ts";

const theme = makeTheme(true);
const piece = fc.constantFrom(
  "a",
  " ",
  "word",
  "汉字",
  "🙂",
  "👩‍👩‍👧",
  "é",
  "\t",
  "\n",
  "\u001b[31m",
  "**",
  "| x |",
  "\u200b",
  "ﷺ",
);
const text = fc.array(piece, { maxLength: 60 }).map((parts) => parts.join(""));
const width = fc.integer({ min: 12, max: 90 });

function answer(style: "strip" | "render" | "raw", words: string): AnswerBlock {
  const block = new AnswerBlock(style, theme);
  block.finish(words);
  return block;
}

function editor(words: string): PromptEditor {
  const tui = { terminal: { rows: 60 }, requestRender: () => undefined } as unknown as TUI; // all that an editor asks of it
  const made = new PromptEditor(tui, new InputHistory([`${words} and more`]), { theme, prompt: () => "名字 ❯" });
  made.focused = true;
  made.setText(words);
  return made;
}

const makers: [string, (words: string) => Component][] = [
  ["wrapped lines", (words) => new Lines(words, theme.dim)],
  ["cut lines", (words) => new CutLines(words.replaceAll("\u001b[31m", "").split("\n").map(theme.warn))],
  ["a rule", (words) => new Rule(words.replace(/[\n\t\u001b]/g, ""), theme.dim)],
  ["a stripped answer", (words) => answer("strip", words)],
  ["a rendered answer", (words) => answer("render", words)],
  ["a raw answer", (words) => answer("raw", words)],
  ["the input", (words) => editor(words.replaceAll("\u001b[31m", ""))],
];
for (const [name, make] of makers) {
  // The renderer treats one cell too many as a defect and stops the program.
  test(`${name}: no line is longer than the terminal is wide`, () => {
    fc.assert(
      fc.property(text, width, (words, cells) => {
        for (const line of make(words).render(cells))
          assert.ok(visibleWidth(line) <= cells, `${visibleWidth(line)} > ${cells}: ${JSON.stringify(line)}`);
      }),
    );
  });
}

test("the input grows to eight lines and no further", () => {
  assert.equal(editor("one").render(40).length, 3);
  assert.equal(editor("line\n".repeat(50)).render(40).length, 10);
});
