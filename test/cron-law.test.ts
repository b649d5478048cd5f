// Scheduled jobs over years of simulated time, with a real scheduler, real claims and faults anywhere: each slot at most once, none
// without a reason. The file of jobs is a list in memory here; test/cron-edits.test.ts has the real one.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { decide } from "../src/cron/due.ts";
import type { Job } from "../src/cron/jobs.ts";
import { CronJobs } from "../src/cron/manage.ts";
import { nextOf, type Schedule } from "../src/cron/schedule.ts";
import { Zone } from "../src/cron/wall-clock.ts";
import { openHome } from "../src/home/open.ts";
import type { WorkStore } from "../src/sessions/work.ts";
import {
  fileOf,
  jobAt,
  Life,
  processOf,
  random,
  ticks,
  typedSchedule,
  type World,
  worldOf,
} from "./support/cron-world.ts";
import { fewer } from "./support/sample.ts";
import { manualClock, memoryStore } from "./support/session-store.ts";
import { tempHome } from "./support/temp-home.ts";

const DAY = 86_400_000;
const MINUTE = 60_000;
const START = Date.UTC(2026, 0, 1);

/** While a job had one schedule, switched on or off. `to`: null while it still has. */
interface Span {
  readonly schedule: Schedule;
  readonly isOn: boolean;
  readonly from: number;
  to: number | null;
}

/** What every slot of every job came to. */
class Slots {
  doubled = 0;
  unexplained = 0;
  seen = 0;
  readonly problems: string[] = [];
  readonly #world: World;
  readonly #spans = new Map<string, Span[]>();
  readonly #explained = new Map<string, { readonly from: number; readonly to: number }[]>();
  #lastRow = 0;

  constructor(world: World) {
    this.#world = world;
    for (const job of world.jobs) this.follow(job, START);
  }

  /** The record of a job is another one from now on. `furthest`: what the clock has ever shown; what is before that may have been. */
  follow({ id, schedule, enabled }: Job, furthest: number): void {
    const spans = this.#spans.get(id) ?? [];
    const last = spans.at(-1);
    if (last) last.to ??= this.#world.clock.now();
    spans.push({ schedule, isOn: enabled, from: furthest, to: null });
    this.#spans.set(id, spans);
  }

  forget(id: string): void {
    this.#spans.delete(id);
  }

  /** What the rows say since the last time; then old ones may go. */
  async read(): Promise<void> {
    const { work } = this.#world;
    const rows = await work.jobRuns({ limit: 100_000 });
    for (const { id, jobId, slot, state, error } of rows) {
      if (id <= this.#lastRow || (state !== "skipped" && state !== "unknown")) continue;
      const to = Date.parse(slot);
      const from = /slots from (\S+)$/.exec(error ?? "")?.[1];
      const list = this.#explained.get(jobId) ?? [];
      list.push({ from: from === undefined ? to : Date.parse(from), to });
      this.#explained.set(jobId, list);
    }
    this.#lastRow = Math.max(this.#lastRow, ...rows.filter(({ endedAt }) => endedAt !== null).map(({ id }) => id));
    await work.sweep();
  }

  /** Every slot up to a time that all jobs have passed was run or is explained. */
  check(until: number): void {
    for (const [id, spans] of this.#spans) {
      this.#spans.set(
        id,
        spans.flatMap((span) => this.#checkSpan(id, span, until)),
      );
      const list = this.#explained.get(id) ?? [];
      this.#explained.set(
        id,
        list.filter(({ to }) => to > until - 60 * DAY),
      );
    }
    const { ran } = this.#world;
    for (const [key, count] of ran) {
      if (count > 1) this.doubled++;
      if (Date.parse(key.split(" ")[1] ?? "") < until - 60 * DAY) ran.delete(key);
    }
  }

  /** What is left of it to be looked at later. */
  #checkSpan(id: string, span: Span, until: number): Span[] {
    const { schedule, isOn, from, to } = span;
    // What is paused is explained when it is resumed.
    if (schedule.kind !== "cron" || (to === null && !isOn)) return [span];
    const end = Math.min(to ?? until, until);
    const zone = Zone.named(schedule.tz ?? "UTC");
    for (let slot = nextOf(schedule, from, zone); slot !== null && slot <= end; slot = nextOf(schedule, slot, zone)) {
      this.seen++;
      const key = `${id} ${new Date(slot).toISOString().slice(0, 19)}Z`;
      const at = slot;
      if (this.#world.ran.has(key) || this.#explained.get(id)?.some((one) => one.from <= at && at <= one.to)) continue;
      this.unexplained++;
      this.problems.push(`${key} of ${schedule.display}, ${isOn ? "on" : "off"}`);
    }
    return to !== null && to <= end ? [] : [{ ...span, from: Math.max(from, end) }];
  }
}

async function simulation(t: TestContext) {
  const clock = manualClock(START);
  const store = await memoryStore(t, clock);
  const work = await store.work();
  const jobs = Array.from({ length: 50 }, (_, index) => jobAt(index, START));
  return { clock, work, world: worldOf(jobs, work, clock) };
}

