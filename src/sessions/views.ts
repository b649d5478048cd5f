// Pieces of a transcript around a message, as search results show them.

import { parseJson } from "../kit/json.ts";
import type { StoreCore } from "./core.ts";
import type { FileShape } from "./schema.ts";
import { plainText } from "./sessions.ts";
import type { MessageView } from "./store.ts";

interface ViewRow {
  readonly id: number;
  readonly role: string;
  readonly content: Uint8Array | null;
  readonly timestamp: number;
  readonly tool_name: string | null;
  readonly tool_calls: string | null;
  readonly tool_call_id: string | null;
}

const SELECT =
  "SELECT m.id, m.role, CAST(m.content AS BLOB) AS content, m.timestamp, m.tool_name, m.tool_calls, m.tool_call_id FROM messages m";

/** Rows a person may see: rewound ones are hidden, compacted ones are not. */
function visible(shape: FileShape): string {
  if (!shape.messageColumns.has("active")) return "1";
  return shape.messageColumns.has("compacted") ? "(m.active = 1 OR m.compacted = 1)" : "m.active = 1";
}

interface Window {
  readonly window: readonly MessageView[];
  readonly messagesBefore: number;
  readonly messagesAfter: number;
}

/** `size` messages on each side of the anchor; empty when the anchor is not a row of this session. */
export function windowAround(core: StoreCore, sessionId: string, messageId: number, size: number): Window {
  const shown = visible(core.shape);
  const side = (condition: string, order: string, limit: number) =>
    core.db
      .all<ViewRow>(
        `${SELECT} WHERE m.session_id = ? AND m.id ${condition} ? AND ${shown} ORDER BY m.id ${order} LIMIT ?`,
        sessionId,
        messageId,
        limit,
      )
      .map((row) => toView(core, row));
  const anchor = side("=", "ASC", 1);
  if (anchor.length === 0) return { window: [], messagesBefore: 0, messagesAfter: 0 };
  const before = side("<", "DESC", size).reverse();
  const after = side(">", "ASC", size);
  return { window: [...before, ...anchor, ...after], messagesBefore: before.length, messagesAfter: after.length };
}

interface AnchoredView extends Window {
  readonly bookendStart: readonly MessageView[];
  readonly bookendEnd: readonly MessageView[];
}

/** The window, and how the session began and ended: spoken messages only, none of them twice. */
export function viewAnchored(
  core: StoreCore,
  sessionId: string,
  messageId: number,
  options: { window?: number; bookend?: number } = {},
): AnchoredView {
  const around = windowAround(core, sessionId, messageId, options.window ?? 5);
  const first = around.window[0];
  const last = around.window.at(-1);
  if (!first || !last) return { ...around, bookendStart: [], bookendEnd: [] };
  const spoken = (condition: string, order: string, id: number) =>
    core.db
      .all<ViewRow>(
        `${SELECT} WHERE m.session_id = ? AND m.id ${condition} ? AND m.role IN ('user', 'assistant') AND ${visible(core.shape)}
         AND m.content IS NOT NULL AND m.content <> '' ORDER BY m.id ${order} LIMIT ?`,
        sessionId,
        id,
        options.bookend ?? 3,
      )
      .map((row) => toView(core, row));
  return {
    ...around,
    bookendStart: spoken("<", "ASC", first.id),
    bookendEnd: spoken(">", "DESC", last.id).reverse(),
  };
}

export function findMessage(core: StoreCore, messageId: number): { sessionId: string; compacted: boolean } | null {
  const compacted = core.shape.messageColumns.has("compacted") ? "compacted" : "0";
  const row = core.db.get<{ session_id: string; compacted: number }>(
    `SELECT session_id, ${compacted} AS compacted FROM messages WHERE id = ?`,
    messageId,
  );
  return row ? { sessionId: row.session_id, compacted: row.compacted === 1 } : null;
}

function toView(core: StoreCore, row: ViewRow): MessageView {
  const calls = row.tool_calls === null ? undefined : parseJson(row.tool_calls);
  return {
    id: row.id,
    role: row.role,
    content: plainText(row.content, core.log),
    timestamp: row.timestamp,
    toolName: row.tool_name ?? undefined,
    toolCalls: Array.isArray(calls) ? calls : undefined,
    toolCallId: row.tool_call_id ?? undefined,
  };
}
