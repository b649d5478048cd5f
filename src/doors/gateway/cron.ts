// Scheduled jobs at the door: the scheduler of a home with real agents behind it, and the way of its answers to chats.

import type { Job } from "../../cron/jobs.ts";
import { CronJobs } from "../../cron/manage.ts";
import type { AgentAnswer, AgentTask } from "../../cron/run.ts";
import { homeZone, runJob, wrapped } from "../../cron/run.ts";
import { type Delivery, type RunLine, Scheduler } from "../../cron/scheduler.ts";
import { keepTicking, lookAlone } from "../../cron/ticker.ts";
import type { OpenHome } from "../../home/open.ts";
import type { Clock } from "../../kit/clock.ts";
import { plural } from "../../kit/formats.ts";
import { newHolder } from "../../sessions/lanes.ts";
import type { SessionStore } from "../../sessions/store.ts";
import type { OutboxPart } from "../../sessions/work.ts";
import type { Delivered } from "../../tools/toolset/context.ts";
import { composeAnswer, isSilence } from "./answer.ts";
import type { ChatSource } from "./chat.ts";
import type { PlatformEntry } from "./contract.ts";
import { runningGatewayOf } from "./instance.ts";
import { accountOf, type GatewaySettings } from "./settings.ts";
import { type ResolvedTarget, readDirectory, resolveTarget } from "./targets.ts";

interface CronOptions {
  readonly home: OpenHome;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly cwd: string;
  readonly settings: GatewaySettings;
  /** Every platform, also those that are off. */
  entries(): readonly PlatformEntry[];
  /** Sends at once where no gateway would. Absent: this process is the gateway, and sends what is promised. */
  sendAlone?(target: ResolvedTarget, text: string, cause: string): Promise<Delivered>;
  /** Something was promised in the name of a bot. */
  wake(platform: string): void;
  ended?(job: Job, line: RunLine): void;
  changed?(): void;
  report(problem: string): void;
}

/** Jobs at a time where the settings name no number: a thousand agents at once would serve nobody. */
const MOST_AT_ONCE = 8;

export interface Cron {
  readonly jobs: CronJobs;
  readonly scheduler: Scheduler;
}

export async function openCron(options: CronOptions): Promise<Cron> {
  const { home, store, clock, cwd, report } = options;
  const work = await store.work();
  const jobs = new CronJobs({ home, clock, report, work: async () => work });
  const log = home.log.child("cron");
  const agent = async (task: AgentTask): Promise<AgentAnswer> =>
    (await import("./cron-agent.ts")).runScheduled(task, { home, store, clock, cwd });
  const scheduler = new Scheduler({
    ...{ jobs: jobs.file, work, clock, log, holder: newHolder() },
    alone: (look) => lookAlone(home.paths, look),
    settings() {
      const { max_parallel_jobs: most, missed_run: missedRun } = home.config().cron;
      return { zone: homeZone(home), missedRun, most: most && most > 0 ? most : MOST_AT_ONCE };
    },
    run: (run, signal) => runJob(run, signal, { home, clock, jobs: jobs.file, agent }),
    deliver: ({ job, slot }, text, { failed }) => deliver(job, text, { ...options, slot, failed }),
    ...(options.ended ? { ended: options.ended } : {}),
    ...(options.changed ? { changed: options.changed } : {}),
  });
  return { jobs, scheduler };
}

/** Ticks until the signal aborts. */
export function tickFor(
  by: "gateway" | "daemon",
  { scheduler }: Pick<Cron, "scheduler">,
  {
    home,
    clock,
    settings,
    ticked,
    report,
  }: Pick<CronOptions, "home" | "clock" | "settings" | "report"> & { ticked?(at: number): void },
  signal: AbortSignal,
): Promise<void> {
  return keepTicking(
    {
      ...{ paths: home.paths, clock, by, scheduler, report },
      everySeconds: () => home.config().cron.tick_seconds,
      queueSeconds: () => settings.timers.controls,
      zone: () => homeZone(home),
      ...(ticked ? { ticked } : {}),
    },
    signal,
  );
}

/** `[Cron] 3 jobs, next NAME at 2026-11-18 09:00` */
export async function cronLine(jobs: CronJobs, home: OpenHome): Promise<string> {
  const { next, jobs: counts } = await jobs.status();
  if (counts.enabled === 0) return "[Cron] no jobs";
  const when = next === null ? "" : `, next ${next.name} at ${homeZone(home).minute(Date.parse(next.at))}`;
  return `[Cron] ${plural(counts.enabled, "job")}${when}`;
}

// In the gateway.

/** What `gateway_state.json` says of it; times are Unix seconds. */
interface CronState {
  readonly ticking: boolean;
  readonly last_tick_at: number | null;
  readonly next_run_at: number | null;
  readonly running: number;
  readonly lag_seconds: number;
}

export interface GatewayCron {
  hasJobs(): Promise<boolean>;
  /** For the console. */
  line(): Promise<string>;
  /** From here on jobs are started. `wake`: something was promised in the name of a bot. */
  start(wake: (platform: string) => void): void;
  /** Starts nothing more; runs get so long. */
  close(graceMs: number): Promise<void>;
}

