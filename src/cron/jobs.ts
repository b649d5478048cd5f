// The jobs of a home: `cron/jobs.json`, in the format of the Python original, which may read and write the same file.
import { randomBytes } from "node:crypto";
import { readdir, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { withLock } from "../home/lock.ts";
import type { HomePaths } from "../home/paths.ts";
import type { Clock } from "../kit/clock.ts";
import { isMissing, UserError } from "../kit/errors.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { plural } from "../kit/formats.ts";
import { asList, asRecord, asText, isRecord, type Json, parseJson } from "../kit/json.ts";
import { withoutControls } from "../kit/strip-ansi.ts";
import type { Schedule } from "./schedule.ts";

export interface JobOrigin {
  readonly platform: string;
  readonly chat_id: string;
  readonly chat_name?: string | undefined;
  readonly thread_id?: string | undefined;
}

type JobState = "scheduled" | "paused" | "completed" | "error" | "missed";

/** One job as it is stored. Times are ISO texts with an offset. Fields that only others know are kept beside these. */
export interface Job {
  readonly id: string;
  readonly name: string;
  readonly prompt: string;
  readonly skills: readonly string[];
  readonly skill: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  readonly base_url: string | null;
  readonly script: string | null;
  readonly no_agent: boolean;
  /** Ids or names of jobs whose newest output is put in front of the prompt, in this order. */
  readonly context_from: readonly string[];
  readonly schedule: Schedule;
  readonly schedule_display: string;
  readonly repeat: { readonly times: number | null; readonly completed: number };
  readonly enabled: boolean;
  readonly state: JobState;
  readonly paused_at: string | null;
  readonly paused_reason: string | null;
  readonly created_at: string;
  readonly next_run_at: string | null;
  /** The slot that was dealt with last. */
  readonly last_run_at: string | null;
  readonly last_status: "ok" | "error" | null;
  readonly last_error: string | null;
  readonly last_delivery_error: string | null;
  readonly deliver: string;
  readonly origin: JobOrigin | null;
  readonly enabled_toolsets: readonly string[] | null;
  readonly workdir: string | null;
  readonly profile: string | null;
  /** What one run may spend; ours. The smaller of this and `budget.job` counts. */
  readonly budget: { readonly usd: number | null; readonly tokens: number | null } | null;
}

export const newJobId = () => randomBytes(6).toString("hex");

export function repeatWords({ repeat: { times, completed } }: Pick<Job, "repeat">): string {
  if (times === null) return "forever";
  if (completed > 0) return `${completed}/${times}`;
  return times === 1 ? "once" : plural(times, "time");
}

// Reading a record that any version may have written.

/** It is part of names of files and sessions. */
const ID = /^[\w-]{1,64}$/;
const MOST_MINUTES = 10 * 365 * 1440;

function asJob(row: Json): Job | null {
  const id = asText(row.id);
  const schedule = asSchedule(row.schedule, asText(row.schedule_display));
  if (!ID.test(id) || schedule === null) return null;
  const given = namesOf(row.skills);
  const skills = [...new Set(given.length > 0 ? given : namesOf(row.skill))];
  const { times, completed } = asRecord(row.repeat);
  const enabled = row.enabled !== false;
  const prompt = asText(row.prompt);
  const budget = asRecord(row.budget);
  const toolsets = namesOf(row.enabled_toolsets);
  return {
    id,
    name: lineOf(asText(row.name)) || nameFor({ prompt, skills, script: asText(row.script) }),
    ...{ prompt, skills, skill: skills[0] ?? null },
    ...{ model: textOrNull(row.model), provider: textOrNull(row.provider), base_url: textOrNull(row.base_url) },
    script: textOrNull(row.script),
    no_agent: row.no_agent === true,
    context_from: namesOf(row.context_from),
    schedule,
    schedule_display: asText(row.schedule_display) || schedule.display,
    repeat: { times: countOrNull(times), completed: countOrNull(completed) ?? 0 },
    enabled,
    state: STATES.find((state) => state === row.state) ?? (enabled ? "scheduled" : "paused"),
    ...{ paused_at: textOrNull(row.paused_at), paused_reason: textOrNull(row.paused_reason) },
    created_at: asText(row.created_at),
    ...{ next_run_at: timeOrNull(row.next_run_at), last_run_at: timeOrNull(row.last_run_at) },
    last_status: row.last_status === "ok" || row.last_status === "error" ? row.last_status : null,
    ...{ last_error: textOrNull(row.last_error), last_delivery_error: textOrNull(row.last_delivery_error) },
    deliver: Array.isArray(row.deliver) ? namesOf(row.deliver).join(",") : asText(row.deliver) || "local",
    origin: asOrigin(row.origin),
    enabled_toolsets: toolsets.length > 0 ? toolsets : null,
    ...{ workdir: textOrNull(row.workdir), profile: textOrNull(row.profile) },
    budget: isRecord(row.budget) ? { usd: numberOrNull(budget.usd), tokens: numberOrNull(budget.tokens) } : null,
  };
}

const STATES: readonly JobState[] = ["scheduled", "paused", "completed", "error", "missed"];

export const nameFor = ({ prompt, skills, script }: { prompt: string; skills: readonly string[]; script: string }) =>
  [...lineOf(prompt)].slice(0, 50).join("").trim() || skills[0] || script || "cron job";

/** Names are in lists, logs and messages, where nothing in them may look like a line of ours or drive a terminal. */
export const lineOf = (text: string) =>
  [...withoutControls(text.slice(0, 1000)).replace(/\s+/g, " ").trim()].slice(0, 200).join("");

const textOrNull = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value : null);
const numberOrNull = (value: unknown) => (typeof value === "number" && value >= 0 ? value : null);
const countOrNull = (value: unknown) => (Number.isInteger(value) && Number(value) > 0 ? Number(value) : null);
const LAST_TIME = Date.UTC(9999, 0);

