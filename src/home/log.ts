import { AsyncLocalStorage } from "node:async_hooks";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Clock, systemClock } from "../kit/clock.ts";
import { codeOf } from "../kit/errors.ts";
import { withLock } from "./lock.ts";
import { makeDirectory } from "./paths.ts";

type LogLevel = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Writes to the log files of the home. Never throws, never blocks, always redacted. */
export interface Logger {
  debug(message: string, error?: unknown): void;
  info(message: string, error?: unknown): void;
  warn(message: string, error?: unknown): void;
  error(message: string, error?: unknown): void;
  /** A logger with a dotted name below this one, e.g. `agent.loop`. */
  child(name: string): Logger;
}

/** The top logger of a home. Lines are written in the background, in order. */
export interface RootLogger extends Logger {
  /** Resolves when everything logged so far is on disk or given up; never rejects. */
  flush(): Promise<void>;
  setLevel(level: LogLevel): void;
  /** Shows every line, DEBUG and up, as it is logged; null stops it. */
  mirror(write: ((line: string) => void) | null): void;
}

interface LoggerOptions {
  /** The `logs` directory; made on the first line. */
  readonly dir: string;
  readonly level?: LogLevel;
  readonly maxBytes?: number;
  readonly backups?: number;
  /** Masks secrets in every line. */
  readonly redact?: (text: string) => string;
  /** Called once when lines are lost (disk full, no permission). */
  readonly onTrouble?: (note: string) => void;
  readonly clock?: Clock;
}

const MB = 1024 * 1024;
const rank: Readonly<Record<LogLevel, number>> = { DEBUG: 10, INFO: 20, WARNING: 30, ERROR: 40 };

/** `agent.log` from `level` up, `errors.log` from WARNING up, `gateway.log` for the loggers below `gateway`. */
export function createLogger(options: LoggerOptions): RootLogger {
  const { dir, maxBytes = 5 * MB, backups = 3, redact = (text) => text, clock = systemClock } = options;
  let level = options.level ?? "INFO";
  let show: ((line: string) => void) | null = null;
  let troubled = false;
  const onTrouble = (note: string) => {
    if (troubled) return;
    troubled = true;
    options.onTrouble?.(note);
  };
  const file = (name: string, limits: { maxBytes: number; backups: number }) =>
    openLogFile({ path: join(dir, name), ...limits, onTrouble, clock });
  const agent = file("agent.log", { maxBytes, backups });
  const errors = file("errors.log", { maxBytes: 2 * MB, backups: 2 });
  const gateway = file("gateway.log", { maxBytes, backups });

  const write = (lineLevel: LogLevel, name: string, message: string, error: unknown) => {
    const targets: LogFile[] = [];
    if (rank[lineLevel] >= rank[level]) {
      targets.push(agent);
      if (name === "gateway" || name.startsWith("gateway.")) targets.push(gateway);
    }
    if (rank[lineLevel] >= rank.WARNING) targets.push(errors);
    if (targets.length === 0 && !show) return;
    const line = formatLine(clock.now(), lineLevel, name, safely(redact, message, error));
    for (const target of targets) target.append(line);
    show?.(line);
  };
  const named = (name: string): Logger => ({
    debug: (message, error) => write("DEBUG", name, message, error),
    info: (message, error) => write("INFO", name, message, error),
    warn: (message, error) => write("WARNING", name, message, error),
    error: (message, error) => write("ERROR", name, message, error),
    child: (below) => named(name === ROOT ? below : `${name}.${below}`),
  });

  return {
    ...named(ROOT),
    flush: async () => {
      await Promise.all([agent.flush(), errors.flush(), gateway.flush()]);
    },
    setLevel: (next) => {
      level = next;
    },
    mirror: (target) => {
      show = target;
    },
  };
}

const sessionTag = new AsyncLocalStorage<string>();

/** Everything logged inside `fn`, however deep and however late, carries `[id]`. */
export function runWithSessionTag<T>(id: string, fn: () => T): T {
  return sessionTag.run(id, fn);
}

function currentSessionTag(): string | undefined {
  return sessionTag.getStore();
}

const ROOT = "hermes";

