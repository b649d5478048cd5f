// The index follows messages that anybody wrote: ours, and the original's, which knows nothing of it.
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { manualClock, recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import { openSessionStore } from "../open.ts";
import type { SessionStore } from "../store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });

const roots = async (store: SessionStore, question: string) =>
  (await store.recall(question)).conversations.map(({ root }) => root);

async function withTalk(t: Parameters<typeof temporaryStore>[0]) {
  const rig = await temporaryStore(t);
  for (const [id, text] of [
    ["zoo", "we watched the walruses for hours"],
    ["home", "the boiler was repaired yesterday"],
  ] as const) {
    await rig.store.create({ id });
    await rig.store.append(id, [user(text)]);
  }
  assert.deepEqual(await roots(rig.store, "who repairs boilers?"), ["home"]);
  return { ...rig, index: `${rig.path}-recall` };
}

/** Writes as the original does: rows into its own tables, and nothing else. */
function asOriginal(path: string, sql: string): void {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec(sql);
  db.close();
}

test("what the original wrote in between is found, what it deleted is not, and what it changed is found by its new words", async (t) => {
  const { store, path } = await withTalk(t);
  asOriginal(
    path,
    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('zoo', 'user', 'penguins marching', 9)",
  );
  assert.deepEqual(await roots(store, "does a penguin march?"), ["zoo"]);
  asOriginal(path, "UPDATE messages SET content = 'the chimney smokes a lot' WHERE content LIKE 'the boiler%'");
  assert.deepEqual(await roots(store, "who repairs boilers?"), []);
  assert.deepEqual(await roots(store, "smoking chimneys"), ["home"]);
  asOriginal(path, "DELETE FROM messages WHERE content LIKE 'penguins%'");
  assert.deepEqual(await roots(store, "does a penguin march?"), []);
  assert.deepEqual(await roots(store, "watching a walrus"), ["zoo"]);
});

test("nothing of the index is in the file that the original opens", async (t) => {
  const { path, store } = await withTalk(t);
  const names = () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
    const rows = db.prepare("SELECT type || ' ' || name AS name FROM sqlite_master ORDER BY 1").all();
    db.close();
    return rows.map(({ name }) => name);
  };
  const before = names();
  await store.recall("walrus boiler");
  assert.deepEqual(names(), before);
});

test("for any sequence of writes the index finds what reading every row would find", async (t) => {
  const { store, path } = await temporaryStore(t);
  const words = ["walrus", "penguin", "牙医", "猫"];
  const step = fc.oneof(
    fc.record({
      type: fc.constant("append" as const),
      group: fc.constantFrom("a", "b", "c"),
      word: fc.constantFrom(...words),
    }),
    fc.record({
      type: fc.constant("insert" as const),
      group: fc.constantFrom("a", "b", "c"),
      word: fc.constantFrom(...words),
    }),
    fc.record({ type: fc.constant("delete" as const), word: fc.constantFrom(...words) }),
    fc.record({ type: fc.constant("update" as const), word: fc.constantFrom(...words), to: fc.constantFrom(...words) }),
    fc.record({ type: fc.constant("ask" as const), word: fc.constantFrom(...words) }),
  );
  for (const id of ["a", "b", "c"]) await store.create({ id });
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      for (const one of steps) {
        if (one.type === "append") await store.append(one.group, [user(`${one.word} said`)]);
        if (one.type === "insert")
          other
            .prepare("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)")
            .run(one.group, `${one.word} was told`);
        if (one.type === "delete") other.prepare("DELETE FROM messages WHERE content LIKE ?").run(`${one.word}%`);
        if (one.type === "update")
          other
            .prepare("UPDATE messages SET content = ? WHERE content LIKE ?")
            .run(`${one.to} is what it says now`, `${one.word} s%`);
        if (one.type !== "ask") continue;
        const rows = other
          .prepare("SELECT DISTINCT session_id AS id FROM messages WHERE content LIKE ?")
          .all(`%${one.word}%`);
        assert.deepEqual((await roots(store, `${one.word}?`)).sort(), rows.map(({ id }) => id).sort());
      }
    }),
    { numRuns: 40 },
  );
});