function timeOrNull(value: unknown): string | null {
  const at = Date.parse(asText(value));
  return at >= 0 && at < LAST_TIME ? asText(value) : null;
}

function namesOf(value: unknown): readonly string[] {
  const list = typeof value === "string" ? [value] : asList(value);
  return list.flatMap((one) => (typeof one === "string" && one.trim() !== "" ? [one.trim()] : []));
}

function asOrigin(value: unknown): JobOrigin | null {
  const { platform, chat_id: chat, chat_name: name, thread_id: thread } = asRecord(value);
  if (typeof platform !== "string" || (typeof chat !== "string" && typeof chat !== "number")) return null;
  return {
    ...{ platform, chat_id: String(chat) },
    ...(typeof name === "string" ? { chat_name: name } : {}),
    ...(typeof thread === "string" || typeof thread === "number" ? { thread_id: String(thread) } : {}),
  };
}

function asSchedule(value: unknown, display: string): Schedule | null {
  const row = asRecord(value);
  const shown = asText(row.display) || display;
  if (row.kind === "interval" && typeof row.minutes === "number" && row.minutes >= 1 && row.minutes <= MOST_MINUTES)
    return { kind: "interval", minutes: row.minutes, display: shown || `every ${row.minutes}m` };
  if (row.kind === "once" && timeOrNull(row.run_at) !== null)
    return { kind: "once", run_at: asText(row.run_at), display: shown || `once at ${asText(row.run_at)}` };
  if (row.kind !== "cron" || asText(row.expr) === "") return null;
  const tz = textOrNull(row.tz);
  return { kind: "cron", expr: asText(row.expr), display: shown || asText(row.expr), ...(tz ? { tz } : {}) };
}

// The file.

interface JobFileOptions {
  readonly paths: HomePaths;
  readonly clock: Clock;
  /** A file that could not be read was kept under another name. */
  report(problem: string): void;
}

const SAVING_MS = 300;

/** Fields of the original that say who runs a job: here the store says it. */
const NOT_OURS = ["fire_claim", "run_claim"];

/**
 * - `change` is the only way to write: one at a time over all processes, the file whole or as it was.
 * - Rows that are no job for us and fields that we do not know stay as they are.
 * - A file that is not JSON is kept as `jobs.json.corrupt-TIME` and reported; nothing overwrites it.
 */
export class JobFile {
  readonly #options: JobFileOptions;
  readonly #path: string;
  #seen: { readonly text: string; readonly rows: readonly Json[] } | null = null;

  constructor(options: JobFileOptions) {
    this.#options = options;
    this.#path = options.paths.at("cron", "jobs.json");
  }

