// What people and models do with jobs, the same for every surface: the command line, `/cron` and the `cronjob` tool.
import { randomBytes } from "node:crypto";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import { cleanUrl } from "../llm/providers/resolve.ts";
import type { JobRun, WorkStore } from "../sessions/work.ts";
import { passedOver, plannedRun, type Skipped, withNext, zoneOf } from "./due.ts";
import { type JobFields, repeatTimes, requireSomething, sourceOf, textsOf, tzOf, zoneNamed } from "./fields.ts";
import { findJob, type Job, JobError, JobFile, type JobOrigin, nameFor, newJobId, repeatWords } from "./jobs.ts";
import { homeZone, otherProfile, STOPS_GATEWAY, workdirProblem } from "./run.ts";
import { scanPrompt, stopsOwnGateway } from "./scan.ts";
import { nextRuns, ONCE_GRACE, readSchedule, requireComing, type Schedule, ScheduleError } from "./schedule.ts";
import { scriptPath } from "./script.ts";
import { type TickerStatus, tickerStatus } from "./ticker.ts";

export interface JobAnswer {
  readonly success: true;
  readonly job_id: string;
  readonly name: string;
  readonly schedule: string;
  readonly repeat: string;
  readonly deliver: string;
  readonly next_run_at: string | null;
  /** The next three times. */
  readonly next_runs: readonly string[];
  readonly message: string;
}

export interface ListedJob extends Job {
  readonly next_runs: readonly string[];
  readonly running: boolean;
  readonly last_run: {
    readonly slot: string;
    readonly state: string;
    readonly started_at: string | null;
    readonly ended_at: string | null;
    readonly error: string | null;
    readonly reason: string | null;
  } | null;
}

export interface CronStatus extends TickerStatus {
  readonly lag_seconds: number;
  readonly jobs: {
    readonly enabled: number;
    readonly paused: number;
    readonly completed: number;
    readonly error: number;
  };
  readonly next: { readonly id: string; readonly name: string; readonly at: string } | null;
  /** The run that ended last. */
  readonly last: {
    readonly id: string;
    readonly name: string;
    readonly state: string;
    readonly at: string;
    readonly error: string | null;
  } | null;
  readonly skipped: readonly {
    readonly job_id: string;
    readonly name: string;
    readonly slot: string;
    readonly reason: string;
    readonly at: string;
  }[];
}

interface CronJobsOptions {
  readonly home: Pick<OpenHome, "paths" | "config">;
  readonly clock: Clock;
  work(): Promise<WorkStore>;
  /** Something about the file that the user should see. */
  report(problem: string): void;
  /** Platforms that a job may deliver to; absent: not checked here. */
  readonly platforms?: ReadonlySet<string> | undefined;
}

export class CronJobs {
  readonly file: JobFile;
  readonly #options: CronJobsOptions;

  constructor(options: CronJobsOptions) {
    const { home, clock, report } = options;
    this.#options = options;
    this.file = new JobFile({ paths: home.paths, clock, report });
  }

  get #moment() {
    return { now: this.#options.clock.now(), zone: homeZone(this.#options.home) };
  }

  async find(reference: string): Promise<Job> {
    return findJob(await this.file.read(), reference);
  }

