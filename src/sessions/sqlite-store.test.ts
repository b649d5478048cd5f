import assert from "node:assert/strict";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { manualClock, recordedLog, temporaryFolder, temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { openSessionStore } from "./open.ts";
import { StoreError } from "./store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const assistant = (content: string): HistoryMessage => ({ role: "assistant", content });

test("what was appended is loaded again, field by field, in order", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.ensure({ id: "s1", model: "m", cwd: "/project" });
  const messages: HistoryMessage[] = [
    { role: "user", content: "hello", api_content: "hello\n[note]" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "read_file", arguments: '{"path":"a"}' } }],
      reasoning: "think",
      reasoning_content: "",
      reasoning_details: [{ type: "x", signature: "s" }],
      anthropic_content_blocks: [{ type: "thinking" }],
      codex_reasoning_items: [{ id: "r" }],
      codex_message_items: [{ id: "m" }],
      finish_reason: "tool_calls",
    },
    { role: "tool", content: "a\u0000b", tool_call_id: "c1", tool_name: "read_file", text_origin: "file" },
    {
      role: "user",
      content: [
        { type: "text", text: "看" },
        { type: "image_url", image_url: { url: "file:///x.png" } },
      ],
    },
  ];
  const ids = await store.append("s1", messages);
  const loaded = await store.load("s1");
  assert.deepEqual(
    loaded,
    messages.map((message, index) => ({ ...message, id: ids[index], timestamp: clock.now() / 1000 })),
  );
  const session = await store.get("s1");
  assert.equal(session?.messageCount, 4);
  assert.equal(session?.toolCallCount, 1);
  assert.equal(session?.cwd, "/project");
});

test("a field with broken JSON is left out of its message and named in the log", async (t) => {
  const { store, path, log } = await temporaryStore(t);
  await store.create({ id: "s1" });
  await store.append("s1", [assistant("fine")]);
  const other = new DatabaseSync(path, { timeout: 10_000 });
  other.exec("UPDATE messages SET tool_calls = '[{broken', content = 'still there'");
  other.close();
  const [message] = await store.load("s1");
  assert.equal(message?.content, "still there");
  assert.ok(message && !("tool_calls" in message));
  assert.match(log.lines.join("\n"), /tool_calls is not a JSON list/);
});

test("creating twice keeps the first; a parent that is missing is left out", async (t) => {
  const { store, log } = await temporaryStore(t);
  await store.create({ id: "a", model: "first" });
  await store.create({ id: "a", model: "second" });
  await store.create({ id: "b", parentSessionId: "nobody" });
  assert.equal((await store.get("a"))?.model, "first");
  assert.equal((await store.get("a"))?.source, "cli");
  assert.equal((await store.get("b"))?.parentSessionId, null);
  assert.match(log.lines.join("\n"), /parent nobody does not exist/);
});

test("the first reason to end a session wins until it is reopened", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.end("a", "cli_close");
  await store.end("a", "new_session");
  assert.equal((await store.get("a"))?.endReason, "cli_close");
  await store.reopen("a");
  assert.equal((await store.get("a"))?.endedAt, null);
  await store.end("a", "new_session");
  assert.equal((await store.get("a"))?.endReason, "new_session");
});

test("deleting a session takes its messages, files and delegated children, and frees its other children", async (t) => {
  const folder = await temporaryFolder(t);
  const sessionsDir = join(folder, "sessions");
  await mkdir(sessionsDir);
  const { store } = await temporaryStore(t, { sessionsDir });
  await store.create({ id: "a" });
  await store.append("a", [user("x")]);
  await store.create({ id: "sub", parentSessionId: "a", source: "subagent", modelConfig: { _delegate_from: "a" } });
  await store.create({ id: "branch", parentSessionId: "a", modelConfig: { _branched_from: "a" } });
  for (const name of ["a.json", "a.jsonl", "request_dump_a_1.json", "ab.json"])
    await writeFile(join(sessionsDir, name), "");
  assert.equal(await store.delete("a"), true);
  assert.equal(await store.delete("a"), false);
  assert.equal(await store.get("sub"), null);
  assert.equal((await store.get("branch"))?.parentSessionId, null);
  assert.deepEqual(await readdir(sessionsDir), ["ab.json"]);
});

