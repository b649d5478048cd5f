// A conversation that grew too long goes on in a child session; a branch goes its own way in one. Both are one transaction.

import { randomBytes } from "node:crypto";
import type { StoreCore } from "./core.ts";
import { assertLease, heldByOther, holderInWords, isDead, newHolder, releaseLane, takeLane } from "./lanes.ts";
import { tipOf } from "./lineage.ts";
import { appendRows, countMessages } from "./messages.ts";
import { newSessionId } from "./session-id.ts";
import { copyGoal, copyValues, moveGoal, readValue, writeValue } from "./session-values.ts";
import { deleteSessionRows, endSession, readSession, reopenSession, sessionExists } from "./sessions.ts";
import { type Leased, type Session, StoreError, type TimedMessage } from "./store.ts";
import { assignTitle, nextTitleAfter } from "./titles.ts";

/** In the child's keys: which rows the compression wrote, so that it can be taken back while they are all there is. */
const WRITTEN_KEY = "compression";

/** Columns that begin anew in a child; everything else, known to us or not, is the conversation's and is copied. */
const OWN_COLUMNS: ReadonlySet<string> = new Set([
  ...["id", "parent_session_id", "started_at", "ended_at", "end_reason", "title", "model_config"],
  ...["message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"],
  ...["reasoning_tokens", "api_call_count", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source"],
  ...["handoff_state", "handoff_platform", "handoff_error", "rewind_count", "archived", "last_activity_at"],
  ...["last_activity_description", "last_activity_provenance", "compression_failure_cooldown_until"],
  ...["compression_failure_error", "compression_fallback_streak", "compression_ineffective_count"],
]);
const COMPRESSION_SECONDS = 300;
const PROMPT_COLUMNS: ReadonlySet<string> = new Set([
  ...["system_prompt", "system_prompt_hash", "system_prompt_stable_chars", "prompt_fingerprint"],
]);

export function continueSession(
  core: StoreCore,
  oldId: string,
  messages: readonly TimedMessage[],
  leased: Leased = {},
): string {
  assertLease(core, oldId, leased);
  const old = readSession(core, oldId);
  if (!old) throw new StoreError("invalid", `session ${oldId} does not exist; nothing was compressed`);
  const tip = tipOf(core, oldId);
  if (tip !== oldId) return tip;
  const id = freshId(core);
  // Here the last reason wins: whatever ended the session before, it goes on in this child.
  core.db.run(
    "UPDATE sessions SET ended_at = COALESCE(ended_at, ?), end_reason = 'compression' WHERE id = ?",
    core.now(),
    oldId,
  );
  copySession(core, old, { id, modelConfig: continuedConfig(old), withPrompt: false });
  copyValues(core, oldId, id);
  moveGoal(core, oldId, id);
  if (old.title !== null) assignTitle(core, id, nextTitleAfter(core, old.title));
  const rows = appendRows(core, id, messages);
  writeValue(core, id, WRITTEN_KEY, { child: id, count: rows.length, last: rows.at(-1) ?? 0 });
  return id;
}

export function takeBackCompression(core: StoreCore, childId: string, leased: Leased = {}): string | null {
  assertLease(core, childId, leased);
  const child = readSession(core, childId);
  const parentId = child?.parentSessionId;
  if (!child || !parentId) return null;
  const written = readValue(core, childId, WRITTEN_KEY);
  if (!isWritten(written) || written.child !== childId) return null;
  const parent = readSession(core, parentId);
  if (parent?.endReason !== "compression") return null;
  const rows = core.db.get<{ n: number; last: number | null }>(
    "SELECT COUNT(*) AS n, MAX(id) AS last FROM messages WHERE session_id = ?",
    childId,
  );
  if (rows?.n !== written.count || (rows.last ?? 0) !== written.last) return null;
  if (core.db.get("SELECT 1 FROM sessions WHERE parent_session_id = ?", childId) !== undefined) return null;
  // What the child cost stays on the conversation's bill.
  core.db.run("UPDATE model_calls SET session_id = ? WHERE session_id = ?", parentId, childId);
  moveGoal(core, childId, parentId);
  deleteSessionRows(core, childId);
  reopenSession(core, parentId);
  return parentId;
}

export function branchSession(
  core: StoreCore,
  id: string,
  newId: string,
  options: Leased & { readonly title?: string; readonly before?: number } = {},
): { readonly inUseBy: string | null } {
  assertLease(core, id, options);
  const old = readSession(core, id);
  if (!old) throw new StoreError("invalid", `session ${id} does not exist; nothing was branched`);
  if (sessionExists(core, newId))
    throw new StoreError("conflict", `session ${newId} already exists; nothing was branched`);
  const holder = heldByOther(core, id, options.lease?.holder);
  const finished = holder === null ? null : endOfLastTurn(core, id);
  const { before = Number.MAX_SAFE_INTEGER } = options;
  const isCut = options.before !== undefined || finished !== null;
  const end = Math.min(before - 1, finished ?? Number.MAX_SAFE_INTEGER);
  // Before an earlier message the running turn is out of the way.
  const inUseBy = finished === null || before <= finished ? null : holder;
  if (holder !== null && finished === 0) {
    throw new StoreError(
      "conflict",
      `${holderInWords(holder)} is still running the first turn; nothing was branched. Try again when it is done.`,
    );
  }
  copySession(core, old, { id: newId, modelConfig: { ...continuedConfig(old), _branched_from: id }, withPrompt: true });
  copyValues(core, id, newId);
  copyGoal(core, id, newId);
  const columns = [...core.shape.messageColumns].filter((name) => name !== "id" && name !== "session_id").join(", ");
  core.db.run(
    `INSERT INTO messages (session_id, ${columns}) SELECT ?, ${columns} FROM messages WHERE session_id = ? AND id <= ? ORDER BY id`,
    ...[newId, id, end],
  );
  if (!isCut) {
    core.db.run(
      "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?",
      ...[old.messageCount, old.toolCallCount, newId],
    );
  } else {
    countMessages(core, newId);
    // The last request of what was left out is no beginning of what the branch sends.
    core.db.run("DELETE FROM session_kv WHERE session_id = ? AND key = 'prefix'", newId);
  }
  const wanted = options.title ?? (old.title === null ? null : nextTitleAfter(core, old.title));
  if (wanted !== null) assignTitle(core, newId, wanted);
  endSession(core, id, "branched");
  return { inUseBy };
}

/** The row with which the last complete turn ends, 0 when there is none; null when nothing stands behind it. */
function endOfLastTurn(core: StoreCore, id: string): number | null {
  const rows = core.db.all<{ id: number; answer: number }>(
    `SELECT id, role = 'assistant' AND COALESCE(tool_calls, '[]') IN ('', '[]', 'null') AS answer FROM messages
     WHERE session_id = ? AND active = 1 ORDER BY id DESC`,
    id,
  );
  const at = rows.findIndex(({ answer }) => answer === 1);
  return at === 0 ? null : (rows[at]?.id ?? 0);
}

function copySession(
  core: StoreCore,
  old: Session,
  child: { id: string; modelConfig: Readonly<Record<string, unknown>> | null; withPrompt: boolean },
): void {
  const copied = [...core.shape.sessionColumns].filter(
    (name) => !OWN_COLUMNS.has(name) && (child.withPrompt || !PROMPT_COLUMNS.has(name)),
  );
  const list = copied.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ");
  core.db.run(
    `INSERT INTO sessions (id, parent_session_id, started_at, model_config, ${list})
     SELECT ?, id, ?, ?, ${list} FROM sessions WHERE id = ?`,
    child.id,
    core.now(),
    child.modelConfig ? JSON.stringify(child.modelConfig) : null,
    old.id,
  );
}

/** The marks of a branch or a delegate belong to the session they were put on, not to what continues it. */
function continuedConfig(old: Session): Readonly<Record<string, unknown>> | null {
  if (!old.modelConfig) return null;
  const { _branched_from, _delegate_from, ...rest } = old.modelConfig;
  return rest;
}

function freshId(core: StoreCore): string {
  for (;;) {
    const id = newSessionId(core.clock);
    if (!sessionExists(core, id)) return id;
  }
}

function isWritten(value: unknown): value is { child: string; count: number; last: number } {
  return typeof value === "object" && value !== null && "child" in value && "count" in value && "last" in value;
}

// Who may summarise a session: whoever holds its lane. The newer original keeps leases of its own in `compression_locks`.

interface Lock {
  readonly holder: string;
  readonly expires_at: number;
}

/**
 * Inside a transaction; null when another process is at it. Without a lease the lane is taken for as long as the compression may last.
 * Returns what gives it all back, to be run in a transaction too.
 */
export function leaseCompression(
  core: StoreCore,
  sessionId: string,
  { lease, seconds = COMPRESSION_SECONDS }: Leased & { readonly seconds?: number } = {},
): (() => void) | null {
  if (lease) assertLease(core, sessionId, { lease });
  const locks = core.shape.tables.has("compression_locks");
  const lock = locks
    ? core.db.get<Lock>("SELECT holder, expires_at FROM compression_locks WHERE session_id = ?", sessionId)
    : undefined;
  if (lock && lock.expires_at > core.now() && !isLockDead(lock.holder)) return null;
  const taken = lease ? null : takeLane(core, sessionId, newHolder(), { seconds });
  if (taken && taken.type !== "taken") return null;
  const holder = `pid=${process.pid}:${randomBytes(6).toString("hex")}`;
  if (locks) {
    core.db.run(
      "INSERT OR REPLACE INTO compression_locks (session_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?)",
      ...[sessionId, holder, core.now(), core.now() + seconds],
    );
  }
  return () => {
    if (locks) core.db.run("DELETE FROM compression_locks WHERE session_id = ? AND holder = ?", sessionId, holder);
    if (taken) releaseLane(core, taken.lease, { preferSeconds: 0 });
  };
}

function isLockDead(holder: string): boolean {
  const pid = /^pid=(\d+)/.exec(holder)?.[1];
  return pid !== undefined && isDead(Number(pid));
}
