import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hasDelimiterLine, lengthOf, longUsage, parseEntries, renderEntries, shortUsage, tidyText } from "./entries.ts";

test("files are read whatever hand wrote them", () => {
  for (const [text, entries] of [
    ["", []],
    [" \n\t\n", []],
    ["one", ["one"]],
    ["one\n§\ntwo", ["one", "two"]],
    ["one\n§\ntwo\n", ["one", "two"]],
    ["one\r\n§\r\ntwo\r\nlines\r\n", ["one", "two\nlines"]],
    ["\ufeffone\n§\ntwo", ["one", "two"]],
    ["one\n\n § \t\n\n  two  \n", ["one", "two"]],
    ["§\none\n§\n§\n\n§\ntwo\n§", ["one", "two"]],
    ["a § b\n§x\nx§", ["a § b\n§x\nx§"]],
    ["twice\n§\nother\n§\ntwice", ["twice", "other"]],
    ["\ufeff\ufeffone", ["\ufeffone"]], // one BOM belongs to the file, the next to the entry
    ["\u00a0\u2003one\u3000", ["one"]],
  ] as const) {
    assert.deepEqual(parseEntries(text), entries, JSON.stringify(text));
  }
});

const entry = fc
  .array(
    fc.oneof(
      fc.constantFrom("§", "\n", "\r\n", "\r", " ", "\t", "\ufeff", "a", "é", "𝒜", "\u00a0", "\ud800", "note"),
      fc.string({ maxLength: 5 }),
    ),
    { maxLength: 8 },
  )
  .map((pieces) => tidyText(pieces.join("")))
  .filter((text) => text !== "" && !hasDelimiterLine(text));

test("what is rendered is read back the same", () => {
  fc.assert(
    fc.property(fc.uniqueArray(entry, { maxLength: 6 }), (entries) => {
      assert.deepEqual(parseEntries(renderEntries(entries)), entries);
    }),
  );
});

test("reading is stable: rendering what was read changes nothing more", () => {
  const piece = fc.oneof(fc.constantFrom("\n§\n", "\r\n", "\r", "§", "\n", " § ", "\n"), fc.string({ maxLength: 6 }));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const once = parseEntries(pieces.join(""));
      assert.deepEqual(parseEntries(renderEntries(once)), once);
    }),
  );
});

test("lengths are code points of the joined entries", () => {
  assert.equal(lengthOf([]), 0);
  assert.equal(lengthOf(["ab"]), 2);
  assert.equal(lengthOf(["ab", "c"]), 6);
  assert.equal(lengthOf(["漢字𝒜👩"]), 4);
});

test("usage is told in two forms", () => {
  assert.equal(longUsage(1474, 2200), "67% — 1,474/2,200 chars");
  assert.equal(longUsage(19, 2200), "0% — 19/2,200 chars");
  assert.equal(longUsage(5000, 2200), "100% — 5,000/2,200 chars");
  assert.equal(shortUsage(1474, 2200), "1,474/2,200");
});
