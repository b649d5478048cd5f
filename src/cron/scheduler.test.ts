// What becomes of single jobs: overlap, lateness, failures, the end of a one-shot. Laws over years are in test/cron-law.test.ts.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { jobAt, processOf, ticks, worldOf } from "../../test/support/cron-world.ts";
import { manualClock, memoryStore } from "../../test/support/session-store.ts";
import type { Job } from "./jobs.ts";
import { readSchedule } from "./schedule.ts";
import { Zone } from "./wall-clock.ts";

const NOW = Date.parse("2026-11-18T12:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const utc = Zone.named("UTC");

type Options = NonNullable<Parameters<typeof processOf>[2]>;

async function rig(t: TestContext, typed: string, more: Partial<Job>, options: Options = {}) {
  const clock = manualClock(NOW);
  const work = await (await memoryStore(t, clock)).work();
  const schedule = readSchedule(typed, { now: NOW, zone: utc });
  const job: Job = {
    ...jobAt(0, NOW),
    id: "job1",
    name: "the job",
    schedule,
    schedule_display: schedule.display,
    ...more,
  };
  const world = worldOf([job], work, clock);
  const told: string[] = [];
  const { scheduler } = processOf(world, "nowhere:1:x", { told, ...options });
  const look = async () => {
    await scheduler.tick();
    await scheduler.settled();
    return world.jobs[0];
  };
  const rows = async () =>
    (await work.jobRuns()).toReversed().map(({ slot, state, reason, error }) => [slot, state, reason ?? error ?? ""]);
  return { clock, world, scheduler, told, look, rows };
}

const at = (offset: number) => new Date(NOW + offset).toISOString();

test("a time that comes while the last run has not ended is skipped and says so", async (t) => {
  const held = Promise.withResolvers<undefined>();
  const { clock, scheduler, rows, world } = await rig(
    t,
    "every 5m",
    { next_run_at: at(0) },
    { work: () => held.promise },
  );
  await scheduler.tick();
  while (world.ran.size < 1) await ticks();
  clock.ms += 6 * MINUTE;
  await scheduler.tick();
  while ((await rows()).length < 2) await ticks();
  held.resolve(undefined);
  await scheduler.settled();
  assert.deepEqual(await rows(), [
    ["2026-11-18T12:00:00Z", "completed", ""],
    ["2026-11-18T12:05:00Z", "skipped", "overlap"],
  ]);
  assert.equal(world.ran.size, 1);
});

test("after three days without power a job runs once and goes on, or not at all where the settings say so", async (t) => {
  const late = { next_run_at: at(-72 * HOUR) };
  const once = await rig(t, "0 * * * *", late);
  assert.equal((await once.look())?.next_run_at, "2026-11-18T13:00:00+00:00");
  assert.deepEqual(await once.rows(), [
    ["2026-11-15T12:00:00Z", "completed", ""],
    ["2026-11-18T12:00:00Z", "skipped", "missed"],
  ]);
  const skip = await rig(t, "0 * * * *", late, { missedRun: "skip" });
  assert.equal((await skip.look())?.next_run_at, "2026-11-18T13:00:00+00:00");
  assert.deepEqual([await skip.rows(), skip.world.ran.size], [[["2026-11-18T12:00:00Z", "skipped", "missed"]], 0]);
});

for (const [late, state, ran] of [
  [120, "completed", 1],
  [121, "missed", 0],
] as const)
  test(`a job for one time that is ${late} s late is ${state}`, async (t) => {
    const moved = { schedule: readSchedule(at(-late * 1000), { now: NOW, zone: utc }), next_run_at: at(-late * 1000) };
    const { look, world, told } = await rig(t, "1h", moved);
    const job = await look();
    assert.deepEqual([job?.state, job?.enabled, world.ran.size], [state, false, ran]);
    if (state === "missed")
      assert.match(told.join(), /'the job' failed[\s\S]*when nothing was running[\s\S]*hermes cron run job1/);
    await look();
    assert.ok(told.length <= 1, "told once");
  });

test("five failures in a row pause a job and say so; a success in between counts again from there", async (t) => {
  const outcomes = ["no", "no", "no", "no", "yes", "no", "no", "no", "no", "no"];
  const { look, clock, told } = await rig(
    t,
    "every 5m",
    { next_run_at: at(0) },
    {
      work: async () => ({ error: outcomes.shift() === "yes" ? null : "no model", said: null }),
    },
  );
  for (let run = 0; run < 9; run++) {
    assert.equal((await look())?.state, "scheduled", `run ${run}`);
    clock.ms += 5 * MINUTE;
  }
  const job = await look();
  assert.deepEqual([job?.state, job?.enabled, outcomes.length], ["paused", false, 0]);
  assert.match(job?.paused_reason ?? "", /^It failed 5 times in a row/);
  assert.equal(told.length, 9, "each failure is told");
  assert.match(
    told.at(-1) ?? "",
    /failed\n\nno model It failed 5 times in a row and is paused now.*hermes cron resume job1/,
  );
});

test("failures of runs by hand pause nothing: whoever asked for them sees them", async (t) => {
  const { scheduler, world, told } = await rig(t, "every 5m", {}, { work: async () => ({ error: "no", said: null }) });
  for (let at = 0; at < 6; at++) {
    await world.work.claimSlot({ jobId: "job1", slot: `manual:${at}`, state: "queued" });
    await scheduler.takeQueued();
    await scheduler.settled();
  }
  assert.deepEqual([told.length, world.jobs[0]?.state, world.jobs[0]?.enabled], [6, "scheduled", true]);
});

test("a job that ran as often as it should is completed, stays seven days and is gone then", async (t) => {
  const { look, clock, world } = await rig(t, "every 5m", { next_run_at: at(0), repeat: { times: 2, completed: 0 } });
  assert.equal((await look())?.state, "scheduled");
  clock.ms += 5 * MINUTE;
  const job = await look();
  assert.deepEqual(
    [job?.state, job?.enabled, job?.next_run_at, job?.repeat],
    ["completed", false, null, { times: 2, completed: 2 }],
  );
  clock.ms += 7 * 24 * HOUR;
  assert.ok(await look());
  clock.ms += 10 * MINUTE;
  assert.equal(await look(), undefined);
  assert.equal(world.ran.size, 2);
});

test("a clock that went back brings no slot back, and a last run of a clock that was far ahead holds nothing up", async (t) => {
  for (const [ahead, next] of [
    [90 * MINUTE, "2026-11-18T14:00:00+00:00"],
    [400 * 24 * HOUR, "2026-11-18T13:00:00+00:00"],
  ] as const) {
    const { look } = await rig(t, "0 * * * *", { last_run_at: at(ahead) });
    assert.equal((await look())?.next_run_at, next);
  }
});

test("what is paused does not run though the file says that it is enabled, and a schedule that cannot be used is told once", async (t) => {
  const paused = await rig(t, "every 5m", { next_run_at: at(-MINUTE), state: "paused", enabled: true });
  await paused.look();
  assert.equal(paused.world.ran.size, 0);
  const schedule = { kind: "cron", expr: "0 0 31 2 *", display: "x" } as const;
  const { look, told, world } = await rig(t, "every 5m", { schedule, next_run_at: at(-MINUTE) });
  assert.equal((await look())?.state, "error");
  await look();
  assert.deepEqual([told.length, world.ran.size], [1, 0]);
  assert.match(told.join(), /never comes/);
});

test("a run that was given up meanwhile says nothing more and counts no more", async (t) => {
  const { look, world, rows } = await rig(
    t,
    "every 5m",
    { next_run_at: at(0), repeat: { times: 3, completed: 0 } },
    {
      async work({ id }) {
        await world.work.endRun(id, { state: "unknown", error: "gone" });
        return { error: null, said: "late" };
      },
    },
  );
  const job = await look();
  assert.deepEqual([job?.repeat.completed, job?.last_status], [0, null]);
  assert.deepEqual(await rows(), [["2026-11-18T12:00:00Z", "unknown", "gone"]]);
});

test("a run that is not over when the program ends is stopped after its grace", async (t) => {
  const { scheduler, rows } = await rig(
    t,
    "every 5m",
    { next_run_at: at(0) },
    {
      work: () => new Promise((resolve) => setImmediate(() => resolve({ error: "it was stopped", said: null }))),
    },
  );
  await scheduler.tick();
  await scheduler.close({ graceMs: 10 });
  assert.deepEqual(await rows(), [["2026-11-18T12:00:00Z", "failed", "it was stopped"]]);
  await scheduler.tick();
  assert.equal((await rows()).length, 1, "nothing more is started");
});
