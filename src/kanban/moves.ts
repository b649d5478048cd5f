// A card changes its state: judged by rules.ts, written here in one step with its run, its event and what follows for other cards.
import { randomBytes } from "node:crypto";
import { isRecord } from "../kit/json.ts";
import {
  BoardError,
  blocksOf,
  cardOf,
  childrenOf,
  comment,
  isForced,
  note,
  openParents,
  promote,
  runsOf,
  setStatus,
} from "./cards.ts";
import { judge, type Move } from "./rules.ts";
import type { BlockKind, Card, CardRun, Change, RunOutcome } from "./schema.ts";

/** How long a claim counts without a sign of life. */
export const CLAIM_SECONDS = 900;

interface Applied {
  readonly card: Card;
  readonly run: CardRun | null;
}

function apply(change: Change, id: string, move: Move, payload: object, run: number | null): Applied {
  const { db } = change;
  const card = cardOf(db, id);
  const { kinds } = blocksOf(db, id);
  const facts = {
    status: card.status,
    openParents: openParents(db, id),
    isForced: isForced(db, id),
    blockKinds: kinds,
  };
  const verdict = judge(facts, move);
  if ("refused" in verdict) throw new BoardError(`${id}: ${verdict.refused}.`);
  const { to, event, recurrences } = verdict;
  setStatus(change, id, to);
  if (recurrences !== undefined) db.run("UPDATE tasks SET block_recurrences = ? WHERE id = ?", recurrences, id);
  const counted = recurrences === undefined ? {} : { recurrences };
  note(change, { card: id, kind: event, payload: { ...payload, ...counted }, run });
  return { card: cardOf(db, id), run: runsOf(db, id).find((one) => one.id === run) ?? null };
}

/** The open run of a card ends, in the same step as its state. */
export function closeRun(
  { db, now }: Change,
  card: Card,
  end: {
    readonly outcome: RunOutcome;
    readonly summary?: string | null;
    readonly metadata?: object | null;
    readonly error?: string | null;
  },
): number | null {
  const { outcome, summary = null, metadata = null, error = null } = end;
  const id = card.current_run_id;
  if (id === null) return null;
  db.run(
    "UPDATE task_runs SET status = ?, outcome = ?, ended_at = ?, summary = ?, metadata = ?, error = ? WHERE id = ?",
    ...[outcome, outcome, now, summary, metadata && JSON.stringify(metadata), error, id],
  );
  db.run(
    "UPDATE tasks SET current_run_id = NULL, claim_lock = NULL, claim_expires = NULL, worker_pid = NULL WHERE id = ?",
    card.id,
  );
  return id;
}

interface Completion {
  readonly summary?: string | undefined;
  readonly result?: string | undefined;
  readonly metadata?: unknown;
  /** Cards that the worker says it made. */
  readonly createdCards?: readonly string[] | undefined;
  /** The run that completes it; absent: a person does. */
  readonly run?: number | undefined;
}

export function complete(change: Change, id: string, completion: Completion): Applied {
  const { db, now } = change;
  const card = cardOf(db, id);
  const { metadata = null, run, createdCards = [] } = completion;
  const summary = completion.summary?.trim() || completion.result?.trim() || null;
  const result = completion.result?.trim() || summary;
  if (summary === null) throw new BoardError(`${id}: say what came of it: a summary or a result is needed.`);
  if (metadata !== null && !isRecord(metadata)) throw new BoardError(`${id}: metadata is an object in JSON.`);
  if (run !== undefined && card.current_run_id !== run)
    throw new BoardError(`${id}: run ${run} is over; another worker has this card, or it was reclaimed.`);
  checkCreated(change, card, createdCards);
  const extra = createdCards.length > 0 ? { ...metadata, created_cards: createdCards } : metadata;
  const closed = closeRun(change, card, { outcome: "completed", summary, metadata: extra });
  // Done by hand: the attempt that it was is kept like every other.
  const own =
    closed ??
    db.run(
      `INSERT INTO task_runs (task_id, profile, status, outcome, started_at, ended_at, summary, metadata)
       VALUES (?, ?, 'completed', 'completed', ?, ?, ?, ?)`,
      ...[id, card.assignee, now, now, summary, extra && JSON.stringify(extra)],
    ).lastId;
  const applied = apply(change, id, { type: "complete" }, { summary }, own);
  db.run(
    `UPDATE tasks SET result = ?, completed_at = ?, consecutive_failures = 0, last_failure_error = NULL, block_kind = NULL,
     block_recurrences = 0 WHERE id = ?`,
    ...[result, now, id],
  );
  promote(change, childrenOf(db, id));
  return { ...applied, card: cardOf(db, id) };
}

