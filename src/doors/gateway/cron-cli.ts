// `hermes cron`: scheduled jobs, with a gateway or without one.
import { type Command, Option } from "commander";
import type { JobFields } from "../../cron/fields.ts";
import type { Job } from "../../cron/jobs.ts";
import { CronJobs, type JobAnswer } from "../../cron/manage.ts";
import { homeZone } from "../../cron/run.ts";
import type { RunLine, Scheduler } from "../../cron/scheduler.ts";
import { answerLines, listText, nobodyLine, statusLines } from "../../cron/show.ts";
import { tickerStatus } from "../../cron/ticker.ts";
import { hermesCommand } from "../../home/paths.ts";
import { plural } from "../../kit/formats.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { type Cron, cronLine, openCron, tickFor } from "./cron.ts";
import { listenForEnd } from "./ending.ts";
import { allPlatforms } from "./platform-list.ts";
import { sendTo } from "./send-cli.ts";
import { GatewaySettings } from "./settings.ts";

interface JsonFlag {
  readonly json?: true;
}

/** As commander names them. */
interface FieldFlags extends JsonFlag {
  readonly schedule?: string;
  readonly prompt?: string;
  readonly name?: string;
  readonly repeat?: string;
  readonly deliver?: readonly string[];
  readonly skill?: readonly string[];
  readonly model?: string;
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly script?: string;
  readonly agent?: boolean;
  readonly contextFrom?: readonly string[];
  readonly toolsets?: readonly string[];
  readonly workdir?: string;
  readonly tz?: string;
  readonly budgetUsd?: string;
  readonly budgetTokens?: string;
}

export function define(command: Command, ctx: CliContext): void {
  const json = (child: Command) => child.option("--json", "machine-readable");
  command.description("run prompts on a schedule: every morning, in 20 minutes, on the first of every month");
  json(command.command("list", { isDefault: true }))
    .description("list the jobs with their next and last runs")
    .option("--all", "include completed and disabled jobs")
    .action((flags: JsonFlag & { readonly all?: true }) => list(flags, ctx));
  fields(json(command.command("create").alias("add")))
    .description("schedule a job")
    .argument("<schedule>", 'when: "every weekday at 9", "in 20 minutes", "every 2h", "0 9 * * 1-5", 每天早上8点')
    .argument("[prompt...]", "what the agent should do")
    .action((schedule: string, words: readonly string[], flags: FieldFlags) => create(schedule, words, flags, ctx));
  // Before --no-agent, which would be the default otherwise: an edit changes what is named.
  fields(json(command.command("edit").option("--agent", "use the agent again, after --no-agent")))
    .description("change a job; an empty text clears a field")
    .argument("<job>", "its id or name")
    .option("--schedule <WHEN>", "the new schedule")
    .option("--prompt <TEXT>", "the new prompt")
    .action((job: string, flags: FieldFlags) => answer((jobs) => jobs.update(job, fieldsOf(flags)), flags, ctx));
  json(command.command("pause"))
    .description("pause a job")
    .argument("<job>", "its id or name")
    .option("--reason <TEXT>", "a note for later")
    .action((job: string, flags: JsonFlag & { readonly reason?: string }) =>
      answer((jobs) => jobs.pause(job, flags.reason ?? null), flags, ctx),
    );
  json(command.command("resume"))
    .description("resume a paused job")
    .argument("<job>", "its id or name")
    .action((job: string, flags: JsonFlag) => answer((jobs) => jobs.resume(job), flags, ctx));
  json(command.command("remove").alias("rm"))
    .description("remove a job")
    .argument("<job>", "its id or name")
    .action((job: string, flags: JsonFlag) => answer((jobs) => jobs.remove(job), flags, ctx));
  json(command.command("run"))
    .description("run a job now, in addition to its schedule")
    .argument("[job]", "its id or name")
    .addOption(new Option("--queued").hideHelp())
    .action((job: string | undefined, flags: JsonFlag & { readonly queued?: true }) => run(job, flags, ctx));
  json(command.command("status"))
    .description("show who runs the schedule, what comes next and what was skipped")
    .action((flags: JsonFlag) => status(flags, ctx));
  command
    .command("tick")
    .description("run all jobs that are due now, then exit")
    .action(() => tick(ctx));
  command
    .command("daemon")
    .description("run the schedule in this terminal until Ctrl+C, without a gateway")
    .action(() => daemon(ctx));
}

