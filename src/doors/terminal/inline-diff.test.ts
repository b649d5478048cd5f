import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTheme } from "../terminal-text.ts";
import { changedWords, diffLines, diffOf } from "./diff-view.ts";

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

const change = "--- a/x.ts\n+++ b/x.ts\n@@ -9,2 +9,2 @@\n const a = 1;\n-const name = old;\n+const name = fresh;\n";

test("lines have their number in the file they belong to, where there is room", () => {
  assert.deepEqual(diffLines(change, plain, 80).slice(2), [
    "   @@ -9,2 +9,2 @@",
    " 9  const a = 1;",
    "10 -const name = old;",
    "10 +const name = fresh;",
  ]);
  assert.equal(diffLines(change, plain, 40).at(-1), "+const name = fresh;");
});

test("in a changed line the words that differ are marked", () => {
  const theme = { ...plain, changed: (text: string) => `[${text}]` };
  assert.deepEqual(diffLines(change, theme).slice(-2), ["-const name = [old];", "+const name = [fresh];"]);
  assert.equal(changedWords("something else", "没有关系"), null, "lines without anything in common are not compared");
  const other = "@@ -1,2 +1 @@\n-one line\n-two line\n+one word\n";
  assert.doesNotMatch(diffLines(other, theme).join("\n"), /\[/, "nor are runs of different length");
});

test("a removed line that looks like a header is a removed line", () => {
  const theme = { ...plain, removed: (text: string) => `<${text}>` };
  assert.equal(diffLines("--- a/q.sql\n+++ b/q.sql\n@@ -1 +0,0 @@\n--- drop it\n", theme).at(-1), "<--- drop it>");
});
