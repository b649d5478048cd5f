import assert from "node:assert/strict";
import { test } from "node:test";
import { spokenText } from "./voice.ts";

const SPOKEN: readonly [answer: string, words: string][] = [
  ["# Birds\n\nA **heron** is _grey_.", "Birds\nA heron is grey."],
  ["Do this:\n```sh\nrm -rf x\n```\nThen wait.", "Do this:\nThen wait."],
  ["See [the page](https://example.org/a_b) or https://example.org/x now", "See the page or now"],
  ["| a | b |\n|---|---|\n| 1 | 2 |", ""],
  ["- one\n- two", "one\ntwo"],
  ["MEDIA:/tmp/a.png\n[[audio_as_voice]]\nHere.", "Here."],
  ["```\nnever closed", ""],
];
for (const [answer, words] of SPOKEN)
  test(`${JSON.stringify(answer.slice(0, 30))} is spoken as ${JSON.stringify(words.slice(0, 30))}`, () =>
    assert.equal(spokenText(answer), words));

test("a very long answer is spoken as far as one request goes, and no letter is cut", () => {
  assert.equal([...spokenText("𝔞".repeat(9000))].length, 4000);
});
