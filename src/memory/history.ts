// Every change of memory, one line each, so that nothing is lost and nothing is unexplained. Written under the lock of the store only.
import { open, readFile, rename, stat, truncate } from "node:fs/promises";
import { listOf, nullable, number, oneOf, optional, parseAs, record, type ShapeOf, text } from "../kit/json.ts";
import { type MemoryTarget, TARGETS } from "./format.ts";
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

export interface History {
  /** Oldest first. Lines that a crash cut short are left out. */
  read(): Promise<readonly HistoryRecord[]>;
  last(target: MemoryTarget): Promise<HistoryRecord | null>;
  /** On disk when it resolves. What it gives back takes the lines away again. */
  append(records: readonly HistoryRecord[]): Promise<() => Promise<void>>;
}

/** The change that brought an entry into its store, not one that only put it back; null when no record tells. */
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

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
