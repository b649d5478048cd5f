// The background processes of one agent: what they print, how they end, and whom to notify.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { withLock } from "../../home/lock.ts";
import type { Clock } from "../../kit/clock.ts";
import { writeFileAtomic } from "../../kit/files.ts";
import { isAlive } from "../../kit/pid.ts";
import { stripAnsi } from "../../kit/strip-ansi.ts";
import { killTree } from "../../sandbox/background-child.ts";
import type { BackgroundChild } from "../../sandbox/environment.ts";
import { startTimeOf } from "../../sandbox/processes.ts";
import type { StateKey, ToolContext } from "../toolset/context.ts";
import { safeCut } from "../toolset/results.ts";

const BUFFER_CHARS = 200_000;
const FINISHED_KEPT_MS = 1800_000;
const MAX_TRACKED = 64;
const NOTICE_CHARS = 2000;

interface NewProcess {
  readonly command: string;
  readonly cwd: string;
  readonly notify: boolean;
  readonly watch: readonly string[];
}

/** One background process as the tools see it. */
export interface TrackedProcess {
  readonly id: string;
  readonly command: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly startTime: string | null;
  /** Null for one that an earlier run started: it lives, but its output and input are lost. */
  readonly child: BackgroundChild | null;
  /** Without control sequences, the last 200,000 characters. */
  output: string;
  exitCode: number | null;
  finishedAt: number | null;
  notify: boolean;
  /** Texts whose lines are reported, and whether one was printed. */
  readonly watch: readonly string[];
  matched: boolean;
  /** Its end was seen by the model, so no notice is due. */
  consumed: boolean;
  /** Resolves when it has ended; never for one of an earlier run. */
  readonly ended: Promise<void>;
}

export const processTable: StateKey<ProcessTable> = {
  name: "processes",
  create: () => new ProcessTable(),
  dispose: (table) => table.dispose(),
};

class ProcessTable {
  readonly #processes = new Map<string, TrackedProcess>();
  readonly #closed = new AbortController();
  #breaker: WatchBreaker | null = null;
  #adopted = false;
  #writing: Promise<void> = Promise.resolve();

