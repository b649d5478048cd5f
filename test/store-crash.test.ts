// Many processes on one state.db, and processes that are killed in the middle of writing.
// A long run: node test/store-crash.test.ts --kills=200
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../src/kit/clock.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import type { SessionStore } from "../src/sessions/store.ts";
import { bundledScript } from "./support/bundled-script.ts";
import { fewer } from "./support/sample.ts";
import { recordedLog, temporaryFolder } from "./support/session-store.ts";

const writer = bundledScript("store-writer.ts");
const kills = Number(
  process.argv.find((argument) => argument.startsWith("--kills="))?.slice("--kills=".length) ?? fewer(40, 3),
);
const LANES = 2;

function startWriter(
  path: string,
  session: string,
  count: number,
  journal = "auto",
): { child: ChildProcess; said: () => readonly string[] } {
  const child = spawn(process.execPath, [writer, path, session, String(count), journal], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  // An unfinished last line was never said.
  return { child, said: () => text.split("\n").slice(0, -1) };
}

/** Reads in every way until told to stop; any failure is a failure of the test. */
function keepReading(store: SessionStore): { stop(): Promise<number> } {
  let running = true;
  let reads = 0;
  const done = (async () => {
    while (running) {
      await store.list({ limit: 5 });
      await store.search("walrus", { limit: 5 });
      await store.search("数据", { limit: 5 });
      reads++;
      await delay(50);
    }
    return reads;
  })();
  return {
    stop: () => {
      running = false;
      return done;
    },
  };
}

function assertWhole(path: string, said: readonly string[]): void {
  const db = new DatabaseSync(path, { timeout: 5000 });
  try {
    assert.deepEqual(
      db
        .prepare("PRAGMA integrity_check")
        .all()
        .map((row) => row.integrity_check),
      ["ok"],
    );
    const stored = db
      .prepare("SELECT content FROM messages")
      .all()
      .map((row) => String(row.content).split(" ")[0] ?? "");
    const known = new Set(stored);
    assert.equal(known.size, stored.length, "a row was stored twice");
    assert.deepEqual(
      said.filter((line) => !known.has(line)),
      [],
      "an acknowledged row is missing",
    );
    const counts = db
      .prepare(
        "SELECT s.id, s.message_count AS told, COUNT(m.id) AS found FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id",
      )
      .all();
    for (const row of counts) assert.equal(row.told, row.found, `counter of ${row.id}`);
  } finally {
    db.close();
  }
}

async function openHere(t: TestContext, path: string, journalMode: "auto" | "delete" = "auto"): Promise<SessionStore> {
  const store = await openSessionStore({ path, journalMode, log: recordedLog(), clock: systemClock });
  t.after(() => store.close());
  return store;
}

test("four processes write 500 messages each while another reads and copies: nothing is lost", async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, "state.db");
  const writers = ["w1", "w2", "w3", "w4"].map((session) => startWriter(path, session, 500));
  const store = await openHere(t, path);
  const reading = keepReading(store);
  const ended = Promise.all(writers.map(({ child }) => once(child, "close")));
  await delay(100);
  const copies = [join(folder, "copy-1.db"), join(folder, "copy-2.db")];
  for (const copy of copies) await store.backup(copy);
  for (const [code] of await ended) assert.equal(code, 0);
  assert.ok((await reading.stop()) > 0);
  assertWhole(
    path,
    writers.flatMap(({ said }) => said()),
  );
  assert.equal((await store.stats()).messages, 2000);
  assert.equal((await store.search("walrus", { limit: 3000 })).hits.length, 2000);
  for (const copy of copies) assertWhole(copy, []);
});

test("without a write-ahead log three processes and a reader get along too", async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  const writers = ["w1", "w2", "w3"].map((session) => startWriter(path, session, 60, "delete"));
  const store = await openHere(t, path, "delete");
  const reading = keepReading(store);
  const [victim] = writers;
  if (victim?.child.stdout) await once(victim.child.stdout, "data");
  victim?.child.kill("SIGKILL");
  await Promise.all(writers.map(({ child }) => (child.exitCode ?? child.signalCode) === null && once(child, "close")));
  for (const { child } of writers.slice(1)) assert.equal(child.exitCode, 0);
  assert.ok((await reading.stop()) > 0);
  assertWhole(
    path,
    writers.flatMap(({ said }) => said()),
  );
  assert.ok((await store.stats()).messages >= 121);
});

test("opening waits for a process that holds the file", async (t) => {
  const path = join(await temporaryFolder(t), "state.db");
  await (await openSessionStore({ path, journalMode: "delete", log: recordedLog(), clock: systemClock })).close();
  const holder = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => holder.close());
  holder.exec("BEGIN EXCLUSIVE");
  let opened = false;
  const opening = openHere(t, path, "delete").then((store) => {
    opened = true;
    return store;
  });
  await delay(200);
  assert.equal(opened, false);
  holder.exec("COMMIT");
  assert.equal((await (await opening).stats()).sessions, 0);
});

test(`a writer killed at any moment (${kills} times) loses nothing it acknowledged, and readers never fail`, async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, "state.db");
  const store = await openHere(t, path);
  const reading = keepReading(store);
  const said: string[] = [];
  const lane = async (name: string, rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      const { child, said: lines } = startWriter(path, name, 0);
      if (child.stdout) await once(child.stdout, "data");
      await delay(Math.random() * 12);
      child.kill("SIGKILL");
      await once(child, "close");
      said.push(...lines());
      assertWhole(path, lines());
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, n) => lane(`lane${n}`, Math.ceil(kills / LANES))));
  assert.ok((await reading.stop()) > 0);
  assertWhole(path, said);
  assert.ok(said.length >= kills);
  for (const fact of await store.health()) assert.ok(fact.ok, fact.text);
});
