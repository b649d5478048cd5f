import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import {
  insertAsOriginal,
  makeOriginalDatabase,
  ORIGINAL_VERSIONS,
  type OriginalVersion,
  searchAsOriginal,
} from "../../test/support/original-database.ts";
import { manualClock, recordedLog, temporaryFolder, temporaryStore } from "../../test/support/session-store.ts";
import { Connection } from "./connection.ts";
import { openSessionStore } from "./open.ts";
import { readShape } from "./schema.ts";
import { planUpgrade } from "./upgrade.ts";

const FIRST = "20250101_100000_aaaaaa";
const SECOND = "20250101_110000_bbbbbb";

async function originalFile(t: TestContext, version: OriginalVersion): Promise<string> {
  const path = join(await temporaryFolder(t), "state.db");
  makeOriginalDatabase(path, version);
  return path;
}

function openAsOriginal(t: TestContext, path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => db.isOpen && db.close());
  return db;
}

async function openHere(t: TestContext, path: string, options: { readOnly?: boolean } = {}) {
  const log = recordedLog();
  const store = await openSessionStore({ path, journalMode: "auto", log, clock: manualClock(), ...options });
  t.after(() => store.close());
  return { store, log };
}

function checkFile(db: DatabaseSync): void {
  assert.deepEqual(
    db
      .prepare("PRAGMA integrity_check")
      .all()
      .map((row) => row.integrity_check),
    ["ok"],
  );
  for (const table of ["messages_fts", "messages_fts_trigram"]) {
    db.exec(`INSERT INTO ${table}(${table}, rank) VALUES ('integrity-check', 1)`);
  }
  assert.deepEqual(db.prepare("PRAGMA foreign_key_check").all(), []);
}

for (const version of ORIGINAL_VERSIONS) {
  test(`a file of the original's ${version} is listed, searched, continued, and still the original's afterwards`, async (t) => {
    const path = await originalFile(t, version);
    const { store } = await openHere(t, path);

    const items = await store.list();
    assert.deepEqual(
      items.map((item) => [item.id, item.lineageRootId, item.title, item.preview]),
      [
        ["20250102_100000_cccccc", "20250102_100000_cccccc", null, "数据库部署失败"],
        [SECOND, FIRST, "old talk #2", "summary of the walrus"],
      ],
    );
    assert.equal(
      (await store.getPrompt(FIRST))?.prompt,
      version === "v0.20" ? "The hashed prompt." : "You are the original.",
    );
    const ids = async (query: string) => (await store.search(query)).hits.map((hit) => hit.id).sort((a, b) => a - b);
    assert.deepEqual(await ids("walrus"), [1, 2, 5]);
    assert.deepEqual(await ids("youer"), [1]);
    assert.deepEqual(await ids("部署"), [6]);
    assert.deepEqual(await ids("数据库部署"), [6]);
    const messages = await store.load(FIRST);
    assert.equal(messages.length, 4);
    assert.deepEqual((await store.load(SECOND))[0]?.content, [{ type: "text", text: "summary of the walrus" }]);
    assert.equal(await store.tip(FIRST), SECOND);
    assert.equal(await store.resolveTitle("old talk"), SECOND);

    await store.append(SECOND, [
      { role: "user", content: "and the narwhal 独角鲸游泳?" },
      { role: "assistant", content: "swims", reasoning_content: "" },
    ]);
    assert.deepEqual(await ids("narwhal"), [7]);
    assert.deepEqual(await ids("独角鲸游"), [7]);
    await store.recordCall({
      task: "main",
      sessionId: SECOND,
      model: "m",
      provider: "p",
      baseUrl: "u",
      apiMode: "a",
      startedAt: 1,
      ms: 1,
      outcome: "ok",
      inputTokens: 1,
      outputTokens: 1,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      costUsd: 1,
      costStatus: "estimated",
      costSource: null,
    });
    const child = await store.continueAfterCompression(SECOND, [{ role: "user", content: "summary with a narwhal" }]);
    assert.equal((await store.get(child))?.title, "old talk #3");
    await store.rewind(child, 9);
    await store.branch(child, "branch-1");
    await store.delete("branch-1");
    await store.setPrompt(FIRST, { prompt: "Ours now.", stableChars: 4, fingerprint: null });
    assert.equal((await store.getPrompt(FIRST))?.prompt, "Ours now.");
    await store.close();

    const old = openAsOriginal(t, path);
    const added = insertAsOriginal(old, {
      session: child,
      role: "user",
      content: "the original writes 深海鱼类 octopus",
      at: 3000,
    });
    assert.deepEqual(searchAsOriginal(old, "messages_fts", "octopus"), [added]);
    assert.deepEqual(searchAsOriginal(old, "messages_fts", "narwhal").includes(7), true);
    assert.deepEqual(searchAsOriginal(old, "messages_fts_trigram", '"深海鱼类"'), [added]);
    old.prepare("UPDATE messages SET content = 'the original changed its mind' WHERE id = ?").run(added);
    assert.deepEqual(searchAsOriginal(old, "messages_fts", "octopus"), []);
    old.prepare("DELETE FROM messages WHERE id = ?").run(1);
    assert.equal(old.prepare("SELECT MAX(version) AS v FROM schema_version").get()?.v, version === "v0.20" ? 25 : 13);
    assert.equal(
      old
        .prepare("SELECT prompt FROM (SELECT COALESCE(NULL, system_prompt) AS prompt FROM sessions WHERE id = ?)")
        .get(FIRST)?.prompt,
      "Ours now.",
    );
    checkFile(old);
    old.close();

    const again = await openHere(t, path);
    assert.deepEqual(
      (await again.store.search("mind")).hits.map((hit) => hit.id),
      [added],
    );
  });

  test(`a file of ${version} opened for reading is read and not changed by a byte`, async (t) => {
    const path = await originalFile(t, version);
    const before = openAsOriginal(t, path);
    const schema = () => before.prepare("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").all();
    const untouched = schema();
    const { store } = await openHere(t, path, { readOnly: true });
    assert.equal((await store.list()).length, 2);
    assert.equal((await store.load(FIRST)).length, 4);
    assert.equal((await store.search("walrus")).hits.length >= 2, true);
    assert.equal((await store.search("部署")).hits.length, 1);
    assert.equal((await store.messagesAround(FIRST, 2, 1)).window.length, 3);
    assert.equal(await store.getValue(FIRST, "x"), null);
    assert.ok(await store.getPrompt(FIRST));
    let lines = 0;
    for await (const _ of store.export()) lines++;
    assert.equal(lines, 3);
    const pruned = await store.prune({ before: 5000, cwd: "/nowhere" }, { dryRun: true, archiveOnly: true });
    assert.deepEqual(pruned, []);
    assert.equal((await store.prune({ before: 5000 }, { dryRun: true })).length, 2);
    assert.equal((await store.stats()).messages, 6);
    assert.ok((await store.health()).length > 0);
    await store.close();
    assert.deepEqual(schema(), untouched);
  });
}

