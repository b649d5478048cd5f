// Starts jobs when they are due: looks at the list, claims slots, keeps a few runs going at once and writes down what came of them.
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import type { JobRun, OutboxPart, WorkStore } from "../sessions/work.ts";
import { afterLoss, afterRun, type Decision, decide, type Moment, type Skipped, slotName } from "./due.ts";
import type { Job, JobFile } from "./jobs.ts";

export interface StartedRun {
  readonly id: number;
  readonly job: Job;
  readonly slot: string;
  readonly sessionId: string;
}

/** What a run says to the target of its job; null: nothing. */
export interface RunReport {
  readonly error: string | null;
  readonly said: string | null;
}

/** How a text gets to the targets of a job. */
export interface Delivery {
  /** To be promised in the step that ends the run. */
  readonly outbox: readonly OutboxPart[];
  /** Why some of it cannot get there. */
  readonly error: string | null;
  /** Called once the run has ended; resolves to why it did not get there. */
  send(): Promise<string | null>;
}

interface SchedulerPorts {
  readonly jobs: Pick<JobFile, "read" | "change">;
  /** Runs a look while no other process looks; false when one does. */
  alone(look: () => Promise<void>): Promise<boolean>;
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of this process, as leases name it. */
  readonly holder: string;
  /** Asked with each look. */
  settings(): Pick<Moment, "zone" | "missedRun"> & { readonly most: number };
  /** One run, from its script to its archived output. Rejects only when something is broken. */
  run(run: StartedRun, signal: AbortSignal): Promise<RunReport>;
  deliver(
    run: Pick<StartedRun, "job" | "slot">,
    text: string,
    options: { readonly failed: boolean },
  ): Promise<Delivery>;
  /** A run ended, or a slot was skipped. */
  ended?(job: Job, line: RunLine): void;
  /** More or fewer runs than before, or another plan. */
  changed?(): void;
}

export type RunLine =
  /** `undelivered`: why its answer did not get there. */
  | { readonly type: "ok"; readonly undelivered: string | null }
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "skipped"; readonly reason: string };

const KEPT_DONE_MS = 7 * 86_400_000;
/** So many failures in a row are no accident. */
const MOST_FAILURES = 5;

/**
 * - A slot is run by whoever inserted its row, and by nobody else: claimed, then planned anew, then begun. A kill between any two of these
 *   leaves a slot that was not run or a row that says so, never a second run.
 * - A look never waits for a run. Runs start in the order in which they fell due, `most` at a time.
 * - One job never runs twice at the same time.
 */
export class Scheduler {
  readonly #ports: SchedulerPorts;
  readonly #waiting = new Map<string, number>();
  readonly #running = new Map<number, Promise<void>>();
  readonly #over = new AbortController();
  #pumping: Promise<void> | null = null;
  #hasMore = false;
  #isClosed = false;

