import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { laneConformance } from "../../test/support/lane-conformance.ts";
import { makeOriginalDatabase, ORIGINAL_VERSIONS } from "../../test/support/original-database.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { holderInWords, holdLane, Lane, newHolder } from "./lanes.ts";
import { openSessionStore } from "./open.ts";
import { type SessionStore, StoreError } from "./store.ts";

async function open(t: TestContext) {
  const made = await temporaryStore(t);
  const { path, log, clock } = made;
  const db = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => db.close());
  const another = async () => {
    const store = await openSessionStore({ path, journalMode: "auto", log, clock });
    t.after(() => store.close());
    return store;
  };
  const passTime = (seconds: number) => {
    db.prepare("UPDATE lanes SET expires = expires - ?1, prefer_until = prefer_until - ?1").run(seconds);
  };
  return { ...made, db, another, passTime };
}

laneConformance("SQLite", open);

const user = (content: string) => ({ role: "user", content }) as const;

/** Waits for what must come; a busy machine only takes longer. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(20);
}

test("a lane that is held is renewed while it lasts, and free for others when it is released", async (t) => {
  const { store, log, another, db } = await open(t);
  const expires = () => Number(db.prepare("SELECT expires FROM lanes WHERE lane = 'a'").get()?.expires);
  const held = await holdLane(store, "a", { log, seconds: 6 });
  assert.ok(held.type === "taken");
  const first = expires();
  await until(() => expires() > first);
  const other = await another();
  const answer = await holdLane(other, "a", { log });
  assert.ok(answer.type === "held" && answer.by === held.lease.holder, "two of one process exclude each other");
  await held.release();
  const next = await holdLane(other, "a", { log });
  assert.ok(next.type === "taken");
  assert.equal(next.lease.token, 2);
  await held.release();
  assert.equal((await store.takeLane("a", "x:1:y")).type, "held", "a second release frees nothing");
  await next.release();
  assert.equal(held.lost.aborted, false);
});

test("whoever holds a lane learns that it was lost, and stops renewing", async (t) => {
  const { store, log, passTime } = await open(t);
  let renewals = 0;
  const counted = {
    ...store,
    renewLane: (...args: Parameters<typeof store.renewLane>) => {
      renewals++;
      return store.renewLane(...args);
    },
  };
  const held = await holdLane(counted, "a", { log, seconds: 0.3 });
  assert.ok(held.type === "taken");
  passTime(60);
  assert.equal((await store.takeLane("a", "elsewhere:1:x")).type, "taken");
  await until(() => held.lost.aborted);
  assert.ok(held.lost.reason instanceof StoreError && held.lost.reason.code === "moved");
  const after = renewals;
  await delay(300);
  assert.equal(renewals, after);
  await held.release();
  assert.equal((await store.takeLane("a", "x:1:y")).type, "held");
  assert.deepEqual(log.lines, []);
});

test("a renewal that fails is told and tried again", async (t) => {
  const { store, log } = await open(t);
  let renewals = 0;
  const troubled = {
    ...store,
    renewLane: (...args: Parameters<typeof store.renewLane>) =>
      ++renewals === 1 ? Promise.reject(new StoreError("busy", "the file is held")) : store.renewLane(...args),
  };
  const held = await holdLane(troubled, "a", { log, seconds: 0.3 });
  assert.ok(held.type === "taken");
  await until(() => renewals >= 3);
  await held.release();
  assert.equal(held.lost.aborted, false);
  assert.equal(log.lines.filter((line) => /could not be renewed/.test(line)).length, 1);
});

test("who waits for a lane gets it when it is free, or is told who has it", async (t) => {
  const { store, log } = await open(t);
  const first = await holdLane(store, "a", { log });
  assert.ok(first.type === "taken");
  const told = await holdLane(store, "a", { log, wait: { ms: 300, clock: systemClock } });
  assert.ok(told.type === "held" && told.by === first.lease.holder);
  const waiting = holdLane(store, "a", { log, wait: { ms: 10_000, clock: systemClock } });
  await delay(100);
  await first.release();
  const second = await waiting;
  assert.ok(second.type === "taken");
  const given = new AbortController();
  const third = holdLane(store, "a", { log, wait: { ms: 10_000, clock: systemClock, signal: given.signal } });
  given.abort();
  await assert.rejects(third, { name: "AbortError" });
  await second.release();
});

/** Everything that changes a conversation, without a word of leases. */
const WRITES: Readonly<Record<string, (store: SessionStore, id: string, row: number) => Promise<unknown>>> = {
  append: (store, id) => store.append(id, [user("x")]),
  replace: (store, id) => store.replace(id, [user("x")]),
  rewind: (store, id, row) => store.rewind(id, row),
  setApiContent: (store, _, row) => store.setApiContent(row, "x"),
  setPrompt: (store, id) => store.setPrompt(id, { prompt: "x", stableChars: 1, fingerprint: null }),
  setValue: (store, id) => store.setValue(id, "key", "x"),
  update: (store, id) => store.update(id, { model: "x" }),
  end: (store, id) => store.end(id, "cli_close"),
  branch: (store, id) => store.branch(id, "copy", { title: "aside" }),
  leaseCompression: (store, id) => store.leaseCompression(id, { seconds: 60 }),
  continueAfterCompression: (store, id) => store.continueAfterCompression(id, [user("x")]),
  undoCompression: (store, id) => store.undoCompression(id),
};

