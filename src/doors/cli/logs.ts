// `hermes logs`: what the program wrote down about itself.
import { join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  followLog,
  LOG_COMPONENTS,
  LOG_LEVELS,
  LOG_NAMES,
  type LogComponent,
  type LogFilter,
  type LogLevel,
  type LogName,
  lastLines,
  listLogs,
  logFilter,
  parseAge,
} from "../../home/log-reader.ts";
import { localMinute } from "../../kit/formats.ts";
import { didYouMean } from "../../kit/similarity.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { positiveNumber, print, table } from "./present.ts";

interface LogFlags {
  readonly lines: number;
  readonly follow?: true;
  readonly level?: LogLevel;
  readonly session?: string;
  readonly since?: string;
  readonly component?: LogComponent;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("Show the log files.")
    .argument("[LOG]", `${LOG_NAMES.join(", ")}, or list to see the files`, "agent")
    .addOption(new Option("-n, --lines <N>", "number of lines").argParser(positiveNumber).default(50))
    .option("-f, --follow", "follow new lines")
    .addOption(new Option("--level <LEVEL>", `minimum level: ${LOG_LEVELS.join(", ")}`).argParser(levelNamed))
    .option("--session <TEXT>", "only sessions whose id contains this")
    .option("--since <AGE>", "only the last 30s, 5m, 2h or 1d")
    .addOption(new Option("--component <NAME>", "only one component").choices(LOG_COMPONENTS))
    .addHelpText(
      "after",
      "\nExamples:\n  hermes logs -f\n  hermes logs errors --since 1d\n  hermes logs --level warning -n 200",
    )
    .action((name: string, flags: LogFlags) => show(name, flags, ctx));
}

async function show(name: string, flags: LogFlags, ctx: CliContext): Promise<void> {
  if (name === "list") return list(ctx);
  if (!isLog(name)) {
    const near = didYouMean(name, LOG_NAMES);
    const hint = near.length > 0 ? ` Did you mean "${near[0]}"?` : "";
    throw new ExitError(1, `There is no log "${name}".${hint} The logs are ${LOG_NAMES.join(", ")}.`);
  }
  const filter = filterOf(flags, ctx);
  const path = join(ctx.home.paths.logsDir, `${name}.log`);
  const following = flags.follow ? followLog(path, { clock: ctx.clock }) : null;
  // The reader stands at the end before the last lines are read, so that nothing falls between the two.
  const next = following?.next();
  const lines = await lastLines(path, flags.lines, filter);
  for (const line of lines) print(ctx, line);
  if (lines.length === 0 && !following) ctx.io.err(`Nothing in ${ctx.home.display(path)} matches.\n`);
  if (!following || !next) return;
  const wanted = logFilter({ ...filter, since: undefined });
  for (let got = await next; !got.done; got = await following.next()) if (wanted(got.value)) print(ctx, got.value);
}

function filterOf({ level, session, component, since }: LogFlags, { clock }: CliContext): LogFilter {
  const age = since === undefined ? undefined : parseAge(since);
  if (age === null) throw new ExitError(1, `--since takes an age such as 30s, 5m, 2h or 1d, not "${since}".`);
  return { level, session, component, since: age === undefined ? undefined : clock.now() - age };
}

async function list(ctx: CliContext): Promise<void> {
  const files = await listLogs(ctx.home.paths.logsDir);
  if (files.length === 0) return print(ctx, "There are no log files yet.");
  const rows = files.map(({ name, bytes, changed }) => [
    name,
    `${(bytes / 1024).toFixed(1)} KB`,
    localMinute(changed / 1000),
  ]);
  print(ctx, table([["File", "Size", "Changed"], ...rows], [1]));
  print(ctx, `in ${ctx.home.display(ctx.home.paths.logsDir)}`);
}

const isLog = (name: string): name is LogName => (LOG_NAMES as readonly string[]).includes(name);

function levelNamed(text: string): LogLevel {
  const found = LOG_LEVELS.find((level) => level === text.toUpperCase());
  if (found) return found;
  throw new InvalidArgumentError(`It takes ${LOG_LEVELS.join(", ")}.`);
}
