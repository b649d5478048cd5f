// Questions that wait for an answer, where every process of the home can see and answer them.
import { parseJson } from "./content.ts";
import type { StoreCore } from "./core.ts";
import type { OpenQuestionRow } from "./store.ts";

/** Of a process that died nobody takes the rows away; no question waits a day. */
const FORGOTTEN_SECONDS = 24 * 3600;

export function putQuestion(core: StoreCore, row: OpenQuestionRow): void {
  const { id, sessionKey, sessionId, kind, payload, askedAt, expiresAt } = row;
  core.db.run("DELETE FROM approvals_open WHERE asked_at < ?", core.now() - FORGOTTEN_SECONDS);
  core.db.run(
    `INSERT OR REPLACE INTO approvals_open (id, session_key, session_id, kind, payload, asked_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ...[id, sessionKey, sessionId, kind, JSON.stringify(payload), askedAt, expiresAt],
  );
}

export function readQuestions(core: StoreCore): OpenQuestionRow[] {
  if (!core.shape.tables.has("approvals_open")) return [];
  const rows = core.db.all<Record<string, string | number | null>>(
    `SELECT id, session_key, session_id, kind, payload, asked_at, expires_at FROM approvals_open
     WHERE answer IS NULL AND COALESCE(expires_at, asked_at + ?) > ? ORDER BY asked_at`,
    FORGOTTEN_SECONDS,
    core.now(),
  );
  return rows.map((row) => ({
    id: String(row.id),
    sessionKey: String(row.session_key),
    sessionId: row.session_id === null ? null : String(row.session_id),
    kind: String(row.kind),
    payload: parseJson(String(row.payload)),
    askedAt: Number(row.asked_at),
    expiresAt: row.expires_at === null ? null : Number(row.expires_at),
  }));
}

/** False when there is no such question, or it was answered already. */
export function writeAnswer(core: StoreCore, id: string, answer: unknown, by: string): boolean {
  const { changes } = core.db.run(
    "UPDATE approvals_open SET answer = ?, answered_by = ?, answered_at = ? WHERE id = ? AND answer IS NULL",
    ...[JSON.stringify(answer), by, core.now(), id],
  );
  return Number(changes) > 0;
}

export function readAnswer(core: StoreCore, id: string): unknown {
  const row = core.db.get<{ answer: string | null }>("SELECT answer FROM approvals_open WHERE id = ?", id);
  return row?.answer ? (parseJson(row.answer) ?? null) : null;
}

export function removeQuestion(core: StoreCore, id: string): void {
  core.db.run("DELETE FROM approvals_open WHERE id = ?", id);
}
