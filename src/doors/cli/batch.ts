// `hermes batch`: many prompts, one trajectory each.
import { readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { LockTimeoutError, withLock } from "../../home/lock.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { feedLine, feedSuffix } from "../feed.ts";
import { onStopSignal } from "../stop-signals.ts";
import { DISTRIBUTIONS, runBatch } from "./batch/runner.ts";
import { printJson } from "./present.ts";

interface BatchFlags {
  readonly dataset_file?: string;
  readonly run_name?: string;
  readonly batch_size: number;
  readonly distribution: string;
  readonly model?: string;
  readonly max_turns: number;
  readonly num_workers: number;
  readonly resume?: true;
  readonly max_samples?: number;
  readonly verbose?: true;
  readonly list_distributions?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("run many prompts and save the trajectories in data/RUN_NAME/")
    .option("--dataset_file <FILE>", 'JSONL file: one {"prompt": "...", "image"?: "...", "cwd"?: "..."} per line')
    .option("--run_name <NAME>", "folder name in data/")
    .addOption(number("--batch_size <N>", "prompts per batch_N.jsonl", 10))
    .option("--distribution <NAME>", "toolset distribution for the prompts", "default")
    .option("--model <ID>", "model for this run: id or provider:model")
    .addOption(number("--max_turns <N>", "maximum model calls per prompt", 10))
    .addOption(number("--num_workers <N>", "prompts to run in parallel", 4))
    .option("--resume", "resume a run that was stopped or killed")
    .addOption(number("--max_samples <N>", "only the first N prompts"))
    .option("--verbose", "show every tool call")
    .option("--list_distributions", "list the distributions and exit")
    .addHelpText("after", "\nExample:\n  hermes batch --dataset_file prompts.jsonl --run_name first --num_workers 4")
    .action((flags: BatchFlags) => run(flags, ctx));
}

async function run(flags: BatchFlags, ctx: CliContext): Promise<void> {
  if (flags.list_distributions) return listDistributions(ctx);
  if (!flags.dataset_file) throw new ExitError(2, "--dataset_file is missing. See hermes batch --help.");
  const runName = flags.run_name ?? "";
  if (!/^[\w.-]+$/.test(runName) || /^\.+$/.test(runName))
    throw new ExitError(2, '--run_name is missing or invalid. Use letters, digits, "-", "_" and ".".');
  const dir = join(ctx.cwd, "data", runName);
  try {
    await withLock(join(dir, ".lock"), () => runLocked(flags, { dir, runName }, ctx), { waitMs: 0 });
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    throw new ExitError(1, `Another process is running "${runName}".`);
  } finally {
    await leaveNothing(dir);
  }
}

/** A run that did not begin leaves no folder behind with only a lock in it. */
async function leaveNothing(dir: string): Promise<void> {
  const names = await readdir(dir).catch(() => []);
  if (names.length !== 1 || names[0] !== ".lock") return;
  await rm(dir, { recursive: true, force: true });
  await rmdir(dirname(dir)).catch(() => undefined); // other runs are in it
}

async function runLocked(
  flags: BatchFlags,
  { dir, runName }: { readonly dir: string; readonly runName: string },
  ctx: CliContext,
): Promise<void> {
  const stop = new AbortController();
  const signals = onStopSignal({
    stop: () => stop.abort(),
    graceSeconds: ctx.home.env("HERMES_SIGTERM_GRACE"),
    clock: ctx.clock,
  });
  try {
    const { statistics, interrupted, left } = await runBatch(
      {
        datasetFile: flags.dataset_file ?? "",
        ...{ runName, dir, model: flags.model, resume: flags.resume === true },
        ...{ batchSize: flags.batch_size, maxTurns: flags.max_turns, workers: flags.num_workers },
        ...{ distribution: flags.distribution, maxSamples: flags.max_samples },
      },
      {
        ...{
          home: ctx.home,
          clock: ctx.clock,
          store: await ctx.conversationStore(),
          cwd: ctx.cwd,
          signal: stop.signal,
        },
        say: (line) => ctx.io.err(`${line}\n`),
        onEvent: (index, event) => {
          if (!flags.verbose || event.type !== "tool_end") return;
          ctx.io.err(`${index}: ${feedLine(event.call, event.ms, feedSuffix(event.call.name, event.result))}\n`);
        },
      },
    );
    printJson(ctx, statistics);
    if (left === 0) return;
    const again = `hermes batch --dataset_file ${flags.dataset_file} --run_name ${runName} --resume`;
    throw new ExitError(
      interrupted ? (signals.code ?? 130) : 1,
      `${left} of ${statistics.total_prompts} prompts are left. To resume: ${again}`,
    );
  } finally {
    signals.stopListening();
  }
}

async function listDistributions(ctx: CliContext): Promise<void> {
  for (const [name, toolsets] of Object.entries(DISTRIBUTIONS)) {
    const list = Object.entries(toolsets).map(([toolset, percent]) => `${toolset} ${percent}%`);
    ctx.io.out(`${name.padEnd(14)} ${list.join(", ")}\n`);
  }
}

function number(flag: string, description: string, standard?: number): Option {
  const option = new Option(flag, description).argParser((text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("Must be a whole number, 1 or more.");
    return value;
  });
  return standard === undefined ? option : option.default(standard);
}
