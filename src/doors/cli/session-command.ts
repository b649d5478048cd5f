// What the sub-commands of `hermes sessions` share.

import { said } from "../../home/language/words.ts";
import { relativeTime } from "../../kit/formats.ts";
import { findSession } from "../../sessions/session-id.ts";
import type { SessionListItem, SessionStore } from "../../sessions/store.ts";
import { ExitError } from "../cli-context.ts";
import { cut, padCells } from "../terminal-text.ts";
import { briefly, oneLine } from "./present.ts";

export async function resolveSession(store: SessionStore, text: string): Promise<string> {
  const id = await findSession(store, text);
  if (id === null) throw notFound(text);
  return id;
}

export const notFound = (text: string) =>
  new ExitError(
    1,
    `No session matches "${briefly(text)}", or the id prefix is ambiguous. \`hermes sessions list\` shows them.`,
  );

export const megabytes = (bytes: number) => (bytes / (1024 * 1024)).toFixed(1);

// Sessions as lines of a table, padded by terminal cells.

interface Column {
  readonly head: string;
  readonly width: number;
  readonly cut: number;
  text(item: SessionListItem, now: number): string;
}

const title: Column = {
  head: "Title",
  width: 32,
  cut: 30,
  text: (item) => `${item.archived ? "[archived] " : ""}${item.title ?? "—"}`,
};
const active: Column = {
  head: "Last Active",
  width: 13,
  cut: 12,
  text: (item, now) => relativeTime(item.lastActive, now),
};
const source: Column = { head: "Src", width: 6, cut: 6, text: (item) => item.source };
const preview = (width: number): Column => ({ head: "Preview", width, cut: width - 2, text: (item) => item.preview });

/**
 * Title and preview when any session has a title, else a wider preview and the source. Where that is wider than `room`, one column tells
 * what each is about: an id that is broken in two cannot be copied.
 */
export function sessionTable(
  items: readonly SessionListItem[],
  now: number,
  {
    room = Number.POSITIVE_INFINITY,
    isRead = false,
  }: { readonly room?: number | undefined; readonly isRead?: boolean } = {},
): readonly string[] {
  const read = (text: string) => (isRead ? said(text) : text);
  const hasTitles = items.some((item) => item.title !== null);
  const wide = hasTitles ? [title, preview(40), active] : [preview(50), active, source];
  const beside = room - Math.max(...items.map(({ id }) => id.length));
  const taken = wide.reduce((sum, { width }) => sum + width, hasTitles ? 0 : 1);
  const columns = taken <= beside ? wide : narrowColumns(beside, hasTitles);
  const line = (cell: (column: Column) => string, last: string) =>
    `${columns.map((column) => padCells(cut(cell(column), column.cut, ""), column.width)).join("")}${column(source, columns)}${last}`;
  const cell = (one: Column, item: SessionListItem) => {
    const text = one.text(item, now);
    return oneLine(one === active ? read(text) : text);
  };
  return [line((one) => read(one.head), "ID"), ...items.map((item) => line((one) => cell(one, item), item.id))];
}

function narrowColumns(beside: number, hasTitles: boolean): readonly Column[] {
  const more = beside - active.width >= LEAST_TEXT ? [active] : [];
  const width = Math.max(LEAST_TEXT, beside - more.reduce((sum, one) => sum + one.width, 0));
  const text = (item: SessionListItem) => (item.title === null ? item.preview || "—" : title.text(item, 0));
  return [{ head: hasTitles ? title.head : "Preview", width, cut: width - 2, text }, ...more];
}

const LEAST_TEXT = 16;

/** Keeps a blank between a full source column and the id. */
const column = (wanted: Column, columns: readonly Column[]) => (columns.at(-1) === wanted ? " " : "");

/** The same facts for machines. */
export function sessionJson(item: SessionListItem): Record<string, unknown> {
  return {
    id: item.id,
    title: item.title,
    preview: item.preview,
    source: item.source,
    model: item.model,
    started_at: item.startedAt,
    last_active: item.lastActive,
    ended_at: item.endedAt,
    end_reason: item.endReason,
    message_count: item.messageCount,
    tool_call_count: item.toolCallCount,
    parent_session_id: item.parentSessionId,
    lineage_root_id: item.lineageRootId,
    cwd: item.cwd,
    archived: item.archived,
    pinned: item.pinned,
  };
}
