// Scheduled jobs of a simulated home: a list in memory that processes share, each with a scheduler of its own, killed anywhere.

import { type Job, newJobId } from "../../src/cron/jobs.ts";
import type { CronJobs } from "../../src/cron/manage.ts";
import { readSchedule } from "../../src/cron/schedule.ts";
import { type RunReport, Scheduler, type StartedRun } from "../../src/cron/scheduler.ts";
import { Zone } from "../../src/cron/wall-clock.ts";
import type { Clock } from "../../src/kit/clock.ts";
import type { WorkStore } from "../../src/sessions/work.ts";
import { recordedLog } from "./session-store.ts";

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

export function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state ^ (state >>> 15), 1 | state) + 0x6d2b79f5) | 0;
    return (((state ^ (state >>> 14)) >>> 0) % 1_000_003) % below;
  };
}

/** One of many schedules, in one of many zones. */
export const typedSchedule = (index: number) =>
  index % 10 === 9 ? `every ${300 + index}m` : `CRON_TZ=${ZONES[index % ZONES.length]} ${EXPRS[index % EXPRS.length]}`;

export function jobAt(index: number, now: number): Job {
  const schedule = readSchedule(typedSchedule(index), { now, zone: Zone.named("UTC") });
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
export class Life {
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

export interface World {
  jobs: readonly Job[];
  readonly work: WorkStore;
  readonly clock: Clock;
  /** How often each slot was run, by `JOB SLOT`. */
  readonly ran: Map<string, number>;
  /** Who has the list: one writer at a time. A process that is killed holds it no longer. */
  writer: Promise<unknown>;
}

export const worldOf = (jobs: readonly Job[], work: WorkStore, clock: Clock): World => ({
  ...{ jobs, work, clock, ran: new Map() },
  writer: Promise.resolve(),
});

/** The list of jobs as a process sees it. */
export function fileOf(world: World, life: Life): CronJobs["file"] {
  const file: Pick<CronJobs["file"], "read" | "change"> = {
    read: () => life.step(async () => world.jobs),
    change(change) {
      const mine = world.writer.then(async () => {
        const copy = [...world.jobs];
        const value = await change(copy);
        return life.step(async () => {
          world.jobs = copy;
          return value;
        });
      });
      world.writer = Promise.race([mine.catch(() => undefined), life.over]); // whoever asked is told
      return mine;
    },
  };
  return file as CronJobs["file"]; // all of it that others use
}

const USED = ["claimSlot", "takeQueuedRuns", "beginRun", "endRun", "abandonedRuns", "jobRuns", "promise"] as const;

interface ProcessOptions {
  /** What a run does besides being counted; its end is what it says. */
  readonly work?: (run: StartedRun) => Promise<RunReport | undefined>;
  readonly file?: Pick<CronJobs["file"], "read" | "change">;
  readonly missedRun?: "once" | "skip";
  /** Texts that were delivered. */
  readonly told?: string[];
}

export function processOf(
  world: World,
  holder: string,
  { work, file, missedRun = "once", told = [] }: ProcessOptions = {},
): { readonly scheduler: Scheduler; readonly life: Life } {
  const life = new Life();
  const through = (name: keyof WorkStore) =>
    ((...args: unknown[]) =>
      life.step(() => (world.work[name] as (...all: unknown[]) => Promise<unknown>).apply(world.work, args))) as never; // the same call
  const scheduler = new Scheduler({
    ...{ holder, clock: world.clock, log: recordedLog(), jobs: file ?? fileOf(world, life) },
    work: Object.fromEntries(USED.map((name) => [name, through(name)])) as unknown as WorkStore, // all that a scheduler calls
    async alone(look) {
      await look();
      return true;
    },
    settings: () => ({ zone: Zone.named("UTC"), missedRun, most: 8 }),
    async run(run) {
      await life.step(async () => {
        const key = `${run.job.id} ${run.slot}`;
        world.ran.set(key, (world.ran.get(key) ?? 0) + 1);
      });
      return (await work?.(run)) ?? { error: null, said: null };
    },
    async deliver(_run, text) {
      told.push(text);
      return { outbox: [], error: null, send: async () => null };
    },
  });
  return { scheduler, life };
}

export const ticks = () => new Promise<void>((resolve) => setImmediate(resolve));
