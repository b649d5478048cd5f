// What is kept with a session besides messages: its prompt, its keys, the tool lists it was offered.
import { createHash } from "node:crypto";
import { isRecord, type Json, parseJson } from "../kit/json.ts";
import type { OpenQuestion } from "../safety/approvals.ts";
import type { StoreCore } from "./core.ts";
import { assertLease, databaseNow } from "./lanes.ts";
import { decodeText } from "./sessions.ts";
import type { Leased, PromptRecord } from "./store.ts";
import { setMeta } from "./upgrade.ts";
import type { ChangeKind } from "./work.ts";

/** The newer original keeps prompts once, under their hash; where both stand the hash wins. */
export function promptExpression(core: StoreCore): string {
  const { shape } = core;
  return shape.sessionColumns.has("system_prompt_hash") && shape.tables.has("system_prompts")
    ? "COALESCE((SELECT p.prompt FROM system_prompts p WHERE p.hash = s.system_prompt_hash), s.system_prompt)"
    : "s.system_prompt";
}

export function readPrompt(core: StoreCore, sessionId: string): PromptRecord | null {
  const column = (name: string) => (core.shape.sessionColumns.has(name) ? `s.${name}` : "NULL");
  const row = core.db.get<{ prompt: Uint8Array | null; stable: number | null; fingerprint: string | null }>(
    `SELECT CAST(${promptExpression(core)} AS BLOB) AS prompt, ${column("system_prompt_stable_chars")} AS stable,
       ${column("prompt_fingerprint")} AS fingerprint
     FROM sessions s WHERE s.id = ?`,
    sessionId,
  );
  const prompt = decodeText(row?.prompt);
  if (!row || prompt === null) return null;
  return {
    prompt,
    stableChars: row.stable,
    fingerprint: row.fingerprint === null ? null : (parseJson(row.fingerprint) ?? null),
  };
}

export function writePrompt(core: StoreCore, sessionId: string, record: PromptRecord, leased: Leased = {}): void {
  assertLease(core, sessionId, leased);
  const clearHash = core.shape.sessionColumns.has("system_prompt_hash") ? ", system_prompt_hash = NULL" : "";
  core.db.run(
    `UPDATE sessions SET system_prompt = ?, system_prompt_stable_chars = ?, prompt_fingerprint = ?${clearHash} WHERE id = ?`,
    record.prompt,
    record.stableChars,
    record.fingerprint === null || record.fingerprint === undefined ? null : JSON.stringify(record.fingerprint),
    sessionId,
  );
}

export function storeToolList(core: StoreCore, tools: unknown): string {
  const text = JSON.stringify(tools);
  const hash = createHash("sha256").update(text).digest("hex");
  core.db.run("INSERT OR IGNORE INTO tool_lists (hash, tools) VALUES (?, ?)", hash, text);
  return hash;
}

export function readToolList(core: StoreCore, hash: string): unknown {
  const row = core.db.get<{ tools: string }>("SELECT tools FROM tool_lists WHERE hash = ?", hash);
  return row ? (parseJson(row.tools) ?? null) : null;
}

export function readValue(core: StoreCore, sessionId: string, key: string): unknown {
  if (!core.shape.tables.has("session_kv")) return null;
  const row = core.db.get<{ value: string | null }>(
    "SELECT value FROM session_kv WHERE session_id = ? AND key = ?",
    sessionId,
    key,
  );
  return row?.value ? (parseJson(row.value) ?? null) : null;
}

/** `undefined` and `null` remove the key. */
export function writeValue(core: StoreCore, sessionId: string, key: string, value: unknown, leased: Leased = {}): void {
  assertLease(core, sessionId, leased);
  if (value === undefined || value === null) {
    core.db.run("DELETE FROM session_kv WHERE session_id = ? AND key = ?", sessionId, key);
    return;
  }
  core.db.run(
    `INSERT INTO session_kv (session_id, key, value) VALUES (?, ?, ?)
     ON CONFLICT(session_id, key) DO UPDATE SET value = excluded.value`,
    sessionId,
    key,
    JSON.stringify(value),
  );
}

export function copyValues(core: StoreCore, from: string, to: string): void {
  core.db.run(
    "INSERT OR REPLACE INTO session_kv (session_id, key, value) SELECT ?, key, value FROM session_kv WHERE session_id = ?",
    to,
    from,
  );
}

// Values of the file, `state_meta`; a standing goal is one of them, under the id of its session.

export function readMetaValue(core: StoreCore, key: string): string | null {
  if (!core.shape.tables.has("state_meta")) return null;
  return core.db.get<{ value: string | null }>("SELECT value FROM state_meta WHERE key = ?", key)?.value ?? null;
}

export function readMetaValues(core: StoreCore, prefix: string): ReadonlyMap<string, string> {
  if (!core.shape.tables.has("state_meta")) return new Map();
  const rows = core.db.all<{ key: string; value: string | null }>(
    "SELECT key, value FROM state_meta WHERE substr(key, 1, ?) = ?",
    ...[prefix.length, prefix],
  );
  return new Map(rows.flatMap(({ key, value }) => (value === null ? [] : [[key, value] as const])));
}

