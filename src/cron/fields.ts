// What people and models say about a job, and what its record becomes of it.
import { messageOf } from "../kit/errors.ts";
import { type Job, JobError, lineOf } from "./jobs.ts";
import { type Schedule, ScheduleError } from "./schedule.ts";
import { Zone } from "./wall-clock.ts";

/** What can be said about a job. Absent: as it was; an empty text or list clears a field. */
export interface JobFields {
  readonly schedule?: string | undefined;
  readonly prompt?: string | undefined;
  readonly name?: string | undefined;
  readonly repeat?: number | null | undefined;
  readonly deliver?: string | readonly string[] | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly model?: string | null | undefined;
  readonly provider?: string | null | undefined;
  /** Where its model is asked, instead of its provider's own address. */
  readonly base_url?: string | null | undefined;
  /** The home it runs in: none but its own. */
  readonly profile?: string | null | undefined;
  readonly script?: string | null | undefined;
  readonly no_agent?: boolean | undefined;
  readonly context_from?: readonly string[] | undefined;
  readonly enabled_toolsets?: readonly string[] | undefined;
  readonly workdir?: string | null | undefined;
  /** The zone of a cron expression. */
  readonly tz?: string | null | undefined;
  /** What one run may cost, and how many tokens it may take; null: no limit, absent: as it was. */
  readonly budget?:
    | { readonly usd?: number | null | undefined; readonly tokens?: number | null | undefined }
    | null
    | undefined;
}

/** Nothing was said that could be done. */
class JobUsageError extends JobError {
  override readonly exitCode = 2;
}

export function requireSomething(fields: JobFields): void {
  if (Object.values(fields).every((value) => value === undefined))
    throw new JobUsageError("There is nothing to change: name a field, such as the schedule or the prompt.");
}

/** Without the schedule, which is worked out with the time of now. */
export function textsOf(fields: JobFields, before: Pick<Job, "budget"> | null = null): Partial<Job> {
  const {
    prompt,
    name,
    deliver,
    skills,
    model,
    provider,
    base_url,
    profile,
    script,
    no_agent,
    context_from,
    enabled_toolsets,
    workdir,
    budget,
  } = fields;
  const text = <K extends keyof Job>(key: K, value: string | null | undefined) =>
    value === undefined ? {} : { [key]: value?.trim() || null };
  const list = (values: readonly string[]) => [
    ...new Set(values.map((value) => value.trim()).filter((value) => value !== "")),
  ];
  const chosen = skills === undefined ? null : list(skills);
  const targets = deliver === undefined ? null : list(typeof deliver === "string" ? deliver.split(",") : deliver);
  return {
    ...(prompt === undefined ? {} : { prompt: prompt.trim() }),
    ...(name === undefined ? {} : { name: lineOf(name) }),
    ...(targets === null ? {} : { deliver: targets.join(",") || "local" }),
    ...(chosen === null ? {} : { skills: chosen, skill: chosen[0] ?? null }),
    ...text("model", model),
    ...text("provider", provider),
    ...text("base_url", base_url),
    ...text("profile", profile),
    ...text("script", script),
    ...text("workdir", workdir),
    ...(no_agent === undefined ? {} : { no_agent }),
    ...(context_from === undefined ? {} : { context_from: list(context_from) }),
    ...(enabled_toolsets === undefined
      ? {}
      : { enabled_toolsets: enabled_toolsets.length > 0 ? list(enabled_toolsets) : null }),
    ...(budget === undefined ? {} : { budget: budget && budgetOf({ ...before?.budget, ...stated(budget) }) }),
  };
}

type Budget = NonNullable<JobFields["budget"]>;

const stated = (budget: Budget): Budget =>
  Object.fromEntries(Object.entries(budget).filter(([, value]) => value !== undefined));

function budgetOf({ usd = null, tokens = null }: Budget): Job["budget"] {
  return usd === null && tokens === null ? null : { usd, tokens };
}

export function repeatTimes(
  asked: number | null | undefined,
  schedule: Schedule,
  before: number | null = null,
): number | null {
  if (asked === undefined) return schedule.kind === "once" ? 1 : before === 1 ? null : before;
  return asked === null || asked <= 0 ? null : asked;
}

export function zoneNamed(name: string): Zone {
  try {
    return Zone.named(name);
  } catch (error) {
    throw new ScheduleError(messageOf(error));
  }
}

export const tzOf = (schedule: Schedule) => (schedule.kind === "cron" ? schedule.tz : undefined);

/** The schedule as it could have been typed. */
export function sourceOf(schedule: Schedule): string {
  if (schedule.kind === "once") return schedule.run_at;
  return schedule.kind === "interval" ? `every ${schedule.minutes}m` : schedule.expr;
}
