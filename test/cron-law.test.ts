// Scheduled jobs over years of simulated time, with a real scheduler, real claims and faults anywhere: each slot at most once, none
// without a reason. The file of jobs is a list in memory here; src/cron/manage.test.ts has the real one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../src/cron/due.ts";
import { type Job, newJobId } from "../src/cron/jobs.ts";
import { nextOf, readSchedule } from "../src/cron/schedule.ts";
import { Scheduler } from "../src/cron/scheduler.ts";
import { Zone } from "../src/cron/wall-clock.ts";
import { openSessionStore } from "../src/sessions/open.ts";
import type { WorkStore } from "../src/sessions/work.ts";
import { fewer } from "./support/sample.ts";
import { manualClock, recordedLog } from "./support/session-store.ts";

const DAY = 86_400_000;
const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);
const ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"];
const EXPRS = [
  "0 9 * * 1-5",
  "30 2 * * *",
  "*/30 1 * * *",
  "0 */8 * * *",
  "15 2 1 * *",
  "45 1 * * 0",
  "0 0 29 2 *",
  "5 4 * * MON,THU",
];

function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state ^ (state >>> 15), 1 | state) + 0x6d2b79f5) | 0;
    return (((state ^ (state >>> 14)) >>> 0) % 1_000_003) % below;
  };
}

function jobAt(index: number, now: number): Job {
  const tz = ZONES[index % ZONES.length] ?? "UTC";
  const typed = index % 10 === 9 ? `every ${300 + index}m` : `CRON_TZ=${tz} ${EXPRS[index % EXPRS.length]}`;
  const schedule = readSchedule(typed, { now, zone: Zone.named("UTC") });
  return {
    ...{ id: newJobId(), name: `job ${index}`, prompt: "x", skills: [], skill: null, script: null, no_agent: false },
    ...{ context_from: [], model: null, provider: null, base_url: null, schedule, schedule_display: schedule.display },
    ...{
      repeat: { times: null, completed: 0 },
      enabled: true,
      state: "scheduled",
      paused_at: null,
      paused_reason: null,
    },
    ...{
      created_at: new Date(now).toISOString(),
      next_run_at: null,
      last_run_at: null,
      last_status: null,
      last_error: null,
    },
    ...{
      last_delivery_error: null,
      deliver: "local",
      origin: null,
      enabled_toolsets: null,
      workdir: null,
      profile: null,
      budget: null,
    },
  };
}

/** A process that is killed stops wherever it is: nothing it waits for ever comes. */
class Life {
  readonly #end = Promise.withResolvers<void>();
  readonly over = this.#end.promise;
  isOver = false;
  /** Steps until it is killed. */
  left: number | null = null;

  kill(): void {
    this.isOver = true;
    this.#end.resolve();
  }

  async step<T>(work: () => Promise<T>): Promise<T> {
    if (this.left !== null && this.left-- <= 0) this.kill();
    if (this.isOver) return new Promise<T>(() => undefined);
    const value = await work();
    return this.isOver ? new Promise<T>(() => undefined) : value;
  }
}

interface World {
  jobs: readonly Job[];
  readonly work: WorkStore;
  readonly ran: Map<string, number>;
}

