// Rows of `messages`: appended in order, loaded in order, hidden rather than deleted.

import { parseJson } from "../kit/json.ts";
import { textOf } from "../llm/messages.ts";
import type { StoreCore } from "./core.ts";
import { assertLease } from "./lanes.ts";
import { conversationOf, tipOf } from "./lineage.ts";
import { noteLoose } from "./loose.ts";
import type { FileShape } from "./schema.ts";
import { type Content, decodeContent, decodeText, encodeContent } from "./sessions.ts";
import { type Leased, SessionCompressedError, type StoredMessage, StoreError, type TimedMessage } from "./store.ts";

type Blob = Uint8Array | null;

interface MessageRow {
  readonly id: number;
  readonly role: string;
  readonly content: Blob;
  readonly api_content: Blob;
  readonly timestamp: number;
  readonly tool_call_id: string | null;
  readonly tool_name: string | null;
  readonly tool_calls: string | null;
  readonly finish_reason: string | null;
  readonly reasoning: Blob;
  readonly reasoning_content: Blob;
  readonly reasoning_details: string | null;
  readonly anthropic_content_blocks: string | null;
  readonly codex_reasoning_items: string | null;
  readonly codex_message_items: string | null;
  readonly text_origin: string | null;
}

const AS_BLOB = ["content", "api_content", "reasoning", "reasoning_content"];
const AS_TEXT = [
  "timestamp",
  "tool_call_id",
  "tool_name",
  "tool_calls",
  "finish_reason",
  "reasoning_details",
  "anthropic_content_blocks",
  "codex_reasoning_items",
  "codex_message_items",
  "text_origin",
];
const JSON_FIELDS = [
  "tool_calls",
  "reasoning_details",
  "anthropic_content_blocks",
  "codex_reasoning_items",
  "codex_message_items",
] as const;

/** Refuses a session that is unknown, or that was closed by compression and goes on elsewhere. */
function assertAppendable(core: StoreCore, sessionId: string): void {
  const row = core.db.get<{ end_reason: string | null }>("SELECT end_reason FROM sessions WHERE id = ?", sessionId);
  if (!row)
    throw new StoreError(
      "invalid",
      `session ${sessionId} does not exist; nothing was saved. Start another one with /new.`,
    );
  if (row.end_reason !== "compression") return;
  const tip = tipOf(core, sessionId);
  if (tip !== sessionId) throw new SessionCompressedError(sessionId, tip);
}

export function appendTo(
  core: StoreCore,
  sessionId: string,
  messages: readonly TimedMessage[],
  options: Leased & { readonly midTurn?: boolean } = {},
): readonly number[] {
  assertLease(core, sessionId, options);
  assertAppendable(core, sessionId);
  return appendRows(core, sessionId, messages, options.midTurn);
}

