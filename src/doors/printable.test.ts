import assert from "node:assert/strict";
import { test } from "node:test";
import { printable, revealed } from "./terminal-text.ts";

const cases: [string, string][] = [
  ["plain 名称 🙂", "plain 名称 🙂"],
  ["\u001b[31mred\u001b[0m", "red"],
  ["\u001b]0;new title\u0007text", "text"],
  ["a\tb", "a    b"],
  ["one\r\ntwo\rthree", "one\ntwo\nthree"],
  ["bell\u0007 back\b", "bell back"],
];
for (const [text, shown] of cases)
  test(`${JSON.stringify(text)} is shown as ${JSON.stringify(shown)}`, () => assert.equal(printable(text), shown));

test("a command is shown with everything that could hide in it", () => {
  assert.equal(revealed("echo \u001b[8mhidden"), "echo <U+001B>[8mhidden");
  assert.equal(revealed("echo a\u202eb\u200b"), "echo a<U+202E>b<U+200B>");
  assert.equal(revealed("a\nb"), "a\nb");
});
