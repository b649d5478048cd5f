import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { manualClock, recordedLog, temporaryFolder } from "../../test/support/session-store.ts";
import { ResponseStore } from "./response-store.ts";

async function open(folder: string, clock = manualClock()) {
  const path = join(folder, "response_store.db");
  const store = await ResponseStore.open(path, { clock, log: recordedLog() });
  return { store, path, clock };
}

test("the hundred answers that were used last are kept, and reading one is using it", async (t) => {
  const { store, clock } = await open(await temporaryFolder(t));
  for (let at = 0; at < 100; at++) {
    clock.ms += 1000;
    await store.put(`r${at}`, { at }, `c${at}`);
  }
  clock.ms += 1000;
  assert.deepEqual(await store.get("r0"), { at: 0 });
  clock.ms += 1000;
  await store.put("r100", { at: 100 });
  assert.equal(await store.get("r1"), null, "the least used one is gone");
  assert.equal(await store.conversation("c1"), null, "and so is the name that led to it");
  assert.equal(await store.conversation("c0"), "r0");
  assert.deepEqual(await store.get("r0"), { at: 0 });
  await store.close();
});

test("an answer is replaced, a name leads to the newest, and what is deleted is gone with its name", async (t) => {
  const folder = await temporaryFolder(t);
  const { store, path } = await open(folder);
  await store.put("a", { status: "in_progress" }, "talk");
  await store.put("a", { status: "completed" }, "talk");
  await store.put("b", { status: "completed" }, "talk");
  assert.equal(await store.conversation("talk"), "b");
  assert.equal(await store.delete("b"), true);
  assert.equal(await store.delete("b"), false);
  assert.equal(await store.conversation("talk"), null);
  await store.close();
  const again = await open(folder);
  assert.deepEqual(await again.store.get("a"), { status: "completed" });
  await again.store.close();
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("a file of the original is used as it is", async (t) => {
  const folder = await temporaryFolder(t);
  const db = new DatabaseSync(join(folder, "response_store.db"));
  db.exec("CREATE TABLE responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, accessed_at REAL NOT NULL)");
  db.exec("CREATE TABLE conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL)");
  db.exec(`INSERT INTO responses VALUES ('resp_1', '{"conversation_history": []}', 1.5)`);
  db.exec("INSERT INTO conversations VALUES ('old', 'resp_1')");
  db.close();
  const { store } = await open(folder);
  assert.deepEqual(await store.get("resp_1"), { conversation_history: [] });
  assert.equal(await store.conversation("old"), "resp_1");
  await store.close();
});
