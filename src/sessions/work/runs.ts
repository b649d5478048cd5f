// Runs of scheduled jobs: who may run a slot, and what came of it. Inside a transaction, like its neighbours.
import type { StoreCore } from "../core.ts";
import { databaseNow, isGone } from "../lanes.ts";
import type { JobRun, JobRunEnd, NewJobRun, OutboxPart } from "../work.ts";
import { promisePart } from "./outbox.ts";

export const RUN_TABLES = [
  `CREATE TABLE IF NOT EXISTS cron_runs (id INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL, slot TEXT NOT NULL, state TEXT NOT NULL,
     holder TEXT, claimed_at REAL NOT NULL, started_at REAL, ended_at REAL, session_id TEXT, error TEXT, reason TEXT, UNIQUE (job_id, slot))`,
  "CREATE INDEX IF NOT EXISTS cron_runs_open ON cron_runs (id) WHERE ended_at IS NULL",
];

const KEPT_RUNS = 1000;

const COLUMNS = `id, job_id AS jobId, slot, state, holder, claimed_at AS claimedAt, started_at AS startedAt, ended_at AS endedAt,
  session_id AS sessionId, error, reason`;

export function claimSlot(core: StoreCore, { jobId, slot, state, holder, reason, error }: NewJobRun): number | null {
  const now = databaseNow(core);
  const { changes, lastId } = core.db.run(
    `INSERT INTO cron_runs (job_id, slot, state, holder, claimed_at, ended_at, reason, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (job_id, slot) DO NOTHING`,
    ...[jobId, slot, state, holder ?? null, now, state === "skipped" ? now : null, reason ?? null, error ?? null],
  );
  return changes > 0 ? lastId : null;
}

export function takeQueuedRuns(core: StoreCore, holder: string): JobRun[] {
  const rows = runRows(core, "WHERE state = 'queued' ORDER BY id");
  for (const { id } of rows) core.db.run("UPDATE cron_runs SET state = 'claimed', holder = ? WHERE id = ?", holder, id);
  return rows.map((row) => ({ ...row, state: "claimed", holder }));
}

export function beginRun(
  core: StoreCore,
  id: number,
  { holder, sessionId }: { holder: string; sessionId: string },
): boolean {
  const { changes } = core.db.run(
    "UPDATE cron_runs SET state = 'running', started_at = ?, session_id = ? WHERE id = ? AND holder = ? AND state = 'claimed'",
    ...[databaseNow(core), sessionId, id, holder],
  );
  return changes > 0;
}

/** False when somebody else has ended it, and then nothing is promised. */
export function endRun(core: StoreCore, id: number, end: JobRunEnd, outbox: readonly OutboxPart[] = []): boolean {
  const { changes } = core.db.run(
    "UPDATE cron_runs SET state = ?, error = ?, reason = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL",
    ...[end.state, end.error ?? null, end.reason ?? null, databaseNow(core), id],
  );
  if (changes === 0) return false;
  for (const part of outbox) promisePart(core, part);
  return true;
}

/** Runs whose process is gone. Those that had begun are not known to have done anything; those that had not are free again. */
export function abandonedRuns(core: StoreCore): JobRun[] {
  const open = runRows(core, "WHERE ended_at IS NULL AND state IN ('claimed', 'running')");
  const gone = open.filter(({ holder }) => holder === null || isGone(holder));
  for (const { id } of gone) endRun(core, id, { state: "unknown", error: "the process that ran it is gone" });
  return gone.map((row) => ({ ...row, state: "unknown" }));
}

export function runRows(core: StoreCore, where: string, ...values: readonly (string | number)[]): JobRun[] {
  if (!core.db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cron_runs'")) return [];
  return core.db.all<JobRun>(`SELECT ${COLUMNS} FROM cron_runs ${where}`, ...values);
}

export function sweepRuns(core: StoreCore): void {
  core.db.run(
    "DELETE FROM cron_runs WHERE ended_at IS NOT NULL AND id <= (SELECT MAX(id) FROM cron_runs) - ?",
    KEPT_RUNS,
  );
}
