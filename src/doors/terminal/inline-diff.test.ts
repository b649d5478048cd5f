import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTheme } from "../terminal-text.ts";
import { diffLines, diffOf } from "./transcript.ts";

const plain = makeTheme(false);

test("a diff comes from the side channel or the result; a failed edit shows none", () => {
  assert.equal(diffOf({ result: '{"error":"no","diff":"x"}', failed: false }), null);
  assert.equal(diffOf({ result: "Error", failed: false }), null);
  assert.equal(diffOf({ result: '{"success":true,"diff":"--- a/x"}', failed: false }), "--- a/x");
  assert.equal(diffOf({ result: '{"bytes_written":1}', failed: false, diff: "--- a/y" }), "--- a/y");
  assert.equal(diffOf({ result: '{"bytes_written":1}', failed: true, diff: "--- a/y" }), null);
});

test("a long diff is cut and the rest counted", () => {
  const diff = `--- a/x\n+++ b/x\n${"+line\n".repeat(100)}`;
  const lines = diffLines(diff, plain);
  assert.equal(lines.length, 81);
  assert.equal(lines.at(-1), "... 22 more lines");
});

test("more than six files are counted, not shown", () => {
  const diff = Array.from({ length: 8 }, (_, i) => `--- a/${i}\n+++ b/${i}\n+x\n`).join("");
  assert.equal(diffLines(diff, plain).at(-1), "... 6 more lines");
});
