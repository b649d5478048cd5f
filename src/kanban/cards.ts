// Cards as rows: found, created, linked, commented, edited. What changes their state is moves.ts.
import { randomBytes } from "node:crypto";
import { UserError } from "../kit/errors.ts";
import { asRecord, type Json, parseJson } from "../kit/json.ts";
import type { Connection } from "../sessions/connection.ts";
import { closesCircle, firstStatus, promotes } from "./rules.ts";
import type { BlockKind, Card, CardComment, CardEvent, CardRun, CardStatus, Change } from "./schema.ts";
import { handOnSubscriptions } from "./subscriptions.ts";

/** What a board refuses. Its message is for people and for models alike. */
export class BoardError extends UserError {
  override name = "BoardError";
}

export interface NewCard {
  readonly title: string;
  readonly body?: string | undefined;
  /** A profile; absent: nobody's yet. */
  readonly assignee?: string | undefined;
  readonly parents?: readonly string[] | undefined;
  readonly triage?: boolean | undefined;
  readonly blocked?: boolean | undefined;
  readonly priority?: number | undefined;
  readonly tenant?: string | undefined;
  readonly createdBy?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly workspace?: { readonly kind: string; readonly path?: string | undefined } | undefined;
  readonly branch?: string | undefined;
  readonly project?: string | undefined;
  readonly skills?: readonly string[] | undefined;
  readonly maxRuntimeSeconds?: number | undefined;
  readonly maxRetries?: number | undefined;
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly goal?: boolean | undefined;
  readonly goalMaxTurns?: number | undefined;
  /** What the agent that makes it had read from outside, in a few words: its texts may stem from there. */
  readonly foreignText?: string | undefined;
  /** The newest card with the same key that is not archived is given back instead. */
  readonly idempotencyKey?: string | undefined;
}

interface CardFilter {
  readonly assignee?: string | undefined;
  readonly status?: string | undefined;
  readonly tenant?: string | undefined;
  readonly session?: string | undefined;
  readonly workflowTemplateId?: string | undefined;
  readonly stepKey?: string | undefined;
  readonly archived?: boolean | undefined;
  readonly sort?: "priority" | "created" | "updated" | undefined;
  readonly limit?: number | undefined;
}

const WORKSPACES = new Set(["scratch", "dir", "worktree"]);
const MOST_TITLE = 500;

// Reading.

function findCard(db: Connection, id: string): Card | null {
  return db.get<Card>("SELECT * FROM tasks WHERE id = ?", id) ?? null;
}

export function cardOf(db: Connection, id: string): Card {
  const card = findCard(db, id);
  if (!card) throw new BoardError(`no card has the id "${id}". "hermes kanban list" shows them.`);
  return card;
}

const ORDERS = {
  priority: "priority DESC, created_at, rowid",
  created: "created_at, rowid",
  updated: "(SELECT MAX(id) FROM task_events WHERE task_id = tasks.id) DESC",
};

export function listCards(db: Connection, filter: CardFilter = {}): readonly Card[] {
  const { assignee, status, tenant, session, workflowTemplateId, stepKey } = filter;
  const { archived = false, sort = "priority", limit = -1 } = filter;
  const conditions = [
    ["assignee = ?", assignee],
    ["status = ?", status],
    ["tenant = ?", tenant],
    ["session_id = ?", session],
    ["workflow_template_id = ?", workflowTemplateId],
    ["current_step_key = ?", stepKey],
  ].filter((one): one is [string, string] => one[1] !== undefined);
  const shown = archived || status === "archived" ? [] : ["status <> 'archived'"];
  const where = [...conditions.map(([sql]) => sql), ...shown].join(" AND ");
  return db.all<Card>(
    `SELECT * FROM tasks ${where === "" ? "" : `WHERE ${where}`} ORDER BY ${ORDERS[sort]} LIMIT ?`,
    ...conditions.map(([, value]) => value),
    limit,
  );
}

export function parentsOf(db: Connection, id: string): readonly string[] {
  return db
    .all<{ parent_id: string }>("SELECT parent_id FROM task_links WHERE child_id = ? ORDER BY parent_id", id)
    .map(({ parent_id }) => parent_id);
}

export function childrenOf(db: Connection, id: string): readonly string[] {
  return db
    .all<{ child_id: string }>("SELECT child_id FROM task_links WHERE parent_id = ? ORDER BY child_id", id)
    .map(({ child_id }) => child_id);
}