  constructor(ports: SchedulerPorts) {
    this.#ports = ports;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Seconds that the job which waits longest is late. */
  get lagSeconds(): number {
    const oldest = Math.min(...this.#waiting.values());
    return Number.isFinite(oldest) ? Math.max(0, Math.round((this.#ports.clock.now() - oldest) / 1000)) : 0;
  }

  /** One look at the list; false when another process is looking. Resolves as soon as what is due has been put in line. */
  tick(): Promise<boolean> {
    return this.#ports.alone(() => this.#look());
  }

  /** Takes what was asked for by hand. */
  async takeQueued(): Promise<void> {
    const { work, jobs, holder } = this.#ports;
    if (this.#isClosed) return;
    const rows = await work.takeQueuedRuns(holder);
    if (rows.length === 0) return;
    const known = new Map((await jobs.read()).map((job) => [job.id, job]));
    for (const row of rows) {
      const job = known.get(row.jobId);
      if (job) void this.#start(row, job);
      else await work.endRun(row.id, { state: "failed", error: "the job was removed before it ran" });
    }
  }

  /** Until nothing waits and nothing runs. */
  async settled(): Promise<void> {
    while (this.#pumping || this.#running.size > 0) await Promise.all([this.#pumping, ...this.#running.values()]);
  }

  /** Starts nothing more; runs get some time, then they are stopped. */
  async close({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#isClosed = true;
    this.#waiting.clear();
    await this.#pumping;
    const stop = new AbortController();
    const limit = this.#ports.clock.sleep(graceMs, stop.signal).then(
      () => this.#over.abort("the program that scheduled it was stopped"),
      () => undefined,
    );
    await Promise.all(this.#running.values());
    stop.abort();
    await limit;
  }

  // --- looking

  async #look(): Promise<void> {
    const { work, jobs, log } = this.#ports;
    if (this.#isClosed) return;
    for (const row of await work.abandonedRuns()) await this.#reportLoss(row);
    const moment = this.#moment();
    const changes = new Map<string, Decision>();
    const due: { readonly id: string; readonly at: number }[] = [];
    for (const job of await jobs.read()) {
      if (this.#isSpent(job, moment)) changes.set(job.id, { type: "wait" });
      const decision = this.#decide(job, moment, false);
      if (decision.type === "wait") continue;
      if (decision.type === "run" || decision.type === "skip")
        due.push({ id: job.id, at: Date.parse(job.next_run_at ?? "") || moment.now });
      else changes.set(job.id, decision);
    }
    if (changes.size > 0) await this.#correct(moment);
    for (const { id, at } of due.sort((one, other) => one.at - other.at))
      if (!this.#waiting.has(id)) this.#waiting.set(id, at);
    if (due.length > 0) log.debug(`${due.length} jobs are due`);
    this.#pump();
    this.#ports.changed?.();
  }

  #moment(): Moment {
    return { now: this.#ports.clock.now(), ...this.#ports.settings() };
  }

  #isSpent({ state, last_run_at: at, created_at: made }: Job, { now }: Moment): boolean {
    return state === "completed" && now - (Date.parse(at ?? made) || now) > KEPT_DONE_MS;
  }

  /** A job whose schedule cannot be used is told about once and holds nobody up. */
  #decide(job: Job, moment: Moment, isRunning: boolean): Decision {
    try {
      return decide(job, moment, { isRunning });
    } catch (error) {
      return {
        type: "correct",
        job: { ...job, state: "error", next_run_at: null, last_status: "error", last_error: messageOf(error) },
      };
    }
  }

  /** Plans that do not fit, one-shots whose time is past, jobs that were done long ago. */
  async #correct(moment: Moment): Promise<void> {
    const { jobs } = this.#ports;
    const told: { readonly job: Job; readonly slot: string; readonly text: string }[] = [];
    await jobs.change(async (list) => {
      for (const [at, job] of [...list.entries()].reverse()) {
        if (this.#isSpent(job, moment)) {
          list.splice(at, 1);
          continue;
        }
        const decision = this.#decide(job, moment, false);
        if (decision.type !== "correct" && decision.type !== "missed") continue;
        list[at] = decision.job;
        if (decision.type === "missed") {
          await this.#noteSkipped(job, decision.skipped);
          const due = moment.zone.minute(decision.at);
          const text = `It was due at ${due}, when nothing was running that could start it. To run it now: hermes cron run ${job.id}`;
          told.push({ job, slot: decision.skipped.slot, text });
        } else if (decision.job.state === "error")
          told.push({
            job,
            slot: `error:${slotName(moment.now)}`,
            text: decision.job.last_error ?? "its schedule cannot be used",
          });
      }
    });
    for (const { job, slot, text } of told) await this.#tell({ job, slot }, failureText(job, text));
  }

  // --- starting

  /** Fills the free places, oldest first. */
  #pump(): void {
    this.#hasMore = true;
    this.#pumping ??= this.#fill().finally(() => {
      this.#pumping = null;
      if (this.#hasMore) this.#pump();
    });
  }

  async #fill(): Promise<void> {
    while (this.#hasMore) {
      this.#hasMore = false;
      const { most } = this.#ports.settings();
      while (this.#waiting.size > 0 && this.#running.size < most && !this.#isClosed) {
        const next = [...this.#waiting.keys()].slice(0, most - this.#running.size);
        try {
          for (const { row, job } of await this.#claim(next)) void this.#start(row, job);
        } catch (error) {
          // The next look puts them in line again.
          this.#ports.log.error(`jobs could not be started: ${messageOf(error)}`);
        }
        for (const id of next) this.#waiting.delete(id);
      }
    }
  }

  async #claim(
    ids: readonly string[],
  ): Promise<{ readonly row: Pick<JobRun, "id" | "jobId" | "slot">; readonly job: Job }[]> {
    const { jobs, work, holder } = this.#ports;
    const claimed: { readonly row: Pick<JobRun, "id" | "jobId" | "slot">; readonly job: Job }[] = [];
    const active = new Set(
      (await work.jobRuns({ states: ["claimed", "running"], limit: 10_000 })).map(({ jobId }) => jobId),
    );
    await jobs.change(async (list) => {
      for (const id of ids) {
        const at = list.findIndex((job) => job.id === id);
        const job = list[at];
        if (!job) continue;
        const decision = this.#decide(job, this.#moment(), active.has(id));
        if (decision.type === "wait") continue;
        if (decision.type === "run") {
          const row = await work.claimSlot({ jobId: id, slot: decision.slot, state: "claimed", holder });
          if (row !== null) claimed.push({ row: { id: row, jobId: id, slot: decision.slot }, job: decision.job });
          // Another process has run it, or tried to: only the plan is left to be made.
          list[at] =
            row === null ? { ...decision.job, last_run_at: job.last_run_at ?? decision.job.last_run_at } : decision.job;
          if (decision.skipped) await this.#noteSkipped(job, decision.skipped);
        } else {
          // Written down before the plan moves on: a kill in between leaves no gap that nobody explains.
          if (decision.type !== "correct") await this.#noteSkipped(job, decision.skipped);
          list[at] = decision.job;
        }
      }
    });
    return claimed;
  }

  async #noteSkipped(job: Job, { slot, reason, detail }: Skipped): Promise<void> {
    const { work, ended } = this.#ports;
    const noted = await work.claimSlot({
      jobId: job.id,
      slot,
      state: "skipped",
      reason,
      ...(detail ? { error: detail } : {}),
    });
    if (noted !== null) ended?.(job, { type: "skipped", reason: detail ? `${reason}, ${detail}` : reason });
  }

  #start(row: Pick<JobRun, "id" | "jobId" | "slot">, job: Job): Promise<void> {
    const over = this.#play(row, job)
      .catch((error: unknown) =>
        this.#ports.log.error(`the end of a run of ${job.id} was not written down: ${messageOf(error)}`),
      )
      .finally(() => {
        this.#running.delete(row.id);
        this.#pump();
        this.#ports.changed?.();
      });
    this.#running.set(row.id, over);
    return over;
  }

  // --- running

  async #play({ id, slot }: Pick<JobRun, "id" | "slot">, job: Job): Promise<void> {
    const { work, holder, clock, log } = this.#ports;
    const { zone } = this.#ports.settings();
    const sessionId = `cron_${job.id}_${sessionStamp(zone.wallAt(clock.now()))}`;
    if (!(await work.beginRun(id, { holder, sessionId }))) return;
    const run = { id, job, slot, sessionId };
    let report: RunReport;
    try {
      report = await this.#ports.run(run, this.#over.signal);
    } catch (error) {
      log.error(`job ${job.id} failed`, error);
      report = { error: messageOf(error), said: null };
    }
    await this.#finish(run, report);
  }

  async #finish(run: StartedRun, report: RunReport): Promise<void> {
    const { work, jobs, ended } = this.#ports;
    const { id, job, slot } = run;
    const failed = report.error !== null;
    const isManual = slot.startsWith("manual:");
    const paused = failed && !isManual && (await this.#failsAgain(job));
    const failure = failureText(job, `${report.error}${paused ? ` ${paused}` : ""}`);
    const text = failed ? failure : report.said;
    const delivery = text === null ? null : await this.#ports.deliver(run, text, { failed });
    const isEnd = await work.endRun(
      id,
      { state: failed ? "failed" : "completed", error: report.error },
      delivery?.outbox,
    );
    if (!isEnd) return;
    const unsent = (await delivery?.send()) ?? null;
    const outcome = { ok: !failed, error: report.error, deliveryError: unsent ?? delivery?.error ?? null };
    await jobs.change((list) => {
      const at = list.findIndex((one) => one.id === job.id);
      const present = list[at];
      if (!present) return;
      const done = afterRun(present, outcome, { isManual });
      list[at] = paused && done.enabled ? this.#pausedFor(done, paused) : done;
    });
    ended?.(
      job,
      failed ? { type: "failed", reason: report.error ?? "" } : { type: "ok", undelivered: outcome.deliveryError },
    );
  }

  #pausedFor(job: Job, reason: string): Job {
    const { zone } = this.#ports.settings();
    return {
      ...job,
      enabled: false,
      state: "paused",
      paused_at: zone.iso(this.#ports.clock.now()),
      paused_reason: reason,
    };
  }

  /** A sentence when this failure is one too many. */
  async #failsAgain(job: Job): Promise<string | null> {
    if (job.schedule.kind === "once") return null;
    const rows = await this.#ports.work.jobRuns({
      jobId: job.id,
      states: ["completed", "failed", "unknown"],
      limit: MOST_FAILURES - 1,
    });
    const isStreak = rows.length === MOST_FAILURES - 1 && rows.every(({ state }) => state !== "completed");
    return isStreak
      ? `It failed ${MOST_FAILURES} times in a row and is paused now; to start it again: hermes cron resume ${job.id}`
      : null;
  }

  async #reportLoss(row: JobRun): Promise<void> {
    const { jobs, ended } = this.#ports;
    const job = await jobs.change((list) => {
      const at = list.findIndex(({ id }) => id === row.jobId);
      const present = list[at];
      if (present) list[at] = afterLoss(present);
      return present ?? null;
    });
    if (!job) return;
    ended?.(job, { type: "failed", reason: "interrupted" });
    const again = job.schedule.kind === "once" ? ` It was not run again; to do that: hermes cron run ${job.id}` : "";
    await this.#tell(
      { job, slot: `lost:${row.slot}` },
      failureText(job, `It was interrupted: the process that ran it is gone.${again}`),
    );
  }

  /** A text without a run. */
  async #tell(of: Pick<StartedRun, "job" | "slot">, text: string): Promise<void> {
    const { work, log } = this.#ports;
    try {
      const { outbox, send, error } = await this.#ports.deliver(of, text, { failed: true });
      if (outbox.length > 0) await work.promise(outbox);
      const problem = (await send()) ?? error;
      if (problem !== null) log.warn(`the failure of job ${of.job.id} was not delivered: ${problem}`);
    } catch (problem) {
      log.error(`the failure of job ${of.job.id} was not delivered`, problem);
    }
  }
}

/** Said whatever the answer looked like: a failure is never silent. */
const failureText = ({ name }: Pick<Job, "name">, reason: string) => `⚠️ Cron job '${name}' failed\n\n${reason}`;

const sessionStamp = (wall: number) =>
  new Date(wall).toISOString().slice(0, 19).replaceAll("-", "").replace("T", "_").replaceAll(":", "");