interface GatewayCronOptions extends Pick<CronOptions, "home" | "store" | "clock" | "cwd" | "settings" | "entries"> {
  state(change: { readonly cron: CronState }): void;
}

export async function openGatewayCron(options: GatewayCronOptions): Promise<GatewayCron> {
  const { home, state } = options;
  const log = home.log.child("cron");
  const over = new AbortController();
  let wake = (_platform: string): void => undefined;
  let tickedAt: number | null = null;
  const publish = async () => {
    const { next } = await cron.jobs.status();
    const { running, lagSeconds } = cron.scheduler;
    state({
      cron: {
        ticking: !over.signal.aborted,
        last_tick_at: tickedAt === null ? null : tickedAt / 1000,
        next_run_at: next === null ? null : Date.parse(next.at) / 1000,
        running,
        lag_seconds: lagSeconds,
      },
    });
  };
  const changed = () => void publish().catch((error: unknown) => log.warn("the state of cron is not known", error));
  const cron: Cron = await openCron({
    ...options,
    changed,
    wake: (platform) => wake(platform),
    report: (problem) => log.error(problem),
  });
  let ticking: Promise<void> = Promise.resolve();
  return {
    hasJobs: async () => (await cron.jobs.file.read()).some(({ enabled }) => enabled),
    line: () => cronLine(cron.jobs, home),
    start(waker) {
      wake = waker;
      const ticked = (at: number) => {
        tickedAt = at;
        changed();
      };
      ticking = tickFor("gateway", cron, { ...options, ticked, report: (problem) => log.error(problem) }, over.signal);
    },
    async close(graceMs) {
      over.abort();
      await ticking;
      await cron.scheduler.close({ graceMs });
      changed();
    },
  };
}

// Delivery.

interface DeliverOptions extends CronOptions {
  readonly slot: string;
  readonly failed: boolean;
}

/** Never rejects for where a job wants to be heard: what cannot be reached is said in `error`. */
async function deliver(job: Job, text: string, options: DeliverOptions): Promise<Delivery> {
  const { home, settings, slot, failed, wake } = options;
  if (!failed && isSilence(text, "unattended")) return { outbox: [], error: null, send: async () => null };
  const sendAlone = (await runningGatewayOf(home)) === null ? options.sendAlone : undefined;
  const { chats, problems } = await targetsOf(job, options);
  const said = !failed && home.config().cron.wrap_response ? wrapped(job, text) : text;
  const outbox: OutboxPart[] = [];
  for (const [at, { entry, target }] of (sendAlone ? [] : chats).entries()) {
    const account = accountOf(entry.identity(settings.option(entry.name)) ?? "");
    const { payloads } = await composeAnswer(said, { home, settings, entry, origin: "unattended", failed });
    const cause = `cron:${job.id}:${slot}:${at}`;
    outbox.push(...payloads.map((payload, part) => ({ cause, part, platform: entry.name, account, target, payload })));
  }
  return {
    outbox,
    error: problems.length > 0 ? problems.join("; ") : null,
    async send() {
      for (const platform of new Set(outbox.map((part) => part.platform))) wake(platform);
      const failures = [...problems];
      if (!sendAlone) return failures.length > 0 ? failures.join("; ") : null;
      for (const [at, chat] of chats.entries()) {
        const result = await sendAlone(chat, said, `cron:${job.id}:${slot}:${at}`);
        if ("error" in result) failures.push(`${chat.entry.name}: ${result.error}`);
      }
      return failures.length > 0 ? failures.join("; ") : null;
    },
  };
}

/** Where a job is heard just now, each chat once. */
async function targetsOf(
  { deliver: wanted, origin }: Job,
  { home, settings, entries }: Pick<CronOptions, "home" | "settings" | "entries">,
): Promise<{ readonly chats: readonly ResolvedTarget[]; readonly problems: readonly string[] }> {
  const chats = new Map<string, ResolvedTarget>();
  const problems: string[] = [];
  const source: ChatSource | undefined = origin ? { chat_type: "dm", ...origin } : undefined;
  for (const name of wanted.split(",").map((one) => one.trim())) {
    if (name === "") continue;
    const answer = await resolveTarget(
      name,
      { settings, entries: entries(), directory: () => readDirectory(home) },
      source,
    );
    if (answer.type === "problem") problems.push(`${name}: ${answer.error}`);
    if (answer.type !== "chats") continue;
    for (const found of answer.chats) {
      const chat = name.includes(":") || name === "origin" ? found : inCronThread(found, home, origin);
      chats.set(`${chat.entry.name}:${chat.target.chatId}:${chat.target.threadId ?? ""}`, chat);
    }
  }
  return { chats: [...chats.values()], problems };
}

/** A home channel may have a thread for jobs alone. */
function inCronThread(found: ResolvedTarget, home: OpenHome, origin: Job["origin"]): ResolvedTarget {
  const threadId = home.env(`${found.entry.name.toUpperCase()}_CRON_THREAD_ID`)?.trim();
  if (!threadId || origin?.platform === found.entry.name) return found;
  return { ...found, target: { ...found.target, threadId } };
}
