import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { CallRecord } from "../llm/gate.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { openSessionStore } from "./open.ts";
import type { StoreError } from "./store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });

test("a compression ends the session and goes on in a child that keeps who, where and what it knows", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({
    id: "a",
    source: "telegram",
    userId: "u",
    model: "m",
    modelConfig: { x: 1, _branched_from: "z" },
    cwd: "/w",
  });
  await store.setTitle("a", "work");
  await store.setValue("a", "pins", ["p"]);
  await store.setPrompt("a", { prompt: "old", stableChars: null, fingerprint: null });
  await store.append("a", [user("one"), user("two")]);
  clock.ms += 5000;
  const child = await store.continueAfterCompression("a", [user("summary")]);
  const old = await store.get("a");
  const next = await store.get(child);
  assert.equal(old?.endReason, "compression");
  assert.deepEqual(
    [
      next?.parentSessionId,
      next?.source,
      next?.userId,
      next?.model,
      next?.cwd,
      next?.title,
      next?.messageCount,
      next?.endedAt,
    ],
    ["a", "telegram", "u", "m", "/w", "work #2", 1, null],
  );
  assert.deepEqual(next?.modelConfig, { x: 1 });
  assert.deepEqual(await store.getValue(child, "pins"), ["p"]);
  assert.equal(await store.getPrompt(child), null);
  assert.match(child, /^\d{8}_\d{6}_[0-9a-f]{6}$/);
  assert.deepEqual(
    (await store.load(child, { withAncestors: true })).map((message) => message.content),
    ["one", "two", "summary"],
  );
});

test("of two compressions of one session the second gets the first one's child", async (t) => {
  const { store, path, log, clock } = await temporaryStore(t);
  const other = await openSessionStore({ path, journalMode: "auto", log, clock });
  t.after(() => other.close());
  await store.create({ id: "a" });
  const [first, second] = await Promise.all([
    store.continueAfterCompression("a", [user("mine")]),
    other.continueAfterCompression("a", [user("theirs")]),
  ]);
  assert.equal(first, second);
  assert.equal((await store.load(first)).length, 1);
});

test("a compression is taken back while nothing came after it, and what it cost stays", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [user("one")]);
  await store.setPrompt("a", { prompt: "p", stableChars: 1, fingerprint: null });
  const child = await store.continueAfterCompression("a", [user("summary")]);
  await store.recordCall(callOf(child));
  assert.equal(await store.undoCompression(child), "a");
  assert.equal(await store.get(child), null);
  const parent = await store.get("a");
  assert.deepEqual([parent?.endedAt, parent?.endReason], [null, null]);
  assert.equal((await store.getPrompt("a"))?.prompt, "p");
  assert.equal((await store.spent({ session: "a" })).usd, 0.5);

  const second = await store.continueAfterCompression("a", [user("summary")]);
  await store.append(second, [user("new question")]);
  assert.equal(await store.undoCompression(second), null);
  assert.equal(await store.undoCompression("a"), null);
  assert.equal(await store.undoCompression("nobody"), null);
});

test("a branch is a copy with every column, its prompt and its keys", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a", model: "m" });
  await store.setTitle("a", "idea");
  await store.setPrompt("a", { prompt: "p", stableChars: 1, fingerprint: { v: 1 } });
  await store.setValue("a", "nudge", 1);
  await store.append("a", [user("one"), { role: "assistant", content: "x\u0000y", reasoning: "r" }, user("undone")]);
  await store.rewind("a", 3);
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec(
    "ALTER TABLE messages ADD COLUMN from_the_future TEXT; UPDATE messages SET from_the_future = 'f' || id, token_count = id, platform_message_id = 'p'",
  );
  await store.branch("a", "b");
  const rows = (id: string) =>
    other
      .prepare("SELECT * FROM messages WHERE session_id = ? ORDER BY id")
      .all(id)
      .map(({ id: _, session_id: __, ...rest }) => rest);
  assert.deepEqual(rows("b"), rows("a"));
  assert.deepEqual(await store.getPrompt("b"), { prompt: "p", stableChars: 1, fingerprint: { v: 1 } });
  assert.equal(await store.getValue("b", "nudge"), 1);
  const branch = await store.get("b");
  assert.deepEqual([branch?.title, branch?.parentSessionId, branch?.messageCount], ["idea #2", "a", 2]);
  assert.equal(branch?.modelConfig?._branched_from, "a");
  assert.equal((await store.get("a"))?.endReason, "branched");
  assert.equal((await store.list()).length, 2, "a branch is a conversation of its own");
  await assert.rejects(store.branch("a", "b"), (error: StoreError) => error.code === "conflict");
});

