import assert from "node:assert/strict";
import { test } from "node:test";
import { unifiedDiff } from "./unified-diff.ts";

const file = (text: string, path = "src/x.ts") => ({ path, text });

test("a change shows three lines around it and the names with a/ and b/", async () => {
  const lines = Array.from({ length: 9 }, (_, n) => `${n}`);
  const changed = lines.with(4, "four");
  assert.equal(
    await unifiedDiff(file(`${lines.join("\n")}\n`), file(`${changed.join("\n")}\n`)),
    "--- a/src/x.ts\n+++ b/src/x.ts\n@@ -2,7 +2,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n",
  );
});

test("new and removed files have /dev/null on the other side", async () => {
  assert.equal(await unifiedDiff(null, file("a\n")), "--- /dev/null\n+++ b/src/x.ts\n@@ -0,0 +1 @@\n+a\n");
  assert.equal(await unifiedDiff(file("a\n"), null), "--- a/src/x.ts\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
});

test("a missing final line break is told, equal texts give nothing, absolute paths lose their slash", async () => {
  assert.match(
    await unifiedDiff(file("a"), file("b")),
    /-a\n\\ No newline at end of file\n\+b\n\\ No newline at end of file\n$/,
  );
  assert.equal(await unifiedDiff(file("a"), file("a")), "");
  assert.match(await unifiedDiff(file("a", "/t/x"), file("b", "/t/x")), /^--- a\/t\/x\n\+\+\+ b\/t\/x\n/);
});

test("a new file is shown whole", async () => {
  const diff = await unifiedDiff(null, file("x\n".repeat(5000)));
  assert.equal(diff.split("\n").length, 5000 + 4);
});

test("a change of very many lines is one rough hunk, shortened, in linear time", { timeout: 30_000 }, async () => {
  const lines = Array.from({ length: 200_000 }, (_, n) => `line ${n}`);
  const changed = lines.map((line, n) => (n < 10 || n >= 199_990 ? line : `${line}!`));
  const diff = (await unifiedDiff(file(`${lines.join("\n")}\n`), file(`${changed.join("\n")}\n`))).split("\n");
  assert.deepEqual(diff.slice(0, 4), ["--- a/src/x.ts", "+++ b/src/x.ts", "@@ -11,199980 +11,199980 @@", "-line 10"]);
  assert.deepEqual(diff.slice(-3), ["+line 509!", "... [199480 more added lines]", ""]);
  assert.ok(diff.includes("... [199480 more removed lines]"));
  const grown = await unifiedDiff(file("a\nz\n"), file(`a\n${"x\n".repeat(5000)}z\n`));
  assert.match(grown, /^--- a\/src\/x\.ts\n\+\+\+ b\/src\/x\.ts\n@@ -1,0 \+2,5000 @@\n\+x\n/);
});
