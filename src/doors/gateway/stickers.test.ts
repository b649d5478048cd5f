import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { manualClock, recordedLog } from "../../../test/support/session-store.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { Stickers } from "./stickers.ts";

async function shelf(t: TestContext, content?: string) {
  const temp = await tempHome();
  t.after(() => temp[Symbol.asyncDispose]());
  const path = temp.at("sticker_cache.json");
  if (content !== undefined) await writeFile(path, content);
  const open = () => new Stickers({ paths: temp }, { clock: manualClock(), log: recordedLog() });
  const asked: string[] = [];
  const says = (text: string) => async () => {
    asked.push(text);
    return text;
  };
  const kept = async () => JSON.parse(await readFile(path, "utf8"));
  return { open, path, asked, says, kept };
}

test("a sticker that comes twice at the same time is asked about once", async (t) => {
  const { open, asked, says, kept } = await shelf(t);
  const stickers = open();
  const both = await Promise.all([stickers.describe("a", says("A cat.")), stickers.describe("a", says("A cat."))]);
  assert.deepEqual([both, asked], [["A cat.", "A cat."], ["A cat."]]);
  await Promise.all(["b", "c", "d"].map((id) => stickers.describe(id, says(id))));
  assert.deepEqual(Object.keys(await kept()), ["a", "b", "c", "d"]);
});

test("what failed or was empty is not kept, and asked about again", async (t) => {
  const { open, asked, says } = await shelf(t);
  const stickers = open();
  assert.equal(await stickers.describe("a", () => Promise.reject(new Error("no"))), null);
  assert.equal(await stickers.describe("a", says(" \n")), null);
  assert.equal(await stickers.describe("a", null), null);
  assert.equal(await stickers.describe("a", says("A cat.")), "A cat.");
  assert.deepEqual(asked, [" \n", "A cat."]);
});

test("the file of the original is read, and what is broken in it is nothing", async (t) => {
  const old = { description: "An old\ncat]", emoji: "🐱", set_name: "Cats", cached_at: 5 };
  const { open, says, kept } = await shelf(t, JSON.stringify({ old, odd: 3, none: { description: 4 } }));
  const stickers = open();
  assert.equal(await stickers.describe("old", null), "An old cat");
  assert.equal(await stickers.describe("odd", says("A dog.")), "A dog.");
  const { odd, ...rest } = await kept();
  assert.deepEqual([rest, odd.description], [{ old }, "A dog."]);
  for (const content of ["{", "[1]", "null"]) {
    const broken = await shelf(t, content);
    assert.equal(await broken.open().describe("a", broken.says("A cat.")), "A cat.");
    assert.equal((await broken.kept()).a.description, "A cat.");
  }
});

test("a thousand are kept, the newest ones, and no description is long", async (t) => {
  const full = Object.fromEntries(
    Array.from({ length: 1200 }, (_, n) => [`s${n}`, { description: "x", cached_at: n }]),
  );
  const { open, says, kept } = await shelf(t, JSON.stringify(full));
  const told = await open().describe("new", says("𝔞".repeat(900)));
  assert.equal([...(told ?? "")].length, 300);
  const ids = Object.keys(await kept());
  assert.deepEqual([ids.length, ids[0], ids.at(-1)], [1000, "s201", "new"]);
});

test("a file that cannot be written costs only the memory of it", async (t) => {
  const { open, path, says } = await shelf(t);
  await mkdir(path);
  const stickers = open();
  assert.equal(await stickers.describe("a", says("A cat.")), "A cat.");
  assert.equal(await stickers.describe("a", null), "A cat.");
});
