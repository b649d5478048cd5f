import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { manualClock, recordedLog, temporaryStore } from "../../test/support/session-store.ts";
import { findDamage } from "./connection.ts";
import { openSessionStore } from "./open.ts";
import { restoreDatabase } from "./repair.ts";
import type { StoreError } from "./store.ts";

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

  await restoreDatabase({ from: saved, to: path });
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
  for (const from of [bad, join(folder, "missing.db")]) await assert.rejects(restoreDatabase({ from, to: path }));
  assert.ok(await store.get("a"));
});
