import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { manualClock, temporaryStore } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { Connection } from "./connection.ts";
import type { StoreError } from "./store.ts";
import { waitWhileBusy } from "./write-queue.ts";

const busy = () => Object.assign(new Error("database is locked"), { errcode: 5 });

test("a write waits for another process as long as its kind allows, then says who holds the file", async () => {
  const db = new Connection({ path: ":memory:" });
  for (const timeoutMs of [500, 20_000, 60_000]) {
    const clock = manualClock(0);
    let told = 0;
    await assert.rejects(
      waitWhileBusy({ db, clock, timeoutMs, onBusy: () => told++ }, () => {
        throw busy();
      }),
      (error: StoreError) => error.code === "busy" && /another hermes process/.test(error.message),
    );
    assert.ok(clock.ms >= timeoutMs && clock.ms <= timeoutMs + 1000, `${timeoutMs}: waited ${clock.ms}`);
    assert.equal(told, timeoutMs > 3000 ? 1 : 0);
  }
  db.close();
});

test("any other failure is final at once", async () => {
  const db = new Connection({ path: ":memory:" });
  let attempts = 0;
  await assert.rejects(
    waitWhileBusy({ db, clock: manualClock(), timeoutMs: 60_000 }, () => {
      attempts++;
      throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
    }),
    (error: StoreError) => error.code === "full",
  );
  assert.equal(attempts, 1);
  db.close();
});

test("while a write waits the event loop runs, and it is stored once the other lets go", async (t) => {
  const { store, path } = await temporaryStore(t, { clock: systemClock });
  await store.create({ id: "a" });
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec("BEGIN IMMEDIATE");
  const append = store.append("a", [{ role: "user", content: "patience" }]);
  let ticks = 0;
  const timer = setInterval(() => {
    if (++ticks === 5) other.exec("COMMIT");
  }, 5);
  await append;
  clearInterval(timer);
  assert.ok(ticks >= 5);
  assert.equal((await store.load("a")).length, 1);
});

test("writes land in the order they were asked for", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await Promise.all(Array.from({ length: 30 }, (_, n) => store.append("a", [{ role: "user", content: String(n) }])));
  assert.deepEqual(
    (await store.load("a")).map((message) => message.content),
    Array.from({ length: 30 }, (_, n) => String(n)),
  );
});

test("a write that fails leaves nothing behind and the next one goes through", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const broken = { role: null, content: "x" } as never; // a role is what the table demands
  await assert.rejects(
    store.append("a", [{ role: "user", content: "half" }, broken]),
    (error: StoreError) => error.code === "invalid",
  );
  assert.deepEqual(await store.load("a"), []);
  assert.equal((await store.get("a"))?.messageCount, 0);
  await store.append("a", [{ role: "user", content: "whole" }]);
  assert.equal((await store.get("a"))?.messageCount, 1);
});

test("a sign of life is skipped while the database is busy", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec("BEGIN IMMEDIATE");
  await store.touch("a");
  other.exec("COMMIT");
  assert.equal((await store.get("a"))?.lastActivityAt, null);
  await store.touch("a");
  assert.notEqual((await store.get("a"))?.lastActivityAt, null);
});

test("what is asked for at once shares a transaction; one that fails takes no other along", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const other = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  t.after(() => other.close());
  const version = () => Number(other.prepare("PRAGMA data_version").get()?.data_version);
  const before = version();
  await Promise.all([
    store.setValue("a", "one", 1),
    store.setValue("a", "two", 2),
    store.append("a", [{ role: "user", content: "three" }]),
  ]);
  assert.equal(version(), before + 1);
  const broken = { role: null, content: "x" } as never; // a role is what the table demands
  const [first, refused, last] = await Promise.allSettled([
    store.setValue("a", "one", 11),
    store.append("a", [broken]),
    store.append("a", [{ role: "user", content: "four" }]),
  ]);
  assert.deepEqual([first.status, refused.status, last.status], ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(await store.getValue("a", "one"), 11);
  assert.deepEqual(
    (await store.load("a")).map(({ content }) => content),
    ["three", "four"],
  );
});

test("whoever reads sees what was asked to be written before", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const written = store.append("a", [{ role: "user", content: "said" }]);
  assert.equal((await store.load("a")).length, 1);
  await written;
});
