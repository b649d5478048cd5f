// Reads the files that log.ts writes: their last lines, filtered, and what is added to them, across rotations.
import { type FileHandle, open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../kit/clock.ts";
import { codeOf } from "../kit/errors.ts";

export const LOG_NAMES = ["agent", "errors", "gateway"] as const;
export type LogName = (typeof LOG_NAMES)[number];

export const LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Which loggers belong to which part of the program. */
const COMPONENTS = {
  gateway: ["gateway"],
  agent: ["agent", "llm", "prompt", "sessions", "memory", "skills", "safety"],
  tools: ["tools", "mcp", "web", "sandbox", "plugins", "hooks"],
  cli: ["hermes", "home", "cli"],
  cron: ["cron"],
} as const satisfies Record<string, readonly string[]>;

export type LogComponent = keyof typeof COMPONENTS;
export const LOG_COMPONENTS = Object.keys(COMPONENTS) as readonly LogComponent[]; // the table's own keys

export interface LogFilter {
  /** At least this level. */
  readonly level?: LogLevel | undefined;
  /** A part of the session's id. */
  readonly session?: string | undefined;
  readonly component?: LogComponent | undefined;
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined;
}

interface Entry {
  readonly at: number;
  readonly level: string;
  readonly session: string | null;
  readonly logger: string;
}

const ENTRY = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) (?:\[([^\]]*)\] )?([^\s:]+): /;

function parseEntry(line: string): Entry | null {
  const match = ENTRY.exec(line);
  if (!match) return null;
  const [, day, time, ms, level = "", session, logger = ""] = match;
  return { at: new Date(`${day}T${time}.${ms}`).getTime(), level, session: session ?? null, logger };
}

/**
 * Says of each line in turn whether it is wanted. A line of a stack trace goes with its entry. One whose entry was rotated away passes
 * the filters of level and time, which it has none of, but not those of session and component.
 */
export function logFilter(filter: LogFilter): (line: string) => boolean {
  let wanted = filter.session === undefined && filter.component === undefined;
  return (line) => {
    const entry = parseEntry(line);
    if (entry) wanted = passes(entry, filter);
    return wanted;
  };
}

function passes(entry: Entry, { level, session, component, since }: LogFilter): boolean {
  if (level !== undefined && rankOf(entry.level) < rankOf(level)) return false;
  if (since !== undefined && entry.at < since) return false;
  if (session !== undefined && !entry.session?.includes(session)) return false;
  if (component === undefined) return true;
  return COMPONENTS[component].some((name) => entry.logger === name || entry.logger.startsWith(`${name}.`));
}

/** What nobody here writes (CRITICAL of the original) is more than an error. */
function rankOf(level: string): number {
  const rank = (LOG_LEVELS as readonly string[]).indexOf(level);
  return rank < 0 ? LOG_LEVELS.length : rank;
}

/** `30s`, `5m`, `2h`, `1d`, with blanks and in capitals too; null for anything else. Milliseconds. */
export function parseAge(text: string): number | null {
  const match = /^(\d{1,6})\s*([smhd])$/.exec(text.trim().toLowerCase());
  if (!match) return null;
  const unit = { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"]; // the pattern allows these only
  return Number(match[1]) * unit * 1000;
}

/**
 * The last `count` wanted lines, with older files of the log where the newest does not hold as many. A stack trace that would begin in
 * its middle brings the lines before it along.
 */
export async function lastLines(path: string, count: number, filter: LogFilter): Promise<readonly string[]> {
  let lines: string[] = [];
  let found: string[] = [];
  for (const file of [path, ...(await rotated(path))]) {
    const text = await readFile(file, "utf8").catch(ifMissing);
    if (text === null) break;
    const older = text.split("\n");
    if (older.at(-1) === "") older.pop();
    lines = [...older, ...lines];
    const wanted = logFilter(filter);
    found = lines.filter((line) => wanted(line));
    const shown = fromEntry(found, Math.max(0, found.length - count));
    if (found.length >= count && parseEntry(shown[0] ?? "")) return shown;
  }
  return fromEntry(found, Math.max(0, found.length - count));
}

function fromEntry(lines: readonly string[], start: number): readonly string[] {
  let at = start;
  while (at > 0 && at < lines.length && parseEntry(lines[at] ?? "") === null) at--;
  return lines.slice(at);
}

/** `agent.log.1`, `agent.log.2` … as far as they are there, newest first. */
async function rotated(path: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (let n = 1; await stat(`${path}.${n}`).catch(ifMissing); n++) found.push(`${path}.${n}`);
  return found;
}

const POLL_MS = 300;

/** Whole lines as they are added, for ever. A log that is not there yet is waited for; one that is rotated is read to its end first. */
export async function* followLog(
  path: string,
  { clock, signal, fromStart = false }: { clock: Clock; signal?: AbortSignal; fromStart?: boolean },
): AsyncGenerator<string> {
  let reader = await openReader(path);
  if (reader && !fromStart) await reader.skip();
  try {
    for (;;) {
      if (reader) yield* reader.read();
      const named = await stat(path).catch(ifMissing);
      if (named && (!reader || named.ino !== reader.inode)) {
        if (reader) yield* reader.read(); // what was written between the last look and the rotation
        for (const file of reader ? await missed(path, reader.inode) : []) {
          const between = await openReader(file);
          if (between) yield* between.read();
          await between?.close();
        }
        await reader?.close();
        reader = await openReader(path);
        continue;
      }
      if (signal?.aborted) return;
      await clock.sleep(POLL_MS, signal).catch(() => undefined);
    }
  } finally {
    await reader?.close();
  }
}

/** Files that came and went between two looks, oldest first. */
async function missed(path: string, inode: number): Promise<readonly string[]> {
  const newer: string[] = [];
  for (const file of await rotated(path)) {
    if ((await stat(file).catch(ifMissing))?.ino === inode) return newer.reverse();
    newer.push(file);
  }
  return []; // ours is gone altogether: nothing tells where to go on
}

interface LineReader {
  readonly inode: number;
  /** Goes to the end without reading. */
  skip(): Promise<void>;
  /** Lines that are complete by now. */
  read(): AsyncGenerator<string>;
  close(): Promise<void>;
}

async function openReader(path: string): Promise<LineReader | null> {
  const file: FileHandle | null = await open(path, "r").catch(ifMissing);
  if (!file) return null;
  const decoder = new StringDecoder("utf8");
  const buffer = Buffer.alloc(64 * 1024);
  let at = 0;
  let rest = "";
  return {
    inode: (await file.stat()).ino,
    async skip() {
      at = (await file.stat()).size;
    },
    async *read() {
      if ((await file.stat()).size < at) at = 0; // somebody emptied it
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
        if (bytesRead === 0) return;
        at += bytesRead;
        const lines = (rest + decoder.write(buffer.subarray(0, bytesRead))).split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
    },
    close: () => file.close(),
  };
}

interface LogFileFacts {
  readonly name: string;
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly changed: number;
}

/** Every log file of a home, rotated ones too, by name. */
export async function listLogs(dir: string): Promise<readonly LogFileFacts[]> {
  const names = (await readdir(dir).catch(ifMissing)) ?? [];
  const facts = names
    .filter((name) => /^\w+\.log(?:\.\d+)?$/.test(name))
    .sort()
    .map(async (name) => {
      const found = await stat(join(dir, name)).catch(ifMissing);
      return found?.isFile() ? [{ name, bytes: found.size, changed: found.mtimeMs }] : [];
    });
  return (await Promise.all(facts)).flat();
}

function ifMissing(error: unknown): null {
  if (codeOf(error) === "ENOENT") return null;
  throw error;
}
