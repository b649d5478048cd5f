import assert from "node:assert/strict";
import { test } from "node:test";
import { cellWidth, onlyStyled, printable, revealed } from "./terminal-text.ts";

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

test("of lines that are drawn only colours and the cursor's mark stay", () => {
  const coloured = "\u001b[1;31mred\u001b[0m \u001b[38:2::1:2:3mx\u001b[39m";
  assert.deepEqual(onlyStyled([coloured, "a\u001b_pi:c\u0007b"], 20), [coloured, "a\u001b_pi:c\u0007b"]);
  assert.deepEqual(onlyStyled(["\u001b[31ma\u001b[2J\u001b]0;t\u0007b\u001b[0m", "a\u009b2Jb\u202ec\rd"], 20), [
    "\u001b[31mab\u001b[0m",
    "abc d",
  ]);
});

test("what was hidden in a broken sequence makes no line too long", () => {
  for (const [line = ""] of [onlyStyled([`\u001b]0;${"x".repeat(50)}`], 12), onlyStyled([`a\t\t\t\t\u0007`], 12)])
    assert.ok(cellWidth(line) <= 12, line);
});