/** A model may name cards that it never made; nothing is completed on such a word. */
function checkCreated({ db }: Change, card: Card, ids: readonly string[]): void {
  const children = new Set(childrenOf(db, card.id));
  const bad = ids.filter((id) => {
    const made = db.get<Card>("SELECT * FROM tasks WHERE id = ?", id);
    const isTheirs =
      made && (made.created_by === card.id || (card.assignee !== null && made.created_by === card.assignee));
    return !made || !(isTheirs || children.has(id));
  });
  if (bad.length > 0)
    throw new BoardError(
      `${card.id}: created_cards names cards that were not made for this one: ${bad.join(", ")}. Nothing was changed.`,
    );
}

export function block(
  change: Change,
  id: string,
  {
    reason,
    kind,
    run,
  }: { readonly reason?: string | undefined; readonly kind?: BlockKind | undefined; readonly run?: number | undefined },
): Applied {
  const card = cardOf(change.db, id);
  if (run !== undefined && card.current_run_id !== run) throw new BoardError(`${id}: run ${run} is over.`);
  const closed = closeRun(change, card, { outcome: "blocked", summary: reason ?? null });
  const applied = apply(
    change,
    id,
    { type: "block", kind: kind ?? null },
    { reason: reason ?? null, kind: kind ?? null },
    closed,
  );
  change.db.run("UPDATE tasks SET block_kind = ? WHERE id = ?", kind ?? null, id);
  return applied;
}

/** Failures are forgiven, what it was blocked for is not. */
export function unblock(change: Change, id: string, reason: string | undefined): Applied {
  const applied = apply(change, id, { type: "unblock" }, { reason: reason ?? null }, null);
  change.db.run(
    "UPDATE tasks SET consecutive_failures = 0, last_failure_error = NULL, block_kind = NULL WHERE id = ?",
    id,
  );
  return applied;
}

export function promoteByHand(
  change: Change,
  id: string,
  { actor, reason, force }: { readonly actor: string; readonly reason?: string | undefined; readonly force: boolean },
): Applied {
  const applied = apply(change, id, { type: "promote", force }, { actor, reason: reason ?? null, forced: force }, null);
  change.db.run(
    "UPDATE tasks SET consecutive_failures = 0, last_failure_error = NULL, block_kind = NULL WHERE id = ?",
    id,
  );
  return applied;
}

/** What an idea has become. */
interface Specified {
  readonly title: string;
  readonly body: string | null;
  readonly assignee: string | null;
  readonly as: "specified" | "decomposed";
  /** For whoever reads the event. */
  readonly facts?: object;
}

/** An idea becomes work: it is ready at once, unless it waits for others. */
export function specify(change: Change, id: string, { title, body, assignee, as, facts = {} }: Specified): Applied {
  const { db } = change;
  const applied = apply(change, id, { type: "specify", as }, facts, null);
  db.run(
    `UPDATE tasks SET title = ?, body = ?, assignee = ?, consecutive_failures = 0, last_failure_error = NULL, block_kind = NULL
     WHERE id = ?`,
    ...[title, body, assignee, id],
  );
  promote(change, [id]);
  return { ...applied, card: cardOf(db, id) };
}

export function schedule(change: Change, id: string, reason: string | undefined): Applied {
  const closed = closeRun(change, cardOf(change.db, id), { outcome: "scheduled", summary: reason ?? null });
  return apply(change, id, { type: "schedule" }, { reason: reason ?? null }, closed);
}

export function archive(change: Change, id: string): Applied {
  const closed = closeRun(change, cardOf(change.db, id), { outcome: "reclaimed", error: "archived" });
  const applied = apply(change, id, { type: "archive" }, {}, closed);
  promote(change, childrenOf(change.db, id));
  return applied;
}

