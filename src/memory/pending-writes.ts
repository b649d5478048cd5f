// Writes of the agent that wait for the user's leave: one file each, kept until they are let through or thrown away.
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../kit/clock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { mapOf, number, oneOf, parseAs, record, type Shape, type ShapeOf, text } from "../kit/json.ts";

const ID = /^[0-9a-f]{8}$/;

const anything: Shape<unknown> = (_value): _value is unknown => true;
const pendingWrite = record({
  id: text,
  subsystem: oneOf(["memory", "skills"]),
  action: text,
  summary: text,
  origin: text,
  /** Unix seconds. */
  created_at: number,
  /** The arguments of the call, to be made again. */
  payload: mapOf(anything),
});

export type PendingWrite = ShapeOf<typeof pendingWrite>;

export type NewPendingWrite = Pick<PendingWrite, "subsystem" | "action" | "summary" | "origin" | "payload">;

/** `dir` holds the waiting writes of one subsystem. Throws when the record cannot be kept. */
export async function stageWrite(dir: string, write: NewPendingWrite, clock: Clock): Promise<PendingWrite> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const record = { id: await freeId(dir, clock), ...write, created_at: clock.now() / 1000 };
  await writeFileAtomic(fileOf(dir, record.id), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 });
  return record;
}

/** Oldest first. Files that are no such record are left out. */
export async function listPendingWrites(dir: string): Promise<readonly PendingWrite[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  const records = await Promise.all(ids.map((id) => readPendingWrite(dir, id)));
  return records.filter((record) => record !== null).sort((a, b) => a.created_at - b.created_at || compare(a.id, b.id));
}

export async function readPendingWrite(dir: string, id: string): Promise<PendingWrite | null> {
  if (!ID.test(id)) return null;
  try {
    const read = parseAs(await readFile(fileOf(dir, id), "utf8"), pendingWrite);
    return read && ID.test(read.id) ? read : null;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

export async function dropPendingWrite(dir: string, id: string): Promise<void> {
  if (ID.test(id)) await rm(fileOf(dir, id), { force: true });
}

function fileOf(dir: string, id: string): string {
  return join(dir, `${id}.json`);
}

async function freeId(dir: string, clock: Clock): Promise<string> {
  for (;;) {
    const id = Math.floor(clock.random() * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
    const taken = await stat(fileOf(dir, id)).catch(() => null);
    if (!taken) return id;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
