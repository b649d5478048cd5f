// Who runs the schedule of a home: the gateway, or `hermes cron daemon`. What it says about itself in `cron/ticker.json`, and its heartbeat.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LockTimeoutError, withLock } from "../home/lock.ts";
import type { OpenHome } from "../home/open.ts";
import type { HomePaths } from "../home/paths.ts";
import { makeDirectory } from "../home/paths.ts";
import { startProgram } from "../home/start-program.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { asRecord, asText, parseJson } from "../kit/json.ts";
import { isSameProcess, processFacts } from "../kit/pid.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Zone } from "./wall-clock.ts";

export interface TickerStatus {
  readonly running: boolean;
  readonly by: "gateway" | "daemon" | null;
  readonly pid: number | null;
  readonly last_tick_at: string | null;
}

const fileOf = (paths: HomePaths) => paths.at("cron", "ticker.json");

export async function tickerStatus(paths: HomePaths): Promise<TickerStatus> {
  const said = asRecord(parseJson(await readFile(fileOf(paths), "utf8").catch(() => ""))); // nobody has ticked yet
  const { pid, start_time: start, by, last_tick_at: last } = said;
  const isAlive =
    typeof pid === "number" &&
    (await isSameProcess(pid, typeof start === "number" ? start : null)) &&
    asText(by) !== "";
  return {
    running: isAlive,
    by: isAlive ? (by === "gateway" ? "gateway" : "daemon") : null,
    pid: isAlive ? pid : null,
    last_tick_at: asText(last) || null,
  };
}

/** A process of its own for what was asked for by hand: where nothing runs the schedule, and whoever asked has other things to do. */
export const startQueued = (home: OpenHome): Promise<number> =>
  startProgram(home, ["cron", "run", "--queued"], {
    cwd: home.osHome,
    log: join(home.paths.logsDir, "cron-console.log"),
  });

/** The lock of looks: whoever comes while another process looks has nothing to do. */
export async function lookAlone(paths: HomePaths, look: () => Promise<void>): Promise<boolean> {
  try {
    await withLock(paths.at("cron", ".tick.lock"), look, { waitMs: 0 });
    return true;
  } catch (error) {
    if (error instanceof LockTimeoutError) return false;
    throw error;
  }
}

interface TickerOptions {
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly by: "gateway" | "daemon";
  readonly scheduler: Scheduler;
  /** Seconds; asked with each look, as settings may change. */
  everySeconds(): number;
  /** Seconds between looks for runs that were asked for by hand. */
  queueSeconds(): number;
  zone(): Zone;
  ticked?(at: number): void;
  report(problem: string): void;
}

/** Looks again and again until the signal aborts. A look that fails is reported, and the next one comes. */
export async function keepTicking(options: TickerOptions, signal: AbortSignal): Promise<void> {
  const { paths, clock, scheduler, report } = options;
  makeDirectory(paths.at("cron"), 0o700);
  const facts = await processFacts(process.pid);
  const write = async (who: object) => {
    const { pid, running } = await tickerStatus(paths);
    // Two may tick; the one that was first speaks for both, and its slots are its own either way.
    if (running && pid !== process.pid) return;
    const said = { ...who, last_tick_at: options.zone().iso(clock.now()) };
    await writeFileAtomic(fileOf(paths), `${JSON.stringify(said)}\n`, { mode: 0o600 });
  };
  const present = { pid: process.pid, start_time: facts?.startTime ?? null, by: options.by };
  const repeat = async (seconds: () => number, work: () => Promise<unknown>) => {
    while (!signal.aborted) {
      await work().catch((error: unknown) => report(messageOf(error)));
      await clock.sleep(Math.max(50, seconds() * 1000), signal).catch(() => undefined); // over
    }
  };
  await Promise.all([
    repeat(options.everySeconds, async () => {
      await scheduler.tick();
      await write(present);
      options.ticked?.(clock.now());
    }),
    repeat(options.queueSeconds, () => scheduler.takeQueued()),
  ]);
  await write({ pid: null, by: null });
}