/** For good: the card and all that is said of it. */
export function remove(change: Change, id: string): void {
  const { db } = change;
  if (cardOf(db, id).status === "running") throw new BoardError(`${id} is being worked on; archive it first.`);
  const children = childrenOf(db, id);
  for (const [table, column] of [
    ...["task_comments", "task_events", "task_runs", "task_attachments", "kanban_notify_subs"].map((name) => [
      name,
      "task_id",
    ]),
    ...[
      ["task_links", "parent_id"],
      ["task_links", "child_id"],
      ["tasks", "id"],
    ],
  ])
    db.run(`DELETE FROM ${table} WHERE ${column} = ?`, id);
  promote(change, children);
}

interface Claim {
  readonly card: Card;
  readonly run: number;
  readonly lock: string;
}

/** `host:pid:random`: who works on a card, and on which machine. */
export const newLock = (host: string, pid: number) => `${host}:${pid}:${randomBytes(4).toString("hex")}`;

/** Null: somebody else was faster, or a parent is open after all. */
export function claim(
  change: Change,
  id: string,
  { lock, seconds = CLAIM_SECONDS }: { readonly lock: string; readonly seconds?: number },
): Claim | null {
  const { db, now } = change;
  const card = cardOf(db, id);
  if ((card.status !== "ready" && card.status !== "review") || card.claim_lock !== null) return null;
  const waiting = isForced(db, id) ? [] : openParents(db, id);
  if (waiting.length > 0) {
    setStatus(change, id, "todo");
    note(change, { card: id, kind: "claim_rejected", payload: { open_parents: waiting } });
    return null;
  }
  const expires = now + seconds;
  const { lastId: run } = db.run(
    `INSERT INTO task_runs (task_id, profile, status, claim_lock, claim_expires, max_runtime_seconds, started_at)
     VALUES (?, ?, 'running', ?, ?, ?, ?)`,
    ...[id, card.assignee, lock, expires, card.max_runtime_seconds, now],
  );
  db.run(
    `UPDATE tasks SET status = 'running', claim_lock = ?, claim_expires = ?, current_run_id = ?, started_at = COALESCE(started_at, ?),
     last_heartbeat_at = NULL, worker_pid = NULL WHERE id = ?`,
    ...[lock, expires, run, now, id],
  );
  const source = card.status === "review" ? { source_status: "review" } : {};
  note(change, { card: id, kind: "claimed", payload: { lock, expires, ...source }, run });
  return { card: cardOf(db, id), run, lock };
}

/** Whoever works on it gives a sign of life: its claim is good for another while. */
export function heartbeat(change: Change, id: string, text: string | undefined): void {
  const { db, now } = change;
  const card = cardOf(db, id);
  if (card.status !== "running") throw new BoardError(`${id} is ${card.status}; nobody works on it.`);
  const expires = now + CLAIM_SECONDS;
  db.run("UPDATE tasks SET last_heartbeat_at = ?, claim_expires = ? WHERE id = ?", now, expires, id);
  db.run(
    "UPDATE task_runs SET last_heartbeat_at = ?, claim_expires = ? WHERE id = ?",
    ...[now, expires, card.current_run_id],
  );
  note(change, { card: id, kind: "heartbeat", payload: { note: text ?? null }, run: card.current_run_id });
}

/** Taken out of the hands of whoever had it. No other worker is started before that one has ended. */
export function reclaim(change: Change, id: string, reason: string | undefined): void {
  const card = cardOf(change.db, id);
  if (card.status !== "running") throw new BoardError(`${id} is ${card.status}; nobody works on it.`);
  const run = closeRun(change, card, { outcome: "reclaimed", error: reason ?? null });
  const waits = !isForced(change.db, id) && openParents(change.db, id).length > 0;
  setStatus(change, id, waits ? "todo" : "ready");
  note(change, { card: id, kind: "reclaimed", payload: { reason: reason ?? null }, run });
}

/** The reason a person gave is also said where everybody reads it. */
export function withReason(
  change: Change,
  id: string,
  said: { readonly author: string; readonly reason: string | undefined },
): void {
  if (said.reason?.trim()) comment(change, id, { author: said.author, body: said.reason });
}
