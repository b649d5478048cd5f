import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { CallRecord } from "../llm/gate.ts";
import { addUsage } from "./ledger.ts";
import type { UsageTotals } from "./store.ts";

const base: CallRecord = {
  task: "main",
  sessionId: "a",
  model: "m",
  provider: "p",
  baseUrl: "http://x",
  apiMode: "chat_completions",
  startedAt: Date.UTC(2026, 0, 2, 12) / 1000,
  ms: 12,
  outcome: "ok",
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 3,
  cacheWriteTokens: null,
  reasoningTokens: 2,
  costUsd: 0.25,
  costStatus: "estimated",
  costSource: "snapshot",
};

test("one call is one row, and adds to its session and to the session's per-model line", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.recordCall({ ...base, bytes: 100, commonBytes: 90, cause: "compression" });
  await store.recordCall({ ...base, costUsd: 0.5, costStatus: "actual", provider: "q" });
  const session = await store.get("a");
  assert.deepEqual(
    [
      session?.inputTokens,
      session?.outputTokens,
      session?.cacheReadTokens,
      session?.cacheWriteTokens,
      session?.apiCallCount,
    ],
    [20, 10, 6, 0, 2],
  );
  assert.deepEqual(
    [session?.estimatedCostUsd, session?.actualCostUsd, session?.costStatus, session?.billingProvider],
    [0.25, 0.5, "actual", "p"],
  );
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  assert.deepEqual(
    other
      .prepare(
        "SELECT billing_provider AS p, api_call_count AS n, input_tokens AS i FROM session_model_usage ORDER BY 1",
      )
      .all()
      .map((row) => ({ ...row })),
    [
      { p: "p", n: 1, i: 10 },
      { p: "q", n: 1, i: 10 },
    ],
  );
  const row = other
    .prepare("SELECT bytes, common_bytes, cause, cache_write_tokens FROM model_calls WHERE id = 1")
    .get();
  assert.deepEqual({ ...row }, { bytes: 100, common_bytes: 90, cause: "compression", cache_write_tokens: null });
});

test("an unknown cost stays unknown, whatever comes after it", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.recordCall({ ...base, costUsd: null, costStatus: "unknown" });
  await store.recordCall(base);
  assert.equal((await store.get("a"))?.costStatus, "unknown");
  const totals = (await store.usage({ by: "purpose" })).get("main");
  assert.deepEqual([totals?.calls, totals?.costUsd, totals?.unknownCostCalls], [2, 0.25, 1]);
});

test("a session's spending covers its lineage and its subagents, not its branches", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const child = await store.continueAfterCompression("a", []);
  await store.create({ id: "sub", parentSessionId: child, source: "subagent", modelConfig: { _delegate_from: child } });
  await store.branch(child, "branch");
  for (const sessionId of ["a", child, "sub", "branch"]) await store.recordCall({ ...base, sessionId });
  for (const session of ["a", child, "sub"])
    assert.deepEqual(await store.spent({ session }), { usd: 0.75, tokens: 54 });
  assert.deepEqual(await store.spent({ session: "branch" }), { usd: 0.25, tokens: 18 });
  assert.deepEqual(await store.conversation(child), ["a", child]);
  assert.deepEqual(await store.conversation("branch"), ["branch"]);
});

test("spending is asked for by job and by local day, also for calls without a session or of a deleted one", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const noon = new Date(2026, 5, 1, 12);
  await store.recordCall({ ...base, startedAt: noon.getTime() / 1000 });
  await store.recordCall({ ...base, sessionId: null, jobId: "j", startedAt: noon.getTime() / 1000 + 3600 });
  await store.recordCall({ ...base, sessionId: "never-created", startedAt: noon.getTime() / 1000 + 86_400 });
  await store.delete("a");
  assert.equal((await store.spent({ day: noon })).usd, 0.5);
  assert.equal((await store.spent({ job: "j" })).usd, 0.25);
  assert.deepEqual([...(await store.usage({ by: "day" })).keys()], ["2026-06-01", "2026-06-02"]);
});

test("a refused call is recorded and counts nowhere", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.recordCall({
    ...base,
    outcome: "refused",
    inputTokens: null,
    outputTokens: null,
    cacheReadTokens: null,
    costUsd: null,
    costStatus: "unknown",
  });
  const session = await store.get("a");
  assert.deepEqual([session?.apiCallCount, session?.costStatus], [0, null]);
  assert.equal((await store.usage({ by: "model" })).size, 0);
});

test("a reservation counts for those who reserve, is nobody's spending, and what really was takes its place", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "a" });
  const estimate = { outcome: "reserved", outputTokens: 0, cacheReadTokens: 0 } as const;
  const call = { ...base, ...estimate, startedAt: clock.ms / 1000 };
  const limit = { scope: { session: "a" }, usd: null, tokens: 15 };
  const first = await store.reserveCall(call, [limit]);
  assert.ok("reservation" in first);
  const day = { scope: { day: new Date(clock.ms) }, usd: 0.4, tokens: null };
  assert.deepEqual(await store.reserveCall(call, [day, limit]), { exceeded: 0, unit: "usd", spent: 0.25 });
  assert.deepEqual(await store.reserveCall(call, [limit, day]), { exceeded: 0, unit: "tokens", spent: 10 });
  assert.deepEqual(await store.spent({ session: "a" }), { usd: 0, tokens: 0 });
  assert.equal((await store.usage({ by: "model" })).size, 0);
  assert.deepEqual(await store.calls("a"), []);
  await store.recordCall({ ...base, inputTokens: 1, outputTokens: 1, cacheReadTokens: 0 }, first.reservation);
  assert.deepEqual(
    (await store.calls("a")).map(({ id, outcome }) => [id, outcome]),
    [[first.reservation, "ok"]],
  );
  assert.equal((await store.get("a"))?.apiCallCount, 1);
  assert.ok("reservation" in (await store.reserveCall(call, [limit])), "it took less than was reserved");
});

test("the calls of a session come back as they were recorded, oldest first", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const broken: CallRecord = {
    ...base,
    turn: 2,
    bytes: 9,
    commonBytes: 4,
    brokeOwner: "memory",
    brokeOffset: 4,
    cause: "selection",
  };
  const unknown: CallRecord = { ...base, inputTokens: null, costUsd: null, costStatus: "unknown", costSource: null };
  for (const call of [broken, unknown, { ...base, sessionId: "b" }]) await store.recordCall(call);
  assert.deepEqual(await store.calls("a"), [
    { id: 1, ...broken },
    { id: 2, ...unknown },
  ]);
  assert.deepEqual(await store.calls("nobody"), []);
});

test("two groups of calls sum up in every number, and are as unsure as the less sure one", () => {
  const totals = (by: number, costStatus: UsageTotals["costStatus"]): UsageTotals => ({
    calls: by,
    inputTokens: 2 * by,
    outputTokens: 3 * by,
    cacheReadTokens: 4 * by,
    cacheWriteTokens: 5 * by,
    reasoningTokens: 6 * by,
    costUsd: 7 * by,
    unknownCostCalls: 8 * by,
    costStatus,
  });
  assert.deepEqual(addUsage(totals(1, "actual"), totals(10, "estimated")), totals(11, "estimated"));
  assert.deepEqual(addUsage(totals(1, "unknown"), totals(10, "included")), totals(11, "unknown"));
});