test("opening adds what is missing once and changes nothing the second time", async (t) => {
  for (const version of ORIGINAL_VERSIONS) {
    const path = await originalFile(t, version);
    await (await openHere(t, path)).store.close();
    const db = openAsOriginal(t, path);
    const cookie = () => db.prepare("PRAGMA schema_version").get()?.schema_version;
    const first = cookie();
    await (await openHere(t, path)).store.close();
    assert.equal(cookie(), first, version);
  }
});

test("a fresh file passes the same checks and holds the text once", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [{ role: "user", content: "x".repeat(100) }]);
  await store.close();
  const db = openAsOriginal(t, path);
  checkFile(db);
  assert.equal(db.prepare("SELECT version FROM schema_version").get()?.version, 13);
  assert.equal(
    db.prepare("SELECT COUNT(*) AS n FROM sqlite_master WHERE name LIKE 'messages_fts%content'").get()?.n,
    0,
  );
});

test("triggers of a tokenizer we lack are taken off, so that messages can be stored", async (t) => {
  const path = await originalFile(t, "v0.20");
  const db = openAsOriginal(t, path);
  // The table of a build that had the tokenizer loaded, in a build that has not.
  db.enableDefensive(false);
  db.exec(`CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, tokenize='unicode61');
    PRAGMA writable_schema=ON;
    UPDATE sqlite_master SET sql = replace(sql, 'unicode61', 'cjk_native') WHERE name = 'messages_fts_cjk';
    PRAGMA writable_schema=OFF;`);
  db.close();
  const trap = openAsOriginal(t, path);
  for (const [event, row] of [
    ["insert", "new"],
    ["update", "new"],
    ["delete", "old"],
  ]) {
    trap.exec(
      `CREATE TRIGGER messages_fts_cjk_${event} AFTER ${event} ON messages BEGIN
         INSERT INTO messages_fts_cjk(rowid, content) VALUES (${row}.id, ${row}.content); END`,
    );
  }
  assert.throws(() => insertAsOriginal(trap, { session: FIRST, role: "user", content: "x", at: 1 }), /tokenizer/);
  trap.close();
  const { store } = await openHere(t, path);
  await store.append(SECOND, [{ role: "user", content: "stored" }]);
  await store.close();
  const after = openAsOriginal(t, path);
  assert.equal(after.prepare("SELECT value FROM state_meta WHERE key = 'fts_cjk_stale'").get()?.value, "1");
  assert.equal(after.prepare("SELECT COUNT(*) AS n FROM sqlite_master WHERE name = 'messages_fts_cjk'").get()?.n, 1);
});