for (const [name, write] of Object.entries(WRITES)) {
  test(`${name} through the store of a lane is done while it is held, and refused once somebody else took it`, async (t) => {
    const { store, log, passTime } = await open(t);
    await store.create({ id: "a" });
    const lane = new Lane(store, log);
    const held = await lane.hold("a");
    assert.ok(held.type === "taken");
    const tip = await lane.store.continueAfterCompression("a", [user("one")]);
    const row = (await store.load(tip))[0]?.id ?? 0;
    passTime(61);
    const other = await store.takeLane("a", "elsewhere:1:x");
    assert.ok(other.type === "taken");
    await assert.rejects(write(lane.store, tip, row), { code: "moved" });
    await store.releaseLane(other.lease);
    await held.release();
    const again = await lane.hold("a");
    assert.ok(again.type === "taken");
    assert.notEqual(await write(lane.store, tip, row), null);
    await again.release();
  });
}

test("between two holds the store of a lane writes without a lease", async (t) => {
  const { store, log } = await open(t);
  await store.create({ id: "a" });
  const lane = new Lane(store, log);
  const held = await lane.hold("a");
  assert.ok(held.type === "taken");
  await held.release();
  assert.equal((await store.takeLane("a", "elsewhere:1:x")).type, "taken");
  await lane.store.end("a", "cli_close");
  assert.equal((await store.get("a"))?.endReason, "cli_close");
});

test("a lane knows whether somebody else held it since it did", async (t) => {
  const { store, log, another } = await open(t);
  await store.create({ id: "a" });
  let fails = false;
  const troubled = {
    ...store,
    releaseLane: (...args: Parameters<typeof store.releaseLane>) =>
      fails ? Promise.reject(new StoreError("busy", "the disk is full")) : store.releaseLane(...args),
  };
  const mine = new Lane(troubled, log);
  const theirs = new Lane(await another(), log);
  const use = async (lane: Lane) => {
    const held = await lane.hold("a");
    assert.ok(held.type === "taken");
    await held.release();
    return held.othersWrote;
  };
  assert.equal(await use(mine), false, "nothing of it was in memory yet");
  assert.equal(await use(mine), false);
  fails = true;
  assert.equal(await use(mine), false);
  fails = false;
  assert.equal(await use(mine), false, "it was never given back");
  assert.equal(await use(mine), false);
  assert.equal(await use(theirs), false);
  assert.equal(await use(mine), true);
  assert.equal(await use(mine), false);
});

const ODD_ROWS: readonly (readonly [what: string, token: unknown, expires: unknown])[] = [
  ["a counter that JavaScript cannot hold", 2n ** 63n - 1n, 0],
  ["the last counter that JavaScript can hold", 2n ** 53n - 1n, 0],
  ["a counter far below zero", -(2n ** 63n), 0],
  ["a counter in words", "many", 0],
  ["a counter of bytes", new Uint8Array([0, 255]), 0],
  ["a counter without end", 1e300, 0],
  ["an end in words", 1, "forever"],
  ["an end of bytes", 1, new Uint8Array([1])],
  ["no end", 1, Number.POSITIVE_INFINITY],
  ["an end years ahead, of a clock that was wrong", 1, 9e9],
];

for (const [what, token, expires] of ODD_ROWS) {
  test(`a lane with ${what} can be taken, renewed and given back`, async (t) => {
    const { store, db } = await open(t);
    db.prepare("INSERT INTO lanes (lane, holder, token, expires) VALUES ('a', 'elsewhere:1:x', ?, ?)").run(
      ...([token, expires] as [bigint, number]), // SQLite takes any value in any column
    );
    for (const holder of ["x:1:y", "x:1:z"]) {
      const answer = await store.takeLane("a", holder);
      assert.ok(answer.type === "taken");
      await store.renewLane(answer.lease);
      assert.equal((await store.takeLane("a", "x:1:other")).type, "held");
      await store.releaseLane(answer.lease);
    }
  });
}

