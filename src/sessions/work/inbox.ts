// Messages that wait: stored before the platform is told, taken under the lease of their conversation, ended with their answer.
import { parseJson } from "../../kit/json.ts";
import { addControl } from "../controls.ts";
import type { StoreCore } from "../core.ts";
import { assertLease, databaseNow, heldByOther, holderOf, laneOf, takeLane } from "../lanes.ts";
import { appendTo } from "../messages.ts";
import { noteChange, writeMetaValue } from "../session-values.ts";
import type { LaneToken } from "../store.ts";
import type {
  Consequences,
  Control,
  Cursor,
  Finish,
  InboxEvent,
  InboxRow,
  Route,
  TakeAnswer,
  WorkStore,
} from "../work.ts";
import { promisePart } from "./outbox.ts";

const INBOX = `SELECT id, session_key AS sessionKey, platform, account, update_id AS updateId, kind, event, lane, message_id AS messageId,
  attempts, received_at AS receivedAt FROM inbox`;

function inboxRows(core: StoreCore, where: string, ...values: (string | number)[]): InboxRow[] {
  const rows = core.db.all<InboxRow & { readonly event: string }>(`${INBOX} ${where}`, ...values);
  return rows.map((row) => ({ ...row, event: parseJson(row.event) }));
}

export function acceptEvents(
  core: StoreCore,
  events: readonly InboxEvent[],
  cursor: Cursor | undefined,
): (number | null)[] {
  const now = databaseNow(core);
  const ids = events.map(({ sessionKey, platform, account, updateId, kind, event }) => {
    const { changes, lastId } = core.db.run(
      `INSERT INTO inbox (session_key, platform, account, update_id, kind, event, received_at)
       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
         SELECT 1 FROM cursors, json_each(recent_ids) WHERE platform = ?2 AND account = ?3 AND json_each.value = ?4)
       ON CONFLICT (platform, account, update_id) DO NOTHING`,
      ...[sessionKey, platform, account, updateId, kind, JSON.stringify(event ?? null), now],
    );
    if (changes === 0) return null;
    noteChange(core, "message", sessionKey, `inbox:${lastId}`);
    return lastId;
  });
  if (cursor)
    core.db.run(
      `INSERT INTO cursors (platform, account, cursor) VALUES (?, ?, ?)
       ON CONFLICT (platform, account) DO UPDATE SET cursor = excluded.cursor`,
      ...[cursor.platform, cursor.account, cursor.cursor],
    );
  return ids;
}

export function cursorOf(core: StoreCore, platform: string, account: string): string | null {
  const row = core.db.get<{ cursor: string | null }>(
    "SELECT cursor FROM cursors WHERE platform = ? AND account = ?",
    ...[platform, account],
  );
  return row?.cursor ?? null;
}

export function replaceEvent(
  core: StoreCore,
  { platform, account, updateId }: Pick<InboxEvent, "platform" | "account" | "updateId">,
  event: unknown,
): boolean {
  const { changes } = core.db.run(
    `UPDATE inbox SET event = ? WHERE platform = ? AND account = ? AND update_id = ? AND state = 'queued' AND lane IS NULL`,
    ...[JSON.stringify(event ?? null), platform, account, updateId],
  );
  return changes > 0;
}

export function waitingRows(
  core: StoreCore,
  { limit = 1000, after = 0 }: Parameters<WorkStore["waiting"]>[0] = {},
): Map<string, readonly InboxRow[]> {
  const byChat = new Map<string, InboxRow[]>();
  for (const row of inboxRows(core, "WHERE state = 'queued' AND id > ? ORDER BY id", after)) {
    const chat = byChat.get(row.sessionKey);
    if (chat) chat.push(row);
    else if (byChat.size < limit) byChat.set(row.sessionKey, [row]);
  }
  const isGoal = ({ kind }: InboxRow) => Number(kind === "goal");
  for (const rows of byChat.values()) rows.sort((one, other) => isGoal(one) - isGoal(other) || one.id - other.id);
  return byChat;
}