  async add(child: BackgroundChild, start: NewProcess, ctx: ToolContext): Promise<TrackedProcess | { error: string }> {
    this.#forget(ctx.clock.now(), { most: MAX_TRACKED - 1 });
    if (this.#processes.size >= MAX_TRACKED) {
      await child.kill();
      return { error: `${MAX_TRACKED} background processes run already; end one with the process tool first` };
    }
    const tracked: TrackedProcess = {
      id: `proc_${randomBytes(6).toString("hex")}`,
      command: start.command,
      pid: child.pid,
      startedAt: ctx.clock.now(),
      startTime: await startTimeOf(child.pid),
      child,
      output: "",
      exitCode: null,
      finishedAt: null,
      notify: start.notify,
      watch: start.watch,
      matched: false,
      consumed: false,
      ended: child.exited.then((code) => this.#finish(tracked, code, ctx)),
    };
    this.#processes.set(tracked.id, tracked);
    this.#follow(tracked, start.watch, ctx);
    await this.#record(ctx, (records) => [...records, recordOf(tracked, start.cwd, ctx)]);
    return tracked;
  }

  /** All of this session, oldest first. */
  async list(ctx: ToolContext): Promise<readonly TrackedProcess[]> {
    await this.#adopt(ctx);
    this.#forget(ctx.clock.now(), { most: MAX_TRACKED });
    for (const process of this.#processes.values()) await refresh(process, ctx.clock.now());
    return [...this.#processes.values()];
  }

  async get(id: string, ctx: ToolContext): Promise<TrackedProcess | null> {
    await this.#adopt(ctx);
    const process = this.#processes.get(id);
    if (process) await refresh(process, ctx.clock.now());
    return process ?? null;
  }

  /** Ends it and its family. False when its pid belongs to another process by now. */
  async kill(tracked: TrackedProcess, ctx: ToolContext): Promise<boolean> {
    tracked.consumed = true;
    const now = await startTimeOf(tracked.pid);
    if (now !== null && tracked.startTime !== null && now !== tracked.startTime) return false;
    if (tracked.child) {
      await tracked.child.kill();
      await tracked.ended;
    } else
      await killTree(
        tracked.pid,
        ctx.clock.sleep(2000, ctx.signal).catch(() => undefined),
      ); // no exit event: it is not our child
    tracked.exitCode = -15;
    tracked.finishedAt ??= ctx.clock.now();
    await this.#record(ctx, (records) => records.filter((record) => record.session_id !== tracked.id));
    return true;
  }

  /** How many run that this agent started. */
  get running(): number {
    return this.#own().length;
  }

  /** What this agent started, oldest first. */
  get started(): readonly TrackedProcess[] {
    return [...this.#processes.values()].filter(({ child }) => child !== null);
  }

  /** The user ends one; the model is not told. False when it does not run. */
  async stop(id: string): Promise<boolean> {
    const process = this.#own().find((one) => one.id === id);
    if (!process) return false;
    process.consumed = true;
    await process.child?.kill();
    await process.ended;
    return true;
  }

  /** Ends every process this agent started; resolves to how many there were. */
  async stopAll(): Promise<number> {
    const running = this.#own();
    for (const process of running) process.consumed = true;
    await Promise.all(running.map((process) => process.child?.kill()));
    await Promise.all(running.map((process) => process.ended));
    return running.length;
  }

  async dispose(): Promise<void> {
    this.#closed.abort();
    await this.stopAll();
    await this.#writing;
  }

  #own(): readonly TrackedProcess[] {
    return [...this.#processes.values()].filter((process) => process.child && process.exitCode === null);
  }

  #follow(tracked: TrackedProcess, patterns: readonly string[], ctx: ToolContext): void {
    const clean = (text: string) => ctx.redact(stripAnsi(text));
    const watch =
      patterns.length > 0 && ctx.notify ? new LineWatch(patterns, ctx.clock, (text) => ctx.redact(text)) : null;
    const say = (text: string) => this.#breakerOf(ctx).send(text);
    tracked.child?.onOutput((text) => {
      tracked.output = keepEnd(tracked.output + text, clean);
      const event = tracked.exitCode === null ? watch?.push(stripAnsi(text)) : null;
      if (event) tracked.matched = true;
      if (event?.type === "match") {
        const more = event.missed > 0 ? ` (${event.missed} more matching lines before this were not shown)` : "";
        say(
          notice(`Background process ${tracked.id} printed a watched line${more}.`, tracked.command, event.text, ctx),
        );
      }
      if (event?.type === "overflow") {
        tracked.notify = true;
        const what = `Background process ${tracked.id} matches its watch patterns too often; only its end will be reported.`;
        say(notice(what, tracked.command, "", ctx));
      }
    });
  }

  #finish(tracked: TrackedProcess, code: number, ctx: ToolContext): void {
    tracked.exitCode = code;
    tracked.finishedAt = ctx.clock.now();
    if (tracked.notify && !tracked.consumed && !this.#closed.signal.aborted) {
      const what = `Background process ${tracked.id} completed (exit code ${code}).`;
      ctx.notify?.(notice(what, tracked.command, ctx.redact(visible(tracked)).trim().slice(-NOTICE_CHARS), ctx));
    }
    void this.#record(ctx, (records) => records.filter((record) => record.session_id !== tracked.id));
  }

  /** Takes in what an earlier run of this session left behind. */
  async #adopt(ctx: ToolContext): Promise<void> {
    if (this.#adopted) return;
    this.#adopted = true;
    for (const record of await orphans(ctx.home.processesFile, ctx)) {
      this.#processes.set(record.session_id, {
        id: record.session_id,
        command: record.command,
        pid: record.pid,
        startedAt: record.started_at * 1000,
        startTime: record.start_time,
        child: null,
        output: "",
        exitCode: null,
        finishedAt: null,
        notify: false,
        watch: [],
        matched: false,
        consumed: true,
        ended: new Promise(() => undefined),
      });
    }
  }