test("a file that is gone, damaged or of another store is made anew", async (t) => {
  const { store, path, index, log } = await withTalk(t);
  await store.close();
  const opened = async () => {
    const again = await openSessionStore({ path, journalMode: "auto", log, clock: manualClock() });
    t.after(() => again.close());
    return again;
  };
  for (const harm of [
    () => rmSync(index),
    () => writeFileSync(index, "this is no database"),
    () => writeFileSync(index, Buffer.concat([readFileSync(index).subarray(0, 4096), Buffer.alloc(8192, 7)])),
  ]) {
    harm();
    const again = await opened();
    assert.deepEqual(await roots(again, "who repairs boilers?"), ["home"]);
    await again.close();
  }
  // The store of another home, with as many messages.
  asOriginal(
    path,
    "UPDATE messages SET timestamp = timestamp + 1; UPDATE messages SET content = 'the toaster was repaired yesterday' WHERE content LIKE 'the boiler%'",
  );
  assert.deepEqual(await roots(await opened(), "toasters"), ["home"]);
});

test("the index is for its owner's eyes only, and appending does not touch it", async (t) => {
  const { store, index } = await withTalk(t);
  assert.equal(statSync(index).mode & 0o777, 0o600);
  const before = [statSync(index).mtimeMs, statSync(`${index}-wal`).size];
  for (let n = 0; n < 50; n++) await store.append("zoo", [user(`line ${n}`)]);
  assert.deepEqual([statSync(index).mtimeMs, statSync(`${index}-wal`).size], before);
});

test("a store that nobody searched has no index, and neither opening nor writing makes one", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "s" });
  await store.append("s", [user("hello")]);
  await store.delete("s");
  assert.equal(existsSync(`${path}-recall`), false);
});

test("words of a deleted conversation are gone from the index at once", async (t) => {
  const { store, index } = await withTalk(t);
  await store.append("zoo", [user("the xylophonist played")]);
  assert.deepEqual(await roots(store, "xylophonists"), ["zoo"]);
  await store.delete("zoo");
  await store.close();
  assert.equal(readFileSync(index).includes("xylophonist"), false);
});

test("where nothing can be written the index is kept in memory", {
  skip: process.getuid?.() === 0 && "root writes everywhere",
}, async (t) => {
  const { store, path, folder } = await withTalk(t);
  await store.close();
  rmSync(`${path}-recall`);
  await chmod(folder, 0o500);
  t.after(() => chmod(folder, 0o700));
  const again = await openSessionStore({
    path,
    journalMode: "auto",
    log: recordedLog(),
    clock: manualClock(),
    readOnly: true,
  });
  t.after(() => again.close());
  assert.deepEqual(await roots(again, "who repairs boilers?"), ["home"]);
});

test("a store that is only read is answered from memory and leaves no file", async (t) => {
  const { store, path } = await withTalk(t);
  await store.close();
  rmSync(`${path}-recall`);
  const again = await openSessionStore({
    path,
    journalMode: "auto",
    log: recordedLog(),
    clock: manualClock(),
    readOnly: true,
  });
  assert.deepEqual(await roots(again, "who repairs boilers?"), ["home"]);
  await again.close();
  assert.equal(existsSync(`${path}-recall`), false);
});

test("two processes that search and write at once both find everything", async (t) => {
  const { store, path } = await withTalk(t);
  const other = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: manualClock() });
  t.after(() => other.close());
  for (let n = 0; n < 30; n++) {
    await (n % 2 ? store : other).append("zoo", [user(`otter number ${n}`)]);
    const [one, two] = await Promise.all([store.recall(`otter ${n}`), other.recall(`otter ${n}`)]);
    assert.equal(one.conversations[0]?.hits[0]?.snippet, two.conversations[0]?.hits[0]?.snippet);
    assert.match(one.conversations[0]?.hits[0]?.snippet ?? "", new RegExp(`>>>${n}<<<`));
  }
});