/** False, and nothing written, when the value is not the expected one any more; `undefined`: whatever it is. */
export function writeMetaValue(core: StoreCore, key: string, value: string, expected?: string | null): boolean {
  if (expected !== undefined && readMetaValue(core, key) !== expected) return false;
  setMeta(core.db, key, value);
  return true;
}

const goalKey = (sessionId: string) => `goal:${sessionId}`;

/** The goal of a session as far as this room has to know it. */
function goalOf(core: StoreCore, sessionId: string): Json | null {
  const value = readMetaValue(core, goalKey(sessionId));
  const goal = value === null ? undefined : parseJson(value);
  return isRecord(goal) ? goal : null;
}

const isOpenGoal = (goal: Json | null) => goal?.status === "active" || goal?.status === "paused";

const writeGoal = (core: StoreCore, sessionId: string, goal: Json) =>
  setMeta(core.db, goalKey(sessionId), JSON.stringify(goal));

/** A conversation goes on under another id, and its goal with it, unless that one has a goal already. */
export function moveGoal(core: StoreCore, from: string, to: string): void {
  const goal = goalOf(core, from);
  if (goal === null || !isOpenGoal(goal) || isOpenGoal(goalOf(core, to))) return;
  writeGoal(core, to, goal);
  writeGoal(core, from, { ...goal, status: "cleared" });
}

/** A branch gets a copy that does nothing until it is resumed. */
export function copyGoal(core: StoreCore, from: string, to: string): void {
  const goal = goalOf(core, from);
  if (goal === null || !isOpenGoal(goal)) return;
  const reason = goal.status === "paused" ? goal.paused_reason : "branched";
  const waits = { waiting_on_pid: null, waiting_on_session: null, waiting_until: 0, waiting_reason: null };
  writeGoal(core, to, { ...goal, ...waits, status: "paused", paused_reason: reason });
}

// Questions that wait for an answer, where every process of the home can see and answer them.

/** Of a process that died nobody takes the rows away; no question waits a day. */
const FORGOTTEN_SECONDS = 24 * 3600;

export function putQuestion(core: StoreCore, row: OpenQuestion): void {
  const { id, sessionKey, sessionId, kind, payload, askedAt, expiresAt } = row;
  core.db.run("DELETE FROM approvals_open WHERE asked_at < ?", core.now() - FORGOTTEN_SECONDS);
  core.db.run(
    `INSERT OR REPLACE INTO approvals_open (id, session_key, session_id, kind, payload, asked_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ...[id, sessionKey, sessionId, kind, JSON.stringify(payload), askedAt, expiresAt],
  );
  noteQuestion(core, "question", chatOf(core, sessionId ?? sessionKey), `question:${id}`);
}

/** The chat that a session is held in; a session without a chat is its own address. */
function chatOf(core: StoreCore, sessionId: string): string {
  if (!hasTable(core, "gateway_routing")) return sessionId;
  const row = core.db.get<{ session_key: string }>(
    "SELECT session_key FROM gateway_routing WHERE json_extract(entry_json, '$.session_id') = ? LIMIT 1",
    sessionId,
  );
  return row?.session_key ?? sessionId;
}

/** The tables of chats are made with their first use: where nobody looks at changes, none are noted. */
function noteQuestion(core: StoreCore, kind: "question" | "answer", sessionKey: string | null, ref: string): void {
  if (hasTable(core, "changes")) noteChange(core, kind, sessionKey, ref);
}

const hasTable = ({ db }: StoreCore, name: string) =>
  db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name) !== undefined;

export function readQuestions(core: StoreCore): OpenQuestion[] {
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

/** It is over; `answer` is the word that ended it. */
export function removeQuestion(core: StoreCore, id: string, answer?: string): void {
  const gone = core.db.get<{ session_key: string; session_id: string | null }>(
    "DELETE FROM approvals_open WHERE id = ? RETURNING session_key, session_id",
    id,
  );
  if (!gone) return;
  noteQuestion(
    core,
    "answer",
    askedIn(core, id) ?? gone.session_id ?? gone.session_key,
    `answer:${id}:${answer ?? ""}`,
  );
}

/** Where it was asked: `/new` may have given the chat another session since. */
function askedIn(core: StoreCore, id: string): string | null {
  if (!hasTable(core, "changes")) return null;
  const row = core.db.get<{ session_key: string | null }>(
    "SELECT session_key FROM changes WHERE kind = 'question' AND ref = ? ORDER BY id DESC LIMIT 1",
    `question:${id}`,
  );
  return row?.session_key ?? null;
}

// What happened, for whoever follows it from outside.

export function noteChange(core: StoreCore, kind: ChangeKind, sessionKey: string | null, ref: string): void {
  core.db.run(
    "INSERT INTO changes (at, kind, session_key, ref) VALUES (?, ?, ?, ?)",
    ...[databaseNow(core), kind, sessionKey, ref],
  );
}
