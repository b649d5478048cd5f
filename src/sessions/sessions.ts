// Making, ending, changing and deleting sessions.

import { glob, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../home/log.ts";
import { parseJson } from "../kit/json.ts";
import { type ContentPart, textOf } from "../llm/messages.ts";
import type { StoreCore } from "./core.ts";
import { assertLease } from "./lanes.ts";
import { parseConfig } from "./lineage.ts";
import { type Columns, type FileShape, SESSION_COLUMNS } from "./schema.ts";
import type { EndReason, Leased, NewSession, Session, SessionChange } from "./store.ts";

export function readSession(core: StoreCore, id: string): Session | null {
  const row = core.db.get<SessionRow>(`SELECT ${sessionSelect(core.shape)} FROM sessions s WHERE s.id = ?`, id);
  return row ? toSession(row) : null;
}

export const sessionExists = (core: StoreCore, id: string) =>
  core.db.get("SELECT 1 FROM sessions WHERE id = ?", id) !== undefined;

/** Idempotent. A parent that does not exist is left out: the foreign key would refuse the whole session. */
export function insertSession(core: StoreCore, session: NewSession): void {
  const parent = session.parentSessionId ?? null;
  const parentKnown = parent === null || sessionExists(core, parent);
  if (!parentKnown) core.log.warn(`session ${session.id}: its parent ${parent} does not exist and is left out`);
  core.db.run(
    `INSERT OR IGNORE INTO sessions
       (id, source, user_id, model, model_config, system_prompt, parent_session_id, started_at, cwd, git_branch, git_repo_root)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    session.id,
    session.source ?? "cli",
    session.userId ?? null,
    session.model ?? null,
    session.modelConfig ? JSON.stringify(session.modelConfig) : null,
    session.systemPrompt ?? null,
    parentKnown ? parent : null,
    session.startedAt ?? core.now(),
    session.cwd ?? null,
    session.gitBranch ?? null,
    session.gitRepoRoot ?? null,
  );
}

/** The first reason wins. */
export function endSession(core: StoreCore, id: string, reason: EndReason, leased: Leased = {}): void {
  assertLease(core, id, leased);
  core.db.run(
    "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
    core.now(),
    reason,
    id,
  );
}

export function reopenSession(core: StoreCore, id: string): void {
  core.db.run("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", id);
}

export function changeSession(core: StoreCore, id: string, change: SessionChange, leased: Leased = {}): void {
  assertLease(core, id, leased);
  const values: Record<string, string | number | null> = {};
  if (change.source !== undefined) values.source = change.source;
  if (change.model !== undefined) values.model = change.model;
  if (change.cwd !== undefined) values.cwd = change.cwd;
  if (change.gitBranch !== undefined) values.git_branch = change.gitBranch;
  if (change.gitRepoRoot !== undefined) values.git_repo_root = change.gitRepoRoot;
  if (change.modelConfig !== undefined) values.model_config = JSON.stringify(change.modelConfig);
  if (change.archived !== undefined) values.archived = change.archived ? 1 : 0;
  if (change.pinned !== undefined) values.pinned = change.pinned ? 1 : 0;
  const names = Object.keys(values);
  if (names.length === 0) return;
  core.db.run(
    `UPDATE sessions SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
    ...Object.values(values),
    id,
  );
}

export function noteActivity(core: StoreCore, id: string): void {
  core.db.run("UPDATE sessions SET last_activity_at = ? WHERE id = ?", core.now(), id);
}

/** The rows of one session and of what was delegated from it; other children stay and lose their parent. Returns the ids that went. */
export function deleteSessionRows(core: StoreCore, id: string): readonly string[] {
  const { db } = core;
  if (!sessionExists(core, id)) return [];
  const gone = [id, ...delegatedBelow(core, id)];
  const list = JSON.stringify(gone);
  const within = "(SELECT value FROM json_each(?))";
  db.run(`DELETE FROM messages WHERE session_id IN ${within}`, list);
  db.run(`UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IN ${within}`, list);
  db.run(`DELETE FROM sessions WHERE id IN ${within}`, list);
  db.run(`DELETE FROM lanes WHERE lane IN ${within}`, list);
  db.run(`DELETE FROM state_meta WHERE key IN (SELECT 'goal:' || value FROM json_each(?))`, list);
  return gone;
}

function delegatedBelow(core: StoreCore, id: string): string[] {
  const found: string[] = [];
  const open = [id];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    const children = core.db.all<{ id: string; model_config: string | null }>(
      "SELECT id, model_config FROM sessions WHERE parent_session_id = ?",
      parent,
    );
    for (const child of children) {
      if (child.id === id || found.includes(child.id) || !parseConfig(child.model_config)?._delegate_from) continue;
      found.push(child.id);
      open.push(child.id);
    }
  }
  return found;
}

