import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, diffOf } from "./inline-diff.ts";
import { makeTheme } from "./theme.ts";

const plain = makeTheme(false);

test("a failed edit shows no diff", () => {
  assert.equal(diffOf('{"error":"no","diff":"x"}'), null);
  assert.equal(diffOf("Error"), null);
  assert.equal(diffOf('{"success":true,"diff":"--- a/x"}'), "--- a/x");
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