function formatLine(now: number, level: LogLevel, name: string, body: string): string {
  const session = currentSessionTag();
  return `${timestamp(new Date(now))} ${level} ${session === undefined ? "" : `[${session}] `}${name}: ${body}\n`;
}

function timestamp(date: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${time},${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function safely(redact: (text: string) => string, message: string, error: unknown): string {
  try {
    const trace = error === undefined ? "" : `\n${describe(error)}`;
    return onOneEntry(redact(message + trace));
  } catch {
    return "(a message that could not be redacted was omitted)";
  }
}

/** The message and the trace of an error and of its causes. */
function describe(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : (JSON.stringify(error) ?? String(error));
  const own = error.stack ?? `${error.name}: ${error.message}`;
  return error.cause === undefined || depth > 5 ? own : `${own}\nCaused by: ${describe(error.cause, depth + 1)}`;
}

/** Further lines are indented, so that no text can pass for an entry of its own; control characters are shown, not sent. */
function onOneEntry(text: string): string {
  return text
    .replace(/\r?\n/g, "\n    ")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

// One log file: lines queue up and are appended in the background. Several processes may write to the same file and rotate it.

interface LogFile {
  append(line: string): void;
  flush(): Promise<void>;
}

interface LogFileOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly backups: number;
  readonly onTrouble: (note: string) => void;
  readonly clock: Clock;
}

const MAX_WAITING_LINES = 10_000;

export function openLogFile({ path, maxBytes, backups, onTrouble, clock }: LogFileOptions): LogFile {
  let waiting: string[] = [];
  let working: Promise<void> | null = null;
  let handle: FileHandle | null = null;

  async function drain(): Promise<void> {
    await Promise.resolve(); // lets a burst of lines become one write
    while (waiting.length > 0) {
      const batch = Buffer.from(waiting.join(""));
      waiting = [];
      try {
        await writeBatch(batch);
      } catch (error) {
        await closeHandle();
        onTrouble(`hermes: cannot write ${path} (${codeOf(error) ?? error}); log lines are lost until this is fixed.`);
      }
    }
    await closeHandle(); // an idle logger holds no file, so that rotation, removal and unmounting never meet a stale one
    working = null;
  }

  async function writeBatch(batch: Buffer): Promise<void> {
    const size = await openCurrent();
    if (maxBytes > 0 && size > 0 && size + batch.length > maxBytes) {
      await withLock(join(dirname(path), ".lock.db"), () => rotate(batch.length), { clock });
      await openCurrent();
    }
    await handle?.appendFile(batch);
  }

  /** Opens the file of that name, anew if another process moved ours away. Resolves to its size. */
  async function openCurrent(): Promise<number> {
    if (handle) {
      const [ours, named] = await Promise.all([handle.stat(), stat(path).catch(() => null)]);
      if (named?.ino === ours.ino && named.dev === ours.dev) return ours.size;
      await closeHandle();
    }
    handle = await open(path, "a", 0o600).catch(async (error: unknown) => {
      if (codeOf(error) !== "ENOENT") throw error;
      makeDirectory(dirname(path), 0o700);
      return open(path, "a", 0o600);
    });
    return (await handle.stat()).size;
  }

  async function rotate(incoming: number): Promise<void> {
    const now = await stat(path).catch(() => null);
    if (!now || now.size + incoming <= maxBytes) return; // another process was faster
    await closeHandle();
    if (backups < 1) return rm(path, { force: true });
    for (let n = backups; n > 1; n--) await renameIfThere(`${path}.${n - 1}`, `${path}.${n}`);
    await rename(path, `${path}.1`);
  }

  async function closeHandle(): Promise<void> {
    const open = handle;
    handle = null;
    await open?.close().catch(() => undefined);
  }

  return {
    append(line) {
      if (waiting.length >= MAX_WAITING_LINES) {
        onTrouble(`hermes: ${basename(path)} cannot keep up; log lines are lost.`);
        return;
      }
      waiting.push(line);
      working ??= drain();
    },
    async flush() {
      while (working) await working;
    },
  };
}

async function renameIfThere(from: string, to: string): Promise<void> {
  await rename(from, to).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}
