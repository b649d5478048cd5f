import assert from "node:assert/strict";
import { copyFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { makeOriginalDatabase } from "../../test/support/original-database.ts";
import { manualClock, recordedLog, temporaryFolder, temporaryStore } from "../../test/support/session-store.ts";
import type { CallRecord } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { openSessionStore } from "./open.ts";
import { repairDatabase } from "./repair.ts";
import type { SessionStore } from "./store.ts";

const call: CallRecord = {
  ...{ task: "main", sessionId: "a", model: "m", provider: "p", baseUrl: "http://x", apiMode: "chat_completions" },
  ...{ startedAt: 1_767_355_200, ms: 12, outcome: "ok", inputTokens: 10, outputTokens: 5, cacheReadTokens: 3 },
  ...{ cacheWriteTokens: null, reasoningTokens: 2, costUsd: 0.25, costStatus: "estimated", costSource: "snapshot" },
};

const asks = (step: number, path = `walrus-${step}.txt`): HistoryMessage => ({
  role: "assistant",
  content: null,
  tool_calls: [
    { id: `c${step}`, type: "function", function: { name: "read_file", arguments: JSON.stringify({ path }) } },
  ],
});
const result = (step: number, content = `line of the walrus ${step}`): HistoryMessage => ({
  ...{ role: "tool", tool_call_id: `c${step}`, name: "read_file", tool_name: "read_file", content },
});

async function step(store: SessionStore, at: number, id = "a"): Promise<void> {
  const booked = store.recordCall({ ...call, sessionId: id });
  await store.append(id, [asks(at)], { midTurn: true });
  await booked;
  await store.append(id, [result(at)], { midTurn: true });
}

async function open(t: TestContext, path: string, options: { readOnly?: boolean } = {}): Promise<SessionStore> {
  const log = recordedLog();
  const store = await openSessionStore({ path, journalMode: "auto", log, clock: manualClock(), ...options });
  t.after(() => store.close());
  return store;
}

/** The file as a process leaves it that is killed now. */
async function afterKill(t: TestContext, path: string): Promise<string> {
  const copy = `${await temporaryFolder(t)}/state.db`;
  for (const end of ["", "-wal"]) copyFileSync(path + end, copy + end);
  return copy;
}

function raw<T>(path: string, ask: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { timeout: 5000 });
  try {
    return ask(db);
  } finally {
    db.close();
  }
}

const looseRows = (path: string) =>
  raw(path, (db) => db.prepare("SELECT COUNT(*) AS n FROM messages WHERE loose = 1").get()?.n);

/** What is made out of rows is what the rows say. */
function assertLevel(path: string): void {
  raw(path, (db) => {
    for (const table of ["messages_fts", "messages_fts_trigram"])
      db.exec(`INSERT INTO ${table}(${table}, rank) VALUES ('integrity-check', 1)`);
    const told = db.prepare(
      "SELECT id, message_count AS messages, tool_call_count AS calls, api_call_count AS asked, input_tokens AS tokens FROM sessions ORDER BY id",
    );
    const found = db.prepare(
      `SELECT id, (SELECT COUNT(*) FROM messages WHERE session_id = s.id AND active = 1) AS messages,
         (SELECT COALESCE(SUM(json_array_length(tool_calls)), 0) FROM messages WHERE session_id = s.id AND active = 1) AS calls,
         (SELECT COUNT(*) FROM model_calls WHERE session_id = s.id) AS asked,
         (SELECT COALESCE(SUM(input_tokens), 0) FROM model_calls WHERE session_id = s.id) AS tokens
       FROM sessions s ORDER BY id`,
    );
    assert.deepEqual(told.all(), found.all());
    assert.deepEqual(
      ["messages", "model_calls"].map((table) => db.prepare(`SELECT 1 FROM ${table} WHERE loose = 1`).get()),
      [undefined, undefined],
    );
  });
}