function processOf(
  world: World,
  clock: ReturnType<typeof manualClock>,
  holder: string,
): { scheduler: Scheduler; life: Life } {
  const life = new Life();
  const { work } = world;
  const through = (name: keyof WorkStore) =>
    ((...args: unknown[]) =>
      life.step(() => (work[name] as (...all: unknown[]) => Promise<unknown>).apply(work, args))) as never; // the same call
  // One writer at a time; what a dead process had of the file is gone with it.
  let file: Promise<unknown> = Promise.resolve();
  const scheduler = new Scheduler({
    ...{ clock, holder, log: recordedLog() },
    jobs: {
      read: () => life.step(async () => world.jobs),
      change(change) {
        const next = file.then(async () => {
          const copy = [...world.jobs];
          const value = await change(copy);
          return life.step(async () => {
            world.jobs = copy;
            return value;
          });
        });
        file = next.catch(() => undefined); // whoever asked is told
        return next;
      },
    },
    work: Object.fromEntries(
      ["claimSlot", "takeQueuedRuns", "beginRun", "endRun", "abandonedRuns", "jobRuns", "promise"].map((name) => [
        name,
        through(name as keyof WorkStore),
      ]),
    ) as unknown as WorkStore, // all that a scheduler calls
    async alone(look) {
      await look();
      return true;
    },
    settings: () => ({ zone: Zone.named("UTC"), missedRun: "once", most: 8 }),
    run: ({ job, slot }) =>
      life.step(async () => {
        const key = `${job.id} ${slot}`;
        world.ran.set(key, (world.ran.get(key) ?? 0) + 1);
        return { error: null, said: null };
      }),
    deliver: async () => ({ outbox: [], error: null, send: async () => null }),
  });
  return { scheduler, life };
}

const ticks = () => new Promise<void>((resolve) => setImmediate(resolve));

test("50 jobs, years, kills anywhere, clocks that jump, days without power: no slot twice, none without a reason", async (t) => {
  const days = fewer(10_000, 200);
  const pick = random(Number(process.env.HERMES_TEST_SEED) || 1);
  const clock = manualClock(START);
  const store = await openSessionStore({
    path: ":memory:",
    inMemory: true,
    journalMode: "auto",
    log: recordedLog(),
    clock,
  });
  t.after(() => store.close());
  const work = await store.work();
  const jobs = Array.from({ length: 50 }, (_, index) => jobAt(index, START));
  const world: World = { jobs, work, ran: new Map() };
  /** Per job: ranges of slots that are explained. */
  const explained = new Map<string, { readonly from: number; readonly to: number }[]>();
  let lastRow = 0;
  let doubled = 0;
  let unexplained = 0;
  let slots = 0;
  const checkedTo = new Map(jobs.map(({ id }) => [id, START]));

  /** What the rows say since the last time; then old ones may go. */
  const read = async () => {
    const rows = await work.jobRuns({ limit: 100_000 });
    for (const { id, jobId, slot, state, error } of rows) {
      if (id <= lastRow || (state !== "skipped" && state !== "unknown")) continue;
      const to = Date.parse(slot);
      const from = /slots from (\S+)$/.exec(error ?? "")?.[1];
      const list = explained.get(jobId) ?? [];
      list.push({ from: from === undefined ? to : Date.parse(from), to });
      explained.set(jobId, list);
    }
    lastRow = Math.max(lastRow, ...rows.filter(({ endedAt }) => endedAt !== null).map(({ id }) => id));
    await work.sweep();
  };
  /** Every slot up to a time that all jobs have passed was run or is explained. */
  const check = (until: number) => {
    for (const { id, schedule } of world.jobs) {
      if (schedule.kind !== "cron") continue;
      const zone = Zone.named(schedule.tz ?? "UTC");
      const from = checkedTo.get(id) ?? START;
      for (
        let slot = nextOf(schedule, from, zone);
        slot !== null && slot <= until;
        slot = nextOf(schedule, slot, zone)
      ) {
        slots++;
        const key = `${id} ${new Date(slot).toISOString().slice(0, 19)}Z`;
        const at = slot;
        const why = explained.get(id)?.some((range) => range.from <= at && at <= range.to);
        if (!world.ran.has(key) && !why) {
          unexplained++;
          t.diagnostic(`unexplained: ${key} of ${schedule.display}`);
        }
      }
      checkedTo.set(id, Math.max(from, until));
      explained.set(
        id,
        (explained.get(id) ?? []).filter((range) => range.to > until - 30 * DAY),
      );
    }
    for (const [key, count] of world.ran) {
      if (count > 1) doubled++;
      if (Date.parse(key.split(" ")[1] ?? "") < until - 30 * DAY) world.ran.delete(key);
    }
  };

  let pid = 0;
  const start = () => processOf(world, clock, `nowhere:${++pid}:x`);
  let present = start();
  let furthest = START;
  for (let day = 0; day < days; day++) {
    const end = START + (day + 1) * DAY;
    while (clock.ms < end) {
      const fault = pick(120);
      if (fault < 3) present.life.left = pick(40); // killed somewhere in the next steps
      if (fault === 3) clock.ms += pick(3 * 24 * 60) * MINUTE; // without power
      if (fault === 4) clock.ms -= pick(20 * 60) * MINUTE; // somebody sets the clock
      const { scheduler, life } = present;
      await Promise.race([scheduler.tick().then(() => scheduler.settled()), life.over]);
      if (life.left !== null) {
        life.kill();
        await ticks();
        await goneFor(work, `nowhere:${pid}:x`);
        present = start();
      }
      const next = Math.min(...world.jobs.map(({ next_run_at: at }) => Date.parse(at ?? "") || end));
      clock.ms = Math.max(clock.ms + MINUTE, Math.min(next + pick(5) * MINUTE, end));
      furthest = Math.max(furthest, clock.ms);
    }
    await read();
    // A slot of the last days may still be waiting for its look.
    if (day % 10 === 9) check(Math.min(clock.ms, furthest) - 2 * DAY);
  }
  t.diagnostic(
    `${days} days, ${slots} slots of ${world.jobs.length} jobs: ${doubled} doubled, ${unexplained} unexplained gaps, ${pid - 1} kills`,
  );
  assert.equal(doubled, 0);
  assert.equal(unexplained, 0);
  assert.ok(slots > days * 20);
});