test("a holder is named in one short line of plain text, whatever its row says", () => {
  const cases = [
    ["elsewhere:77:x", "process 77 on elsewhere"],
    ["elsewhere/0f3c2a91.4026531836:77:x", "process 77 on elsewhere"],
    [newHolder(), `process ${process.pid}`],
    ["\u001b]0;title\u0007\u001b[31mevil\u009b2J\r\n\u202e:77:x", "process 77 on evil"],
    ["\u001b[2J", "another process"],
    ["no\nname\u2028 at all", "noname at all"],
  ] as const;
  for (const [holder, words] of cases) assert.equal(holderInWords(holder), words);
  assert.equal([...holderInWords(`${"😀".repeat(100_000)}:12:x`)].length, 80);
});

test("whoever goes on in a conversation that was deleted is told what to do", async (t) => {
  const { store, log } = await open(t);
  await store.create({ id: "a" });
  await store.delete("a");
  const lane = new Lane(store, log);
  const held = await lane.hold("a");
  assert.ok(held.type === "taken");
  await assert.rejects(lane.store.append("a", [user("x")]), {
    message: "session a does not exist; nothing was saved. Start another one with /new.",
  });
  await held.release();
});

test("a copy in memory begins without the leases of the file", async (t) => {
  const { store, path, log, clock } = await open(t);
  await store.takeLane("a", "elsewhere:1:x");
  const memory = await openSessionStore({ path, journalMode: "auto", log, clock, inMemory: true });
  t.after(() => memory.close());
  assert.equal((await memory.takeLane("a", "here:1:x")).type, "taken");
  assert.equal((await store.takeLane("a", "here:1:x")).type, "held");
});

test("lanes that were taken for conversations which never began are forgotten after a day", async (t) => {
  const { store, db, passTime } = await open(t);
  await store.create({ id: "a" });
  for (const id of ["a", "never", "released"]) await store.takeLane(id, "x:1:y");
  await store.releaseLane({ lane: "released", holder: "x:1:y", token: 1 });
  const lanes = () =>
    db
      .prepare("SELECT lane FROM lanes ORDER BY lane")
      .all()
      .map(({ lane }) => lane);
  const prune = () => store.autoPrune({ retentionDays: 90, minIntervalHours: 0, vacuum: false });
  await prune();
  assert.deepEqual(lanes(), ["a", "never", "released"]);
  passTime(87_400);
  await prune();
  assert.deepEqual(lanes(), ["a"]);
});

test("a compression of the original holds ours off, and ours the original's", async (t) => {
  const { store, db, clock } = await open(t);
  db.exec(
    "CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL)",
  );
  await store.create({ id: "a" });
  const lock = () => db.prepare("SELECT holder, expires_at FROM compression_locks WHERE session_id = 'a'").get();
  const lease = await store.leaseCompression("a", { seconds: 60 });
  assert.ok(lease);
  assert.match(String(lock()?.holder), new RegExp(`^pid=${process.pid}:`));
  assert.equal(lock()?.expires_at, clock.now() / 1000 + 60);
  await lease.release();
  assert.equal(lock(), undefined);

  const theirs = (holder: string, seconds: number) =>
    db
      .prepare("INSERT OR REPLACE INTO compression_locks VALUES ('a', ?, 0, ?)")
      .run(holder, clock.now() / 1000 + seconds);
  theirs(`pid=${process.pid}:original`, 60);
  assert.equal(await store.leaseCompression("a"), null);
  assert.equal((await store.takeLane("a", "x:1:y")).type, "taken", "the lane is left as it was");
  await store.releaseLane({ lane: "a", holder: "x:1:y", token: 2 });
  theirs(`pid=${process.pid}:original`, -1);
  await (await store.leaseCompression("a"))?.release();
  assert.equal(lock(), undefined, "an expired lock is taken");
  theirs(`pid=${spawnSync(process.execPath, ["-e", ""]).pid}:original`, 60);
  assert.ok(await store.leaseCompression("a"), "a dead process holds nothing");
});

for (const version of ORIGINAL_VERSIONS) {
  test(`lanes are added to a file of the original's ${version}`, async (t) => {
    const { folder, log, clock } = await temporaryStore(t);
    const file = `${folder}/original.db`;
    makeOriginalDatabase(file, version);
    const store = await openSessionStore({ path: file, journalMode: "auto", log, clock });
    t.after(() => store.close());
    const answer = await store.takeLane("20250101_110000_bbbbbb", "x:1:y");
    assert.ok(answer.type === "taken" && answer.lease.lane === "20250101_100000_aaaaaa");
  });
}
