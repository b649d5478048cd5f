import assert from "node:assert/strict";
import { test } from "node:test";
import { CredentialPool, type PoolEntry, type PoolStrategy, poolAction } from "./pool.ts";

const START = 1_700_000_000;
const entries: readonly PoolEntry[] = [
  { id: "bbbbbb", priority: 2, request_count: 1 },
  { id: "aaaaaa", priority: 1, request_count: 5 },
  { id: "cccccc", priority: 3, request_count: 0 },
];

function poolOf(strategy: PoolStrategy, own: readonly PoolEntry[] = entries) {
  const clock = { seconds: START };
  const pool = new CredentialPool({
    provider: "x",
    entries: own,
    strategy,
    now: () => clock.seconds * 1000,
    random: () => 0.99,
  });
  return { pool, clock };
}
const picks = (pool: CredentialPool, count: number) => Array.from({ length: count }, () => pool.select()?.id);

test("fill_first stays with the lowest priority number", () =>
  assert.deepEqual(picks(poolOf("fill_first").pool, 3), ["aaaaaa", "aaaaaa", "aaaaaa"]));

test("round_robin goes round", () =>
  assert.deepEqual(picks(poolOf("round_robin").pool, 4), ["aaaaaa", "bbbbbb", "cccccc", "aaaaaa"]));

test("least_used takes the least used, then by priority", () =>
  assert.deepEqual(picks(poolOf("least_used").pool, 4), ["cccccc", "bbbbbb", "cccccc", "bbbbbb"]));

test("random follows chance", () => assert.deepEqual(picks(poolOf("random").pool, 1), ["cccccc"]));

test("an exhausted key rests, the next one takes over, and null means none is left", () => {
  const { pool } = poolOf("fill_first");
  pool.select();
  assert.equal(pool.markExhaustedAndRotate({ statusCode: 429 })?.id, "bbbbbb");
  assert.equal(pool.markExhaustedAndRotate({ statusCode: 402 })?.id, "cccccc");
  assert.equal(pool.markExhaustedAndRotate({ statusCode: 429 }), null);
  assert.equal(pool.select(), null);
});

// status, what the error said, seconds of rest
const rests: readonly [number, object, number][] = [
  [401, {}, 300],
  [429, {}, 3600],
  [500, {}, 3600],
  [429, { reset_at: START + 77 }, 77],
  [429, { resets_at: (START + 77) * 1000 }, 77],
  [429, { retry_until: new Date((START + 77) * 1000).toISOString() }, 77],
  [429, { message: "Resets in 4hr 5min" }, 4 * 3600 + 300],
  [429, { message: "retry after 9 s" }, 9],
  [429, { message: "slow down, retry 5s" }, 5],
];
for (const [statusCode, errorContext, seconds] of rests) {
  test(`after ${statusCode} ${JSON.stringify(errorContext)} a key rests ${seconds} s`, () => {
    const { pool, clock } = poolOf("fill_first", [{ id: "aaaaaa" }]);
    pool.select();
    pool.markExhaustedAndRotate({ statusCode, errorContext });
    clock.seconds = START + seconds - 1;
    assert.equal(pool.select(), null);
    clock.seconds = START + seconds;
    assert.equal(pool.select()?.last_status, "ok");
  });
}

test("the entries handed in are left alone, the pool's own can be written back", () => {
  const { pool } = poolOf("fill_first");
  pool.select();
  pool.markExhaustedAndRotate({ statusCode: 429, errorContext: { reason: "rate_limit", message: "slow" } });
  assert.equal(entries[1]?.last_status, undefined);
  const written = pool.entries.find((entry) => entry.id === "aaaaaa");
  assert.deepEqual(
    [written?.last_status, written?.last_error_code, written?.last_error_reason, written?.last_status_at],
    ["exhausted", 429, "rate_limit", START],
  );
});

test("children get keys of their own as long as there are enough", () => {
  const { pool } = poolOf("fill_first");
  const first = pool.borrow();
  assert.deepEqual(
    [first?.entry.id, pool.borrow()?.entry.id, pool.borrow()?.entry.id, pool.borrow()?.entry.id],
    ["aaaaaa", "bbbbbb", "cccccc", "aaaaaa"],
  );
  first?.release();
  first?.release();
  assert.deepEqual([pool.borrow()?.entry.id, pool.borrow()?.entry.id], ["aaaaaa", "bbbbbb"]);
});

const actions: readonly [Parameters<typeof poolAction>[0], Parameters<typeof poolAction>[1], string][] = [
  [{ reason: "rate_limit", statusCode: 429, said: "" }, { again: false, canRefresh: false }, "retry_same"],
  [{ reason: "rate_limit", statusCode: 429, said: "" }, { again: true, canRefresh: false }, "rotate"],
  [
    { reason: "rate_limit", statusCode: 429, said: "usage_limit_reached" },
    { again: false, canRefresh: false },
    "rotate",
  ],
  [{ reason: "billing", statusCode: 402, said: "" }, { again: false, canRefresh: false }, "rotate"],
  [{ reason: "auth", statusCode: 401, said: "" }, { again: false, canRefresh: true }, "refresh"],
  [{ reason: "auth", statusCode: 401, said: "" }, { again: true, canRefresh: true }, "rotate"],
  [{ reason: "auth", statusCode: 401, said: "" }, { again: false, canRefresh: false }, "rotate"],
  [{ reason: "auth", statusCode: 403, said: "" }, { again: false, canRefresh: true }, "leave"],
  [{ reason: "upstream_rate_limit", statusCode: 429, said: "" }, { again: true, canRefresh: false }, "leave"],
  [{ reason: "overloaded", statusCode: 529, said: "" }, { again: true, canRefresh: false }, "leave"],
];
for (const [failure, facts, action] of actions) {
  test(`${failure.reason} ${failure.statusCode} ${failure.said} ${JSON.stringify(facts)} -> ${action}`, () =>
    assert.equal(poolAction(failure, facts), action));
}