  async read(): Promise<readonly Job[]> {
    return jobsOf(await this.#rows()).jobs;
  }

  /** What waits to be repaired: files that could not be read, and rows that are no jobs. */
  async damage(): Promise<readonly string[]> {
    const folder = dirname(this.#path);
    const names = await readdir(folder).catch(() => []); // no folder, no files
    const { strangers } = jobsOf(await this.#rows());
    return [
      ...names
        .filter((name) => name.startsWith("jobs.json.corrupt-"))
        .map(
          (name) => `${join(folder, name)} could not be read; repair it and move it back to jobs.json, or delete it`,
        ),
      ...strangers.map(
        (row) =>
          `"${lineOf(asText(row.name) || asText(row.id)) || "a row"}" in ${this.#path} is not a job: ${wrongWith(row)}`,
      ),
    ];
  }

  /** Jobs are taken from and put into the list; what `work` resolves to is handed on. Nothing is written where nothing changed. */
  change<T>(work: (jobs: Job[]) => T | Promise<T>): Promise<T> {
    const { paths, clock } = this.#options;
    return withLock(paths.at("cron", ".jobs.lock"), async () => {
      const rows = await this.#rows();
      const { jobs: before } = jobsOf(rows);
      const jobs = [...before];
      const value = await work(jobs);
      if (jobs.length !== before.length || jobs.some((job, at) => job !== before[at]))
        await this.#write(rows, jobs, clock.now());
      return value;
    });
  }

  async #write(rows: readonly Json[], jobs: readonly Job[], now: number): Promise<void> {
    const known = new Map(rows.toReversed().map((row) => [asText(row.id), row]));
    const { strangers } = jobsOf(rows);
    const kept = jobs.map((job) => {
      const row: Record<string, unknown> = { ...known.get(job.id), ...job };
      for (const name of NOT_OURS) if (name in row) row[name] = null;
      if (job.budget === null) delete row.budget;
      return row;
    });
    const text = `${JSON.stringify({ jobs: [...kept, ...strangers], updated_at: new Date(now).toISOString() }, null, 2)}\n`;
    await writeFileAtomic(this.#path, text, { mode: 0o600 });
  }

  async #rows({ isSecondLook = false } = {}): Promise<readonly Json[]> {
    const text = await readFile(this.#path, "utf8").catch((error: unknown) => {
      if (isMissing(error)) return "";
      throw new UserError(`${this.#path} cannot be read: ${error instanceof Error ? error.message : error}`);
    });
    if (this.#seen?.text === text) return this.#seen.rows;
    const rows = text.trim() === "" ? [] : rowsOf(parseJson(text));
    if (rows === null) return isSecondLook ? this.#putAside() : this.#lookAgain();
    this.#seen = { text, rows };
    return rows;
  }

  /** An editor may be in the middle of saving it. */
  async #lookAgain(): Promise<readonly Json[]> {
    await this.#options.clock.sleep(SAVING_MS);
    return this.#rows({ isSecondLook: true });
  }

  async #putAside(): Promise<readonly Json[]> {
    const stamp = new Date(this.#options.clock.now()).toISOString().replace(/[:.]/g, "-");
    const kept = `${this.#path}.corrupt-${stamp}`;
    try {
      await rename(this.#path, kept);
    } catch (error) {
      if (isMissing(error)) return []; // another process was quicker
      throw error;
    }
    this.#options.report(`cron/jobs.json could not be read and is kept as ${kept}; repair it and move it back`);
    return [];
  }
}

/** Bare lists were written by early versions. Null: something else than jobs. */
function rowsOf(value: unknown): readonly Json[] | null {
  const list = Array.isArray(value) ? value : isRecord(value) ? (value.jobs ?? []) : null;
  return Array.isArray(list) ? list.filter(isRecord) : null;
}

/** Of two rows with one id the first is the job. */
function jobsOf(rows: readonly Json[]): { readonly jobs: readonly Job[]; readonly strangers: readonly Json[] } {
  const jobs = new Map<string, Job>();
  const strangers: Json[] = [];
  for (const row of rows) {
    const job = asJob(row);
    if (job === null || jobs.has(job.id)) strangers.push(row);
    else jobs.set(job.id, job);
  }
  return { jobs: [...jobs.values()], strangers };
}

function wrongWith(row: Json): string {
  if (!ID.test(asText(row.id))) return "its id must be letters, digits, '_' and '-'";
  return asSchedule(row.schedule, "") === null ? "its schedule cannot be read" : "another job has its id";
}

// Finding one.

/** By id, else by a name that only one has. Throws a `UserError` that lists what could be meant. */
export function findJob(jobs: readonly Job[], reference: string): Job {
  const wanted = reference.trim();
  const byId = jobs.find(({ id }) => id === wanted);
  if (byId) return byId;
  const named = jobs.filter(({ name }) => name.toLowerCase() === wanted.toLowerCase());
  const [first, ...others] = named;
  if (first && others.length === 0) return first;
  if (first)
    throw new JobError(
      `${named.length} jobs are called "${wanted}": ${named.map(({ id }) => id).join(", ")}. Use the id.`,
    );
  throw new JobError(`There is no job "${wanted}". hermes cron list --all shows them.`);
}

/** A job that is not there, or that may not be as it is asked for. */
export class JobError extends UserError {
  override name = "JobError";
}

export const outputFolder = (paths: HomePaths, id: string) => join(paths.at("cron", "output"), id);