test("an unfinished rebuild of the original is worked around, not finished or disturbed", async (t) => {
  const path = await originalFile(t, "v0.20");
  const db = openAsOriginal(t, path);
  db.exec(`INSERT INTO messages_fts(messages_fts) VALUES ('delete-all');
    INSERT INTO messages_fts_trigram(messages_fts_trigram) VALUES ('delete-all');
    INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '6'), ('fts_rebuild_progress', '0')`);
  const { store } = await openHere(t, path);
  for (const query of ["walrus", "数据库部署"]) {
    const result = await store.search(query);
    assert.equal(result.hits.length > 0, true, query);
    assert.equal(result.indexRebuild?.percent, 0);
  }
  await store.append(SECOND, [{ role: "user", content: "walrus again" }]);
  assert.equal((await store.search("walrus")).hits.length, 4);
  assert.equal(db.prepare("SELECT value FROM state_meta WHERE key = 'fts_rebuild_high_water'").get()?.value, "6");
});

test("of several sessions with one title the newest keeps it", async (t) => {
  const path = await originalFile(t, "v0.15");
  const db = openAsOriginal(t, path);
  db.exec("UPDATE sessions SET title = 'same'");
  db.close();
  const { store, log } = await openHere(t, path);
  assert.equal(await store.resolveTitle("same"), "20250102_100000_cccccc");
  assert.equal((await store.get(FIRST))?.title, null);
  assert.equal(log.lines.filter((line) => line.includes("lost its title")).length, 2);
});

test("a change of tables by another program while we are connected is followed", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.setPrompt("a", { prompt: "plain", stableChars: null, fingerprint: null });
  const other = openAsOriginal(t, path);
  other.exec(`CREATE TABLE system_prompts (hash TEXT PRIMARY KEY, prompt TEXT NOT NULL);
    ALTER TABLE sessions ADD COLUMN system_prompt_hash TEXT;
    INSERT INTO system_prompts VALUES ('h', 'hashed'); UPDATE sessions SET system_prompt = NULL, system_prompt_hash = 'h'`);
  assert.equal((await store.getPrompt("a"))?.prompt, "hashed");
  other.exec("DROP TRIGGER messages_fts_insert");
  await store.append("a", [{ role: "user", content: "noticed" }]);
  assert.equal((await store.search("noticed")).hits.length, 1);
});

test("a damaged search index is rebuilt once, from the messages", async (t) => {
  const { store, path, log } = await temporaryStore(t);
  await store.create({ id: "a" });
  const ids = await store.append(
    "a",
    Array.from({ length: 50 }, (_, n) => ({ role: "user" as const, content: `word${n} common` })),
  );
  const other = openAsOriginal(t, path);
  other.enableDefensive(false);
  other.exec("UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10");
  assert.equal((await store.search("common", { limit: 100 })).hits.length, 50);
  assert.match(log.lines.join("\n"), /search index is damaged and is being rebuilt/);
  await store.rewind("a", ids[40] ?? 0);
  await store.replace("a", [{ role: "user", content: "fresh" }]);
  assert.equal((await store.search("fresh")).hits.length, 1);
  checkFile(other);
});

test("without FTS5 messages are stored; the next build that has it makes the index whole again", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [{ role: "user", content: "before" }]);
  await store.close();
  const db = new Connection({ path });
  const log = recordedLog();
  for (const step of planUpgrade(db, log, { ...readShape(db), fts5: false })) step();
  assert.match(log.lines.join("\n"), /no FTS5/);
  db.run("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('a', 'user', 'meanwhile', 1)");
  assert.deepEqual(planUpgrade(db, log, { ...readShape(db), fts5: false }), []);
  db.close();
  const { store: again } = await openHere(t, path);
  assert.equal((await again.search("meanwhile")).hits.length, 1);
  await again.append("a", [{ role: "user", content: "afterwards" }]);
  assert.equal((await again.search("afterwards")).hits.length, 1);
  checkFile(openAsOriginal(t, path));
});
