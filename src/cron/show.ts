// Jobs as people read them, on the command line, on the screen and in chats.
import { hermesCommand } from "../home/paths.ts";
import { repeatWords } from "./jobs.ts";
import type { CronJobs, CronStatus, JobAnswer, ListedJob } from "./manage.ts";
import type { TickerStatus } from "./ticker.ts";
import type { Zone } from "./wall-clock.ts";

/** What came of a change, and the next three times: whoever was misunderstood sees it here. */
export function answerLines(answer: JobAnswer, zone: Zone): string {
  const times = answer.next_runs.map((at) => zone.minute(Date.parse(at)));
  return [
    `✓ ${answer.message}`,
    `  id        ${answer.job_id}`,
    `  schedule  ${answer.schedule} (${answer.repeat})`,
    `  delivers  ${answer.deliver}`,
    ...(times.length > 0 ? [`  next      ${times.join(", ")} (${zone.name})`] : []),
  ].join("\n");
}

function jobLines(job: ListedJob, zone: Zone): string {
  const next = job.next_runs.map((at) => zone.minute(Date.parse(at)));
  const state = job.running ? "running" : job.enabled ? job.state : job.state === "scheduled" ? "off" : job.state;
  const last = job.last_run;
  const came = last === null ? null : last.error ? `${last.state}: ${last.error}` : last.state;
  const rows = [
    ["schedule", `${job.schedule_display} (${repeatWords(job)})`],
    ["next", next.join(", ")],
    ["last", came === null ? "" : `${last?.ended_at ? `${zone.minute(Date.parse(last.ended_at))} ` : ""}${came}`],
    ["delivers", job.deliver],
    [
      "problem",
      job.last_delivery_error ?? (job.state === "error" ? (job.last_error ?? "") : (job.paused_reason ?? "")),
    ],
  ];
  const shown = rows.filter(([, value]) => value !== "").map(([name = "", value]) => `  ${name.padEnd(9)} ${value}`);
  return [`${job.id}  ${job.name}  [${state}]`, ...shown].join("\n");
}

/** Null when somebody runs the schedule. */
export function nobodyLine({ running }: Pick<TickerStatus, "running">): string | null {
  if (running) return null;
  return `Nothing is running the schedule. Start it: ${hermesCommand("gateway start")} or ${hermesCommand("cron daemon")}`;
}

/** Who runs the schedule. */
export function tickerLine(found: TickerStatus, zone: Zone): string {
  const who = found.by === "gateway" ? "the gateway" : "hermes cron daemon";
  const last = found.last_tick_at === null ? "never" : zone.minute(Date.parse(found.last_tick_at));
  return nobodyLine(found) ?? `Running: ${who} (process ${found.pid}), last look ${last}`;
}

export function statusLines(found: CronStatus, zone: Zone): string {
  const { jobs, next, last, skipped } = found;
  return [
    tickerLine(found, zone),
    `Jobs: ${jobs.enabled} scheduled, ${jobs.paused} paused, ${jobs.completed} completed, ${jobs.error} with errors`,
    ...(next
      ? [
          `Next: ${next.name} at ${zone.minute(Date.parse(next.at))}${found.lag_seconds > 0 ? `, ${found.lag_seconds} s late` : ""}`,
        ]
      : []),
    ...(last ? [`Last: ${ranLine(last, zone)}`] : []),
    ...(skipped.length > 0 ? ["Skipped:"] : []),
    ...skipped.map((one) => `  ${skippedLine(one, zone)}`),
  ].join("\n");
}

export const ranLine = ({ name, at, state, error }: NonNullable<CronStatus["last"]>, zone: Zone) =>
  `${name}, ${zone.minute(Date.parse(at))}: ${error ? `${state}: ${error}` : state}`;

/** Which run of which job was left out, and why. */
export function skippedLine({ job_id, name, slot, reason }: CronStatus["skipped"][number], zone: Zone): string {
  const due = Date.parse(slot);
  const at = Number.isNaN(due) ? "by hand" : zone.minute(due);
  return `${name}${name === job_id ? "" : ` (${job_id})`}, ${at}: ${reason}`;
}

/** All of `list`: the jobs, and a last line when nothing runs the schedule. */
export async function listText(
  cron: CronJobs,
  ticker: TickerStatus,
  zone: Zone,
  options: { readonly all: boolean },
): Promise<string> {
  const jobs = await cron.list(options);
  const nobody = nobodyLine(ticker);
  const aside = (await cron.file.damage()).map((line) => `⚠ ${line}`);
  const none = `No jobs. Schedule one: ${hermesCommand('cron add "every weekday at 9" "..."')}`;
  const shown = jobs.length === 0 ? [none] : jobs.map((job) => `${jobLines(job, zone)}\n`);
  return [...shown, ...aside, ...(nobody === null ? [] : [nobody])].join("\n");
}