  async create(fields: JobFields, origin: JobOrigin | null): Promise<JobAnswer> {
    const { home } = this.#options;
    const { now, zone } = this.#moment;
    if (!fields.schedule?.trim()) throw new ScheduleError('A job needs a schedule, such as "every weekday at 9".');
    const schedule = this.#schedule(fields.schedule, fields.tz);
    const config = home.config();
    const { model, provider } = fields;
    const blank = textsOf(fields);
    const job: Job = {
      ...{
        id: newJobId(),
        name: "",
        prompt: "",
        skills: [],
        skill: null,
        script: null,
        no_agent: false,
        context_from: [],
      },
      ...{ model: null, base_url: null, schedule, schedule_display: schedule.display },
      // Pinned: the model would be another one once the main provider changes.
      provider: model && !provider && !fields.base_url ? config.cron.provider || config.model.provider || null : null,
      repeat: { times: repeatTimes(fields.repeat, schedule), completed: 0 },
      ...{ enabled: true, state: "scheduled", paused_at: null, paused_reason: null, created_at: zone.iso(now) },
      ...{ next_run_at: null, last_run_at: null, last_status: null, last_error: null, last_delivery_error: null },
      ...{
        deliver: origin ? "origin" : "local",
        origin,
        enabled_toolsets: null,
        workdir: null,
        profile: null,
        budget: null,
      },
      ...blank,
    };
    const named = job.name === "" ? { ...job, name: nameFor({ ...job, script: job.script ?? "" }) } : job;
    await this.#check(named);
    const planned = withNext(named, this.#plan(named), zone);
    await this.file.change((jobs) => {
      requireKnown(fields, jobs);
      jobs.push(planned);
    });
    return this.#answer(planned, `Job "${planned.name}" is scheduled.`);
  }

  async update(reference: string, fields: JobFields): Promise<JobAnswer> {
    requireSomething(fields);
    const updated = await this.#replace(reference, async (job, jobs) => {
      const changed: Job = { ...job, ...textsOf(fields, job) };
      const isMoved = fields.schedule !== undefined || fields.tz !== undefined;
      const schedule = isMoved
        ? this.#schedule(
            fields.schedule ?? sourceOf(job.schedule),
            fields.tz === undefined ? tzOf(job.schedule) : fields.tz,
          )
        : job.schedule;
      const times = fields.repeat === undefined ? job.repeat.times : repeatTimes(fields.repeat, schedule);
      const kept = { ...changed, schedule, schedule_display: isMoved ? schedule.display : job.schedule_display };
      const named = kept.name === "" ? { ...kept, name: nameFor({ ...kept, script: kept.script ?? "" }) } : kept;
      requireKnown(fields, jobs);
      await this.#check(named);
      const repeat = {
        times: isMoved && fields.repeat === undefined ? repeatTimes(undefined, schedule, times) : times,
        completed: job.repeat.completed,
      };
      if (!isMoved) return { ...named, repeat };
      const isOver = job.state === "completed" || job.state === "missed" || job.state === "error";
      const fresh: Job = {
        ...named,
        repeat: isOver ? { ...repeat, completed: 0 } : repeat,
        ...(schedule.kind === "once" ? { last_run_at: null } : {}),
        ...(isOver ? { enabled: true, state: "scheduled" as const } : {}),
      };
      return this.#replan(job, fresh, { reason: "missed", detail: "the schedule was changed" });
    });
    return this.#answer(updated, `Job "${updated.name}" is updated.`);
  }

  async pause(reference: string, reason: string | null = null): Promise<JobAnswer> {
    const { now, zone } = this.#moment;
    const job = await this.#replace(reference, (job) => {
      if (job.state === "completed") throw new JobError(`Job "${job.name}" is completed; there is nothing to pause.`);
      const since = job.state === "paused" && job.paused_at !== null ? job.paused_at : zone.iso(now);
      const why = reason ?? (job.state === "paused" ? job.paused_reason : null);
      const off: Job = { ...job, enabled: false, state: "paused", paused_at: since, paused_reason: why };
      return this.#replan(job, off, { reason: "paused", detail: reason ?? "" });
    });
    return this.#answer(job, `Job "${job.name}" is paused.`);
  }

  async resume(reference: string): Promise<JobAnswer> {
    let wasOn = false;
    const resumed = await this.#replace(reference, async (job) => {
      // A time that is due just now stays so.
      wasOn = job.enabled && job.state === "scheduled";
      if (wasOn) return job;
      if (job.state === "completed")
        throw new JobError(
          `Job "${job.name}" is completed. To run it once more: hermes cron run ${job.id}; to schedule it again: hermes cron edit ${job.id} --schedule ...`,
        );
      return this.#replan(
        job,
        { ...job, enabled: true, state: "scheduled", paused_at: null, paused_reason: null },
        whyOff(job),
      );
    });
    return this.#answer(resumed, `Job "${resumed.name}" is ${wasOn ? "scheduled already" : "scheduled again"}.`);
  }

  async remove(reference: string): Promise<JobAnswer> {
    const removed = await this.file.change((jobs) => {
      const job = findJob(jobs, reference);
      jobs.splice(jobs.indexOf(job), 1);
      return job;
    });
    const gone: Job = { ...removed, enabled: false, next_run_at: null };
    return this.#answer(gone, `Job "${removed.name}" is removed.`);
  }

  /**
   * Asks for a run now, besides the schedule. It waits in the store: for the process that schedules, or for whoever takes it here. The
   * `by` of the answer says who runs the schedule just now; null when nobody does.
   */
  async trigger(reference: string): Promise<JobAnswer & { readonly row: JobRun; readonly by: TickerStatus["by"] }> {
    const job = await this.find(reference);
    const work = await this.#options.work();
    const slot = `manual:${randomBytes(6).toString("hex")}`;
    const id = await work.claimSlot({ jobId: job.id, slot, state: "queued" });
    const [row] = (await work.jobRuns({ jobId: job.id, states: ["queued"] })).filter((one) => one.id === id);
    if (!row) throw new JobError(`Job "${job.name}" could not be started; try again.`);
    const { by } = await tickerStatus(this.#options.home.paths);
    return { ...this.#answer(job, `Job "${job.name}" runs now.`), row, by };
  }

  /** Newest first; those that are over only with `all`. */
  async list({ all = false } = {}): Promise<readonly ListedJob[]> {
    const { zone } = this.#moment;
    const work = await this.#options.work();
    const runs = await work.jobRuns({ limit: 1000 });
    const jobs = await this.file.read();
    return jobs
      .filter(({ enabled, state }) => all || enabled || state === "paused")
      .map((job) => {
        const own = runs.filter(({ jobId }) => jobId === job.id);
        const last = own.find(({ state }) => state !== "queued" && state !== "skipped") ?? own[0];
        return {
          ...job,
          next_runs: this.#next(job),
          running: own.some(({ state }) => state === "claimed" || state === "running"),
          last_run: last
            ? {
                ...{ slot: last.slot, state: last.state, error: last.error, reason: last.reason },
                started_at: last.startedAt === null ? null : zone.iso(last.startedAt * 1000),
                ended_at: last.endedAt === null ? null : zone.iso(last.endedAt * 1000),
              }
            : null,
        };
      });
  }

  async status(): Promise<CronStatus> {
    const { now, zone } = this.#moment;
    const work = await this.#options.work();
    const [ticker, jobs, rows, [ended]] = await Promise.all([
      tickerStatus(this.#options.home.paths),
      this.file.read(),
      work.jobRuns({ states: ["skipped", "unknown"], limit: 20 }),
      work.jobRuns({ states: ["completed", "failed", "unknown"], limit: 1 }),
    ]);
    const nameOf = (id: string) => jobs.find((job) => job.id === id)?.name ?? id;
    const planned = jobs
      .filter((job) => job.enabled && job.state === "scheduled" && job.next_run_at !== null)
      .map((job) => ({ job, at: Date.parse(job.next_run_at ?? "") }))
      .sort((one, other) => one.at - other.at);
    const [first] = planned;
    const count = (test: (job: Job) => boolean) => jobs.filter(test).length;
    return {
      ...ticker,
      lag_seconds: first ? Math.max(0, Math.floor((now - first.at) / 1000)) : 0,
      jobs: {
        enabled: count(({ enabled, state }) => enabled && state === "scheduled"),
        paused: count(({ state, enabled }) => state === "paused" || (!enabled && state === "scheduled")),
        completed: count(({ state }) => state === "completed"),
        error: count(({ state }) => state === "error" || state === "missed"),
      },
      next: first ? { id: first.job.id, name: first.job.name, at: first.job.next_run_at ?? "" } : null,
      last: ended
        ? {
            ...{ id: ended.jobId, name: nameOf(ended.jobId), state: ended.state, error: ended.error },
            at: zone.iso((ended.endedAt ?? 0) * 1000),
          }
        : null,
      skipped: rows.map(({ jobId, slot, reason, error, endedAt }) => ({
        ...{ job_id: jobId, name: nameOf(jobId) },
        slot,
        reason: [reason ?? "interrupted", ...(error ? [error] : [])].join(": "),
        at: zone.iso((endedAt ?? 0) * 1000),
      })),
    };
  }

  // --- steps

  #replace(reference: string, work: (job: Job, jobs: readonly Job[]) => Job | Promise<Job>): Promise<Job> {
    return this.file.change(async (jobs) => {
      const job = findJob(jobs, reference);
      const next = await work(job, jobs);
      jobs[jobs.indexOf(job)] = next;
      return next;
    });
  }

  /**
   * The record with its next run planned anew. What that passes over is written down first: a kill in between leaves no gap that nobody
   * explains. `why` is for a job that was on until now.
   */
  async #replan(job: Job, fresh: Job, why: Pick<Skipped, "reason" | "detail">): Promise<Job> {
    const moment = this.#moment;
    // What is paused, or gets another schedule, may have one that cannot be used.
    const planned = withNext(
      fresh,
      fresh.enabled ? this.#plan(fresh) : unlessBroken(() => this.#plan(fresh)),
      moment.zone,
    );
    const skipped = unlessBroken(() => passedOver(job, moment, job.enabled ? why : whyOff(job)));
    // A job for one time that may still run is not passed over.
    if (skipped === null || Date.parse(skipped.slot) === Date.parse(planned.next_run_at ?? "")) return planned;
    const { slot, reason, detail } = skipped;
    const work = await this.#options.work();
    await work.claimSlot({ jobId: job.id, slot, state: "skipped", reason, ...(detail ? { error: detail } : {}) });
    return planned;
  }

  #schedule(text: string, tz: string | null | undefined): Schedule {
    const { now, zone } = this.#moment;
    const own = tz ? zoneNamed(tz) : zone;
    const schedule = readSchedule(text, { now, zone: own });
    if (schedule.kind === "once" && Date.parse(schedule.run_at) < now - ONCE_GRACE)
      throw new ScheduleError(
        `${zone.minute(Date.parse(schedule.run_at))} is past. Write a time that is still to come.`,
      );
    if (!tz || schedule.kind !== "cron" || schedule.tz) return schedule;
    const zoned = { ...schedule, tz: own.name, display: `CRON_TZ=${own.name} ${schedule.expr}` };
    requireComing(zoned, { now, zone });
    return zoned;
  }

  #plan(job: Job): number | null {
    return plannedRun(job, this.#moment);
  }

  /** Throws for what must not be scheduled. */
  async #check(job: Job): Promise<void> {
    const { home, platforms } = this.#options;
    if (job.prompt === "" && job.skills.length === 0 && job.script === null)
      throw new JobError("A job needs a prompt, a skill or a script: it would have nothing to do.");
    if (job.no_agent && job.script === null) throw new JobError("A job without an agent needs a script.");
    const hits = scanPrompt(job.prompt, { hasSkills: job.skills.length > 0 });
    if (hits.length > 0)
      throw new JobError(`The prompt is refused: ${hits.join(", ")}. Nobody would be there to stop what it asks for.`);
    if (stopsOwnGateway(job.prompt)) throw new JobError(`The job is refused: ${STOPS_GATEWAY}.`);
    const other = otherProfile(job, home.paths);
    if (other !== null) throw new JobError(`The job is refused: ${other}.`);
    if (job.base_url !== null) cleanUrl(job.base_url);
    if (job.script !== null) await scriptPath(job.script, home);
    const nowhere = await workdirProblem(job);
    if (nowhere !== null) throw new JobError(`${nowhere}.`);
    for (const target of job.deliver.split(",").map((one) => one.trim())) {
      const name = target.split(":")[0]?.toLowerCase() ?? "";
      if (!platforms || ["origin", "local", "all"].includes(target) || platforms.has(name)) continue;
      throw new JobError(
        `Nothing can be delivered to "${target}": no platform is called "${name}". Use origin, local, all, a platform or PLATFORM:CHAT_ID.`,
      );
    }
  }

  #next(job: Job): readonly string[] {
    const { zone } = this.#moment;
    const first = job.next_run_at === null || !job.enabled ? null : Date.parse(job.next_run_at);
    try {
      const own = zoneOf(job, zone);
      return nextRuns(job.schedule, first, zone).map((at) => own.iso(at));
    } catch {
      return []; // an expression that is refused; the record says why
    }
  }

  #answer(job: Job, message: string): JobAnswer {
    return {
      success: true,
      job_id: job.id,
      name: job.name,
      schedule: job.schedule_display,
      repeat: repeatWords(job),
      deliver: job.deliver,
      next_run_at: job.next_run_at,
      next_runs: this.#next(job),
      message,
    };
  }
}

/** A name that was mistyped would only be missed in the runs. */
function requireKnown({ context_from: names = [] }: JobFields, jobs: readonly Job[]): void {
  for (const name of names) if (name.trim() !== "") findJob(jobs, name);
}

/** Why a job that is off did not run. */
const whyOff = ({ state, paused_reason: why }: Job): Pick<Skipped, "reason" | "detail"> => ({
  reason: state === "paused" ? "paused" : "disabled",
  detail: why ?? "",
});

function unlessBroken<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}