/** Of a list of ids, the rows that are still to be worked on. */
export function queued(core: StoreCore, ids: readonly number[]): InboxRow[] {
  return inboxRows(
    core,
    "WHERE state = 'queued' AND id IN (SELECT value FROM json_each(?)) ORDER BY id",
    JSON.stringify(ids),
  );
}

export function takeRows(
  core: StoreCore,
  sessionId: string,
  ids: readonly number[],
  holder: string,
  options: Parameters<WorkStore["take"]>[3],
): TakeAnswer {
  const lane = laneOf(core, sessionId);
  const rows = free(core, ids, lane, holder);
  if (rows.length === 0) return { type: "gone" };
  const answer = takeLane(core, sessionId, holder, options);
  if (answer.type !== "taken") return answer;
  const mine = JSON.stringify(rows.map(({ id }) => id));
  core.db.run("UPDATE inbox SET lane = ? WHERE id IN (SELECT value FROM json_each(?))", lane, mine);
  return { ...answer, rows: rows.map((row) => ({ ...row, lane })) };
}

/** Rows for a conversation. One that another conversation began is in its hands for as long as somebody works on that one. */
function free(core: StoreCore, ids: readonly number[], lane: string, holder: string): InboxRow[] {
  return queued(core, ids).filter((row) => !row.lane || row.lane === lane || !heldByOther(core, row.lane, holder));
}

/** The rows of a lease, with the lease looked at. */
function ofLease(core: StoreCore, lease: LaneToken, ids: readonly number[]): InboxRow[] {
  assertLease(core, lease.lane, { lease });
  return queued(core, ids).filter(({ lane }) => lane === lease.lane);
}

export function beginTurn(
  core: StoreCore,
  lease: LaneToken,
  { sessionId, ids, messages }: Parameters<WorkStore["begin"]>[1],
): readonly number[] | null {
  assertLease(core, lease.lane, { lease });
  const rows = free(core, ids, lease.lane, lease.holder);
  if (rows.length === 0) return null;
  if (rows.some(({ messageId }) => messageId !== null)) return [];
  const stored = appendTo(core, sessionId, messages, { lease });
  const last = stored.at(-1);
  if (last === undefined) return stored;
  for (const { id } of rows)
    core.db.run("UPDATE inbox SET lane = ?, message_id = ? WHERE id = ?", lease.lane, last, id);
  for (const key of new Set(rows.map(({ sessionKey }) => sessionKey)))
    noteChange(core, "message", key, `message:${last}`);
  return stored;
}

export function countAttempt(core: StoreCore, lease: LaneToken, ids: readonly number[], by: 1 | -1): number {
  let most = 0;
  for (const { id, attempts } of ofLease(core, lease, ids)) {
    const now = Math.max(0, attempts + by);
    core.db.run("UPDATE inbox SET attempts = ? WHERE id = ?", now, id);
    most = Math.max(most, now);
  }
  return most;
}

export function finishTurn(
  core: StoreCore,
  lease: LaneToken,
  { sessionId, append, done, joined = [], outbox, route }: Finish,
): readonly number[] {
  assertLease(core, sessionId, { lease });
  const stored = append.length > 0 ? appendTo(core, sessionId, append, { lease }) : [];
  const ended = done.flatMap(({ id, outcome }) => {
    const [row] = ofLease(core, lease, [id]);
    if (row) endRow(core, id, "done", outcome);
    return row ? [row] : [];
  });
  for (const { id, lane } of queued(core, joined)) if (lane === null) endRow(core, id, "done", "merged");
  for (const part of outbox) promisePart(core, part);
  if (route) writeRoute(core, route.scope, route);
  for (const key of new Set(ended.map(({ sessionKey }) => sessionKey)))
    if (stored.length > 0) noteChange(core, "message", key, `message:${stored.at(-1)}`);
  return stored;
}