const fields = (command: Command) =>
  command
    .option("--name <TEXT>", "its name")
    .option("--deliver <TARGET...>", "where answers go: local (files only), origin, all, a platform, PLATFORM:CHAT_ID")
    .option("--skill <NAME...>", "skills to load for it")
    .option("--model <MODEL>", "its model")
    .option("--provider <NAME>", "its provider")
    .option("--base-url <URL>", "where its model is asked, instead of the provider's own address")
    .option("--repeat <N>", "end after N runs; 0 = never")
    .option("--script <FILE>", "a script in scripts/ of the home that runs before the prompt")
    .option("--no-agent", "deliver what the script prints; no model is asked")
    .option("--context-from <JOB...>", "put the last output of other jobs in front of the prompt")
    .option("--toolsets <NAME...>", "use only these toolsets")
    .option("--workdir <FOLDER>", "the folder it works in")
    .option("--tz <ZONE>", "the time zone of its schedule, such as Europe/Berlin")
    .option("--budget-usd <AMOUNT>", "what one run may cost")
    .option("--budget-tokens <N>", "how many tokens one run may take");

function fieldsOf(flags: FieldFlags): JobFields {
  const { schedule, prompt, name, model, provider, script, workdir, tz, deliver, skill, toolsets, contextFrom } = flags;
  const { budgetUsd, budgetTokens } = flags;
  const hasBudget = budgetUsd !== undefined || budgetTokens !== undefined;
  return {
    ...{ schedule, prompt, name, model, provider, base_url: flags.baseUrl, script, workdir, tz, deliver },
    ...{ skills: skill, enabled_toolsets: toolsets, context_from: contextFrom },
    repeat: flags.repeat === undefined ? undefined : numberFrom(flags.repeat, "--repeat"),
    no_agent: flags.agent === undefined ? undefined : !flags.agent,
    budget: hasBudget ? budgetOf(budgetUsd, budgetTokens) : undefined,
  };
}

function budgetOf(usd: string | undefined, tokens: string | undefined): NonNullable<JobFields["budget"]> {
  return {
    usd: usd === undefined ? undefined : usd === "" ? null : numberFrom(usd, "--budget-usd"),
    tokens: tokens === undefined ? undefined : tokens === "" ? null : numberFrom(tokens, "--budget-tokens"),
  };
}

function numberFrom(text: string, option: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0)
    throw new ExitError(2, `${option} takes a number, not "${text}".`);
  return value;
}

// Jobs.

async function jobsOf(ctx: CliContext): Promise<CronJobs> {
  const { home, clock, io } = ctx;
  const known = await allPlatforms(ctx, home.log.child("gateway"));
  return new CronJobs({
    ...{ home, clock, platforms: new Set(known.map(({ name }) => name)) },
    work: async () => (await ctx.store()).work(),
    report: (problem) => io.err(`⚠ ${problem}\n`),
  });
}

async function create(schedule: string, words: readonly string[], flags: FieldFlags, ctx: CliContext): Promise<void> {
  const { home } = ctx;
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  await answer(
    (jobs) => jobs.create({ ...fieldsOf(flags), schedule, prompt: words.join(" ") }, null),
    flags,
    ctx,
    true,
  );
}

async function answer(
  work: (jobs: CronJobs) => Promise<JobAnswer>,
  { json }: JsonFlag,
  ctx: CliContext,
  isNew = false,
): Promise<void> {
  const { io, home } = ctx;
  const result = await work(await jobsOf(ctx));
  if (json) return io.out(`${JSON.stringify(result)}\n`);
  io.out(`${answerLines(result, homeZone(home))}\n`);
  const nobody = isNew ? nobodyLine(await tickerStatus(home.paths)) : null;
  if (nobody !== null) io.out(`${nobody}\n`);
}

async function list({ all, json }: JsonFlag & { readonly all?: true }, ctx: CliContext): Promise<void> {
  const { io, home } = ctx;
  const cron = await jobsOf(ctx);
  const ticker = await tickerStatus(home.paths);
  if (json) return io.out(`${JSON.stringify({ jobs: await cron.list({ all: true }), ticker }, null, 2)}\n`);
  io.out(`${await listText(cron, ticker, homeZone(home), { all: all === true })}\n`);
}

async function status({ json }: JsonFlag, ctx: CliContext): Promise<void> {
  const { io, home } = ctx;
  const found = await (await jobsOf(ctx)).status();
  if (json) return io.out(`${JSON.stringify(found, null, 2)}\n`);
  io.out(`${statusLines(found, homeZone(home))}\n`);
}

// Running them.

/** A scheduler in this process. Answers go to the gateway if one runs, else straight to the platforms. */
async function open(
  ctx: CliContext,
  ended: (job: Job, line: RunLine) => void,
): Promise<Cron & { readonly settings: GatewaySettings }> {
  const { home, clock, io, cwd } = ctx;
  if (home.unwritable !== null) throw new ExitError(1, home.unwritable);
  const settings = await GatewaySettings.open(home);
  const known = await allPlatforms(ctx, home.log.child("gateway"));
  const cron = await openCron({
    ...{ home, clock, cwd, settings, ended, store: await ctx.store() },
    entries: () => known,
    sendAlone: (target, text, cause) => sendTo(target, text, { settings, ctx, cause }),
    wake: () => undefined, // the gateway looks by itself
    report: (problem) => io.err(`⚠ ${problem}\n`),
  });
  return { ...cron, settings };
}

