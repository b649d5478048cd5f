// What the sub-commands of `hermes sessions` share.

import { InvalidArgumentError } from "commander";
import { messageOf } from "../../kit/errors.ts";
import { relativeTime } from "../../kit/formats.ts";
import { findSession } from "../../sessions/session-id.ts";
import type { SessionListItem, SessionStore } from "../../sessions/store.ts";
import { cut, padCells } from "../terminal-text.ts";
import { type CliContext, ExitError } from "./context.ts";

export async function resolveSession(store: SessionStore, text: string): Promise<string> {
  const id = await findSession(store, text);
  if (id === null) throw notFound(text);
  return id;
}

export const notFound = (text: string) =>
  new ExitError(1, `No session fits "${briefly(text)}" (or several begin so). \`hermes sessions list\` shows them.`);

export async function confirm(ctx: CliContext, question: string, flags: { yes?: true }): Promise<void> {
  if (flags.yes) return;
  const answer = await ctx.io.question(`${question} [y/N] `);
  if (answer === null) throw new ExitError(1, `${question} Nobody to ask here: add -y to do it.`);
  if (!/^y(es)?$/i.test(answer.trim())) throw new ExitError(1, "Nothing was changed.");
}

export function print(ctx: CliContext, line: string): void {
  ctx.io.out(`${line}\n`);
}

export function printJson(ctx: CliContext, value: unknown): void {
  ctx.io.out(`${JSON.stringify(value, null, 2)}\n`);
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("A whole number is expected.");
  return Number(text);
}

/** How many of something to show. */
export function positiveNumber(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("A whole number of 1 or more is expected.");
  return number;
}

/** Local midnight of a bare day; anything else as JavaScript reads it. */
export function dateSeconds(text: string): number {
  const at = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00` : text).getTime();
  if (Number.isNaN(at)) throw new InvalidArgumentError("A date like 2026-01-31 is expected.");
  return at / 1000;
}

export const megabytes = (bytes: number) => (bytes / (1024 * 1024)).toFixed(1);
export const reasonOf = (error: unknown) => messageOf(error);

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

/** Title and preview when any session has a title, else a wider preview and the source. */
export function sessionTable(items: readonly SessionListItem[], now: number): readonly string[] {
  const columns = items.some((item) => item.title !== null)
    ? [title, preview(40), active]
    : [preview(50), active, source];
  const line = (cell: (column: Column) => string, last: string) =>
    `${columns.map((column) => padCells(cut(cell(column), column.cut, ""), column.width)).join("")}${column(source, columns)}${last}`;
  return [line((one) => one.head, "ID"), ...items.map((item) => line((one) => oneLine(one.text(item, now)), item.id))];
}

/** The narrow source column may be full to the brim; the id must not stick to it. */
const column = (wanted: Column, columns: readonly Column[]) => (columns.at(-1) === wanted ? " " : "");

/** Control characters of stored text must not reach the terminal, nor what turns the direction of the text behind it. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[\p{Control}\u202a-\u202e\u2066-\u2069]/gu, "");
}

/** What the user typed, as a message repeats it. */
export const briefly = (text: string) => cut(oneLine(text), 60, "…");

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