test("in the middle of a turn the rows are on disk, and whoever asks sees them counted and found", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await step(store, 1);
  assert.equal(looseRows(path), 2);
  assert.equal((await store.search("walrus")).hits.length, 2);
  assert.equal(looseRows(path), 0);
  await step(store, 2);
  const session = await store.get("a");
  assert.deepEqual([session?.messageCount, session?.apiCallCount, session?.inputTokens], [4, 2, 20]);
  await step(store, 3);
  assert.equal((await store.list())[0]?.messageCount, 6);
  await step(store, 4);
  // The price of the last answer comes along with it.
  await Promise.all([store.recordCall(call), store.append("a", [{ role: "assistant", content: "done" }])]);
  assertLevel(path);
});

test("rows that say they are older do not make a conversation look forsaken", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [{ role: "user", content: "go" }]);
  const before = (await store.get("a"))?.lastActivityAt;
  await store.append("a", [{ ...asks(1), timestamp: 1000 }], { midTurn: true });
  assert.equal((await store.get("a"))?.lastActivityAt, before);
  assert.equal((await store.get("a"))?.messageCount, 2);
});

test("where the loose rows begin is looked for from the first row, if nobody can read what is noted of it", async (t) => {
  for (const note of ["{", '{"messages": "few"}']) {
    const { store, path } = await temporaryStore(t);
    await store.create({ id: "a" });
    await step(store, 1);
    const left = await afterKill(t, path);
    raw(left, (db) => db.prepare("UPDATE state_meta SET value = ? WHERE key LIKE '%loose%'").run(note));
    const next = await open(t, left);
    assert.equal((await next.search("walrus")).hits.length, 2, note);
    assertLevel(left);
  }
});

test("a process that was killed leaves its newest rows to the next one, which finds and counts them", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  for (let at = 0; at < 5; at++) await step(store, at);
  const left = await afterKill(t, path);
  assert.equal(looseRows(left), 10);
  const reader = await open(t, left, { readOnly: true });
  assert.equal((await reader.load("a")).length, 10);
  assert.equal((await reader.search("walrus")).hits.length, 10, "also where nothing can be written");
  const next = await open(t, left);
  assert.equal((await next.search("walrus")).hits.length, 10);
  assert.equal((await next.get("a"))?.messageCount, 10);
  assertLevel(left);
});

test("a repair of what a killed process left finds nothing to repair", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await step(store, 1);
  const left = await afterKill(t, path);
  const said: string[] = [];
  await repairDatabase({ path: left, clock: manualClock(), log: recordedLog(), onProgress: (text) => said.push(text) });
  assert.deepEqual(
    said.filter((text) => text.includes("rebuilding")),
    [],
  );
  assertLevel(left);
});

test("two processes settle each other's rows, and none is counted twice", async (t) => {
  const { store, path } = await temporaryStore(t);
  const other = await open(t, path);
  await store.create({ id: "a" });
  await store.create({ id: "b" });
  for (let at = 0; at < 4; at++) {
    await Promise.all([step(store, at), step(other, at, "b")]);
    if (at % 2 === 1) assert.equal((await other.search("walrus")).hits.length, 4 * (at + 1));
  }
  await Promise.all([store.close(), other.close()]);
  assertLevel(path);
});

