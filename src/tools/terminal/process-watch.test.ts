import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../kit/clock.ts";
import { LineWatch, WatchBreaker } from "./processes.ts";

function handClock() {
  let now = 0;
  const sleepers: { at: number; wake: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    random: () => 0,
    sleep: (ms) => new Promise<void>((wake) => sleepers.push({ at: now + ms, wake })),
  };
  const advance = async (ms: number) => {
    now += ms;
    for (const sleeper of sleepers.filter(({ at }) => at <= now)) sleeper.wake();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, advance };
}

const plain = (text: string) => text;

test("lines are matched whole, however they arrive", () => {
  const watch = new LineWatch(["READY", "boom"], handClock().clock, plain);
  assert.equal(watch.push("not yet\nREA"), null);
  assert.deepEqual(watch.push("DY now\nother\nboom\n"), { type: "match", text: "READY now\nboom", missed: 0 });
});

test("a match carries at most 20 lines and 2000 characters", () => {
  const { clock } = handClock();
  const many = new LineWatch(["x"], clock, plain).push("x\n".repeat(50));
  assert.equal(many?.type === "match" && many.text.split("\n").length, 20);
  const long = new LineWatch(["x"], clock, plain).push(`${"x".repeat(5000)}\n`);
  assert.equal(long?.type === "match" && long.text.length, 2000);
});

test("a secret at the limit of a match leaves no half of it", () => {
  const { clock } = handClock();
  const redact = (text: string) => text.replaceAll("hunter2-secret", "***");
  const cutBehind = new LineWatch(["x"], clock, redact).push(`x${" ".repeat(1992)}hunter2-secret\n`);
  assert.equal(cutBehind?.type === "match" && cutBehind.text.trim(), "x***".replace("x", `x${" ".repeat(1992)}`));
  const pieces = new LineWatch(["x"], clock, redact);
  assert.equal(pieces.push(`hunter2-secret${"-".repeat(1995)}`), null);
  const cutBefore = pieces.push("x\n");
  assert.doesNotMatch(cutBefore?.type === "match" ? cutBefore.text : "none", /secret|none/);
});

test("one message in 15 s; the next tells how many lines were not shown", async () => {
  const { clock, advance } = handClock();
  const watch = new LineWatch(["x"], clock, plain);
  assert.equal(watch.push("x1\n")?.type, "match");
  await advance(14_999);
  assert.equal(watch.push("x2\nx3\n"), null);
  await advance(1);
  assert.deepEqual(watch.push("x4\n"), { type: "match", text: "x4", missed: 2 });
});

test("three windows in a row with too many matches end the watch; a quiet window forgives", async () => {
  const { clock, advance } = handClock();
  const watch = new LineWatch(["x"], clock, plain);
  const noisy = async () => {
    watch.push("x\n");
    const second = watch.push("x\n");
    await advance(15_000);
    return second;
  };
  assert.equal(await noisy(), null);
  assert.equal(await noisy(), null);
  watch.push("x\n");
  await advance(15_000);
  assert.equal(await noisy(), null);
  assert.equal(await noisy(), null);
  assert.deepEqual(await noisy(), { type: "overflow" });
  assert.equal(watch.push("x\n"), null);
});

test("too many messages of all together pause for 30 s, with a word at both ends", async () => {
  const { clock, advance } = handClock();
  const said: string[] = [];
  const breaker = new WatchBreaker(clock, (text) => said.push(text), new AbortController().signal);
  for (let n = 0; n < 30; n++) breaker.send(`${n}`);
  assert.equal(said.length, 16);
  assert.match(said[15] ?? "", /pause/);
  await advance(30_000);
  assert.match(said[16] ?? "", /on again/);
  breaker.send("later");
  assert.equal(said[17], "later");
});
