import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { temporaryStore } from "../../test/support/session-store.ts";
import { unicodeText } from "../../test/support/unicode-text.ts";
import { findSession } from "./session-id.ts";
import type { StoreError } from "./store.ts";
import { cleanTitle } from "./titles.ts";

const cleaned: readonly (readonly [raw: string, clean: string | null])[] = [
  ["  hello   world ", "hello world"],
  ["a\tb\nc\r\nd", "a b c d"],
  ["a\u00a0b\u3000c\u0085d", "a b c d"],
  ["nul\u0000bell\u0007del\u007f", "nulbelldel"],
  ["zero\u200bwidth\u202ebidi\ufeff", "zerowidthbidi"],
  ["", null],
  ["  \u200b ", null],
  ["字".repeat(100), "字".repeat(100)],
  ["𠀀".repeat(100), "𠀀".repeat(100)],
];
for (const [raw, clean] of cleaned) {
  test(`the title ${JSON.stringify(raw.slice(0, 20))} is stored as ${JSON.stringify(clean?.slice(0, 20) ?? null)}`, () => {
    assert.equal(cleanTitle(raw), clean);
  });
}

test("a title of more than 100 code points is refused with its length", () => {
  assert.throws(() => cleanTitle("𠀀".repeat(101)), { message: "Title too long (101 chars, max 100)" });
});

test("cleaning a clean title changes nothing", () => {
  fc.assert(
    fc.property(unicodeText({ maxLength: 80 }), (raw) => {
      const clean = cleanTitle(raw);
      assert.equal(clean === null ? null : cleanTitle(clean), clean);
    }),
  );
});

test("a title belongs to one session; the holder is named", async (t) => {
  const { store } = await temporaryStore(t);
  for (const id of ["a", "b"]) await store.create({ id });
  assert.equal(await store.setTitle("a", "my project"), true);
  assert.equal(await store.setTitle("a", "my project"), true);
  assert.equal(await store.setTitle("b", "My Project"), true);
  await assert.rejects(store.setTitle("b", "my project"), {
    message: "Title 'my project' is already in use by session a",
  });
  assert.equal(await store.setTitle("nobody", "x"), false);
  assert.equal(await store.setTitle("a", " \t"), true);
  assert.equal((await store.get("a"))?.title, null);
});

test("a title held by an ancestor of the same conversation moves down", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.setTitle("a", "work");
  const child = await store.continueAfterCompression("a", []);
  assert.equal((await store.get(child))?.title, "work #2");
  assert.equal(await store.setTitle(child, "work"), true);
  assert.equal((await store.get("a"))?.title, null);
  await store.create({ id: "branch", parentSessionId: child, modelConfig: { _branched_from: child } });
  await assert.rejects(store.setTitle("branch", "work"), (error: StoreError) => error.code === "conflict");
});

test("the next title counts numbers only, case and wildcards exactly", async (t) => {
  const { store } = await temporaryStore(t);
  const titles = ["proj", "proj #3", "proj #bar", "PROJ #9", "100%", "100x #7", "solo #5"];
  for (const [index, title] of titles.entries()) {
    await store.create({ id: `s${index}` });
    await store.setTitle(`s${index}`, title);
  }
  const cases: readonly (readonly [base: string, next: string])[] = [
    ["fresh", "fresh"],
    ["fresh #4", "fresh"],
    ["proj", "proj #4"],
    ["proj #2", "proj #4"],
    ["100%", "100% #2"],
    ["solo", "solo #6"],
    ["foo #bar", "foo #bar"],
  ];
  for (const [base, next] of cases) assert.equal(await store.nextTitle(base), next, base);
});

test("the next title is always free and never too long", async (t) => {
  const { store } = await temporaryStore(t);
  let count = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("a", "a #2", "字".repeat(100), "字".repeat(99), "b c"), async (base) => {
      const id = `t${count++}`;
      await store.create({ id });
      assert.equal(await store.setTitle(id, await store.nextTitle(base)), true);
    }),
    { numRuns: 60 },
  );
});

test("a title resolves to the newest of its lineage, digits and case exactly", async (t) => {
  const { store, clock } = await temporaryStore(t);
  for (const title of ["my proj", "my proj #2", "my proj #3", "my proj #new", "Solo #2", "one_two", "oneXtwo #2"]) {
    clock.ms += 1000;
    await store.create({ id: title.replaceAll(" ", "-") });
    await store.setTitle(title.replaceAll(" ", "-"), title);
  }
  const cases: readonly (readonly [title: string, id: string | null])[] = [
    ["my proj", "my-proj-#3"],
    ["my proj #2", "my-proj-#2"],
    ["my proj #new", "my-proj-#new"],
    ["Solo", "Solo-#2"],
    ["SOLO", null],
    ["my pro", null],
    ["one_two", "one_two"],
  ];
  for (const [title, id] of cases) assert.equal(await store.resolveTitle(title), id, title);
});

test("an id resolves exactly or by its only continuation", async (t) => {
  const { store } = await temporaryStore(t);
  for (const id of ["20260101_aaa", "20260102_bbb", "20260102", "2026%literal"]) await store.create({ id });
  const cases: readonly (readonly [text: string, id: string | null])[] = [
    ["20260101", "20260101_aaa"],
    ["20260102", "20260102"],
    ["2026", null],
    ["2026%", "2026%literal"],
    ["", null],
    ["9", null],
  ];
  for (const [text, id] of cases) assert.equal(await store.resolveId(text), id, text);
});

test("what a user types is taken as id, then as title, then as the beginning of an id", async (t) => {
  const { store } = await temporaryStore(t);
  for (const id of ["alpha", "beta-1"]) await store.create({ id });
  await store.setTitle("beta-1", "alpha");
  assert.equal(await findSession(store, "alpha"), "alpha");
  await store.setTitle("beta-1", "alp");
  assert.equal(await findSession(store, "alp"), "beta-1");
  assert.equal(await findSession(store, "be"), "beta-1");
  assert.equal(await findSession(store, " "), null);
});