/** What a person or the agent does to one of the jobs while they are looked at and run. */
async function edit(world: World, cron: CronJobs, pick: (below: number) => number, slots: Slots, furthest: number) {
  const due = world.jobs.filter(({ next_run_at: at }) => Date.parse(at ?? "") <= world.clock.now());
  const [job] = pick(2) === 0 ? due : world.jobs.slice(pick(world.jobs.length));
  if (!job) return;
  const { id, enabled } = job;
  const what = pick(enabled ? 4 : 2);
  if (what === 3) {
    await cron.remove(id);
    slots.forget(id);
    const made = await cron.create({ schedule: typedSchedule(pick(50)), prompt: "x" }, null);
    slots.follow(await cron.find(made.job_id), furthest);
    return;
  }
  if (what === 1) await cron.update(id, { schedule: typedSchedule(pick(50)) });
  else if (enabled) await (what === 0 ? cron.pause(id, "holidays") : cron.resume(id));
  else await cron.resume(id);
  slots.follow(await cron.find(id), furthest);
}

test("50 jobs, years, kills anywhere, edits at any time, clocks that jump, days without power: no slot twice, none without a reason", async (t) => {
  const days = fewer(10_000, 200);
  const pick = random(Number(process.env.HERMES_TEST_SEED) || 1);
  const { clock, work, world } = await simulation(t);
  await using files = await tempHome({ "config.yaml": "timezone: UTC\n" });
  const { dir, osHome, project: cwd } = files;
  const home = await openHome({ argv: [], osHome, cwd, env: { HERMES_HOME: dir, HOME: osHome } });
  t.after(() => home.close());
  const cron = new CronJobs({ home, clock, work: async () => work, report: (problem) => t.diagnostic(problem) });
  Object.assign(cron, { file: fileOf(world, new Life()) });
  const slots = new Slots(world);
  let edits = 0;
  let pid = 0;
  const start = () => processOf(world, `nowhere:${++pid}:x`);
  let present = start();
  // What is added knows when it comes next, whatever happens behind that.
  await present.scheduler.tick().then(() => present.scheduler.settled());
  let furthest = START;
  for (let day = 0; day < days; day++) {
    const end = START + (day + 1) * DAY;
    while (clock.ms < end) {
      const fault = pick(120);
      if (fault < 3) present.life.left = pick(40); // killed somewhere in the next steps
      if (fault === 3) clock.ms += pick(3 * 24 * 60) * MINUTE; // without power
      if (fault === 4) clock.ms -= pick(20 * 60) * MINUTE; // somebody sets the clock
      furthest = Math.max(furthest, clock.ms);
      const { scheduler, life } = present;
      const editing = fault > 4 && fault < 25 ? edit(world, cron, pick, slots, furthest) : null;
      if (editing) edits++;
      await Promise.race([scheduler.tick().then(() => scheduler.settled()), life.over]);
      await editing;
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
    await slots.read();
    // A slot of the last days may still be waiting for its look.
    if (day % 10 === 9) slots.check(Math.min(clock.ms, furthest) - 2 * DAY);
  }
  const { doubled, unexplained, seen, problems } = slots;
  for (const problem of problems.slice(0, 20)) t.diagnostic(`unexplained: ${problem}`);
  t.diagnostic(
    `${days} days, ${seen} slots of ${world.jobs.length} jobs, ${edits} edits: ${doubled} doubled, ${unexplained} unexplained gaps, ${pid - 1} kills`,
  );
  assert.deepEqual([doubled, unexplained], [0, 0]);
  assert.ok(seen > days * 20 && edits > days);
});

/** As `abandonedRuns` does for a process of this machine that has ended; this one lives on in the test. */
async function goneFor(work: WorkStore, holder: string): Promise<void> {
  for (const { id, holder: of } of await work.jobRuns({ states: ["claimed", "running"], limit: 1000 }))
    if (of === holder) await work.endRun(id, { state: "unknown", error: "the process that ran it is gone" });
}

test("a slot that is due is decided the same way by two processes, and only one of them runs it", async (t) => {
  const work = await (await memoryStore(t, manualClock(START))).work();
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

test("1,000 jobs that are due in one minute start in order, eight at a time, and leave the process to others in between", async (t) => {
  const clock = manualClock(START);
  const work = await (await memoryStore(t, clock)).work();
  const due = (index: number) => new Date(START - 60_000 + index * 50).toISOString();
  const jobs = Array.from({ length: 1000 }, (_, index) => ({ ...jobAt(0, START), next_run_at: due(index) }));
  const world = worldOf([...jobs].reverse(), work, clock);
  let running = 0;
  let most = 0;
  const { scheduler } = processOf(world, "nowhere:1:x", {
    async work() {
      most = Math.max(most, ++running);
      await ticks();
      running--;
      return undefined;
    },
  });
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
  assert.equal(most, 8);
  assert.ok(turns > 100, `the event loop came around ${turns} times`);
});
