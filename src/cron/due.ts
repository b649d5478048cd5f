// What is to be done about a job at a moment. Pure: job and time in, decision out; `scheduler.ts` acts on it.
import type { SkipReason } from "../sessions/work.ts";
import type { Job } from "./jobs.ts";
import { graceOf, nextOf, nextRun, requireComing, slotsBetween } from "./schedule.ts";
import { Zone } from "./wall-clock.ts";

/** Slots that are not run. The last one names them all, so that a later look at the same plan adds what came since. */
export interface Skipped {
  readonly slot: string;
  readonly reason: SkipReason;
  readonly detail: string;
}

export type Decision =
  | { readonly type: "wait" }
  /** The record is to be changed, nothing runs. */
  | { readonly type: "correct"; readonly job: Job }
  /** This slot, for whoever claims it. `job` is the record from then on, also for whoever does not. */
  | { readonly type: "run"; readonly slot: string; readonly job: Job; readonly skipped: Skipped | null }
  | { readonly type: "skip"; readonly job: Job; readonly skipped: Skipped }
  /** A one-shot whose time is past: its target is told. */
  | { readonly type: "missed"; readonly job: Job; readonly skipped: Skipped; readonly at: number };

export interface Moment {
  readonly now: number;
  /** The zone of schedules without one. */
  readonly zone: Zone;
  /** `cron.missed_run` */
  readonly missedRun: "once" | "skip";
}

/** The slot of a moment, the same in every zone: UTC, to the second. */
export const slotName = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** A last run further ahead than this comes from a clock that was wrong, and holds nothing up. */
const CLOCK_TRUST = 24 * 3_600_000;

/** The last run, where it still says something about what comes next: a clock that went back a little must not bring slots back. */
function lastSlot({ last_run_at: at }: Job, now: number): number | null {
  const ran = at === null ? Number.NaN : Date.parse(at);
  return Number.isNaN(ran) || ran > now + CLOCK_TRUST ? null : ran;
}

export const zoneOf = ({ schedule }: Job, zone: Zone) =>
  schedule.kind === "cron" && schedule.tz ? Zone.named(schedule.tz) : zone;

/** When a job that is switched on runs next, as its record should say. */
export function plannedRun(job: Job, { now, zone }: Pick<Moment, "now" | "zone">): number | null {
  return nextRun(job.schedule, { now, zone, lastSlot: lastSlot(job, now) });
}

export function withNext(job: Job, at: number | null, zone: Zone): Job {
  const next = at === null ? null : zoneOf(job, zone).iso(at);
  return next === job.next_run_at ? job : { ...job, next_run_at: next };
}

/** A schedule that cannot be used throws here, as a `ScheduleError`. */
export function decide(job: Job, moment: Moment, { isRunning }: { readonly isRunning: boolean }): Decision {
  if (!job.enabled || job.state !== "scheduled") return { type: "wait" };
  const { now, zone } = moment;
  const slot = job.next_run_at === null ? null : Date.parse(job.next_run_at);
  if (job.schedule.kind === "once") return decideOnce(job, slot, moment, isRunning);
  requireComing(job.schedule, moment);
  if (slot === null || slot > now) return corrected(job, slot, moment);
  const { count, last } = slotsBetween(job.schedule, slot, now, zone);
  const following = job.schedule.kind === "interval" ? last + job.schedule.minutes * 60_000 : plannedRun(job, moment);
  const next = withNext(job, following, zone);
  const isLate = now - slot > graceOf(job.schedule, slot, zone);
  const skip = (reason: SkipReason) => ({ slot: slotName(last), reason, detail: joined("", slot, count + 1) });
  if (isRunning) return { type: "skip", job: next, skipped: skip("overlap") };
  if (isLate && moment.missedRun === "skip") return { type: "skip", job: next, skipped: skip("missed") };
  const first = count === 0 ? null : slotBehind(job, slot, zone);
  return {
    type: "run",
    slot: slotName(slot),
    job: { ...next, last_run_at: zone.iso(now) },
    skipped: first === null ? null : { slot: slotName(last), reason: "missed", detail: joined("", first, count) },
  };
}

