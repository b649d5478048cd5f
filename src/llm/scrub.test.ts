import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { stripThinkBlocks, ThinkScrubber } from "./scrub.ts";

const stripped: readonly [what: string, text: string, visible: string][] = [
  ["text without tags stays", "a < b and c > d", "a < b and c > d"],
  ["a closed pair goes wherever it stands", "a <think>x</think>b", "a b"],
  ["names are matched in any case", "<THINKING>x</Thinking>b", "b"],
  [
    "all five names hide",
    "<thought>1</thought><reasoning>2</reasoning><REASONING_SCRATCHPAD>3</REASONING_SCRATCHPAD>b",
    "b",
  ],
  ["a pair may span lines", "<think>\nx\ny\n</think>\nb", "\nb"],
  ["a leaked tool call goes", 'a\n<tool_call id="1">{"name":"x"}</tool_call>\nb', "a\n\nb"],
  ["a leaked result goes", "<tool_result>x</tool_result>b", "b"],
  ["a leaked function at the start goes", '<function name="x">1</function>b', "b"],
  ["a leaked function after a full stop goes", 'Done. <function name="x">1</function>b', "Done. b"],
  ["a function tag inside a sentence stays", 'the <function name="x">1 tag', 'the <function name="x">1 tag'],
  ["prose about functions stays", "Call <function> in JS", "Call <function> in JS"],
  ["an unclosed opener at the start hides everything", "<think>x\ny", ""],
  ["an unclosed opener at a line start hides the rest and the newline before it", "a\n  <think>x\ny", "a"],
  ["an unclosed opener inside a line is only a stray tag", "a <think> b", "a b"],
  ["a stray closer goes with the whitespace after it", "thoughts</think>\n\nanswer", "thoughtsanswer"],
  ["a stray closing tool tag goes", "a</tool_call>\nb", "ab"],
];
for (const [what, text, visible] of stripped) test(what, () => assert.equal(stripThinkBlocks(text), visible));

const streamed: readonly [what: string, deltas: readonly string[], visible: string][] = [
  ["a block at the start is hidden", ["<think>x</think>", "b"], "b"],
  ["a tag may be split anywhere", ["<th", "ink>se", "cret</thi", "nk>b"], "b"],
  ["a block at a line start is hidden across deltas", ["a\n", "  <think>x", "y</think>b"], "a\n  b"],
  ["a block nobody closes is discarded", ["a\n<think>x", "y"], "a\n"],
  ["a closed pair inside a line is hidden", ["a <think>", "x</think> b"], "a  b"],
  ["an opener inside a line that nobody closes is text", ["use <think>", " here"], "use <think> here"],
  ["half a tag at the end is text", ["a <thi"], "a <thi"],
  ["a comparison is text at once", ["a < b"], "a < b"],
  ["an orphan closer is dropped", ["a</think>", "\n\nb"], "ab"],
];
for (const [what, deltas, visible] of streamed)
  test(`in a stream, ${what}`, () => {
    const scrubber = new ThinkScrubber();
    assert.equal(deltas.map((delta) => scrubber.feed(delta)).join("") + scrubber.flush(), visible);
  });

test("text that cannot become a tag is shown in the delta that brings it", () => {
  const scrubber = new ThinkScrubber();
  assert.equal(scrubber.feed("hello "), "hello ");
  assert.equal(scrubber.feed("a <b"), "a <b");
  assert.equal(scrubber.feed("x <t"), "x ");
  assert.equal(scrubber.feed("r>"), "<tr>");
});

test("reset forgets an open block", () => {
  const scrubber = new ThinkScrubber();
  scrubber.feed("<think>x");
  scrubber.reset();
  assert.equal(scrubber.feed("b"), "b");
});

const scrub = (deltas: readonly string[]) => {
  const scrubber = new ThinkScrubber();
  return deltas.map((delta) => scrubber.feed(delta)).join("") + scrubber.flush();
};
const cutUp = (text: string, cuts: readonly number[]) => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((start, index) => text.slice(start, places[index] ?? text.length));
};
const words = fc.constantFrom(
  "<think>",
  "</think>",
  "<Reasoning>",
  "</reasoning>",
  "\n",
  " ",
  "a",
  "b.",
  "é😀",
  "\t",
  "ſ",
  "İ",
);
const halves = fc.constantFrom("<", "</", "<think", "thi", "nk>", ">", "<thinking>", "</thought>");
const tagged = fc.array(words, { maxLength: 25 }).map((list) => list.join(""));
const torn = fc.array(fc.oneof(words, halves), { maxLength: 25 }).map((list) => list.join(""));

test("the chunking of a stream changes nothing", () => {
  fc.assert(
    fc.property(torn, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
      assert.equal(scrub(cutUp(text, cuts)), scrub([text]));
    }),
  );
});

test("a stream shows what the complete text would, save for stray openers and the last newline", () => {
  fc.assert(
    fc.property(tagged, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
      const shown = scrub(cutUp(text, cuts)).replace(/<(think|reasoning)>\s*/gi, "");
      assert.equal(shown.trimEnd(), stripThinkBlocks(text).trimEnd());
    }),
  );
});