async function run(
  reference: string | undefined,
  flags: JsonFlag & { readonly queued?: true },
  ctx: CliContext,
): Promise<void> {
  const { io } = ctx;
  if (flags.queued) return takeQueued(await open(ctx, () => undefined), ctx);
  if (reference === undefined) throw new ExitError(2, "hermes cron run needs a job: its id or name.");
  const outcome: { line: RunLine | null } = { line: null };
  const { row, by, ...result } = await (await jobsOf(ctx)).trigger(reference);
  if (by !== null) {
    const who = by === "gateway" ? "The gateway" : "hermes cron daemon";
    const said = `✓ ${who} runs "${result.name}" now. See: ${hermesCommand("cron list")}`;
    return io.out(`${flags.json ? JSON.stringify(result) : said}\n`);
  }
  const cron = await open(ctx, (job, line) => {
    if (job.id === row.jobId) outcome.line = line;
  });
  await takeQueued(cron, ctx);
  const { line } = outcome;
  const failed = line?.type !== "ok";
  const said = line === null ? "it did not run" : lineWords(line);
  const answered = failed
    ? { success: false, error: said }
    : { ...result, message: `Job "${result.name}" ran: ${said}.` };
  const shown = `${failed ? "✗" : "✓"} ${result.name} (${result.job_id}): ${said}`;
  io.out(`${flags.json ? JSON.stringify(answered) : shown}\n`);
  if (failed) throw new ExitError(1);
}

/** What was asked for by hand, in this process. */
const takeQueued = ({ scheduler }: Cron, ctx: CliContext) =>
  untilSettled(scheduler, ctx, async () => scheduler.takeQueued());

/** Ctrl+C stops what runs. */
async function untilSettled<T>(
  scheduler: Scheduler,
  { home, clock, io }: CliContext,
  begin: () => Promise<T>,
): Promise<T> {
  const listener = listenForEnd({ home, clock, hasTerminal: io.stdinIsTerminal });
  try {
    listener.stop.addEventListener("abort", () => void scheduler.close({ graceMs: 0 }), { once: true });
    const begun = await begin();
    await scheduler.settled();
    return begun;
  } finally {
    listener.close();
  }
}

function lineWords(line: RunLine): string {
  if (line.type !== "ok") return `${line.type}: ${line.reason}`;
  return line.undelivered === null ? "ok" : `ok, but not delivered: ${line.undelivered}`;
}

async function tick(ctx: CliContext): Promise<void> {
  const { io } = ctx;
  let count = 0;
  const { scheduler } = await open(ctx, (job, line) => {
    count++;
    io.out(`${job.name} (${job.id}): ${lineWords(line)}\n`);
  });
  const looked = await untilSettled(scheduler, ctx, async () => {
    const { by } = await tickerStatus(ctx.home.paths);
    if (by === null) await scheduler.takeQueued();
    return scheduler.tick();
  });
  if (!looked) return io.out("Another process is checking the schedule right now.\n");
  if (count === 0) io.out("nothing due\n");
}

/** A run gets so long when the daemon is stopped. */
const DRAIN_MS = 30_000;

async function daemon(ctx: CliContext): Promise<void> {
  const { home, io, clock } = ctx;
  const present = await tickerStatus(home.paths);
  if (present.running)
    throw new ExitError(
      1,
      `${present.by === "gateway" ? "The gateway" : "Another daemon"} (process ${present.pid}) already runs the schedule.`,
    );
  const zone = () => homeZone(home);
  const cron = await open(ctx, (job, line) =>
    io.out(`[Cron] ${zone().minute(clock.now())} ${job.name} (${job.id}): ${lineWords(line)}\n`),
  );
  const listener = listenForEnd({ home, clock, hasTerminal: io.stdinIsTerminal && io.stdoutIsTerminal });
  try {
    io.out(`${await cronLine(cron.jobs, home)}\n`);
    await tickFor(
      "daemon",
      cron,
      { home, clock, settings: cron.settings, report: (problem) => io.err(`⚠ ${problem}\n`) },
      listener.stop,
    );
    const { running } = cron.scheduler;
    if (running > 0) io.err(`Waiting for ${plural(running, "job")} to end.\n`);
    await cron.scheduler.close({ graceMs: DRAIN_MS });
  } finally {
    listener.close();
  }
}