/** `the schedule was changed; 5 slots from 2026-11-18T09:00:00Z` */
function joined(detail: string, first: number, count: number): string {
  return [detail, count > 1 ? `${count} slots from ${slotName(first)}` : ""].filter((one) => one !== "").join("; ");
}

function slotBehind({ schedule }: Job, slot: number, zone: Zone): number | null {
  if (schedule.kind === "interval") return slot + schedule.minutes * 60_000;
  return schedule.kind === "cron" ? nextOf(schedule, slot, zone) : null;
}

function decideOnce(job: Job, slot: number | null, moment: Moment, isRunning: boolean): Decision {
  const { now, zone } = moment;
  if (job.schedule.kind !== "once") return { type: "wait" };
  // It was claimed and has not ended: its run, or whoever finds that one gone, says what became of it.
  if (slot === null && job.last_run_at !== null) return { type: "wait" };
  const at = slot ?? Date.parse(job.schedule.run_at);
  if (at > now) return slot === null ? { type: "correct", job: withNext(job, at, zone) } : { type: "wait" };
  if (now - at > graceOf(job.schedule, at, zone)) {
    const skipped = { slot: slotName(at), reason: "missed", detail: "nobody was scheduling at its time" } as const;
    return { type: "missed", at, skipped, job: { ...job, state: "missed", enabled: false, next_run_at: null } };
  }
  if (isRunning) return { type: "wait" };
  return {
    type: "run",
    slot: slotName(at),
    job: { ...job, next_run_at: null, last_run_at: zone.iso(now) },
    skipped: null,
  };
}

/** A plan that does not fit any more: the zone is another one, or the clock went back. */
function corrected(job: Job, slot: number | null, moment: Moment): Decision {
  const { now, zone } = moment;
  if (job.schedule.kind === "interval" && slot !== null && slot <= now + job.schedule.minutes * 60_000)
    return { type: "wait" };
  const planned = withNext(job, plannedRun(job, moment), zone);
  return Date.parse(planned.next_run_at ?? "") === slot ? { type: "wait" } : { type: "correct", job: planned };
}

/** The slots that passed while a job was switched off or planned otherwise, for the record; null when there were none. */
export function passedOver(
  job: Job,
  { now, zone }: Pick<Moment, "now" | "zone">,
  why: Pick<Skipped, "reason" | "detail">,
): Skipped | null {
  const slot = job.next_run_at === null ? Number.NaN : Date.parse(job.next_run_at);
  if (Number.isNaN(slot) || slot > now) return null;
  const { count, last } = slotsBetween(job.schedule, slot, now, zone);
  return { slot: slotName(last), reason: why.reason, detail: joined(why.detail, slot, count + 1) };
}

// What came of a run.

interface RunOutcome {
  readonly ok: boolean;
  /** Why not. */
  readonly error: string | null;
  readonly deliveryError: string | null;
}

/** The record behind a run of its schedule. One-shots and jobs that ran as often as they should are done. */
export function afterRun(job: Job, outcome: RunOutcome, { isManual }: { readonly isManual: boolean }): Job {
  const { times, completed } = job.repeat;
  // A time that is still to come is not used up by a run in between.
  const isExtra = isManual && (job.schedule.kind !== "once" || job.next_run_at !== null);
  const count = isExtra ? completed : completed + 1;
  const isDone = (times !== null && count >= times) || (job.schedule.kind === "once" && job.next_run_at === null);
  return {
    ...job,
    repeat: { times, completed: count },
    last_status: outcome.ok ? "ok" : "error",
    last_error: outcome.error,
    last_delivery_error: outcome.deliveryError,
    ...(isDone ? { enabled: false, state: "completed" as const, next_run_at: null } : {}),
  };
}

/** A run whose process is gone. A one-shot is not run again by itself: it may have done what it was for. */
export function afterLoss(job: Job): Job {
  const failed = { ...job, last_status: "error" as const, last_error: "interrupted: the process that ran it is gone" };
  if (job.schedule.kind !== "once") return failed;
  return { ...failed, enabled: false, state: "error", next_run_at: null };
}