/** As `abandonedRuns` does for a process of this machine that has ended; this one lives on in the test. */
async function goneFor(work: WorkStore, holder: string): Promise<void> {
  for (const { id, holder: of } of await work.jobRuns({ states: ["claimed", "running"], limit: 1000 }))
    if (of === holder) await work.endRun(id, { state: "unknown", error: "the process that ran it is gone" });
}

test("a slot that is due is decided the same way by two processes, and only one of them runs it", async (t) => {
  const clock = manualClock(START);
  const store = await openSessionStore({
    path: ":memory:",
    inMemory: true,
    journalMode: "auto",
    log: recordedLog(),
    clock,
  });
  t.after(() => store.close());
  const work = await store.work();
  const job = { ...jobAt(0, START), next_run_at: new Date(START + MINUTE).toISOString() };
  const moment = { now: START + 2 * MINUTE, zone: Zone.named("UTC"), missedRun: "once" as const };
  const [one, two] = [decide(job, moment, { isRunning: false }), decide(job, moment, { isRunning: false })];
  assert.deepEqual(one, two);
  assert.ok(one.type === "run");
  const claims = await Promise.all(
    ["a:1:x", "b:2:y"].map((holder) => work.claimSlot({ jobId: job.id, slot: one.slot, state: "claimed", holder })),
  );
  assert.equal(claims.filter((id) => id !== null).length, 1);
});

test("1,000 jobs that are due in one minute start in order and never keep the process from other work for long", async () => {
  const clock = manualClock(START);
  const store = await openSessionStore({
    path: ":memory:",
    inMemory: true,
    journalMode: "auto",
    log: recordedLog(),
    clock,
  });
  const work = await store.work();
  const due = (index: number) => new Date(START - 60_000 + index * 50).toISOString();
  const jobs = Array.from({ length: 1000 }, (_, index) => ({ ...jobAt(0, START), next_run_at: due(index) }));
  const world: World = { jobs: [...jobs].reverse(), work, ran: new Map() };
  const { scheduler } = processOf(world, clock, "nowhere:1:x");
  let turns = 0;
  let isOver = false;
  const chat = (async () => {
    while (!isOver) {
      await ticks();
      turns++;
    }
  })();
  await scheduler.tick();
  await scheduler.settled();
  isOver = true;
  await chat;
  assert.deepEqual(
    [...world.ran.keys()].map((key) => key.split(" ")[0]),
    jobs.map(({ id }) => id),
  );
  assert.ok(turns > 100, `the event loop came around ${turns} times`);
  await store.close();
});