function endRow(core: StoreCore, id: number, state: "done" | "dead", outcome: string | null): void {
  core.db.run(
    "UPDATE inbox SET state = ?, outcome = ?, done_at = ? WHERE id = ?",
    ...[state, outcome, databaseNow(core), id],
  );
}

export function settleRows(
  core: StoreCore,
  ids: readonly number[],
  outcome: Parameters<WorkStore["settle"]>[1],
  { lease, outbox = [], route, unbegun = false }: Parameters<WorkStore["settle"]>[2] = {},
): readonly number[] {
  if (lease) assertLease(core, lease.lane, { lease });
  const rows = queued(core, ids).filter(({ messageId }) => !unbegun || messageId === null);
  for (const { id } of rows)
    endRow(core, id, outcome === "dead" ? "dead" : "done", outcome === "dead" ? null : outcome);
  for (const part of outbox) promisePart(core, part);
  if (route) writeRoute(core, route.scope, route);
  return rows.map(({ id }) => id);
}

/** What was only overheard (`observed`) waits without a turn of its own. */
const BUSY = `SELECT 1 FROM inbox WHERE session_key = ? AND state = 'queued' AND kind IN ('user', 'wake')
  AND COALESCE(json_extract(event, '$.observed'), 0) = 0 LIMIT 1`;

export function followChange(
  core: StoreCore,
  { meta, sessionKey, unlessBusy, withdrawGoals, events = [], outbox = [] }: Consequences,
): "done" | "changed" | "busy" {
  if (unlessBusy && core.db.get(BUSY, sessionKey) !== undefined) return "busy";
  if (!writeMetaValue(core, meta.key, meta.value, meta.expected)) return "changed";
  if (withdrawGoals) {
    const where = "WHERE session_key = ? AND state = 'queued' AND kind = 'goal' AND message_id IS NULL";
    for (const { id } of inboxRows(core, where, sessionKey)) endRow(core, id, "done", "superseded");
  }
  acceptEvents(core, events, undefined);
  for (const part of outbox) promisePart(core, part);
  return "done";
}

// Controls, routes.

export function askHolderOf(
  core: StoreCore,
  sessionId: string,
  { kind, says }: Pick<Control, "kind" | "says">,
  event: InboxEvent | undefined,
) {
  if (holderOf(core, sessionId) === null) return null;
  const [row] = event ? acceptEvents(core, [event], undefined) : [];
  const asked = addControl(core, sessionId, kind, row == null ? says : { ...says, row });
  if (asked) noteChange(core, "control", event?.sessionKey ?? null, `control:${asked.id}`);
  return asked;
}

export function routeRows(core: StoreCore, where: string, ...values: string[]): Route[] {
  const rows = core.db.all<{ session_key: string; entry_json: string; updated_at: number }>(
    `SELECT session_key, entry_json, updated_at FROM gateway_routing WHERE ${where} ORDER BY session_key`,
    ...values,
  );
  return rows.flatMap(({ session_key, entry_json, updated_at }) => {
    const entry = parseJson(entry_json);
    if (entry === null || typeof entry !== "object" || Array.isArray(entry)) return [];
    return [{ sessionKey: session_key, entry: entry as Route["entry"], updatedAt: updated_at }]; // checked on the line above
  });
}

export function writeRoute(
  core: StoreCore,
  scope: string,
  { sessionKey, entry }: Pick<Route, "sessionKey" | "entry">,
  expected?: number | null,
): boolean {
  const there = routeRows(core, "scope = ? AND session_key = ?", scope, sessionKey)[0]?.updatedAt ?? null;
  if (expected !== undefined && there !== expected) return false;
  // Later than what was read, however fast the writes come.
  const now = Math.max(databaseNow(core), (there ?? 0) + 0.001);
  core.db.run(
    `INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (scope, session_key) DO UPDATE SET entry_json = excluded.entry_json, updated_at = excluded.updated_at`,
    ...[scope, sessionKey, JSON.stringify(entry), now],
  );
  return true;
}