test("whatever happens between rows of a turn, index and counters say in the end what the rows say", async (t) => {
  const actions = fc.constantFrom(
    "step",
    "answer",
    "rewind",
    "replace",
    "amend",
    "search",
    "delete",
    "rebuild",
    "other",
  );
  await fc.assert(
    fc.asyncProperty(fc.array(actions, { maxLength: 14 }), async (plan) => {
      const folder = await temporaryFolder(t);
      const path = `${folder}/state.db`;
      const settings = { path, journalMode: "auto" as const, log: recordedLog(), clock: manualClock() };
      const store = await openSessionStore(settings);
      await store.create({ id: "a" });
      await store.create({ id: "b" });
      for (const [at, action] of plan.entries()) {
        const last = (await store.load("a")).at(-1);
        if (action === "step") await step(store, at);
        else if (action === "answer") await store.append("a", [{ role: "assistant", content: `answer ${at}` }]);
        else if (action === "rewind" && last) await store.rewind("a", last.id);
        else if (action === "replace") await store.replace("a", [{ role: "user", content: `again ${at}` }]);
        else if (action === "amend" && last) await store.setApiContent(last.id, "sent otherwise");
        else if (action === "search") await store.search("walrus");
        else if (action === "other") await step(store, at, "b");
        else if (action === "delete" && last)
          raw(path, (db) => db.prepare("DELETE FROM messages WHERE id = ?").run(last.id));
        else if (action === "rebuild")
          raw(path, (db) => db.exec("INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')"));
        // What is deleted behind our back is counted by nobody.
        if (action === "delete") await store.append("a", []);
        if (action === "delete")
          raw(path, (db) =>
            db.exec(
              `UPDATE sessions SET message_count = (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id AND active = 1),
                 tool_call_count = (SELECT COALESCE(SUM(json_array_length(tool_calls)), 0) FROM messages m WHERE m.session_id = sessions.id AND active = 1)`,
            ),
          );
      }
      await store.close();
      assertLevel(path);
    }),
    { numRuns: 25, examples: [[["step", "rebuild", "delete", "step", "amend"]]] },
  );
});

test("a file whose search index the original keeps never has loose rows", async (t) => {
  for (const version of ["v0.15", "v0.20"] as const) {
    const path = `${await temporaryFolder(t)}/state.db`;
    makeOriginalDatabase(path, version);
    const store = await open(t, path);
    await store.ensure({ id: "a" });
    await step(store, 1);
    assert.equal(looseRows(path), 0, version);
  }
});

test("a file of an earlier version of ours gets triggers that know loose rows, and keeps its index", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [{ role: "user", content: "the walrus of before" }]);
  await store.close();
  raw(path, (db) => {
    db.exec("DROP INDEX idx_calls_session; DROP INDEX idx_calls_started");
    db.exec("CREATE INDEX idx_model_calls_session ON model_calls(session_id)");
    for (const { name, sql } of db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()) {
      db.exec(`DROP TRIGGER ${name}`);
      db.exec(String(sql).replace(/ WHEN (?:new|old)\.loose IS NULL(?: OR EXISTS \([^)]*\))?/, ""));
    }
    for (const table of ["messages", "model_calls"]) db.exec(`ALTER TABLE ${table} DROP COLUMN loose`);
  });
  const again = await open(t, path);
  await step(again, 1);
  assert.equal(looseRows(path), 2);
  assert.equal((await again.search("walrus")).hits.length, 3);
  assertLevel(path);
});

test("a step of a turn writes few pages, however many went before", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const pages = () => statSync(`${path}-wal`).size / 4120;
  const steps = 40; // not so many that the log begins anew
  const each = async (play: (at: number) => Promise<void>) => {
    const before = pages();
    for (let at = 0; at < steps; at++) await play(at);
    return (pages() - before) / steps;
  };
  const acts = await each((at) => step(store, at));
  const looks = await each(async (at) => {
    await store.recordCall(call);
    await store.append("a", [asks(at), result(at)], { midTurn: true });
  });
  t.diagnostic(`${acts.toFixed(1)} pages for a step that acts, ${looks.toFixed(1)} for one that only looks`);
  assert.ok(acts <= 10 && looks <= 8, `${acts} and ${looks} pages`);
});

test("much text is settled along the way, so that no single step is felt", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  const long = "walrus ".repeat(20_000);
  for (let at = 0; at < 4; at++) {
    await store.append("a", [asks(at)], { midTurn: true });
    await store.append("a", [result(at, long)], { midTurn: true });
  }
  assert.ok(Number(looseRows(path)) <= 4, `${looseRows(path)} rows`);
});
