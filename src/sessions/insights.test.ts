import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import { insightsText } from "../commands/insights.ts";
import type { CallRecord } from "../llm/gate.ts";

const call = (sessionId: string, more: Partial<CallRecord>): CallRecord => ({
  task: "main",
  sessionId,
  model: "m1",
  provider: "p",
  baseUrl: "https://host.example",
  apiMode: "chat_completions",
  startedAt: 0,
  ms: 5,
  outcome: "ok",
  inputTokens: 1000,
  outputTokens: 100,
  cacheReadTokens: 20_000,
  cacheWriteTokens: null,
  reasoningTokens: 7,
  costUsd: 0.25,
  costStatus: "estimated",
  costSource: "catalogue",
  ...more,
});

test("insights count what happened in the period, by model, source, tool and time", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const now = clock.now() / 1000;
  const [talk, chat, old] = ["20260102_000000_aaaaaa", "20260102_000000_bbbbbb", "20250101_000000_cccccc"] as const;
  await store.create({ id: talk, model: "m1" });
  await store.create({ id: chat, model: "m2", source: "telegram" });
  await store.create({ id: old, model: "m1", startedAt: now - 100 * 86_400 });
  await store.setTitle(talk, "Tidy up");
  const use = { id: "1", type: "function", function: { name: "terminal", arguments: "{}" } } as const;
  await store.append(talk, [
    { role: "user", content: "go", timestamp: now },
    { role: "assistant", content: "", tool_calls: [use], timestamp: now + 10 },
    { role: "tool", content: "ok", tool_call_id: "1", tool_name: "terminal", timestamp: now + 20 },
    { role: "assistant", content: "done", timestamp: now + 30 },
    // An hour of silence counts as ten minutes.
    { role: "user", content: "thanks", timestamp: now + 3630 },
  ]);
  await store.append(chat, [{ role: "user", content: "hi", timestamp: now }]);
  await store.append(old, [{ role: "user", content: "long ago", timestamp: now - 100 * 86_400 }]);
  await store.recordCall(call(talk, {}));
  await store.recordCall(call(chat, { costUsd: null, costStatus: "unknown" }));

  const found = await store.insights({ since: now - 86_400 });
  assert.deepEqual(found.totals, {
    sessions: 2,
    messages: 6,
    userMessages: 3,
    toolCalls: 1,
    inputTokens: 2000,
    outputTokens: 200,
    cacheReadTokens: 40_000,
    cacheWriteTokens: 0,
    reasoningTokens: 14,
    costUsd: 0.25,
    unknownCostSessions: 1,
    activeSeconds: 630,
  });
  assert.deepEqual({ ...found.tools[0] }, { name: "terminal", calls: 1 });
  assert.deepEqual(
    found.sources.map(({ name, sessions, messages }) => [name, sessions, messages]),
    [
      ["cli", 1, 5],
      ["telegram", 1, 1],
    ],
  );
  assert.deepEqual(found.models.map(({ name }) => name).sort(), ["m1", "m2"]);
  assert.equal(
    found.byWeekday.reduce((a, b) => a + b),
    3,
  );
  assert.equal(found.byHour[new Date(now * 1000).getHours()], 2);
  assert.deepEqual(
    found.notable.map(({ why, id, value }) => [why, id, value]),
    [
      ["longest", talk, 630],
      ["most messages", talk, 5],
      ["most tokens", talk, 21_100],
      ["most tool calls", talk, 1],
    ],
  );

  const only = await store.insights({ since: now - 86_400, source: "telegram" });
  assert.equal(only.totals.sessions, 1);
  assert.equal((await store.insights({ since: 0 })).totals.sessions, 3);

  const text = insightsText(found, 1);
  assert.match(text, /Conversations {2}2\n/);
  assert.match(text, /Cost {11}\$0\.25 \+ unknown \(1 conversation\)/);
  assert.match(text, /m2 +1 +1 +21\.1K +unknown\n/);
  assert.match(text, /longest {14}10m {2}20260102_000000_aaaaaa {2}Tidy up/);
  assert.ok(text.split("\n").every((line) => line.length <= 80));
});

test("a period without conversations is one line", async (t) => {
  const { store } = await temporaryStore(t);
  assert.equal(insightsText(await store.insights({ since: 0 }), 7), "No conversations in the last 7 days.");
});
