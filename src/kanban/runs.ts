// What a dispatcher writes about attempts: whose process it is, that it goes on, and how it ended when its worker did not say so.
import { cardOf, isForced, note, openParents, payloadOf, setStatus } from "./cards.ts";
import { closeRun } from "./moves.ts";
import type { Card, CardEvent, CardRun, Change, RunOutcome } from "./schema.ts";

/** Who a worker is: its process, and when that began. A later process with the same number began at another time. */
export interface WorkerIdentity {
  readonly pid: number;
  /** As the system counts it; null where it does not say. */
  readonly startTime: number | null;
}

/** The process of a run is known. False: the run is over. */
export function storeWorker(change: Change, id: string, { run, pid, startTime }: WorkerIdentity & { run: number }) {
  const { db } = change;
  if (cardOf(db, id).current_run_id !== run) return false;
  db.run("UPDATE tasks SET worker_pid = ? WHERE id = ?", pid, id);
  db.run("UPDATE task_runs SET worker_pid = ? WHERE id = ?", pid, run);
  note(change, { card: id, kind: "spawned", payload: { pid, start_time: startTime }, run });
  return true;
}

/** Where it works is known. */
export function storeWorkspace(
  { db }: Change,
  id: string,
  place: { readonly path: string; readonly branch: string | null },
) {
  db.run(
    "UPDATE tasks SET workspace_path = ?, branch_name = COALESCE(branch_name, ?) WHERE id = ?",
    place.path,
    place.branch,
    id,
  );
}

interface RunEnd {
  readonly run: number;
  readonly outcome: Extract<
    RunOutcome,
    "reclaimed" | "crashed" | "timed_out" | "stale" | "rate_limited" | "spawn_failed"
  >;
  /** `protocol_violation`: it crashed in no way, it ended without saying what came of the card. */
  readonly event?: "protocol_violation";
  readonly error: string;
  readonly payload?: object;
  /** The card is put aside with so many of them in a row; absent: it is nobody's fault. */
  readonly limit?: number;
}

/**
 * The attempt is over, its process is gone. The card goes back into line, or is put aside when that happened too often. Null: the run
 * was over already, and nothing is changed.
 */
export function endRun(change: Change, id: string, end: RunEnd): Card | null {
  const { db } = change;
  const card = cardOf(db, id);
  const { run, outcome, error, event = outcome, payload = {}, limit } = end;
  if (card.status !== "running" || card.current_run_id !== run) return null;
  const failures = card.consecutive_failures + 1;
  const isProtocol = event === "protocol_violation";
  const streak = isProtocol ? protocolStreak(change, id) + 1 : failures;
  const gaveUp = limit !== undefined && streak >= limit;
  closeRun(change, card, { outcome: gaveUp && outcome === "spawn_failed" ? "gave_up" : outcome, error });
  const waits = !isForced(db, id) && openParents(db, id).length > 0;
  setStatus(change, id, gaveUp ? "blocked" : waits ? "todo" : "ready");
  if (limit !== undefined) {
    db.run("UPDATE tasks SET last_failure_error = ? WHERE id = ?", error, id);
    if (!isProtocol) db.run("UPDATE tasks SET consecutive_failures = ? WHERE id = ?", failures, id);
  }
  note(change, { card: id, kind: event, payload: { error, ...payload }, run });
  if (gaveUp)
    note(change, { card: id, kind: "gave_up", payload: { failures: streak, limit, error, outcome: event }, run });
  return cardOf(db, id);
}

/** What ends the count: everything but attempts that were stopped by a quota. */
const ENDS = `'protocol_violation', 'crashed', 'timed_out', 'spawn_failed', 'stale', 'reclaimed', 'completed', 'blocked', 'unblocked',
  'assigned', 'promoted_manual'`;

/** Attempts in a row that ended without a word. */
export function protocolStreak({ db }: Pick<Change, "db">, id: string): number {
  const kinds = db.all<Pick<CardEvent, "kind">>(
    `SELECT kind FROM task_events WHERE task_id = ? AND kind IN (${ENDS}) ORDER BY id DESC LIMIT 100`,
    id,
  );
  const end = kinds.findIndex(({ kind }) => kind !== "protocol_violation");
  return end < 0 ? kinds.length : end;
}

/** Its worker lives: the claim is good until then. False: the run is over. */
export function extendClaim(
  change: Change,
  id: string,
  {
    run,
    until,
    event,
    payload = {},
  }: {
    readonly run: number;
    readonly until: number;
    /** `reclaim_deferred`: its time is up, but it will not die. */
    readonly event: "claim_extended" | "reclaim_deferred";
    readonly payload?: object;
  },
): boolean {
  const { db } = change;
  if (cardOf(db, id).current_run_id !== run) return false;
  db.run("UPDATE tasks SET claim_expires = ? WHERE id = ?", until, id);
  db.run("UPDATE task_runs SET claim_expires = ? WHERE id = ?", until, run);
  note(change, { card: id, kind: event, payload: { expires: until, ...payload }, run });
  return true;
}

/** A process of this machine, and the attempt it is at. */
export type Running = WorkerIdentity & { readonly run: number };

/** Whoever works on a card just now, in a process of this machine. */
export function workerNow(db: Change["db"], id: string, host: string): Running | null {
  const run = db.get<CardRun>(
    "SELECT * FROM task_runs WHERE task_id = ? AND ended_at IS NULL ORDER BY id DESC LIMIT 1",
    id,
  );
  const who = run?.claim_lock?.startsWith(`${host}:`) ? workerOf(db, run) : null;
  return run && who ? { run: run.id, ...who } : null;
}

/** Who works, or worked, in a run; null where no process was ever started for it. */
export function workerOf(db: Change["db"], run: Pick<CardRun, "id" | "worker_pid">): WorkerIdentity | null {
  if (run.worker_pid === null) return null;
  const spawned = db.get<Pick<CardEvent, "payload">>(
    "SELECT payload FROM task_events WHERE run_id = ? AND kind = 'spawned' ORDER BY id DESC LIMIT 1",
    run.id,
  );
  const facts = spawned ? payloadOf(spawned) : {};
  const isSame = facts.pid === run.worker_pid && typeof facts.start_time === "number";
  return { pid: run.worker_pid, startTime: isSame ? Number(facts.start_time) : null };
}
