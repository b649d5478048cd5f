// Making, ending, changing and deleting sessions.
import { glob, rm } from "node:fs/promises";
import { join } from "node:path";
import type { StoreCore } from "./core.ts";
import { parseConfig, type SessionRow, sessionSelect, toSession } from "./session-rows.ts";
import type { EndReason, NewSession, Session, SessionChange } from "./store.ts";

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
export function endSession(core: StoreCore, id: string, reason: EndReason): void {
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

export function changeSession(core: StoreCore, id: string, change: SessionChange): void {
  const values: Record<string, string | number | null> = {};
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

/** What was written beside the database for these sessions. */
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
