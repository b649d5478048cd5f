// When a job runs: what a schedule says, and the next moment that it means. Pure: the time of now is handed in.
import { Cron } from "croner";
import { UserError } from "../kit/errors.ts";
import { plural } from "../kit/formats.ts";
import { type Wall, Zone } from "./wall-clock.ts";
import { readWords } from "./words.ts";

/** As `cron/jobs.json` holds it; fields of other programs stay in it. */
export type Schedule =
  | { readonly kind: "once"; readonly run_at: string; readonly display: string }
  | { readonly kind: "interval"; readonly minutes: number; readonly display: string }
  | { readonly kind: "cron"; readonly expr: string; readonly display: string; readonly tz?: string | undefined };

/** A schedule that cannot be read or never comes. */
export class ScheduleError extends UserError {
  override name = "ScheduleError";
  override readonly exitCode = 2;
}

interface ReadAt {
  /** Milliseconds. */
  readonly now: number;
  /** The zone of times without one. */
  readonly zone: Zone;
}

const MINUTE = 60_000;
const DURATION = /^(\d{1,7})\s*(m|min|mins|minutes?|h|hrs?|hours?|d|days?)$/i;
const UNITS: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1440 };
const MOST_MINUTES = 10 * 365 * 1440;

/** Reads what a person or a model wrote. Throws a `ScheduleError` that names the forms. */
export function readSchedule(typed: string, at: ReadAt): Schedule {
  const text = typed.trim().replace(/\s+/g, " ");
  const every = /^every (.*)$/i.exec(text)?.[1];
  const interval = every === undefined ? null : minutesOf(every);
  if (interval !== null) return intervalOf(interval, text);
  const cron = asCron(text, at);
  if (cron) return cron;
  if (/^\d{4}-\d{2}-\d{2}/.test(text) || /\dT\d/i.test(text)) return onceAt(text, at);
  const delay = minutesOf(text);
  if (delay !== null) return onceIn(delay, text, at);
  const words = readWords(text, new Date(at.zone.wallAt(at.now)));
  switch (words?.type) {
    case "in":
      return onceIn(words.minutes, words.said, at);
    case "every":
      return intervalOf(words.minutes, text);
    case "at":
      return once(at.zone.momentOf(words.wall), at.zone);
    case "cron":
      return { kind: "cron", expr: words.expr, display: words.expr };
    default:
      throw new ScheduleError(`"${typed.trim()}" is not a schedule. ${FORMS}`);
  }
}

const FORMS = `Write one of: "every 30m", "every 2h" (again and again); "20m", "in 20 minutes", "20分钟后" (once from now); "2027-02-03T14:00" (once at a time); "0 9 * * 1-5" (a cron expression: minute, hour, day of month, month, day of week); "every day at 9am", "every weekday at 9", "every monday 10:00", "every 1st at 8:00", "每天早上8点", "工作日8:30", "每周一9点", "每月1号8点".`;

/** Minutes of `2h`; null for anything else. */
function minutesOf(text: string): number | null {
  const [, count = "", unit = ""] = DURATION.exec(text) ?? [];
  const factor = UNITS[unit.slice(0, 1).toLowerCase()];
  return factor === undefined ? null : Number(count) * factor;
}

function intervalOf(minutes: number, text: string): Schedule {
  if (minutes < 1 || minutes > MOST_MINUTES)
    throw new ScheduleError(`"${text}": an interval is at least one minute and at most ten years.`);
  return { kind: "interval", minutes, display: `every ${minutes}m` };
}

function onceIn(minutes: number, said: string, { now, zone }: ReadAt): Schedule {
  if (minutes > MOST_MINUTES) throw new ScheduleError(`"${said}" is more than ten years away.`);
  return { kind: "once", run_at: zone.iso(now + minutes * MINUTE), display: `once in ${said}` };
}

const once = (moment: number, zone: Zone): Schedule => ({
  kind: "once",
  run_at: zone.iso(moment),
  display: `once at ${zone.minute(moment)}`,
});

