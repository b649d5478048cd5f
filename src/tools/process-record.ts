// processes.json: which background processes this home started, so that the next run finds those that outlived the last one.
import { readFile } from "node:fs/promises";
import { withLock } from "../home/lock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { isAlive, startTimeOf } from "../sandbox/process-tree.ts";

/** One line of the file. Names are the file's format. */
export interface ProcessRecord {
  readonly session_id: string;
  readonly command: string;
  readonly pid: number;
  /** What tells this process from a later one with the same pid. */
  readonly start_time: string | null;
  /** Unix seconds. */
  readonly started_at: number;
  readonly cwd: string;
  readonly owner_pid: number;
  readonly owner_session: string;
  readonly owner_key: string | null;
}

/** Changes the list under the home's lock. Lines whose process is gone disappear on the way. */
export async function updateRecords(
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
export async function orphans(
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

export async function isRunning({ pid, start_time }: Pick<ProcessRecord, "pid" | "start_time">): Promise<boolean> {
  return isAlive(pid) && (start_time === null || (await startTimeOf(pid)) === start_time);
}

async function readRecords(file: string): Promise<ProcessRecord[]> {
  const text = await readFile(file, "utf8").catch(() => "[]"); // no file yet
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isRecord) : [];
  } catch {
    return []; // not ours, or damaged: it only ever described processes that ran then
  }
}

function isRecord(value: unknown): value is ProcessRecord {
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
