import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RecallScrubber, scrubRecall } from "./scrub.ts";

const CASES = [
  ["a block alone", "<memory-context>\nsecret\n</memory-context>\nHello", "Hello"],
  ["any letter case, blanks in front", "Hi\n  <Memory-Context>\nx\n</MEMORY-CONTEXT>\nyou", "Hi\nyou"],
  ["an inline mention", "The <memory-context> tag is ours.", "The <memory-context> tag is ours."],
  ["a tag with text on its line", "<memory-context> is a tag", "<memory-context> is a tag"],
  ["an unterminated block", "Hi\n<memory-context>\nall of it", "Hi\n"],
  ["half a tag at the end", "Hi\n<memory-con", "Hi\n<memory-con"],
  ["a whole tag at the end", "Hi\n<memory-context>", "Hi\n<memory-context>"],
  ["two blocks", "<memory-context>\na\n</memory-context>\nA\n<memory-context>\nb\n</memory-context>\nB", "A\nB"],
  ["text behind the closer", "<memory-context>\na\n</memory-context> Hello", "Hello"],
  ["carriage returns", "<memory-context>\r\na\r\n</memory-context>\r\nHello", "Hello"],
  ["nothing of the kind", "a < b\n\n<div>", "a < b\n\n<div>"],
] as const;

for (const [what, text, visible] of CASES) {
  test(`${what}: the same as one text and in every chunking`, () => {
    assert.equal(scrubRecall(text), visible);
    for (let size = 1; size <= text.length; size++) {
      const scrubber = new RecallScrubber();
      let shown = "";
      for (let at = 0; at < text.length; at += size) shown += scrubber.feed(text.slice(at, at + size));
      assert.equal(shown + scrubber.flush(), visible, `chunks of ${size}`);
    }
  });
}

test("however a stream is cut, what is shown is the whole text's visible part", () => {
  const piece = fc.constantFrom("<memory-context>", "</memory-context>", "\n", " ", "x", "<mem", "\r\n", "> ");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.nat(5), { maxLength: 30 }), (pieces, sizes) => {
      const text = pieces.join("");
      const scrubber = new RecallScrubber();
      let shown = "";
      let at = 0;
      for (const size of sizes) {
        shown += scrubber.feed(text.slice(at, at + size));
        at += size;
      }
      shown += scrubber.feed(text.slice(at)) + scrubber.flush();
      assert.equal(shown, scrubRecall(text));
    }),
    { numRuns: 1000 },
  );
});
