import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { appendHistory, loadHistory, parseHistory, renderEntry } from "./input-history.ts";

test("what was typed is read back, whatever it was", () => {
  const entry = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !/[\r\u2028]/.test(text));
  fc.assert(
    fc.property(fc.array(entry), (entries) => {
      const file = entries.map((text) => renderEntry(text, new Date(2026, 0, 2, 3, 4, 5, 6))).join("");
      assert.deepEqual(parseHistory(file), entries);
    }),
  );
});

test("an entry has the original's form", () => {
  assert.equal(renderEntry("a\nb", new Date(2026, 0, 2, 3, 4, 5, 6)), "\n# 2026-01-02 03:04:05.006000\n+a\n+b\n");
});

test("the file collects entries, drops repeats, and a missing one is empty", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-history-"));
  try {
    const path = join(folder, ".hermes_history");
    assert.deepEqual(await loadHistory(path), []);
    for (const text of ["a", "b", "b", "c\nd"]) await appendHistory(path, text, new Date());
    assert.deepEqual(await loadHistory(path), ["a", "b", "c\nd"]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