test("rewinding hides rows from load and search, and counts again", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const ids = await store.append("a", [user("keep this"), assistant("ok"), user("forget zebra"), assistant("gone")]);
  assert.equal(await store.rewind("a", ids[2] ?? 0), 2);
  assert.equal(await store.rewind("a", ids[2] ?? 0), 0);
  assert.deepEqual(
    (await store.load("a")).map((message) => message.content),
    ["keep this", "ok"],
  );
  assert.equal((await store.search("zebra")).hits.length, 0);
  assert.equal((await store.search("zebra", { includeInactive: true })).hits.length, 1);
  const session = await store.get("a");
  assert.equal(session?.messageCount, 2);
  assert.equal(session?.rewindCount, 1);
});

test("replacing rewrites the active rows and the search follows", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [user("old walrus"), assistant("yes")]);
  await store.replace("a", [user("new penguin")]);
  assert.deepEqual(
    (await store.load("a")).map((message) => message.content),
    ["new penguin"],
  );
  assert.equal((await store.search("walrus")).hits.length, 0);
  assert.equal((await store.search("penguin")).hits.length, 1);
  assert.equal((await store.get("a"))?.messageCount, 1);
});

test("prompt, tool list and keys come back as they were", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  assert.equal(await store.getPrompt("a"), null);
  await store.setPrompt("a", { prompt: "You are Hermes", stableChars: 7, fingerprint: { v: 1 } });
  assert.deepEqual(await store.getPrompt("a"), { prompt: "You are Hermes", stableChars: 7, fingerprint: { v: 1 } });
  const hash = await store.putToolList([{ name: "x" }]);
  assert.equal(hash, await store.putToolList([{ name: "x" }]));
  assert.deepEqual(await store.getToolList(hash), [{ name: "x" }]);
  assert.equal(await store.getValue("a", "nudge"), null);
  await store.setValue("a", "nudge", { turns: 3 });
  await store.setValue("a", "nudge", { turns: 4 });
  assert.deepEqual(await store.getValue("a", "nudge"), { turns: 4 });
});

test("an append to a session nobody created is refused in words", async (t) => {
  const { store } = await temporaryStore(t);
  await assert.rejects(store.append("ghost", [user("x")]), (error: StoreError) => error.code === "invalid");
});

test("a file that is not a database is refused and left as it is", async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, "state.db");
  await writeFile(path, "this is not a database ".repeat(200));
  await assert.rejects(
    openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: manualClock() }),
    (error: StoreError) =>
      error instanceof StoreError && error.code === "damaged" && /sessions repair/.test(error.message),
  );
});

test("a store opened for reading reads and refuses every write", async (t) => {
  const { store, path, log, clock } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [user("hello giraffe")]);
  const reader = await openSessionStore({ path, journalMode: "auto", log, clock, readOnly: true });
  t.after(() => reader.close());
  assert.equal((await reader.search("giraffe")).hits.length, 1);
  assert.equal((await reader.list()).length, 1);
  await assert.rejects(reader.create({ id: "b" }), (error: StoreError) => error.code === "read_only");
});

test("reading a file that is not there finds nothing and makes nothing", async (t) => {
  const { path, log, clock } = await temporaryStore(t);
  const missing = `${path}.missing`;
  const reader = await openSessionStore({ path: missing, journalMode: "auto", log, clock, readOnly: true });
  t.after(() => reader.close());
  assert.deepEqual(await reader.list(), []);
  assert.equal((await reader.stats()).sessions, 0);
  await assert.rejects(reader.create({ id: "b" }), (error: StoreError) => error.code === "read_only");
  await assert.rejects(stat(missing));
});

test("a store in memory knows what the file holds, and the file never learns what is new", async (t) => {
  const { store, path, log, clock } = await temporaryStore(t, { journalMode: "wal" });
  await store.create({ id: "a" });
  await store.append("a", [user("hello giraffe")]);
  const memory = await openSessionStore({ path, journalMode: "auto", log, clock, inMemory: true });
  t.after(() => memory.close());
  assert.equal((await memory.search("giraffe")).hits.length, 1, "what is still in the write-ahead log too");
  await memory.append("a", [user("and an okapi")]);
  await memory.create({ id: "b" });
  assert.equal((await memory.load("a")).length, 2);
  assert.equal((await memory.search("okapi")).hits.length, 1);
  assert.equal((await store.load("a")).length, 1);
  assert.equal(await store.get("b"), null);
});

test("calls after closing are refused in words", async (t) => {
  const { store } = await temporaryStore(t);
  await store.close();
  await assert.rejects(store.create({ id: "a" }), (error: StoreError) => error.code === "unavailable");
  await assert.rejects(store.get("a"), (error: StoreError) => error.code === "unavailable");
});
