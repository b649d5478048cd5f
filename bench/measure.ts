// Small tools of the benchmarks: repeat, take the median, print a row against its budget.
import { appendFileSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "../src/sessions/store.ts";

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

export async function repeat(times: number, once: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let i = 0; i < times; i++) values.push(await once());
  return median(values);
}

/** Prints one row; a broken budget makes the benchmark fail at its end. */
export function row(name: string, value: string, ratio: number | null, budget: number | null, baseline: string): void {
  const over = ratio !== null && budget !== null && ratio > budget;
  if (over) process.exitCode = 1;
  const shown = ratio === null ? "" : `${ratio.toFixed(2)} x ${baseline}`;
  const limit = budget === null ? "" : `budget ${budget} x`;
  // For the table of `npm run bench -- --table`.
  const rows = process.env.HERMES_BENCH_ROWS;
  if (rows) appendFileSync(rows, `${JSON.stringify({ name, value, ratio, budget, baseline, over })}\n`);
  process.stdout.write(`${name.padEnd(38)} ${value.padEnd(14)} ${shown.padEnd(26)} ${limit} ${over ? "OVER" : "ok"}\n`);
}

/** Peak memory of a process in MB (Linux); null where it cannot be told. */
export async function peakMb(pid: number): Promise<number | null> {
  try {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    const peak = /VmHWM:\s+(\d+) kB/.exec(status)?.[1];
    return peak ? Number(peak) / 1024 : null;
  } catch {
    return null; // the process is gone, or this is not Linux
  }
}

/** CPU milliseconds of the children that have ended, all their threads and their own children (Linux; elsewhere 0). */
export function childrenMs(): number {
  try {
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[13]) + Number(fields[14])) * 10; // in ticks
  } catch {
    return 0;
  }
}

/** A session store on the disk, in a folder of its own. */
export async function benchStore(): Promise<{ readonly store: SessionStore; discard(): Promise<void> }> {
  const { systemClock } = await import("../src/kit/clock.ts");
  const { openSessionStore } = await import("../src/sessions/open.ts");
  const { recordedLog } = await import("../test/support/session-store.ts");
  const folder = await mkdtemp(join(tmpdir(), "hermes-bench-"));
  const path = join(folder, "state.db");
  const store = await openSessionStore({ path, journalMode: "auto", log: recordedLog(), clock: systemClock });
  const discard = async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { store, discard };
}
