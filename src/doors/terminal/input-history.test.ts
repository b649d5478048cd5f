import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { appendHistory, InputHistory, loadHistory, parseHistory, renderEntry } from "./input-line.ts";

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

test("the file collects entries, and a missing one is empty", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hermes-history-"));
  try {
    const path = join(folder, ".hermes_history");
    assert.deepEqual(await loadHistory(path), []);
    for (const text of ["a", "b", "c\nd"]) await appendHistory(path, text, new Date());
    assert.deepEqual(await loadHistory(path), ["a", "b", "c\nd"]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a walk goes back through the entries and returns to the draft", () => {
  const history = new InputHistory(["one", "two", "two", "three"]);
  assert.equal(history.older("draft"), "three");
  assert.equal(history.older("three"), "two");
  assert.equal(history.older("two"), "one");
  assert.equal(history.older("one"), null);
  assert.equal(history.newer("one"), "two");
  assert.equal(history.newer("two"), "three");
  assert.equal(history.newer("three"), "draft");
  assert.equal(history.newer("draft"), null);
});

test("a changed entry is a draft of its own", () => {
  const history = new InputHistory(["one", "two"]);
  assert.equal(history.older(""), "two");
  assert.equal(history.newer("two changed"), null);
  assert.equal(history.older("two changed"), "two");
  assert.equal(history.newer("two"), "two changed");
});

test("a search finds the newest first and a shadow continues what was typed", () => {
  const history = new InputHistory(["git status", "ls", "git status", "git log"]);
  assert.deepEqual(history.matching("GIT"), ["git log", "git status"]);
  assert.equal(history.continuation("git s"), "tatus");
  assert.equal(history.continuation("ls"), "");
  assert.equal(history.add("git log"), false);
  assert.equal(history.add("new"), true);
});