/** Inside a transaction: the rows and the counters of their session. */
export function appendRows(
  core: StoreCore,
  sessionId: string,
  messages: readonly TimedMessage[],
  midTurn = false,
): readonly number[] {
  const now = core.now();
  const loose = midTurn && core.shape.knowsLoose;
  const insert = core.db.statement(
    `INSERT INTO messages (session_id, role, content, api_content, timestamp, tool_call_id, tool_name, tool_calls, finish_reason,
       reasoning, reasoning_content, reasoning_details, anthropic_content_blocks, codex_reasoning_items, codex_message_items, text_origin, loose)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const ids: number[] = [];
  let calls = 0;
  let length = 0;
  for (const message of messages) {
    const assistant = message.role === "assistant" ? message : null;
    const tool = message.role === "tool" ? message : null;
    calls += assistant?.tool_calls?.length ?? 0;
    const content = encodeContent(message.content);
    const asked = json(assistant?.tool_calls);
    length += (content?.length ?? 0) + (asked?.length ?? 0);
    const { lastInsertRowid } = insert.run(
      sessionId,
      message.role,
      content,
      "api_content" in message ? (message.api_content ?? null) : null,
      message.timestamp ?? now,
      tool?.tool_call_id ?? null,
      tool?.tool_name ?? tool?.name ?? null,
      asked,
      assistant?.finish_reason ?? null,
      assistant?.reasoning ?? null,
      assistant?.reasoning_content ?? null,
      json(assistant?.reasoning_details),
      json(assistant?.anthropic_content_blocks),
      json(assistant?.codex_reasoning_items),
      json(assistant?.codex_message_items),
      tool?.text_origin ?? null,
      loose ? 1 : null,
    );
    ids.push(Number(lastInsertRowid));
  }
  if (loose) {
    noteLoose(core, { messages: ids[0] ?? Number.MAX_SAFE_INTEGER }, length);
    return ids;
  }
  core.db.run(
    `UPDATE sessions SET message_count = COALESCE(message_count, 0) + ?, tool_call_count = COALESCE(tool_call_count, 0) + ?,
       last_activity_at = ? WHERE id = ?`,
    messages.length,
    calls,
    now,
    sessionId,
  );
  return ids;
}

export function loadMessages(
  core: StoreCore,
  sessionId: string,
  options: { withAncestors?: boolean } = {},
): readonly StoredMessage[] {
  const ids = options.withAncestors ? conversationOf(core, sessionId) : [sessionId];
  return ids.flatMap((id) => loadRows(core, id));
}

function loadRows(core: StoreCore, sessionId: string): StoredMessage[] {
  const { shape } = core;
  const rows = core.db.all<MessageRow>(
    `SELECT ${messageSelect(shape)} FROM messages m WHERE m.session_id = ? AND ${activeOnly(shape)} ORDER BY m.id`,
    sessionId,
  );
  return rows.map((row) => toMessage(core, row));
}

/** The active rows become `messages`; hidden ones stay. */
export function replaceRows(
  core: StoreCore,
  sessionId: string,
  messages: readonly TimedMessage[],
  leased: Leased = {},
): void {
  assertLease(core, sessionId, leased);
  assertAppendable(core, sessionId);
  core.db.run("DELETE FROM messages WHERE session_id = ? AND active = 1", sessionId);
  core.db.run("UPDATE sessions SET message_count = 0, tool_call_count = 0 WHERE id = ?", sessionId);
  appendRows(core, sessionId, messages);
}

export function hideRowsFrom(core: StoreCore, sessionId: string, messageId: number, leased: Leased = {}): number {
  assertLease(core, sessionId, leased);
  const { changes } = core.db.run(
    "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1",
    sessionId,
    messageId,
  );
  if (changes === 0) return 0;
  core.db.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", sessionId);
  countMessages(core, sessionId);
  return changes;
}

/** Sets the counters of a session to what its active rows say. */
export function countMessages(core: StoreCore, sessionId: string): void {
  core.db.run(
    `UPDATE sessions SET
       message_count = (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id AND active = 1),
       tool_call_count = (SELECT COALESCE(SUM(json_array_length(tool_calls)), 0) FROM messages
         WHERE session_id = sessions.id AND active = 1 AND json_valid(tool_calls))
     WHERE id = ?`,
    sessionId,
  );
}

export function writeApiContent(core: StoreCore, messageId: number, text: string | null, leased: Leased = {}): void {
  const row = core.db.get<{ session: string }>("SELECT session_id AS session FROM messages WHERE id = ?", messageId);
  if (!row) return;
  assertLease(core, row.session, leased);
  core.db.run("UPDATE messages SET api_content = ? WHERE id = ?", text, messageId);
}

/** Files of older versions have no `active` column: all their rows are. */
export const activeOnly = (shape: FileShape) => (shape.messageColumns.has("active") ? "m.active = 1" : "1");

const selectLists = new WeakMap<FileShape, string>();

function messageSelect(shape: FileShape): string {
  let list = selectLists.get(shape);
  if (!list) {
    const present = (name: string, expression: string) =>
      shape.messageColumns.has(name) ? expression : `NULL AS ${name}`;
    list = [
      "m.id, m.role",
      ...AS_BLOB.map((name) => present(name, `CAST(m.${name} AS BLOB) AS ${name}`)),
      ...AS_TEXT.map((name) => present(name, `m.${name}`)),
    ].join(", ");
    selectLists.set(shape, list);
  }
  return list;
}

function toMessage(core: StoreCore, row: MessageRow): StoredMessage {
  const message: Record<string, unknown> = {
    id: row.id,
    role: row.role,
    content: contentFor(row.role, decodeContent(row.content, core.log)),
    timestamp: row.timestamp,
  };
  if (row.api_content !== null) message.api_content = decodeText(row.api_content);
  if (row.tool_call_id !== null) message.tool_call_id = row.tool_call_id;
  if (row.tool_name !== null) message.tool_name = row.tool_name;
  if (row.finish_reason !== null) message.finish_reason = row.finish_reason;
  if (row.reasoning !== null) message.reasoning = decodeText(row.reasoning);
  // An empty text counts: some providers demand the field back.
  if (row.reasoning_content !== null) message.reasoning_content = decodeText(row.reasoning_content);
  if (row.text_origin !== null) message.text_origin = row.text_origin;
  for (const field of JSON_FIELDS) {
    const text = row[field];
    if (text === null) continue;
    const value = parseJson(text);
    if (Array.isArray(value)) message[field] = value;
    else core.log.warn(`message ${row.id}: ${field} is not a JSON list and is left out`);
  }
  return message as unknown as StoredMessage; // the columns are those fields; roles are whatever was stored
}

/** Only an assistant's content may be missing, and it is always text. */
function contentFor(role: string, content: Content): Content {
  if (role !== "assistant") return content ?? "";
  return content === null || typeof content === "string" ? content : textOf(content);
}

const json = (value: readonly unknown[] | undefined) => (value === undefined ? null : JSON.stringify(value));
