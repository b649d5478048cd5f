import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "./contract.ts";
import { fingerprintOf, Idempotency } from "./idempotency.ts";

const ok = (value: number) => ({ status: 200, body: { value } });

test("calls with one key and one body are worked out once, whatever their order and however late they come", async () => {
  const calls = fc.array(
    fc.record({
      key: fc.constantFrom("", "a", "b", "c"),
      body: fc.nat(2),
      later: fc.nat(200_000),
      waits: fc.boolean(),
    }),
    { maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(calls, async (made) => {
      let now = 0;
      const idempotency = new Idempotency({ now: () => now });
      let worked = 0;
      /** What the law says: the first body of a key counts until five minutes after its answer. */
      const first = new Map<string, { body: number; value: Promise<unknown>; at: number }>();
      for (const { key, body, later, waits } of made) {
        now += later;
        const known = first.get(key);
        const isKept = key !== "" && known !== undefined && now - known.at <= 300_000;
        const before = worked;
        const answer = idempotency.run(
          key,
          () => fingerprintOf("chat", { body }, ["body"]),
          async () => ok(++worked),
        );
        if (isKept && known.body !== body) {
          await assert.rejects(answer, (error) => error instanceof ApiError && error.status === 422);
          continue;
        }
        if (isKept) assert.deepEqual(await answer, await known.value);
        else {
          assert.equal(worked, before + 1, "it is worked out again");
          first.set(key, { body, value: answer, at: now });
        }
        if (waits) await answer;
        else await null;
      }
    }),
    { numRuns: 200 },
  );
});

test("what failed is tried again with the same key", async () => {
  const idempotency = new Idempotency({ now: () => 0 });
  await assert.rejects(
    idempotency.run(
      "k",
      () => "f",
      async () => {
        throw new ApiError(429, "busy");
      },
    ),
  );
  assert.equal(
    (
      await idempotency.run(
        "k",
        () => "f",
        async () => ok(1),
      )
    ).status,
    200,
  );
});

test("no more than a thousand answers are kept", async () => {
  const idempotency = new Idempotency({ now: () => 0 });
  let worked = 0;
  for (let at = 0; at < 1001; at++)
    await idempotency.run(
      `k${at}`,
      () => "f",
      async () => ok(++worked),
    );
  await idempotency.run(
    "k0",
    () => "f",
    async () => ok(++worked),
  );
  assert.equal(worked, 1002, "the oldest is gone");
  await idempotency.run(
    "k1000",
    () => "f",
    async () => ok(++worked),
  );
  assert.equal(worked, 1002);
});
