import assert from "node:assert/strict";
import { readdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { manualClock, recordedLog, temporaryFolder, temporaryStore } from "../../test/support/session-store.ts";
import { Connection, journalMode, settleJournal, storeError, walIsSafe } from "./connection.ts";
import { openSessionStore } from "./open.ts";
import { StoreError } from "./store.ts";

const versions: readonly (readonly [version: string, safe: boolean])[] = [
  ["3.44.5", false],
  ["3.44.6", true],
  ["3.45.0", false],
  ["3.50.6", false],
  ["3.50.7", true],
  ["3.51.2", false],
  ["3.51.3", true],
  ["3.52.0", true],
  ["4.0.0", true],
];
for (const [version, safe] of versions) {
  test(`SQLite ${version} is ${safe ? "" : "not "}trusted with a shared write-ahead log`, () => {
    assert.equal(walIsSafe(version), safe);
  });
}

test("a new file becomes WAL only where that is safe; one that is WAL stays so", async (t) => {
  const folder = await temporaryFolder(t);
  const log = recordedLog();
  const open = (name: string) => {
    const db = new Connection({ path: join(folder, name) });
    t.after(() => db.close());
    return db;
  };
  assert.equal(settleJournal(open("unsafe.db"), "auto", "3.50.2", log), "delete");
  assert.equal(settleJournal(open("safe.db"), "auto", "3.51.3", log), "wal");
  assert.equal(settleJournal(open("safe.db"), "auto", "3.50.2", log), "wal");
  assert.equal(settleJournal(open("forced.db"), "wal", "3.50.2", log), "wal");
  assert.equal(settleJournal(open("plain.db"), "delete", "3.51.3", log), "delete");
  assert.equal(journalMode(open("plain.db")), "delete");
});

test("a database that is there keeps its journal mode, unless the settings name another", async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  const original = new DatabaseSync(path, { timeout: 10_000 });
  original.exec("PRAGMA journal_mode=DELETE; CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL)");
  original.close();
  const modeAfter = async (journalMode: "auto" | "wal" | "delete") => {
    const store = await openSessionStore({ path, journalMode, log: recordedLog(), clock: manualClock() });
    await store.create({ id: journalMode + Math.random() });
    await store.close();
    const db = new DatabaseSync(path, { timeout: 10_000 });
    try {
      return db.prepare("PRAGMA journal_mode").get()?.journal_mode;
    } finally {
      db.close();
    }
  };
  const seen: unknown[] = [];
  for (const request of ["auto", "wal", "auto", "delete", "auto"] as const) seen.push(await modeAfter(request));
  assert.deepEqual(seen, ["delete", "wal", "wal", "delete", "delete"]);
});

test("a new database and its log files are the owner's alone", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const names = (await readdir(join(path, ".."))).filter((name) => name.includes(".db"));
  for (const name of names) assert.equal((await stat(join(path, "..", name))).mode & 0o077, 0, name);
});

test("a file that is replaced while it is open is not written any more", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await rename(path, `${path}.away`);
  await assert.rejects(store.create({ id: "b" }), (error: StoreError) => error.code === "moved");
  await writeFile(path, "");
  await assert.rejects(store.create({ id: "b" }), (error: StoreError) => error.code === "moved");
  await rename(`${path}.away`, path);
  await store.create({ id: "b" });
});

test("every failure of SQLite is told with its place and a way out", async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, "x.db");
  const failing: readonly (readonly [StoreError["code"], () => void])[] = [
    [
      "full",
      () => {
        const db = new DatabaseSync(path, { timeout: 10_000 });
        db.exec("CREATE TABLE IF NOT EXISTS t(x); PRAGMA max_page_count=2");
        try {
          db.prepare("INSERT INTO t VALUES (zeroblob(100000))").run();
        } finally {
          db.close();
        }
      },
    ],
    ["read_only", () => new DatabaseSync(path, { readOnly: true, timeout: 10_000 }).exec("CREATE TABLE u(x)")],
    ["unavailable", () => new DatabaseSync(join(folder, "nowhere", "x.db"), { timeout: 10_000 })],
    [
      "busy",
      () => {
        const holder = new DatabaseSync(path, { timeout: 10_000 });
        holder.exec("BEGIN IMMEDIATE");
        try {
          new DatabaseSync(path, { timeout: 10_000 }).exec("BEGIN IMMEDIATE");
        } finally {
          holder.close();
        }
      },
    ],
  ];
  for (const [code, fail] of failing) {
    assert.throws(
      () => {
        try {
          fail();
        } catch (error) {
          throw storeError(error, path);
        }
      },
      (error: unknown) => error instanceof StoreError && error.code === code && error.message.includes(path),
      code,
    );
  }
});
