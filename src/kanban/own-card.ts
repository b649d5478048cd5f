// The card a process works on, as the dispatcher names it in the environment, and what keeps it in that process's hands.
import { BoardError, cardOf, note } from "./cards.ts";
import type { Card, CardComment, Change } from "./schema.ts";

/** What a worker is told by the variables it was started with. */
export interface Worker {
  readonly task: string;
  /** Null: nobody said which attempt this is; then the open one counts. */
  readonly run: number | null;
  /** Absent where the board is the default one. */
  readonly board: string;
  readonly workspace: string | null;
  /** Worked on over several turns until a judge says that it is done. */
  readonly goal: { readonly maxTurns: number | null } | null;
  /** It is reminded when a turn ends and its card is still open. */
  readonly isReminded: boolean;
  /** How long a claim counts without a sign of life. */
  readonly claimSeconds: number;
}

const CLAIM_SECONDS = 900;
const YES = new Set(["1", "true", "yes", "on"]);
const NO = new Set(["0", "false", "no", "off"]);

/** Null: this process works on no card. */
export function workerOf(env: (name: string) => string | undefined): Worker | null {
  const text = (name: string) => env(name)?.trim() || null;
  const count = (name: string) => {
    const value = text(name);
    return value !== null && /^[1-9]\d{0,8}$/.test(value) ? Number(value) : null;
  };
  const task = text("HERMES_KANBAN_TASK");
  if (task === null) return null;
  return {
    task,
    run: count("HERMES_KANBAN_RUN_ID"),
    board: text("HERMES_KANBAN_BOARD") ?? "default",
    workspace: text("HERMES_KANBAN_WORKSPACE"),
    goal: YES.has((text("HERMES_KANBAN_GOAL_MODE") ?? "").toLowerCase())
      ? { maxTurns: count("HERMES_KANBAN_GOAL_MAX_TURNS") }
      : null,
    isReminded: !NO.has((text("HERMES_KANBAN_STOP_NUDGE") ?? "").toLowerCase()),
    claimSeconds: count("HERMES_KANBAN_CLAIM_TTL_SECONDS") ?? CLAIM_SECONDS,
  };
}

/** The worker's own attempt is the open one: nobody took the card back, finished it or put it aside. */
export function isOpenFor(card: Card | null, worker: Worker): boolean {
  if (card?.status !== "running") return false;
  return worker.run === null || card.current_run_id === worker.run;
}

/** What a worker may not do to cards of others, with what it may do instead. */
export function requireOwn(worker: Worker | null, id: string, isOwn: boolean, verb: string): void {
  if (worker === null || isOwn) return;
  throw new BoardError(
    `${id} is not your card: you may ${verb} only ${worker.task}. Say what you know there with kanban_comment, or create a card with kanban_create.`,
  );
}

const READS = new Set(
  "list show runs stats assignees attachments context tail watch log diagnostics notify-list".split(" "),
);
const OF_OWN_CARD = new Set(["complete", "block", "unblock", "heartbeat"]);
const OF_ANY_CARD = new Set(["create", "comment", "link", "attach"]);

/** One command, as it was typed. */
interface TypedCommand {
  readonly name: string;
  /** One about boards as a whole. */
  readonly isOfBoards: boolean;
  /** The cards it is about. */
  readonly cards: readonly string[];
  /** Absent: the one that the variables name. */
  readonly board: string | undefined;
  /** It says itself who speaks. */
  readonly namesAuthor: boolean;
}

/** In a shell of a worker, or of who works for it, the commands may no more than its tools. Null: go on. */
export function refusalFor(
  { name, isOfBoards, cards, board, namesAuthor }: TypedCommand,
  env: (name: string) => string | undefined,
): string | null {
  if (READS.has(name)) return null;
  if (env("HERMES_KANBAN_DELEGATED")?.trim())
    return "only the worker of a card changes the board, not who works for it. Report to it instead.";
  const worker = workerOf(env);
  if (worker === null) return null;
  const shell = `this is the shell of the worker of ${worker.task}`;
  if (isOfBoards || !(OF_OWN_CARD.has(name) || OF_ANY_CARD.has(name)))
    return `${shell}: "hermes kanban ${name}" is for people.`;
  if (namesAuthor) return `${shell}: who writes is ${env("HERMES_PROFILE")?.trim() || "its profile"}, and nobody else.`;
  const isOwn = (board ?? worker.board) === worker.board && cards.every((id) => id === worker.task);
  if (OF_OWN_CARD.has(name) && !isOwn)
    return `${shell}: it may ${name} no other card. Comment there, or create a card.`;
  return null;
}

/** A sign of life of the worker: its claim is good for another while. False: the card is no longer its own. */
export function keepClaim(change: Change, worker: Worker): boolean {
  const { db, now } = change;
  const card = db.get<Card>("SELECT * FROM tasks WHERE id = ?", worker.task) ?? null;
  if (card === null || !isOpenFor(card, worker)) return false;
  const expires = now + worker.claimSeconds;
  db.run("UPDATE tasks SET last_heartbeat_at = ?, claim_expires = ? WHERE id = ?", now, expires, card.id);
  db.run(
    "UPDATE task_runs SET last_heartbeat_at = ?, claim_expires = ? WHERE id = ?",
    ...[now, expires, card.current_run_id],
  );
  return true;
}

/** The same with a line of the model on where it is: that much is kept for whoever follows the board. */
export function heartbeatOf(change: Change, worker: Worker, text: string | undefined): number | null {
  if (!keepClaim(change, worker)) throw new BoardError(overMessage(cardOf(change.db, worker.task), worker));
  const { current_run_id: run } = cardOf(change.db, worker.task);
  note(change, { card: worker.task, kind: "heartbeat", payload: { note: text ?? null }, run });
  return run;
}

export function overMessage({ id, status }: Card, { run }: Worker): string {
  const attempt = run === null ? "this attempt" : `run ${run}`;
  return `${id}: ${attempt} is over and the card is ${status}; somebody took it back or it is finished. Stop working on it.`;
}

/** The number of the newest comment on a card; 0 where there is none. */
export function newestComment({ db }: Pick<Change, "db">, id: string): number {
  const newest = db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM task_comments WHERE task_id = ?", id);
  return newest?.id ?? 0;
}

/** What others said on a card behind one of its comments, oldest first. */
export function commentsAfter(
  { db }: Pick<Change, "db">,
  id: string,
  { after, notBy }: { readonly after: number; readonly notBy: string },
): readonly CardComment[] {
  return db.all<CardComment>(
    "SELECT * FROM task_comments WHERE task_id = ? AND id > ? AND author <> ? ORDER BY id",
    ...[id, after, notBy],
  );
}