const ISO =
  /^(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{1,2})(?::?(\d{2}))?(?::?(\d{2})(?:[.,]\d{1,9})?)?)?\s?(Z|[+-]\d{2}:?\d{2})?$/i;

function onceAt(text: string, { zone }: ReadAt): Schedule {
  const [whole, year, month, day, hour = 0, minute = 0, second = 0, offset] = ISO.exec(text) ?? [];
  const fields = [year, Number(month) - 1, day, hour, minute, second].map(Number);
  const wall = Date.UTC(...(fields as [number, number, number, number, number, number])); // six of them
  const isReal = new Date(wall).toISOString().slice(8, 10) === day && Number(hour) < 24 && Number(minute) < 60;
  if (whole === undefined || !isReal || Number(second) > 59)
    throw new ScheduleError(
      `"${text}" is not a time. Write it like 2027-02-03T14:00, with Z or +01:00 for another zone.`,
    );
  return once(offset === undefined ? zone.momentOf(wall) : wall - offsetOf(offset), zone);
}

function offsetOf(text: string): number {
  if (/^z$/i.test(text)) return 0;
  const sign = text.startsWith("-") ? -1 : 1;
  const digits = text.replace(/\D/g, "");
  return sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * MINUTE;
}

// Cron expressions.

const FIELD = /^(?:[\d*?,/#-]|sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)+$/i;

function asCron(text: string, at: ReadAt): Schedule | null {
  const [, tz, rest = text] = /^(?:CRON_)?TZ=(\S+) (.*)$/i.exec(text) ?? [];
  const fields = rest.split(" ");
  if (tz === undefined && (fields.length < 5 || !fields.slice(0, 5).every((field) => FIELD.test(field)))) return null;
  const schedule = { kind: "cron", expr: rest, display: text, ...(tz ? { tz } : {}) } as const;
  requireComing(schedule, at);
  return schedule;
}

/** Throws for an expression that is none, and for one that no day fits. */
export function requireComing(schedule: Schedule, { now, zone }: ReadAt): void {
  if (schedule.kind !== "cron") return;
  if (nextOf(schedule, now, zone) === null)
    throw new ScheduleError(`"${schedule.expr}" never comes: no day of any year fits it.`);
}

/** The first moment of a cron schedule strictly after another; null when there is none. */
export function nextOf(schedule: Extract<Schedule, { kind: "cron" }>, after: number, zone: Zone): number | null {
  return timesOf(schedule.expr).next(after, schedule.tz ? Zone.named(schedule.tz) : zone);
}

const KEPT = 500;
const compiled = new Map<string, CronTimes>();

function timesOf(expr: string): CronTimes {
  const known = compiled.get(expr);
  if (known) return known;
  const times = new CronTimes(expr);
  if (compiled.size >= KEPT) compiled.clear();
  compiled.set(expr, times);
  return times;
}

/**
 * One expression, read in wall-clock time. croner finds the wall times; which moments they are is decided here, because it runs those of
 * the hour that comes twice when clocks go back twice as often as a person means.
 *
 * - A wall time that is jumped over is run at the first minute behind it.
 * - One that comes twice is run once if the expression names its hours, and each time if it says every hour or a step.
 */
class CronTimes {
  readonly #cron: Cron;
  readonly #isEachTime: boolean;
  /** From this wall time on, the next one is that. */
  #known: { readonly from: Wall; readonly next: Wall } = { from: 0, next: 0 };

  constructor(expr: string) {
    const fields = expr.trim().split(/\s+/);
    if (fields.length !== 5) throw new ScheduleError(countProblem(expr, fields));
    try {
      this.#cron = new Cron(expr, { timezone: "UTC", mode: "5-part", paused: true });
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : "it cannot be read";
      throw new ScheduleError(`"${expr}" is not a cron expression: ${why}. Fields: minute, hour, day, month, weekday.`);
    }
    this.#isEachTime = /[*?/]/.test(fields[1] ?? "");
  }

  next(after: number, zone: Zone): number | null {
    let at = after;
    let from = this.#behindRepeat(after, zone);
    for (;;) {
      const wall = this.#nextWall(from);
      if (wall === null) return null;
      const moment = wall - zone.offsetAt(at);
      const change = zone.changeAfter(at, moment);
      if (change === null) return moment;
      const gone = change.at + change.before;
      if (wall < change.at + change.after) return change.at;
      at = change.at;
      // The clock shows the times from here to `gone` once more.
      const isRepeat = change.after < change.before;
      from = (isRepeat && !this.#isEachTime ? gone : change.at + change.after) - 1000;
    }
  }

  /** Where to look from: the end of the hour that comes twice, when this is the second one and its times have been. */
  #behindRepeat(after: number, zone: Zone): Wall {
    const wall = zone.wallAt(after);
    if (this.#isEachTime) return wall;
    const change = zone.changeAfter(after - LONGEST_REPEAT, after);
    const gone = change && change.after < change.before ? change.at + change.before : 0;
    return wall < gone ? gone - 1000 : wall;
  }

  #nextWall(from: Wall): Wall | null {
    const { from: start, next } = this.#known;
    if (from >= start && from < next) return next;
    const found = this.#cron.nextRun(new Date(Math.floor(from / 1000) * 1000))?.getTime() ?? null;
    if (found !== null) this.#known = { from, next: found };
    return found;
  }
}

const LONGEST_REPEAT = 3 * 3_600_000;

function countProblem(expr: string, fields: readonly string[]): string {
  if (fields.length !== 6)
    return `"${expr}" has ${plural(fields.length, "field")}; a cron expression has five: minute, hour, day, month, weekday.`;
  const first = fields.slice(1).join(" ");
  const last = fields.slice(0, 5).join(" ");
  return `"${expr}" has six fields and can be read in two ways: seconds first ("${first}") or seconds last ("${last}"). Write the five you mean.`;
}

// Any schedule.

/** The grace of a one-shot: how late it may still run. */
export const ONCE_GRACE = 120_000;

/** When the job is to run next; null = never again. `lastSlot` is the last moment that was dealt with. */
export function nextRun(
  schedule: Schedule,
  { now, zone, lastSlot = null }: ReadAt & { readonly lastSlot?: number | null },
): number | null {
  switch (schedule.kind) {
    case "once": {
      const at = Date.parse(schedule.run_at);
      return Number.isNaN(at) || lastSlot !== null || now - at > ONCE_GRACE ? null : at;
    }
    case "interval":
      return now + schedule.minutes * MINUTE;
    case "cron":
      return nextOf(schedule, Math.max(now, lastSlot ?? now), zone);
  }
}

/** The next times as a person sees them, for the echo. */
export function nextRuns(schedule: Schedule, first: number | null, zone: Zone, count = 3): readonly number[] {
  const times: number[] = [];
  for (let at = first; at !== null && times.length < count; ) {
    times.push(at);
    if (schedule.kind === "once") break;
    at = schedule.kind === "interval" ? at + schedule.minutes * MINUTE : nextOf(schedule, at, zone);
  }
  return times;
}

/** How late a slot may be before it counts as missed: half the time to the one behind it. */
export function graceOf(schedule: Schedule, slot: number, zone: Zone): number {
  if (schedule.kind === "once") return ONCE_GRACE;
  const following = schedule.kind === "interval" ? slot + schedule.minutes * MINUTE : nextOf(schedule, slot, zone);
  const period = following === null ? 0 : following - slot;
  return Math.min(7_200_000, Math.max(120_000, period / 2));
}

/** Slots after `slot` up to `now` that the schedule had: how many, and the last one. Counting ends at `most`. */
export function slotsBetween(schedule: Schedule, slot: number, now: number, zone: Zone, most = 10_000) {
  let count = 0;
  let last = slot;
  if (schedule.kind === "interval") {
    count = Math.max(0, Math.floor((now - slot) / (schedule.minutes * MINUTE)));
    return { count, last: slot + count * schedule.minutes * MINUTE };
  }
  if (schedule.kind === "once") return { count, last };
  for (let at = nextOf(schedule, slot, zone); at !== null && at <= now && count < most; ) {
    count++;
    last = at;
    at = nextOf(schedule, at, zone);
  }
  return { count, last };
}
