import assert from "node:assert/strict";
import { appendFile, readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { memoryHome, memoryRun } from "../../test/support/memory.ts";
import { type HistoryRecord, newestToUndo, openHistory, recordThatWrote, undoneIds } from "./history.ts";

const USER = { origin: "user" } as const;

test("every change is on record with who made it, and hand edits are explained first", async (t) => {
  const box = await memoryHome(t, { files: { "MEMORY.md": "there before\r\n" } });
  await box.memory.apply(
    { action: "add", content: "one" },
    memoryRun({ sessionId: "s7", turn: 3, platform: "telegram" }),
  );
  await writeFile(box.at("MEMORY.md"), "one\n§\nby hand");
  await box.memory.apply({ action: "remove", old_text: "one" }, memoryRun({ origin: "background_review" }));
  const records = (await box.memory.history()).map(({ id, ts, ...rest }) => {
    assert.match(id, /^[0-9a-f]{8}$/);
    assert.ok(Math.abs(ts - Date.now() / 1000) < 60);
    return rest;
  });
  const nobody = { session_id: null, turn: null, platform: null };
  assert.deepEqual(records, [
    { target: "memory", op: "external", before: [], after: ["there before"], origin: "external", ...nobody },
    {
      ...{
        target: "memory",
        op: "add",
        before: ["there before"],
        after: ["there before", "one"],
        origin: "foreground",
      },
      ...{ session_id: "s7", turn: 3, platform: "telegram", before_text: "there before\r\n" },
    },
    {
      target: "memory",
      op: "external",
      before: ["there before", "one"],
      after: ["one", "by hand"],
      origin: "external",
      ...nobody,
    },
    {
      ...{
        target: "memory",
        op: "remove",
        before: ["one", "by hand"],
        after: ["by hand"],
        origin: "background_review",
      },
      ...{ session_id: "s1", turn: 1, platform: "cli" },
    },
  ]);
  assert.equal((await stat(box.at(".history.jsonl"))).mode & 0o777, 0o600);
});

test("a write that changes nothing leaves no record", async (t) => {
  const box = await memoryHome(t);
  await box.memory.write({ action: "add", content: "one" }, USER);
  await box.memory.write({ action: "add", content: "one" }, USER);
  await box.memory.write({ action: "replace", old_text: "one", content: "one" }, USER);
  assert.equal((await box.memory.history()).length, 1);
});

test("an entry that an undo put back is still its first author's", async (t) => {
  const box = await memoryHome(t);
  const run = memoryRun({ sessionId: "s7", turn: 3 });
  await box.memory.apply({ action: "add", content: "one" }, run);
  const writer = async () => recordThatWrote(await box.memory.history(), "memory", "one");
  const undoLast = async () => {
    const last = (await box.memory.history()).at(-1);
    assert.ok(last);
    assert.equal((await box.memory.undo(last, USER)).success, true);
  };
  await box.memory.write({ action: "remove", old_text: "one" }, USER);
  await undoLast();
  assert.equal((await writer())?.session_id, "s7");
  await undoLast(); // the undo itself is taken back: the entry is gone
  await undoLast(); // and once more: it is there
  assert.equal((await writer())?.session_id, "s7");
  await box.memory.write({ action: "remove", old_text: "one" }, USER);
  await box.memory.write({ action: "add", content: "one" }, USER);
  assert.equal((await writer())?.origin, "user", "whoever writes it anew is its author");
});

test("a line cut short by a crash costs only itself", async (t) => {
  const box = await memoryHome(t);
  await box.memory.write({ action: "add", content: "one" }, USER);
  await appendFile(box.at(".history.jsonl"), '{"id":"0000');
  await box.memory.write({ action: "add", content: "two" }, USER);
  const records = await box.memory.history();
  assert.deepEqual(
    records.map(({ after }) => after),
    [["one"], ["one", "two"]],
  );
});

test("a full log moves aside, and one old log is kept", async (t) => {
  const box = await memoryHome(t);
  const history = openHistory(box.at("h"), 3000);
  const record = (n: number): HistoryRecord => ({
    ...{ id: String(n), ts: n, target: n === 1 ? "user" : "memory", op: "add", before: [], after: ["x".repeat(400)] },
    ...{ origin: "user", session_id: null, turn: null, platform: null },
  });
  for (let n = 1; n <= 8; n++) await history.append([record(n)]);
  assert.deepEqual(
    (await history.read()).map(({ id }) => id),
    ["1", "2", "3", "4", "5", "6", "7", "8"],
  );
  assert.equal((await history.last("user"))?.id, "1");
  for (let n = 9; n <= 12; n++) await history.append([record(n)]);
  assert.ok((await stat(box.at("h"))).size <= 3000);
  assert.equal((await history.read()).at(-1)?.id, "12");
  assert.equal((await history.read()).length < 12, true);
});

test("undo restores the very bytes while nothing has come after", async (t) => {
  const piece = fc.constantFrom("a", "bb", "\r\n", "\n§\n", "\n", " ", "\ufeff", "日本", "𝒜");
  const bytes = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  const op = fc.constantFrom(
    { action: "add", content: "something new" },
    { action: "remove", old_text: "bb" },
    { action: "replace", old_text: "日本", content: "Japan" },
    {
      operations: [
        { action: "add", content: "x" },
        { action: "add", content: "y" },
      ],
    },
  );
  await fc.assert(
    fc.asyncProperty(bytes, op, async (before, args) => {
      const box = await memoryHome(t, { files: { "MEMORY.md": before } });
      const result = await box.memory.write(args, USER);
      const record = newestToUndo(await box.memory.history());
      if (!record)
        return assert.ok(!result.success || !("entry_count" in result) || result.message.includes("nothing"));
      assert.equal((await box.memory.undo(record, USER)).success, true);
      assert.equal(await readFile(box.at("MEMORY.md"), "utf8"), before);
    }),
    { numRuns: 30 },
  );
});

test("undo after later changes takes back its own part only", async (t) => {
  const box = await memoryHome(t);
  const add = (content: string) => box.memory.write({ action: "add", content }, USER);
  await add("one");
  await add("two");
  await box.memory.write(
    {
      operations: [
        { action: "remove", old_text: "one" },
        { action: "add", content: "three" },
      ],
    },
    USER,
  );
  await add("four");
  const batch = (await box.memory.history()).at(-2);
  assert.ok(batch);
  const result = await box.memory.undo(batch, USER);
  assert.equal("message" in result && result.message, "Change undone; later changes were kept.");
  assert.equal(await readFile(box.at("MEMORY.md"), "utf8"), "one\n§\ntwo\n§\nfour");
  const again = await box.memory.undo(batch, USER);
  assert.equal("code" in again && again.code, "no_match");
});

test("undo never lets the store grow over its limit or a threat back in", async (t) => {
  const box = await memoryHome(t, {
    memory: { memory_char_limit: 20 },
    files: { "MEMORY.md": "~/.ssh\n§\n123456789" },
  });
  const run = (args: Record<string, unknown>) => box.memory.write(args, USER);
  await run({ action: "remove", old_text: ".ssh" });
  await run({ action: "remove", old_text: "123" });
  await run({ action: "add", content: "abcdefghijklmnop" });
  const [, first, second] = await box.memory.history();
  assert.ok(first && second);
  const codeOf = (result: object) => ("code" in result ? result.code : "ok");
  assert.equal(codeOf(await box.memory.undo(first, USER)), "threat");
  assert.equal(codeOf(await box.memory.undo(second, USER)), "over_limit");
});

test("undo after undo walks back; an undo can itself be taken back", async (t) => {
  const box = await memoryHome(t);
  const file = () => readFile(box.at("MEMORY.md"), "utf8");
  for (const content of ["one", "two", "three"]) await box.memory.write({ action: "add", content }, USER);
  const undo = async () => {
    const record = newestToUndo(await box.memory.history());
    assert.ok(record);
    await box.memory.undo(record, USER);
    return file();
  };
  assert.equal(await undo(), "one\n§\ntwo");
  assert.equal(await undo(), "one");
  const records = await box.memory.history();
  const last = records.at(-1);
  assert.ok(last?.undoes && undoneIds(records).has(last.undoes));
  await box.memory.undo(last, USER);
  assert.equal(await file(), "one\n§\ntwo");
  assert.equal(await undo(), "one");
  assert.equal(await undo(), "");
  assert.equal(newestToUndo(await box.memory.history()), null);
});
