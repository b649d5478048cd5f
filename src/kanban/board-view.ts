// What a dispatcher sees of a board: the rows of its cards, and the processes of their workers.
import { readdir } from "node:fs/promises";
import type { Connection } from "../sessions/connection.ts";
import { blocksOf, isForced, payloadOf } from "./cards.ts";
import { type BoardView, type CardView, type Leftover, type OpenRun, UNSEEN, type WorkerState } from "./plan.ts";
import { protocolStreak, type WorkerIdentity, workerOf } from "./runs.ts";
import type { Card, CardRun } from "./schema.ts";

/** How a process ended. */
export interface ExitFacts {
  readonly code: number | null;
  readonly signal: string | null;
}

interface Surroundings {
  readonly host: string;
  lives(who: WorkerIdentity, card: string): Promise<boolean>;
  /** Null: it was not a child of this process. */
  exitOf(who: WorkerIdentity): ExitFacts | null;
  /** The last line of what it printed. */
  lastWords(card: string): Promise<string>;
  /** Attempts whose process is known to be gone; added to. */
  readonly gone: Set<number>;
  /** Where scratch folders lie. */
  readonly workspaces: string;
}

/** `host:pid:` and this: a dispatcher claimed it, and nobody else. */
export const DISPATCHED = "dispatch-";

const isHere = (lock: string | null, host: string) => lock?.startsWith(`${host}:`) ?? false;
const isDispatched = (lock: string | null, host: string) =>
  isHere(lock, host) && (lock?.split(":").at(-1)?.startsWith(DISPATCHED) ?? false);

const OPEN = "status NOT IN ('done', 'archived', 'triage', 'scheduled')";
/** Cards that could be started. */
const WAITING = `SELECT id FROM tasks WHERE ${OPEN} AND status <> 'running'`;
/** What a person does to put a card into line again. */
const BY_HAND = "'unblocked', 'promoted_manual', 'status', 'assigned', 'specified'";
const LEFTOVER_SECONDS = 86_400;
const LEFTOVER_RUNS = 1000;
const PULL_REQUEST = /https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/pull\/\d+/;

export async function viewBoard(
  db: Connection,
  around: Surroundings,
  fixed: Pick<BoardView, "now" | "profiles" | "limits">,
): Promise<BoardView> {
  const cards = db.all<Card>(`SELECT * FROM tasks WHERE ${OPEN} ORDER BY priority DESC, created_at, rowid`);
  const parents = openParentsOf(db);
  const last = lastRuns(db);
  const byHand = newest(
    db,
    `SELECT task_id, MAX(created_at) AS at FROM task_events WHERE task_id IN (${WAITING}) AND kind IN (${BY_HAND}) GROUP BY task_id`,
  );
  const completed = newest(
    db,
    `SELECT task_id, MAX(ended_at) AS at FROM task_runs WHERE task_id IN (${WAITING}) AND outcome = 'completed' GROUP BY task_id`,
  );
  const requests = pullRequests(db, fixed.now - 86_400);
  const guards = guardsOf(db);
  const leftovers = await leftoversOf(db, around, fixed.now);
  /** Later than whatever a person did since. */
  const since = (id: string, times: ReadonlyMap<string, number>) => {
    const at = times.get(id);
    return at !== undefined && at > (byHand.get(id) ?? -1) ? at : null;
  };
  const views = cards.map(async (card): Promise<CardView> => {
    const { id, status } = card;
    const openParents = parents.get(id) ?? [];
    const past = last.get(id);
    return {
      ...{
        id,
        title: card.title,
        status,
        assignee: card.assignee,
        priority: card.priority,
        createdAt: card.created_at,
      },
      ...{ failures: card.consecutive_failures, maxRetries: card.max_retries, lastError: card.last_failure_error },
      openParents,
      isForced: openParents.length > 0 && isForced(db, id),
      isHeld: status === "blocked" && blocksOf(db, id).isHeld,
      run: status === "running" ? await openRun(db, card, around) : null,
      last:
        status === "running" || !past
          ? null
          : {
              ...{ id: past.id, outcome: past.outcome, endedAt: past.ended_at ?? fixed.now },
              isAlive: leftovers.some((one) => one.card === id),
            },
      completedAt: since(id, completed),
      pullRequestAt: since(id, requests),
      guardedFor: guards.get(id) ?? null,
    };
  });
  const busy = new Set(leftovers.map(({ card }) => card));
  return {
    ...fixed,
    cards: await Promise.all(views),
    leftovers,
    finishedFolders: await finishedFolders(db, around, busy),
  };
}

async function openRun(db: Connection, card: Card, around: Surroundings): Promise<OpenRun> {
  const run = db.get<CardRun>("SELECT * FROM task_runs WHERE id = ?", card.current_run_id);
  return {
    id: run?.id ?? -1,
    startedAt: run?.started_at ?? card.started_at ?? card.created_at,
    heartbeatAt: card.last_heartbeat_at,
    claimExpires: card.claim_expires,
    maxSeconds: run?.max_runtime_seconds ?? null,
    isDispatched: isDispatched(card.claim_lock, around.host),
    worker: run ? await stateOf(db, run, around) : { type: "none" },
    protocolStreak: protocolStreak({ db }, card.id),
  };
}