test("a branch may end before any message; every column goes along and the original stays as it is", async (t) => {
  const { store, path } = await temporaryStore(t);
  const call = { id: "c1", type: "function", function: { name: "terminal", arguments: "{}" } } as const;
  await store.create({ id: "a", model: "m" });
  await store.setPrompt("a", { prompt: "p", stableChars: 1, fingerprint: { v: 1 } });
  await store.setValue("a", "prefix", "what was sent last");
  const ids = await store.append("a", [
    user("one"),
    { role: "assistant", content: "", tool_calls: [call], reasoning: "r" },
    { role: "tool", content: "x", tool_call_id: "c1", tool_name: "terminal" },
    { role: "assistant", content: "first" },
    user("two"),
    { role: "assistant", content: "second" },
  ]);
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec("ALTER TABLE messages ADD COLUMN from_the_future TEXT; UPDATE messages SET from_the_future = 'f' || id");
  const rows = (id: string) =>
    other
      .prepare("SELECT * FROM messages WHERE session_id = ? ORDER BY id")
      .all(id)
      .map(({ id: _, session_id: __, ...rest }) => rest);
  const before = rows("a");
  assert.deepEqual(await store.branch("a", "b", { before: ids[4] as number }), { inUseBy: null });
  assert.deepEqual(rows("a"), before);
  assert.deepEqual(rows("b"), before.slice(0, 4));
  const { messageCount, toolCallCount, title } = (await store.get("b")) ?? {};
  assert.deepEqual([messageCount, toolCallCount, title], [4, 1, null]);
  assert.equal((await store.getPrompt("b"))?.prompt, "p");
  assert.equal(await store.getValue("b", "prefix"), null);
  await store.branch("a", "c", { before: ids[0] as number });
  assert.deepEqual([rows("c"), (await store.get("c"))?.messageCount], [[], 0]);
  const [listed] = (await store.list()).filter(({ id }) => id === "b");
  assert.deepEqual([listed?.branchOf, listed?.chain], ["a", ["b"]]);
});

test("a branch ends before a turn that somebody else is still running, and names them", async (t) => {
  const { store } = await temporaryStore(t);
  const call = { id: "c1", type: "function", function: { name: "terminal", arguments: "{}" } } as const;
  await store.create({ id: "a" });
  const answer = await store.takeLane("a", "elsewhere:1:x");
  assert.ok(answer.type === "taken");
  const { lease } = answer;
  const contents = async (id: string) => (await store.load(id)).map(({ content }) => content);
  await store.append("a", [user("one")], { lease });
  await assert.rejects(store.branch("a", "b0"), {
    code: "conflict",
    message: /^process 1 on elsewhere is still running the first turn; nothing was branched\./,
  });
  assert.equal(await store.get("b0"), null);

  await store.append("a", [{ role: "assistant", content: "first" }], { lease });
  assert.deepEqual(await store.branch("a", "b1"), { inUseBy: null });
  assert.deepEqual(await contents("b1"), ["one", "first"]);

  const running: HistoryMessage[] = [
    user("two"),
    { role: "assistant", content: "let me see", tool_calls: [call] },
    { role: "tool", content: "half", tool_call_id: "c1", tool_name: "terminal" },
  ];
  await store.setValue("a", "prefix", "what was sent last");
  await store.setValue("a", "nudge", 1);
  for (const [index, message] of running.entries()) {
    await store.append("a", [message], { lease });
    const id = `c${index}`;
    assert.deepEqual(await store.branch("a", id), { inUseBy: "elsewhere:1:x" });
    assert.deepEqual(await contents(id), ["one", "first"]);
    const { messageCount, toolCallCount } = (await store.get(id)) ?? {};
    assert.deepEqual([messageCount, toolCallCount], [2, 0]);
    assert.deepEqual([await store.getValue(id, "prefix"), await store.getValue(id, "nudge")], [null, 1]);
  }
  await store.append("a", [user("the turn goes on")], { lease });
  await store.releaseLane(lease);
  assert.deepEqual(await store.branch("a", "d"), { inUseBy: null });
  assert.equal((await contents("d")).length, 6, "what nobody is working on is copied as it is");
});

function callOf(sessionId: string): CallRecord {
  return {
    task: "compression",
    sessionId,
    model: "m",
    provider: "p",
    baseUrl: "http://x",
    apiMode: "chat_completions",
    startedAt: 1_767_355_200,
    ms: 1,
    outcome: "ok",
    inputTokens: 1,
    outputTokens: 1,
    cacheReadTokens: null,
    cacheWriteTokens: null,
    reasoningTokens: null,
    costUsd: 0.5,
    costStatus: "estimated",
    costSource: null,
  };
}