/** Archived counts as done, everywhere. */
export function openParents(db: Connection, id: string): readonly string[] {
  return db
    .all<{ id: string }>(
      `SELECT tasks.id FROM task_links JOIN tasks ON tasks.id = parent_id
       WHERE child_id = ? AND status NOT IN ('done', 'archived') ORDER BY tasks.id`,
      id,
    )
    .map((row) => row.id);
}

export const commentsOf = (db: Connection, id: string): readonly CardComment[] =>
  db.all<CardComment>("SELECT * FROM task_comments WHERE task_id = ? ORDER BY id", id);

export const runsOf = (db: Connection, id: string): readonly CardRun[] =>
  db.all<CardRun>("SELECT * FROM task_runs WHERE task_id = ? ORDER BY id", id);

/** Oldest first; with `last`, the newest of them. */
export function eventsOf(db: Connection, id: string, last = -1): readonly CardEvent[] {
  return db
    .all<CardEvent>("SELECT * FROM task_events WHERE task_id = ? ORDER BY id DESC LIMIT ?", id, last)
    .toReversed();
}

/** Events of the whole board behind one of them, oldest first. */
export function eventsSince(db: Connection, after: number, limit: number): readonly CardEvent[] {
  return db.all<CardEvent>("SELECT * FROM task_events WHERE id > ? ORDER BY id LIMIT ?", after, limit);
}

/** Other programs write events too: what is no object says nothing. */
export const payloadOf = ({ payload }: Pick<CardEvent, "payload">): Json => asRecord(parseJson(payload ?? "{}"));

/** What its events say about its blocks: which kinds since somebody last set it right, and whether it is put aside now. */
export function blocksOf(
  db: Connection,
  id: string,
): { readonly kinds: readonly (BlockKind | null)[]; readonly isHeld: boolean } {
  const rows = db.all<CardEvent>(
    `SELECT * FROM task_events WHERE task_id = ? AND kind IN
     ('blocked', 'block_loop_detected', 'gave_up', 'unblocked', 'completed', 'promoted_manual', 'specified', 'decomposed', 'status') ORDER BY id`,
    id,
  );
  let kinds: (BlockKind | null)[] = [];
  let isHeld = false;
  for (const row of rows) {
    const payload = payloadOf(row);
    if (row.kind === "blocked" || row.kind === "block_loop_detected") kinds.push((payload.kind as BlockKind) ?? null); // as moves.ts wrote it
    if (["completed", "promoted_manual", "specified", "decomposed"].includes(row.kind)) kinds = [];
    isHeld =
      row.kind === "blocked" || row.kind === "gave_up" || (row.kind === "status" && payload.status === "blocked");
  }
  return { kinds, isHeld };
}

/** The last word on its parents was a person's who let it start without them. */
export function isForced(db: Connection, id: string): boolean {
  const last = db.get<CardEvent>(
    "SELECT * FROM task_events WHERE task_id = ? AND kind IN ('promoted_manual', 'linked', 'completed', 'unblocked') ORDER BY id DESC LIMIT 1",
    id,
  );
  return last?.kind === "promoted_manual" && payloadOf(last).forced === true;
}

// Writing.

export function note(
  { db, now }: Change,
  event: {
    readonly card: string;
    readonly kind: string;
    readonly payload?: object | undefined;
    readonly run?: number | null;
  },
): number {
  const { card, kind, payload, run = null } = event;
  return db.run(
    "INSERT INTO task_events (task_id, run_id, kind, payload, created_at) VALUES (?, ?, ?, ?, ?)",
    ...[card, run, kind, payload === undefined ? null : JSON.stringify(payload), now],
  ).lastId;
}

export function setStatus({ db }: Change, id: string, status: CardStatus): void {
  db.run("UPDATE tasks SET status = ? WHERE id = ?", status, id);
}