/** What was written next to the database for these sessions. */
export async function removeSessionFiles(
  core: StoreCore,
  sessionsDir: string | null,
  ids: readonly string[],
): Promise<void> {
  if (sessionsDir === null) return;
  for (const id of ids) {
    // An id from an imported file could otherwise point out of the folder.
    if (!/^[\w.-]+$/.test(id) || id.startsWith(".")) continue;
    const names = [`${id}.json`, `${id}.jsonl`];
    try {
      for await (const name of glob(`request_dump_${id}_*.json`, { cwd: sessionsDir })) names.push(name);
      for (const name of names) await rm(join(sessionsDir, name), { force: true });
    } catch (error) {
      core.log.warn(`files of session ${id} could not be removed`, error);
    }
  }
}

// One row of `sessions`, in and out.

export interface SessionRow {
  readonly id: string;
  readonly source: string;
  readonly user_id: string | null;
  readonly model: string | null;
  readonly model_config: string | null;
  readonly parent_session_id: string | null;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly end_reason: string | null;
  readonly message_count: number | null;
  readonly tool_call_count: number | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly billing_provider: string | null;
  readonly billing_base_url: string | null;
  readonly billing_mode: string | null;
  readonly estimated_cost_usd: number | null;
  readonly actual_cost_usd: number | null;
  readonly cost_status: string | null;
  readonly cost_source: string | null;
  readonly title: string | null;
  readonly api_call_count: number | null;
  readonly cwd: string | null;
  readonly git_branch: string | null;
  readonly git_repo_root: string | null;
  readonly last_activity_at: number | null;
  readonly rewind_count: number | null;
  readonly archived: number | null;
  readonly pinned: number | null;
}

/** Prompts are long and have a reader of their own. */
const LEFT_OUT: ReadonlySet<string> = new Set(["system_prompt", "prompt_fingerprint"]);

const selectLists = new WeakMap<FileShape, string>();

/** The SELECT list of a `SessionRow` with table alias `s`; columns an old read-only file lacks come as NULL. */
export function sessionSelect(shape: FileShape): string {
  let list = selectLists.get(shape);
  if (!list) {
    const names = Object.keys(SESSION_COLUMNS satisfies Columns).filter((name) => !LEFT_OUT.has(name));
    list = names.map((name) => (shape.sessionColumns.has(name) ? `s.${name}` : `NULL AS ${name}`)).join(", ");
    selectLists.set(shape, list);
  }
  return list;
}

export function toSession(row: SessionRow): Session {
  return {
    id: row.id,
    source: row.source,
    userId: row.user_id,
    model: row.model,
    modelConfig: parseConfig(row.model_config),
    parentSessionId: row.parent_session_id,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    endReason: row.end_reason,
    messageCount: row.message_count ?? 0,
    toolCallCount: row.tool_call_count ?? 0,
    inputTokens: row.input_tokens ?? 0,
    outputTokens: row.output_tokens ?? 0,
    cacheReadTokens: row.cache_read_tokens ?? 0,
    cacheWriteTokens: row.cache_write_tokens ?? 0,
    reasoningTokens: row.reasoning_tokens ?? 0,
    apiCallCount: row.api_call_count ?? 0,
    billingProvider: row.billing_provider,
    billingBaseUrl: row.billing_base_url,
    billingMode: row.billing_mode,
    estimatedCostUsd: row.estimated_cost_usd,
    actualCostUsd: row.actual_cost_usd,
    costStatus: row.cost_status,
    costSource: row.cost_source,
    title: row.title,
    cwd: row.cwd,
    gitBranch: row.git_branch,
    gitRepoRoot: row.git_repo_root,
    lastActivityAt: row.last_activity_at,
    archived: row.archived === 1,
    pinned: row.pinned === 1,
    rewindCount: row.rewind_count ?? 0,
  };
}

// How content stands in the database. Parts (text and pictures) are stored as NUL + "json:" + JSON, as the original does. SQLite's text
// functions, and some versions of node:sqlite, stop at a NUL: such columns are read as BLOB and decoded here.

const PARTS_MARK = "\u0000json:";
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export type Content = string | readonly ContentPart[] | null;

export function encodeContent(content: Content): string | null {
  return content === null || typeof content === "string" ? content : PARTS_MARK + JSON.stringify(content);
}

/** Text of a column that was selected as BLOB (or, in old callers, as text). */
export function decodeText(value: Uint8Array | string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === "string" ? value : decoder.decode(value);
}

export function decodeContent(value: Uint8Array | string | null, log: Logger): Content {
  const text = decodeText(value);
  if (text === null || !text.startsWith(PARTS_MARK)) return text;
  const parsed = parseJson(text.slice(PARTS_MARK.length));
  if (Array.isArray(parsed)) return parsed as readonly ContentPart[]; // written by encodeContent or by the original
  if (typeof parsed === "string") return parsed;
  log.warn("a stored message has unreadable parts; its raw text is used");
  return text.slice(PARTS_MARK.length);
}

/** What a person would read of it; pictures left out. */
export function plainText(value: Uint8Array | string | null, log: Logger): string {
  return textOf(decodeContent(value, log));
}
