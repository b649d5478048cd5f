// Every change of memory, one line each, so that nothing is lost and nothing is unexplained. Written under the lock of the store only.

import { open, readFile, rename, stat, truncate } from "node:fs/promises";
import { isMissing } from "../kit/errors.ts";
import { listOf, nullable, number, oneOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import { scanForThreats } from "../safety/threats/scan.ts";
import {
  fail,
  lengthOf,
  type MemoryFailure,
  type MemoryResult,
  type MemoryTarget,
  shortUsage,
  TARGETS,
} from "./entries.ts";
import { sameEntries } from "./request.ts";
import type { Change, MemoryAuthor, MemoryStore } from "./store.ts";

/** Who wrote: the agent, its review, its last look before a reset, a staged write let through, the user, or something outside. */
export type MemoryOrigin = "foreground" | "background_review" | "flush" | "approval" | "user" | "external";

const historyRecord = record({
  id: text,
  /** Unix seconds. */
  ts: number,
  target: oneOf(TARGETS),
  op: text,
  before: listOf(text),
  after: listOf(text),
  origin: text,
  session_id: nullable(text),
  turn: nullable(number),
  platform: nullable(text),
  /** The file as it was, when it was not written the way we write it. */
  before_text: optional(text),
  /** Id of the record that this one takes back. */
  undoes: optional(text),
});

export type HistoryRecord = ShapeOf<typeof historyRecord>;

interface History {
  /** Oldest first. Lines that a crash cut short are left out. */
  read(): Promise<readonly HistoryRecord[]>;
  last(target: MemoryTarget): Promise<HistoryRecord | null>;
  /** On disk when it resolves. What it gives back takes the lines away again. */
  append(records: readonly HistoryRecord[]): Promise<() => Promise<void>>;
}

/** The change that added an entry to its store, not one that only put it back; null when no record says. */
export function recordThatWrote(
  oldestFirst: readonly HistoryRecord[],
  target: MemoryTarget,
  entry: string,
): HistoryRecord | null {
  const wrote = (record: HistoryRecord) =>
    record.target === target && record.after.includes(entry) && !record.before.includes(entry);
  const found = oldestFirst.findLast(wrote);
  const undone = found?.undoes === undefined ? -1 : oldestFirst.findIndex(({ id }) => id === found.undoes);
  if (!found || undone === -1) return found ?? null;
  return recordThatWrote(oldestFirst.slice(0, undone), target, entry) ?? found;
}

const MAX_BYTES = 1 << 20;

export function openHistory(path: string, maxBytes = MAX_BYTES): History {
  const older = `${path}.1`;

  async function append(records: readonly HistoryRecord[]): Promise<() => Promise<void>> {
    const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    if ((await sizeOf(path)) + Buffer.byteLength(lines) > maxBytes) await rotate();
    const file = await open(path, "a+", 0o600);
    try {
      const { size } = await file.stat();
      await file.appendFile((await endsInsideLine(file, size)) ? `\n${lines}` : lines);
      await file.sync();
      return () => truncate(path, size);
    } finally {
      await file.close();
    }
  }

  async function rotate(): Promise<void> {
    await rename(path, older).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }

  return {
    append,
    read: async () => [...parseLines(await textOf(older)), ...parseLines(await textOf(path))],
    last: async (target) => lastOf(await textOf(path), target) ?? lastOf(await textOf(older), target),
  };
}

/** Most questions are about the newest line: no other is parsed before it. */
function lastOf(text: string, target: MemoryTarget): HistoryRecord | null {
  const lines = text.split("\n");
  for (let index = lines.length - 1; index >= 0; index--) {
    const record = parseLine(lines[index] ?? "");
    if (record?.target === target) return record;
  }
  return null;
}

function parseLines(text: string): HistoryRecord[] {
  return text.split("\n").flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): HistoryRecord | null {
  return line === "" ? null : parseAs(line, historyRecord); // null too when a crash cut it short
}

async function endsInsideLine(file: { read: ReadAt }, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}

type ReadAt = (buffer: Buffer, offset: number, length: number, position: number) => Promise<{ buffer: Buffer }>;

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return "";
    throw error;
  }
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => null);
  return found?.size ?? 0;
}

// Taking a change of memory back: exactly, while nothing has come after it; else only what it added and removed.

export function undoRecord(store: MemoryStore, record: HistoryRecord, author: MemoryAuthor): Promise<MemoryResult> {
  const { target, before, after } = record;
  return store.change({ target, op: "undo", author, undoes: record.id }, (entries) => {
    if (!sameEntries(entries, after)) return takeBackParts(record, entries, store.limitOf(target));
    const message = "Change undone; the store is exactly as before.";
    return { entries: before, message, text: record.before_text };
  });
}

/** The newest change that is still in force: neither taken back, nor itself an undo, nor made by someone outside. */
export function newestToUndo(oldestFirst: readonly HistoryRecord[]): HistoryRecord | null {
  const undone = undoneIds(oldestFirst);
  return (
    oldestFirst.findLast(({ id, op, origin }) => op !== "undo" && origin !== "external" && !undone.has(id)) ?? null
  );
}

/** Ids of records that were taken back. An undo that was itself taken back counts for nothing. */
export function undoneIds(oldestFirst: readonly HistoryRecord[]): ReadonlySet<string> {
  const undone = new Set<string>();
  for (const { id, undoes } of oldestFirst.toReversed()) {
    if (undoes !== undefined && !undone.has(id)) undone.add(undoes);
  }
  return undone;
}

function takeBackParts(
  { before, after }: HistoryRecord,
  entries: readonly string[],
  limit: number,
): Change | MemoryFailure {
  const next = entries.filter((entry) => before.includes(entry) || !after.includes(entry));
  for (const [index, entry] of before.entries()) {
    if (after.includes(entry) || next.includes(entry)) continue;
    const [finding] = scanForThreats(entry, "strict");
    if (finding) return fail("threat", `Blocked: the entry to put back matches threat pattern '${finding.id}'.`);
    next.splice(index, 0, entry);
  }
  if (sameEntries(next, entries)) return fail("no_match", "Nothing of that change is left to undo.");
  if (lengthOf(next) > limit && lengthOf(next) >= lengthOf(entries)) {
    return fail("over_limit", `Undoing it would make ${shortUsage(lengthOf(next), limit)} chars. Free up space first.`);
  }
  return { entries: next, message: "Change undone; later changes were kept." };
}