  /** Processes that ended long ago, and of the others that ended, the oldest beyond a number. */
  #forget(now: number, { most }: { readonly most: number }): void {
    const finished = [...this.#processes.values()].filter((process) => process.finishedAt !== null);
    finished.sort((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
    for (const process of finished) {
      const old = now - (process.finishedAt ?? now) > FINISHED_KEPT_MS;
      if (old || this.#processes.size > most) this.#processes.delete(process.id);
    }
  }

  #breakerOf(ctx: ToolContext): WatchBreaker {
    this.#breaker ??= new WatchBreaker(ctx.clock, (text) => ctx.notify?.(text), this.#closed.signal);
    return this.#breaker;
  }

  #record(ctx: ToolContext, change: Parameters<typeof updateRecords>[1]): Promise<void> {
    const file = ctx.home.processesFile;
    this.#writing = this.#writing
      .then(() => updateRecords(file, change))
      .catch((error) => ctx.log.warn(`${file} could not be written; a crash would lose track of processes`, error));
    return this.#writing;
  }
}

/** The text of a process as a reader wants it. */
export function visible(process: TrackedProcess): string {
  return stripAnsi(process.output);
}

/** A process of an earlier run gives no sign when it ends; it is looked at when somebody asks. */
async function refresh(process: TrackedProcess, now: number): Promise<void> {
  if (process.child || process.finishedAt !== null) return;
  if (!(await isRunning({ pid: process.pid, start_time: process.startTime }))) process.finishedAt = now;
}

function keepEnd(text: string, clean: (text: string) => string): string {
  // Cut in big steps, so that a chatty process does not copy its whole buffer for every line.
  if (text.length <= BUFFER_CHARS * 1.25) return text;
  return text.slice(safeCut(text, text.length - BUFFER_CHARS, 1, clean));
}

function recordOf(tracked: TrackedProcess, cwd: string, ctx: ToolContext): ProcessRecord {
  return {
    session_id: tracked.id,
    command: ctx.redact(tracked.command),
    pid: tracked.pid,
    start_time: tracked.startTime,
    started_at: Math.floor(tracked.startedAt / 1000),
    cwd,
    owner_pid: process.pid,
    owner_session: ctx.sessionId,
    owner_key: ctx.sessionKey ?? null,
  };
}

/** `output` is redacted already: it was cut, and half a secret could no longer be recognized. */
function notice(what: string, command: string, output: string, ctx: ToolContext): string {
  const shown = output.trim();
  const data = ctx.asData?.(shown) ?? shown;
  return `[IMPORTANT: ${what}\nCommand: ${ctx.redact(command)}${shown ? `\nOutput:\n${data}` : ""}]`;
}

// processes.json: which background processes this home started, so that the next run finds those that outlived the last one.

/** One line of the file. Names are the file's format. */
interface ProcessRecord {
  readonly session_id: string;
  readonly command: string;
  readonly pid: number;
  /** What distinguishes this process from a later one with the same pid. */
  readonly start_time: string | null;
  /** Unix seconds. */
  readonly started_at: number;
  readonly cwd: string;
  readonly owner_pid: number;
  readonly owner_session: string;
  readonly owner_key: string | null;
}

/** Changes the list under the home's lock. Lines whose process is gone disappear on the way. */
async function updateRecords(
  file: string,
  change: (records: readonly ProcessRecord[]) => readonly ProcessRecord[],
): Promise<void> {
  await withLock(`${file}.lock`, async () => {
    const before = await readRecords(file);
    const living: ProcessRecord[] = [];
    for (const record of before) if (await isRunning(record)) living.push(record);
    await writeFileAtomic(file, `${JSON.stringify(change(living), null, 2)}\n`, { mode: 0o600 });
  });
}

/** Processes of this session that still run although the program that started them does not. */
async function orphans(
  file: string,
  session: { readonly sessionId: string; readonly sessionKey?: string },
): Promise<ProcessRecord[]> {
  const found: ProcessRecord[] = [];
  for (const record of await readRecords(file)) {
    const ours =
      record.owner_session === session.sessionId ||
      (record.owner_key !== null && record.owner_key === session.sessionKey);
    if (ours && record.owner_pid !== process.pid && !isAlive(record.owner_pid) && (await isRunning(record))) {
      found.push(record);
    }
  }
  return found;
}

async function isRunning({ pid, start_time }: Pick<ProcessRecord, "pid" | "start_time">): Promise<boolean> {
  return isAlive(pid) && (start_time === null || (await startTimeOf(pid)) === start_time);
}

async function readRecords(file: string): Promise<ProcessRecord[]> {
  const text = await readFile(file, "utf8").catch(() => "[]"); // no file yet
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isProcessRecord) : [];
  } catch {
    return []; // not ours, or damaged: it only ever described processes that ran then
  }
}

