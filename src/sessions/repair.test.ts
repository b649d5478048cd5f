import assert from "node:assert/strict";
import { open, stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { manualClock, recordedLog, temporaryStore } from "../../test/support/session-store.ts";
import { openSessionStore } from "./open.ts";
import { repairDatabase } from "./repair.ts";
import type { StoreError } from "./store.ts";

async function filledFile(t: TestContext, journalMode: "wal" | "delete" = "delete"): Promise<string> {
  const { store, path } = await temporaryStore(t, { journalMode });
  for (const id of ["a", "b"]) {
    await store.create({ id });
    await store.append(
      id,
      Array.from({ length: 200 }, (_, n) => ({
        role: "user" as const,
        content: `${id} message ${n} walrus ${"字".repeat(100)}`,
      })),
    );
  }
  await store.close();
  return path;
}

const repair = (path: string, options: { checkOnly?: boolean } = {}) =>
  repairDatabase({ path, log: recordedLog(), clock: manualClock(), ...options });

test("a sound file is left alone", async (t) => {
  const path = await filledFile(t);
  const { mtimeMs } = await stat(path);
  assert.deepEqual(await repair(path), { outcome: "sound" });
  assert.equal((await stat(path)).mtimeMs, mtimeMs);
});

test("an index that does not match the messages is rebuilt in place", async (t) => {
  const path = await filledFile(t);
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec("INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')");
  db.close();
  const looked = await repair(path, { checkOnly: true });
  assert.equal(looked.outcome, "damaged");
  assert.equal((await repair(path)).outcome, "index_rebuilt");
  assert.deepEqual(await repair(path), { outcome: "sound" });
});

/** One page of the messages table is overwritten. */
async function damage(path: string): Promise<void> {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  const page = db
    .prepare("SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' LIMIT 1 OFFSET 5")
    .get()?.pageno;
  db.close();
  const file = await open(path, "r+");
  await file.write(Buffer.alloc(4096, 0xff), 0, 4096, (Number(page) - 1) * 4096);
  await file.close();
}

for (const mode of ["wal", "delete"] as const) {
  test(`what is rescued from a file in ${mode} mode is one file in ${mode} mode`, async (t) => {
    const path = await filledFile(t, mode);
    await damage(path);
    const report = await repair(path);
    assert.ok(report.outcome === "rescued");
    await assert.rejects(stat(`${report.file}-wal`));
    const db = new DatabaseSync(report.file, { timeout: 10_000 });
    t.after(() => db.close());
    assert.equal(db.prepare("PRAGMA journal_mode").get()?.journal_mode, mode);
  });
}

test("a damaged file is kept as it is and its readable rows are rescued into a new one", async (t) => {
  const path = await filledFile(t);
  await damage(path);
  const before = await stat(path);

  assert.equal((await repair(path, { checkOnly: true })).outcome, "damaged");
  const report = await repair(path);
  assert.equal(report.outcome, "rescued");
  if (report.outcome !== "rescued") return;
  const messages = report.rescued.find((one) => one.table === "messages");
  assert.equal(messages?.gaps, 1);
  assert.ok((messages?.rows ?? 0) >= 370 && (messages?.rows ?? 0) < 400, `${messages?.rows} rows`);
  const after = await stat(path);
  assert.deepEqual([after.size, after.mtimeMs], [before.size, before.mtimeMs]);

  assert.deepEqual(await repair(report.file), { outcome: "sound" });
  const store = await openSessionStore({
    path: report.file,
    journalMode: "auto",
    log: recordedLog(),
    clock: manualClock(),
  });
  t.after(() => store.close());
  assert.equal((await store.search("walrus", { limit: 1000 })).hits.length, messages?.rows);
  assert.equal((await store.list()).length, 2);
});

test("a file that is not there is said to be missing", async () => {
  await assert.rejects(repair("/nonexistent/state.db"), (error: StoreError) => error.code === "unavailable");
});
