import assert from "node:assert/strict";
import { test } from "node:test";
import { jumpingClock } from "../../test/support/memory-provider.ts";
import { OutOfTime, within } from "./clock.ts";

test("work that is quick enough is handed on, its failure too", async () => {
  const clock = jumpingClock();
  assert.equal(await within(async () => 1, 1000, clock), 1);
  await assert.rejects(
    within(() => Promise.reject(new Error("broken")), 1000, clock),
    /broken/,
  );
});

test("work that takes longer is not waited for, and its late failure is nobody's", async () => {
  const clock = jumpingClock();
  const { promise, reject } = Promise.withResolvers<never>();
  const waiting = assert.rejects(
    within(() => promise, 1000, clock),
    OutOfTime,
  );
  await clock.pass(999);
  await clock.pass(1);
  await waiting;
  reject(new Error("too late"));
  await new Promise((resolve) => setImmediate(resolve));
});

test("work that throws at once leaves no timer behind", async () => {
  const clock = jumpingClock();
  const broken = () => {
    throw new Error("broken");
  };
  const sleep = () => assert.fail("nobody waits for it");
  await assert.rejects(within(broken, 1000, { ...clock, sleep }), /broken/);
});