function isProcessRecord(value: unknown): value is ProcessRecord {
  const record = value as Partial<ProcessRecord> | null; // looked at field by field below
  return (
    typeof record?.session_id === "string" &&
    typeof record.command === "string" &&
    Number.isInteger(record.pid) &&
    typeof record.started_at === "number" &&
    Number.isInteger(record.owner_pid) &&
    typeof record.owner_session === "string"
  );
}

// When a line of a background process is worth a message to the model, and when there were too many of them.

const WINDOW_MS = 15_000;
const STRIKES = 3;
const MAX_LINES = 20;
const MAX_CHARS = 2000;

const BREAKER_MESSAGES = 15;
const BREAKER_MS = 10_000;
const PAUSE_MS = 30_000;

type WatchEvent =
  | { readonly type: "match"; readonly text: string; readonly missed: number }
  /** Three windows in a row had more matches than one: watching ends, only the process's end will be reported. */
  | { readonly type: "overflow" };

/** Looks for texts in the output lines of one process. */
export class LineWatch {
  readonly #patterns: readonly string[];
  readonly #now: () => number;
  readonly #redact: (text: string) => string;
  #partial = "";
  #windowStart = Number.NEGATIVE_INFINITY;
  #missed = 0;
  #strikes = 0;
  #active = true;

  /** What matches is reported redacted; it is redacted before it is cut, while secrets are still whole. */
  constructor(patterns: readonly string[], clock: Clock, redact: (text: string) => string) {
    this.#patterns = patterns;
    this.#redact = redact;
    this.#now = () => clock.now();
  }

  push(text: string): WatchEvent | null {
    const lines = (this.#partial + text).split("\n");
    const rest = lines.pop() ?? "";
    this.#partial = rest.length > MAX_CHARS ? this.#redact(rest).slice(-MAX_CHARS) : rest;
    const matches = lines.filter((line) => this.#patterns.some((pattern) => line.includes(pattern)));
    if (!this.#active || matches.length === 0) return null;
    const now = this.#now();
    if (now - this.#windowStart < WINDOW_MS) return this.#miss(matches.length);
    if (this.#missed === 0) this.#strikes = 0;
    const missed = this.#missed;
    this.#missed = 0;
    this.#windowStart = now;
    const shown = this.#redact(matches.slice(0, MAX_LINES).join("\n")).slice(0, MAX_CHARS);
    return { type: "match", text: shown, missed };
  }

  #miss(count: number): WatchEvent | null {
    if (this.#missed === 0) this.#strikes++;
    this.#missed += count;
    if (this.#strikes < STRIKES) return null;
    this.#active = false;
    return { type: "overflow" };
  }
}

/** Stops the messages of all watches together when they come too fast. */
export class WatchBreaker {
  readonly #clock: Clock;
  readonly #say: (text: string) => void;
  readonly #signal: AbortSignal;
  #sent: number[] = [];
  #paused = false;

  constructor(clock: Clock, say: (text: string) => void, signal: AbortSignal) {
    this.#clock = clock;
    this.#say = say;
    this.#signal = signal;
  }

  send(text: string): void {
    if (this.#paused) return;
    const now = this.#clock.now();
    this.#sent = [...this.#sent.filter((at) => now - at < BREAKER_MS), now];
    if (this.#sent.length <= BREAKER_MESSAGES) {
      this.#say(text);
      return;
    }
    this.#paused = true;
    this.#say("[IMPORTANT: Background processes matched too often; watch messages pause for 30 seconds.]");
    this.#clock.sleep(PAUSE_MS, this.#signal).then(
      () => {
        this.#paused = false;
        this.#sent = [];
        this.#say("[IMPORTANT: Watch messages of background processes are on again.]");
      },
      () => undefined, // the agent was closed during the pause
    );
  }
}
