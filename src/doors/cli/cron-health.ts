// How scheduled jobs are doing, for `hermes status` and `hermes doctor`: who runs the schedule, what is wrong with a job, what was not run.
import { CronJobs, type CronStatus, type ListedJob } from "../../cron/manage.ts";
import { homeZone } from "../../cron/run.ts";
import { ranLine, skippedLine, tickerLine } from "../../cron/show.ts";
import type { Zone } from "../../cron/wall-clock.ts";
import { hermesCommand } from "../../home/paths.ts";
import { plural } from "../../kit/formats.ts";
import type { CliContext } from "../cli-context.ts";
import type { Finding } from "./config-check.ts";

/** Jobs of a home, and what there is to say about their file. */
function openJobs({ home, clock, store }: CliContext): { readonly cron: CronJobs; readonly problems: string[] } {
  const problems: string[] = [];
  const work = async () => (await store()).work();
  return { problems, cron: new CronJobs({ home, clock, work, report: (problem) => problems.push(problem) }) };
}

export async function cronStatus(ctx: CliContext): Promise<CronStatus> {
  return openJobs(ctx).cron.status();
}

/** Rows of `hermes status`. */
export function cronRows(found: CronStatus, { home }: Pick<CliContext, "home">): [name: string, value: string][] {
  const { jobs, next, last, skipped } = found;
  const zone = homeZone(home);
  if (Object.values(jobs).every((count) => count === 0)) return [["Cron", "no jobs"]];
  const [newest] = skipped;
  return [
    ["Cron", `${plural(jobs.enabled, "job")}${jobs.enabled > 0 ? `. ${tickerLine(found, zone)}` : ""}`],
    ...(next ? [["Next job", `${next.name}, ${when(next.at, zone)}`] satisfies [string, string]] : []),
    ...(last ? [["Last job", ranLine(last, zone)] satisfies [string, string]] : []),
    ...(newest ? [["Not run", skippedLine(newest, zone)] satisfies [string, string]] : []),
  ];
}

const when = (at: string, zone: Zone) => zone.minute(Date.parse(at));

export async function checkCron(ctx: CliContext): Promise<readonly Finding[]> {
  const { home, clock } = ctx;
  const { cron, problems } = openJobs(ctx);
  const found = await cron.status();
  const jobs = await cron.list({ all: true });
  const file =
    problems.length > 0
      ? problems.map((text): Finding => ({ level: "error", text }))
      : (await cron.file.damage()).map((text): Finding => ({ level: "warn", text }));
  if (jobs.length === 0) return file.length > 0 ? file : [{ level: "ok", text: "no scheduled jobs" }];
  const zone = homeZone(home);
  const now = clock.now();
  const lookEvery = home.config().cron.tick_seconds * 1000;
  const isLooking = found.running && now - Date.parse(found.last_tick_at ?? "") < lookEvery * 3 + SLACK_MS;
  return [
    ...file,
    ...ticking(found, { zone, isLooking }),
    ...jobs.flatMap((job) => problemsOf(job, { zone, isLate: isLooking && isOverdue(job, now - lookEvery * 2) })),
    ...notRun(found, { zone, since: now - RECENT_MS }),
  ];
}

/** A busy machine looks a little later. */
const SLACK_MS = 120_000;
const RECENT_MS = 7 * 86_400_000;
const RUN_IT = () => `${hermesCommand("gateway start")}, or ${hermesCommand("cron daemon")}`;

function ticking(found: CronStatus, { zone, isLooking }: { zone: Zone; isLooking: boolean }): readonly Finding[] {
  const { jobs, next } = found;
  if (jobs.enabled === 0) return [{ level: "ok", text: "no job is due: all are paused or finished" }];
  const count = plural(jobs.enabled, "job");
  if (!found.running) return [{ level: "warn", text: `${count}, but nothing is running the schedule`, fix: RUN_IT() }];
  const upcoming = next ? `; next ${next.name}, ${when(next.at, zone)}` : "";
  if (isLooking) return [{ level: "ok", text: `${count}. ${tickerLine(found, zone)}${upcoming}` }];
  return [
    {
      level: "warn",
      text: `${count}. ${tickerLine(found, zone)}: it should look every minute`,
      fix: `${hermesCommand("logs errors")}, then restart it`,
    },
  ];
}

const isOverdue = (job: ListedJob, before: number) =>
  job.enabled && job.state === "scheduled" && !job.running && Date.parse(job.next_run_at ?? "") < before;

function problemsOf(job: ListedJob, { zone, isLate }: { zone: Zone; isLate: boolean }): readonly Finding[] {
  const { id, name, state, enabled, last_error: error, last_delivery_error: unsent, next_run_at: next } = job;
  const about = `${name} (${id})`;
  const again = hermesCommand(`cron run ${id}`);
  const findings: Finding[] = [];
  const warn = (text: string, fix: string) => void findings.push({ level: "warn", text: `${about} ${text}`, fix });
  if (state === "missed") warn("was not run: nothing was running the schedule at its time", again);
  else if (state === "error" && job.schedule.kind !== "once")
    warn(`cannot be scheduled: ${error ?? ""}`, hermesCommand(`cron edit ${id} --schedule "..."`));
  else if (state === "paused" && /^It failed\b/.test(job.paused_reason ?? ""))
    warn(`is paused: ${job.paused_reason} ${error ?? ""}`.trim(), hermesCommand(`cron resume ${id}`));
  else if (job.last_status === "error" && (enabled || state === "error"))
    warn(`failed: ${error ?? ""}`, `${again}; its output is in cron/output/${id}`);
  if (unsent !== null && state !== "completed")
    warn(`was not delivered: ${unsent}`, hermesCommand(`cron edit ${id} --deliver TARGET`));
  if (isLate && next !== null)
    warn(
      `is due since ${when(next, zone)} and has not started: as many jobs run as may run at once`,
      hermesCommand("config set cron.max_parallel_jobs N"),
    );
  return findings;
}

/** What the user paused was meant. */
function notRun({ skipped }: CronStatus, { zone, since }: { zone: Zone; since: number }): readonly Finding[] {
  const recent = skipped.filter(({ reason, at }) => Date.parse(at) > since && !/^(?:paused|disabled)\b/.test(reason));
  return [...Map.groupBy(recent, ({ job_id }) => job_id).values()].flatMap(([newest]): Finding[] =>
    newest ? [{ level: "warn", text: `not run: ${skippedLine(newest, zone)}`, fix: hermesCommand("cron status") }] : [],
  );
}
