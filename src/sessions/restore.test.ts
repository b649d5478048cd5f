import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { manualClock, recordedLog, temporaryStore } from "../../test/support/session-store.ts";
import { findDamage } from "./connection.ts";
import { openSessionStore } from "./open.ts";
import { restoreDatabase } from "./repair.ts";
import type { StoreError } from "./store.ts";

const clock = manualClock();
const restore = (from: string, to: string, keepAs: string) =>
  restoreDatabase({ from, to, keepAs, log: recordedLog(), clock });

/** A copy with one session, "saved", and the closed database it was made of, which has another one by now. */
async function savedAndChanged(t: TestContext, journalMode: "wal" | "delete" = "wal") {
  const { store, folder, path } = await temporaryStore(t, { journalMode });
  await store.create({ id: "saved" });
  const saved = join(folder, "saved.db");
  await store.backup(saved);
  await store.create({ id: "later" });
  await store.close();
  return { saved, path, kept: join(folder, "kept.db") };
}

function idsIn(path: string): unknown[] {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  try {
    return db
      .prepare("SELECT id FROM sessions ORDER BY id")
      .all()
      .map(({ id }) => id);
  } finally {
    db.close();
  }
}

function pragma(path: string, sql: string): unknown {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  try {
    return Object.values(db.prepare(`PRAGMA ${sql}`).get() ?? {})[0];
  } finally {
    db.close();
  }
}

const writer = fileURLToPath(new URL("../../test/support/store-writer.ts", import.meta.url));

test("a restored database holds what was saved and nothing of the write-ahead log it found there", async (t) => {
  const { store, folder, path } = await temporaryStore(t);
  await store.create({ id: "saved" });
  await store.append("saved", [{ role: "user", content: "the walrus" }]);
  const saved = join(folder, "saved.db");
  await store.backup(saved);
  await assert.rejects(store.backup(saved), (error: StoreError) => error.code === "conflict");
  await store.close();
  // A process that dies leaves its log behind.
  const child = spawn(process.execPath, [writer, path, "later", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "close");
  assert.ok((await stat(`${path}-wal`)).size > 0);

  assert.equal(await restore(saved, path, join(folder, "kept.db")), true);
  assert.deepEqual(idsIn(join(folder, "kept.db")), ["later", "saved"], "what was there is kept");
  assert.equal((await stat(join(folder, "kept.db"))).mode & 0o077, 0);
  const again = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: manualClock() });
  t.after(() => again.close());
  assert.equal(await again.get("later"), null);
  assert.equal((await again.search("walrus")).hits.length, 1);
  assert.deepEqual(findDamage(path, "full"), []);
});

test("a damaged or missing copy is not restored", async (t) => {
  const { store, folder, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const bad = join(folder, "bad.db");
  await writeFile(bad, "not a database at all ".repeat(300));
  await store.close();
  const other = join(folder, "other.db");
  new DatabaseSync(other, { timeout: 10_000 }).exec("CREATE TABLE recipes (name TEXT)");
  for (const [from, words] of [
    [bad, /bad\.db cannot be read/],
    [join(folder, "missing.db"), /no such file/],
    [other, /is not a database of conversations/],
    [path, /is the database in use/],
  ] as const) {
    await assert.rejects(restore(from, path, join(folder, "kept.db")), words);
  }
  await assert.rejects(stat(join(folder, "kept.db")));
  assert.deepEqual(idsIn(path), ["a"]);
});

test("nothing is restored while somebody else has the database open", async (t) => {
  for (const mode of ["wal", "delete"] as const) {
    const { saved, path, kept } = await savedAndChanged(t, mode);
    const other = new DatabaseSync(path, { timeout: 10_000 });
    other.exec(mode === "wal" ? "SELECT 1 FROM sessions" : "BEGIN IMMEDIATE");
    await assert.rejects(restore(saved, path, kept), (error: StoreError) => error.code === "busy");
    other.close();
    assert.deepEqual(idsIn(path), ["later", "saved"]);
    assert.equal(pragma(path, "journal_mode"), mode);
    assert.equal(await restore(saved, path, kept), true);
    assert.deepEqual(idsIn(path), ["saved"]);
  }
});

test("a restored database has the journal mode of the one whose place it takes, whatever its pages are like", async (t) => {
  for (const mode of ["wal", "delete"] as const) {
    const { saved, path, kept } = await savedAndChanged(t, mode);
    pragma(saved, `journal_mode=delete`);
    const copy = new DatabaseSync(saved, { timeout: 10_000 });
    copy.exec("PRAGMA page_size=8192; VACUUM");
    copy.close();
    if (mode === "delete") pragma(saved, "journal_mode=wal");
    await restore(saved, path, kept);
    assert.equal(pragma(path, "journal_mode"), mode);
    assert.equal(pragma(path, "page_size"), 8192);
    assert.deepEqual(idsIn(path), ["saved"]);
  }
});

test("a database that cannot be read is kept byte for byte and replaced, a missing one is made", async (t) => {
  const { saved, path, kept } = await savedAndChanged(t);
  const garbage = "not a database at all ".repeat(300);
  await writeFile(path, garbage);
  assert.equal(await restore(saved, path, kept), true);
  assert.equal(await readFile(kept, "utf8"), garbage);
  assert.deepEqual(idsIn(path), ["saved"]);
  const elsewhere = `${path}.new`;
  assert.equal(await restore(saved, elsewhere, `${kept}.new`), false);
  assert.deepEqual(idsIn(elsewhere), ["saved"]);
  assert.equal(pragma(elsewhere, "journal_mode"), "wal");
  assert.equal((await stat(elsewhere)).mode & 0o077, 0);
});
