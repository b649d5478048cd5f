// Runs that programs started over the API, and what happened in them: readable while they run, an hour longer, and after a crash.
import type { StoreCore } from "../core.ts";
import { databaseNow, isGone } from "../lanes.ts";
import { noteChange } from "../session-values.ts";
import type { ApiRun, ApiRunChange, ApiRunEvent, NewApiRun } from "../work.ts";

export const API_RUN_TABLES = [
  `CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, session_id TEXT, holder TEXT NOT NULL, status TEXT NOT NULL, model TEXT,
     output TEXT, usage TEXT, error TEXT, created_at REAL NOT NULL, updated_at REAL NOT NULL, ended_at REAL)`,
  "CREATE INDEX IF NOT EXISTS runs_open ON runs (run_id) WHERE ended_at IS NULL",
  "CREATE TABLE IF NOT EXISTS run_events (run_id TEXT NOT NULL, id INTEGER NOT NULL, at REAL NOT NULL, event TEXT NOT NULL, PRIMARY KEY (run_id, id))",
];

/** Seconds that a run is kept behind its end. */
const KEPT_SECONDS = 3600;
const CUT_OFF = "interrupted by a restart";

const COLUMNS = `run_id AS id, session_id AS sessionId, holder, status, model, output, usage, error, created_at AS createdAt,
  updated_at AS updatedAt, ended_at AS endedAt`;

type Row = Omit<ApiRun, "usage"> & { readonly usage: string | null };

const read = ({ usage, ...row }: Row): ApiRun => ({ ...row, usage: usage === null ? null : JSON.parse(usage) });

export function startApiRun(core: StoreCore, { id, sessionId, holder, model }: NewApiRun): ApiRun {
  const now = databaseNow(core);
  core.db.run(
    "INSERT INTO runs (run_id, session_id, holder, status, model, created_at, updated_at) VALUES (?, ?, ?, 'queued', ?, ?, ?)",
    ...[id, sessionId, holder, model, now, now],
  );
  noteChange(core, "run", sessionId, id);
  return {
    ...{ id, sessionId, holder, model, status: "queued", output: null, usage: null, error: null },
    ...{ createdAt: now, updatedAt: now, endedAt: null },
  };
}

/** Events and where the run stands, in one step; a run that has ended stays as it is. */
export function noteApiRun(
  core: StoreCore,
  id: string,
  events: readonly ApiRunEvent[],
  { status, sessionId, output, usage, error }: ApiRunChange = {},
): boolean {
  const now = databaseNow(core);
  const isEnd = status === "completed" || status === "failed" || status === "cancelled";
  const { changes } = core.db.run(
    `UPDATE runs SET status = COALESCE(?, status), session_id = COALESCE(?, session_id), output = COALESCE(?, output),
       usage = COALESCE(?, usage), error = COALESCE(?, error), updated_at = ?, ended_at = ?
     WHERE run_id = ? AND ended_at IS NULL`,
    ...[status ?? null, sessionId ?? null, output ?? null, usage ? JSON.stringify(usage) : null, error ?? null],
    ...[now, isEnd ? now : null, id],
  );
  if (changes === 0) return false;
  if (status !== undefined) noteChange(core, "run", null, id);
  for (const event of events)
    core.db.run(
      "INSERT OR REPLACE INTO run_events (run_id, id, at, event) VALUES (?, ?, ?, ?)",
      ...[id, event.id, now, JSON.stringify(event.event)],
    );
  return true;
}

/** What was merged into a later event goes. */
export function dropApiRunEvents(core: StoreCore, id: string, ids: readonly number[]): void {
  for (const one of ids) core.db.run("DELETE FROM run_events WHERE run_id = ? AND id = ?", id, one);
}

export function apiRun(core: StoreCore, id: string): ApiRun | null {
  const row = core.db.get<Row>(`SELECT ${COLUMNS} FROM runs WHERE run_id = ?`, id);
  return row ? read(row) : null;
}

export function apiRunEvents(core: StoreCore, id: string, after: number): ApiRunEvent[] {
  return core.db
    .all<{ id: number; event: string }>(
      "SELECT id, event FROM run_events WHERE run_id = ? AND id > ? ORDER BY id",
      ...[id, after],
    )
    .map(({ id: at, event }) => ({ id: at, event: JSON.parse(event) }));
}

/** Ends the runs of processes that are gone; their events stay readable. */
export function failAbandonedApiRuns(core: StoreCore): readonly string[] {
  const open = core.db.all<{ id: string; holder: string }>(
    "SELECT run_id AS id, holder FROM runs WHERE ended_at IS NULL",
  );
  const gone = open.filter(({ holder }) => isGone(holder)).map(({ id }) => id);
  for (const id of gone) {
    const last = core.db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM run_events WHERE run_id = ?", id);
    const event = { event: "run.failed", run_id: id, timestamp: databaseNow(core), error: CUT_OFF };
    noteApiRun(core, id, [{ id: (last?.id ?? 0) + 1, event }], { status: "failed", error: CUT_OFF });
  }
  return gone;
}

export function sweepApiRuns(core: StoreCore): void {
  const old = "ended_at IS NOT NULL AND ended_at < ?";
  const before = databaseNow(core) - KEPT_SECONDS;
  core.db.run(`DELETE FROM run_events WHERE run_id IN (SELECT run_id FROM runs WHERE ${old})`, before);
  core.db.run(`DELETE FROM runs WHERE ${old}`, before);
}