async function stateOf(db: Connection, run: CardRun, around: Surroundings): Promise<WorkerState> {
  const who = workerOf(db, run);
  if (run.claim_lock !== null && !isHere(run.claim_lock, around.host)) return { type: "elsewhere" };
  if (who === null) return { type: "none" };
  const exit = around.exitOf(who);
  if (exit === null && (await around.lives(who, run.task_id))) return { type: "alive" };
  if (exit === null) return { type: "dead", code: null, isSeen: false, words: UNSEEN };
  const how = exit.signal === null ? `ended with code ${exit.code}` : `was ended by ${exit.signal}`;
  const said = exit.code === 0 ? "" : await around.lastWords(run.task_id);
  return { type: "dead", code: exit.code, isSeen: true, words: `the worker ${how}${said === "" ? "" : `: ${said}`}` };
}

/** Processes of attempts that are over: one that is not told may go on with a card that is no longer its own. */
async function leftoversOf(db: Connection, around: Surroundings, now: number): Promise<readonly Leftover[]> {
  const runs = db.all<CardRun>(
    `SELECT * FROM task_runs WHERE id > (SELECT MAX(id) FROM task_runs) - ${LEFTOVER_RUNS} AND worker_pid IS NOT NULL AND ended_at > ?
     ORDER BY id`,
    now - LEFTOVER_SECONDS,
  );
  const found: Leftover[] = [];
  for (const run of runs) {
    if (around.gone.has(run.id) || !isHere(run.claim_lock, around.host)) continue;
    const who = workerOf(db, run);
    const lives = who !== null && around.exitOf(who) === null && (await around.lives(who, run.task_id));
    if (lives) found.push({ card: run.task_id, run: run.id, endedAt: run.ended_at ?? now });
    else around.gone.add(run.id);
  }
  return found;
}

// The rest in few questions, however many cards there are.

interface TimeRow {
  readonly task_id: string;
  readonly at: number;
}

const newest = (db: Connection, sql: string): ReadonlyMap<string, number> =>
  new Map(db.all<TimeRow>(sql).map(({ task_id, at }) => [task_id, at]));

function openParentsOf(db: Connection): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  const rows = db.all<{ parent_id: string; child_id: string }>(
    `SELECT parent_id, child_id FROM task_links JOIN tasks ON tasks.id = parent_id
     WHERE status NOT IN ('done', 'archived') ORDER BY parent_id`,
  );
  for (const { parent_id, child_id } of rows) found.set(child_id, [...(found.get(child_id) ?? []), parent_id]);
  return found;
}

function lastRuns(db: Connection): ReadonlyMap<string, CardRun> {
  const rows = db.all<CardRun>(
    `SELECT task_runs.* FROM task_runs JOIN (SELECT MAX(id) AS newest FROM task_runs WHERE task_id IN
       (${WAITING}) GROUP BY task_id) ON task_runs.id = newest`,
  );
  return new Map(rows.map((run) => [run.task_id, run]));
}

function pullRequests(db: Connection, after: number): ReadonlyMap<string, number> {
  const rows = db.all<{ task_id: string; body: string; at: number }>(
    `SELECT task_id, body, created_at AS at FROM task_comments WHERE task_id IN (${WAITING}) AND created_at > ?
       AND body LIKE '%github.com/%/pull/%' ORDER BY id`,
    after,
  );
  return new Map(rows.filter(({ body }) => PULL_REQUEST.test(body)).map(({ task_id, at }) => [task_id, at]));
}

function guardsOf(db: Connection): ReadonlyMap<string, string> {
  const rows = db.all<{ task_id: string; kind: string; payload: string | null }>(
    `SELECT task_events.task_id, kind, payload FROM task_events JOIN (SELECT MAX(id) AS newest FROM task_events WHERE kind IN
       ('respawn_guarded', 'claimed') AND task_id IN (${WAITING}) GROUP BY task_id) ON id = newest`,
  );
  return new Map(
    rows.flatMap(({ task_id, kind, payload }) =>
      kind === "respawn_guarded" ? [[task_id, String(payloadOf({ payload }).reason)]] : [],
    ),
  );
}

/** Folders of cards that are finished, with no process in them and no open child that could look there. */
async function finishedFolders(
  db: Connection,
  around: Surroundings,
  busy: ReadonlySet<string>,
): Promise<readonly string[]> {
  const names = await readdir(around.workspaces).catch(() => []); // no card has worked yet
  const finished: string[] = [];
  for (const id of names) {
    const card = db.get<Card>("SELECT * FROM tasks WHERE id = ? AND status IN ('done', 'archived')", id);
    if (card?.workspace_kind !== "scratch") continue;
    const waits = db.get(
      "SELECT 1 FROM task_links JOIN tasks ON tasks.id = child_id WHERE parent_id = ? AND status NOT IN ('done', 'archived')",
      id,
    );
    if (!waits && !busy.has(id)) finished.push(id);
  }
  return finished;
}