/** Makes a card, or gives back the one with the same key. */
export function createCard(change: Change, card: NewCard): Card {
  const { db, now } = change;
  const title = card.title.trim();
  check(db, card, title);
  const { idempotencyKey = null, parents = [] } = card;
  if (idempotencyKey !== null) {
    const before = db.get<Card>(
      "SELECT * FROM tasks WHERE idempotency_key = ? AND status <> 'archived' ORDER BY created_at DESC, rowid DESC LIMIT 1",
      idempotencyKey,
    );
    if (before) return before;
  }
  const ids = [...new Set(parents)];
  const open = ids.filter((id) => !["done", "archived"].includes(cardOf(db, id).status));
  const status = firstStatus({ triage: card.triage === true, blocked: card.blocked === true, openParents: open });
  const row = {
    id: newId(db),
    title,
    body: card.body ?? null,
    assignee: card.assignee?.toLowerCase() ?? null,
    status,
    priority: card.priority ?? 0,
    created_by: card.createdBy ?? null,
    created_at: now,
    workspace_kind: card.workspace?.kind ?? "scratch",
    workspace_path: card.workspace?.path ?? null,
    branch_name: card.branch ?? null,
    project_id: card.project ?? null,
    tenant: card.tenant ?? null,
    idempotency_key: idempotencyKey,
    max_runtime_seconds: card.maxRuntimeSeconds ?? null,
    skills: card.skills && card.skills.length > 0 ? JSON.stringify(card.skills) : null,
    model_override: card.model ?? null,
    provider_override: card.provider ?? null,
    max_retries: card.maxRetries ?? null,
    goal_mode: card.goal ? 1 : 0,
    goal_max_turns: card.goalMaxTurns ?? null,
    session_id: card.sessionId ?? null,
  };
  const names = Object.keys(row);
  db.run(`INSERT INTO tasks (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`, ...Object.values(row));
  for (const parent of ids) db.run("INSERT INTO task_links (parent_id, child_id) VALUES (?, ?)", parent, row.id);
  note(change, {
    card: row.id,
    kind: "created",
    payload: {
      ...{ assignee: row.assignee, status, parents: ids, tenant: row.tenant },
      ...(card.foreignText === undefined ? {} : { foreign_text: card.foreignText }),
    },
  });
  // Put aside by whoever made it: it stays so until somebody unblocks it.
  if (status === "blocked")
    note(change, { card: row.id, kind: "blocked", payload: { reason: null, kind: null, recurrences: 0 } });
  handOnSubscriptions(change, ids, row.id);
  return cardOf(db, row.id);
}

function check(db: Connection, card: NewCard, title: string): void {
  const { workspace, branch, provider, model, parents = [] } = card;
  if (title === "") throw new BoardError("a card needs a title.");
  if (title.length > MOST_TITLE)
    throw new BoardError(`a title has at most ${MOST_TITLE} characters; put the rest into the body.`);
  if (workspace && !WORKSPACES.has(workspace.kind))
    throw new BoardError(`"${workspace.kind}" is no kind of workspace: scratch, dir:PATH, worktree or worktree:PATH.`);
  if (workspace?.kind === "dir" && !workspace.path)
    throw new BoardError("a workspace dir needs its path: dir:/path/to/folder.");
  if (workspace?.path && !workspace.path.startsWith("/"))
    throw new BoardError(`the path of a workspace begins with "/": ${workspace.path}`);
  if (branch && workspace?.kind !== "worktree") throw new BoardError("a branch goes with --workspace worktree only.");
  if (provider && !model) throw new BoardError("a provider goes with a model: name both.");
  const unknown = parents.filter((id) => !findCard(db, id));
  if (unknown.length > 0) throw new BoardError(`no card has the id ${unknown.join(", ")}.`);
}

function newId(db: Connection): string {
  for (;;) {
    const id = `t_${randomBytes(4).toString("hex")}`;
    if (!findCard(db, id)) return id;
  }
}

export function link(change: Change, parent: string, child: string): void {
  const { db } = change;
  const [from, to] = [cardOf(db, parent), cardOf(db, child)];
  if (parent === child) throw new BoardError("a card cannot depend on itself.");
  if (closesCircle(parent, child, (id) => parentsOf(db, id)))
    throw new BoardError(`${parent} depends on ${child} already; the other way round would be a circle.`);
  const { changes } = db.run("INSERT OR IGNORE INTO task_links (parent_id, child_id) VALUES (?, ?)", parent, child);
  if (changes === 0) return;
  note(change, { card: child, kind: "linked", payload: { parent_id: parent, child_id: child } });
  if (["done", "archived"].includes(from.status)) return;
  if (to.status === "ready") setStatus(change, child, "todo");
  // It is not taken out of the hands of whoever works on it; it cannot be completed before its parents.
  if (to.status === "running")
    note(change, { card: child, kind: "linked_while_running", payload: { parent_id: parent }, run: to.current_run_id });
}

