import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../../kit/clock.ts";
import type { ApiRunEvent } from "../../sessions/work.ts";
import { LiveRun } from "./live-run.ts";

const never = new AbortController().signal;
/** Waits for nothing. */
const clock = { ...systemClock, sleep: async () => undefined };

/** A store in memory that can be told to fail. */
function memory() {
  const stored = new Map<number, ApiRunEvent>();
  let fails = false;
  return {
    stored,
    failNext: () => {
      fails = true;
    },
    work: {
      async noteApiRun(_id: string, events: readonly ApiRunEvent[]) {
        await null;
        const failed = fails;
        fails = false;
        if (failed) throw new Error("the disk is full");
        for (const event of events) stored.set(event.id, event);
        return true;
      },
      async dropApiRunEvents(_id: string, ids: readonly number[]) {
        for (const id of ids) stored.delete(id);
      },
    },
  };
}

const textOf = (events: readonly ApiRunEvent[]) =>
  events.map(({ event }) => event.delta ?? `<${event.event}>`).join("");

async function readAll(run: LiveRun, after: number): Promise<ApiRunEvent[]> {
  const read: ApiRunEvent[] = [];
  for await (const event of run.read(after, never)) read.push(event);
  return read;
}

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ delta: fc.string({ minLength: 1, maxLength: 4 }) }) },
    { weight: 3, arbitrary: fc.record({ event: fc.constantFrom("tool.started", "tool.completed") }) },
    { weight: 1, arbitrary: fc.constant({ fails: true } as const) },
    { weight: 2, arbitrary: fc.constant({ pause: true } as const) },
  ),
  { maxLength: 40 },
);

test("wherever readers begin and leave, each gets what follows, once and in order, and the store has the same", async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.array(fc.nat(50), { maxLength: 3 }), async (made, starts) => {
      const { work, stored, failNext } = memory();
      const run = new LiveRun({ id: "run_1", work, clock, report: () => undefined });
      const readers = [0, ...starts].map((after) => readAll(run, after));
      let said = "";
      for (const step of made) {
        if ("delta" in step) {
          run.delta(step.delta);
          said += step.delta;
        } else if ("event" in step) {
          run.push(step.event);
          said += `<${step.event}>`;
        } else if ("fails" in step) failNext();
        else await null;
      }
      await run.end("run.completed", {}, { status: "completed" });
      const [all = [], ...others] = await Promise.all(readers);
      assert.equal(textOf(all), `${said}<run.completed>`);
      assert.deepEqual(
        all.map(({ id }) => id),
        all.map((_, at) => at + 1),
      );
      for (const [at, after] of starts.entries())
        assert.deepEqual(
          others[at],
          all.filter(({ id }) => id > after),
        );
      assert.deepEqual([...stored.values()], all);
    }),
    { numRuns: 100 },
  );
});

test("nobody reads an event before it is on disk", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const work = { noteApiRun: () => promise, dropApiRunEvents: async () => undefined };
  const run = new LiveRun({ id: "run_1", work, clock, report: () => undefined });
  run.push("tool.started");
  const reader = run.read(0, never)[Symbol.asyncIterator]();
  const first = reader.next();
  assert.equal(await Promise.race([first, systemClock.sleep(20)]), undefined);
  assert.equal(run.lastEvent, null);
  resolve(true);
  assert.equal((await first).value?.event.event, "tool.started");
});

test("a run with very many pieces of text keeps its text and its newest numbers", async () => {
  const { work, stored } = memory();
  const run = new LiveRun({ id: "run_1", work, clock, report: () => undefined });
  for (let at = 0; at < 10_500; at++) run.push("message.delta", { delta: `${at % 10}` });
  await run.end("run.completed", {}, { status: "completed" });
  const all = await readAll(run, 0);
  assert.ok(all.length < 6_000, `${all.length} events`);
  assert.equal(textOf(all).length, 10_500 + "<run.completed>".length);
  assert.equal(all.at(-1)?.id, 10_501);
  assert.equal(stored.size, all.length);
  assert.equal((await readAll(run, 10_000)).length, 501);
});