export function unlink(change: Change, parent: string, child: string): void {
  const { db } = change;
  cardOf(db, parent);
  cardOf(db, child);
  const { changes } = db.run("DELETE FROM task_links WHERE parent_id = ? AND child_id = ?", parent, child);
  if (changes === 0) throw new BoardError(`${child} does not depend on ${parent}.`);
  note(change, { card: child, kind: "unlinked", payload: { parent_id: parent, child_id: child } });
  promote(change, [child]);
}

/** Those of these cards that nothing holds back any more become ready. Resolves to them. */
export function promote(change: Change, ids: readonly string[]): readonly string[] {
  const { db } = change;
  return ids.filter((id) => {
    const card = findCard(db, id);
    if (!card || (card.status !== "todo" && card.status !== "blocked")) return false;
    const { isHeld } = card.status === "blocked" ? blocksOf(db, id) : { isHeld: false };
    if (!promotes({ status: card.status, openParents: openParents(db, id), isHeld })) return false;
    setStatus(change, id, "ready");
    note(change, { card: id, kind: "promoted" });
    return true;
  });
}

export function comment(
  change: Change,
  id: string,
  { author, body }: { readonly author: string; readonly body: string },
): number {
  const { db, now } = change;
  cardOf(db, id);
  if (body.trim() === "") throw new BoardError("the comment is empty.");
  const { lastId } = db.run(
    "INSERT INTO task_comments (task_id, author, body, created_at) VALUES (?, ?, ?, ?)",
    ...[id, author, body, now],
  );
  note(change, { card: id, kind: "commented", payload: { author, comment_id: lastId, length: body.length } });
  return lastId;
}

/** `null` takes it away from whoever had it. Failures of another are not counted against the next. */
export function assign(change: Change, id: string, assignee: string | null): void {
  const { db } = change;
  const card = cardOf(db, id);
  if (card.status === "running")
    throw new BoardError(
      `${id} is being worked on. Take it back first: hermes kanban reassign ${id} PROFILE --reclaim`,
    );
  db.run(
    "UPDATE tasks SET assignee = ?, consecutive_failures = 0, last_failure_error = NULL WHERE id = ?",
    ...[assignee?.toLowerCase() ?? null, id],
  );
  note(change, { card: id, kind: "assigned", payload: { assignee: assignee?.toLowerCase() ?? null } });
}

/** What a card that is done came to, put right afterwards. */
export function edit(
  change: Change,
  id: string,
  {
    result,
    summary,
    metadata,
  }: {
    readonly result?: string | undefined;
    readonly summary?: string | undefined;
    readonly metadata?: object | undefined;
  },
): void {
  const { db } = change;
  const card = cardOf(db, id);
  if (card.status !== "done") throw new BoardError(`${id} is ${card.status}; only what is done can be edited.`);
  const run = db.get<CardRun>(
    "SELECT * FROM task_runs WHERE task_id = ? AND outcome = 'completed' ORDER BY id DESC LIMIT 1",
    id,
  );
  if (result !== undefined) db.run("UPDATE tasks SET result = ? WHERE id = ?", result, id);
  if (run && summary !== undefined) db.run("UPDATE task_runs SET summary = ? WHERE id = ?", summary, run.id);
  if (run && metadata !== undefined)
    db.run("UPDATE task_runs SET metadata = ? WHERE id = ?", JSON.stringify(metadata), run.id);
  const fields = Object.entries({ result, summary, metadata }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  note(change, { card: id, kind: "edited", payload: { fields } });
}

/** Null: that of its profile. */
export function setModel(change: Change, id: string, model: string | null, provider: string | null): void {
  const { db } = change;
  cardOf(db, id);
  if (model === null && provider !== null) throw new BoardError("a provider goes with a model: name both.");
  db.run("UPDATE tasks SET model_override = ?, provider_override = ? WHERE id = ?", model, provider, id);
  note(change, { card: id, kind: "model_override_set", payload: { model, provider } });
}

/** Old ones of cards that are over; answers how many. */
export function forgetEvents({ db, now }: Change, days: number): number {
  return db.run(
    "DELETE FROM task_events WHERE created_at < ? AND task_id IN (SELECT id FROM tasks WHERE status IN ('done', 'archived'))",
    now - days * 86_400,
  ).changes;
}
