// Sessions form trees: a compression goes on in a child, a branch copies itself into one, a delegated task runs in one.
// Only the first kind is the same conversation. Data of other programs may hold cycles; every walk here ends.
import { isRecord, parseJson } from "../kit/json.ts";
import type { StoreCore } from "./core.ts";

export interface SessionNode {
  readonly id: string;
  readonly source: string;
  readonly modelConfig: Readonly<Record<string, unknown>> | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly endReason: string | null;
  readonly lastActive: number;
}

const MAX_TIP_STEPS = 100;
const MAX_RESUME_STEPS = 32;

/** A child that carries the same conversation on. */
function continuesParent(child: Pick<SessionNode, "source" | "modelConfig">): boolean {
  return !child.modelConfig?._branched_from && !child.modelConfig?._delegate_from && child.source !== "tool";
}

/** Of several continuations: one that went on itself, then one still open, then the most recently used. */
export function chooseContinuation<K extends SessionNode>(children: readonly K[]): K | undefined {
  const place = (node: SessionNode) => (node.endReason === "compression" ? 0 : node.endedAt === null ? 1 : 2);
  return children
    .filter(continuesParent)
    .reduce<K | undefined>(
      (best, next) =>
        best === undefined ||
        (place(next) - place(best) ||
          best.lastActive - next.lastActive ||
          best.startedAt - next.startedAt ||
          (next.id > best.id ? -1 : 1)) < 0
          ? next
          : best,
      undefined,
    );
}

/** Where a conversation stands now; an unknown id is its own tip. */
export function tipOf(core: StoreCore, id: string): string {
  const seen = new Set([id]);
  let current = id;
  for (let step = 0; step < MAX_TIP_STEPS; step++) {
    if (endReasonOf(core, current) !== "compression") return current;
    const next = chooseContinuation(childrenOf(core, current));
    if (!next || seen.has(next.id)) return current;
    seen.add(next.id);
    current = next.id;
  }
  return current;
}

/** The tip, or the deepest later continuation that has messages. */
export function resumeTargetOf(core: StoreCore, id: string): string {
  const tip = tipOf(core, id);
  const seen = new Set([tip]);
  let current = tip;
  let deepest = tip;
  for (let step = 0; step < MAX_RESUME_STEPS; step++) {
    const next = childrenOf(core, current)
      .filter((child) => continuesParent(child) && !seen.has(child.id))
      .reduce<SessionNode | undefined>(
        (best, node) => (best === undefined || node.startedAt > best.startedAt ? node : best),
        undefined,
      );
    if (!next) break;
    seen.add(next.id);
    current = next.id;
    if (core.db.get("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", current) !== undefined) deepest = current;
  }
  return deepest;
}

/** All parents, the oldest first, then `id` itself. */
export function lineageOf(core: StoreCore, id: string): readonly string[] {
  const line = [id];
  for (let parent = parentOf(core, id); parent !== null && !line.includes(parent); parent = parentOf(core, parent)) {
    line.push(parent);
  }
  return line.reverse();
}

/** The part of the lineage that is one conversation: only compressions lie between its members. */
export function conversationOf(core: StoreCore, id: string): readonly string[] {
  const line = [id];
  for (let current = id; ; ) {
    const row = core.db.get<{
      source: string;
      model_config: string | null;
      parent: string | null;
      parent_end: string | null;
    }>(
      `SELECT s.source, s.model_config, p.id AS parent, p.end_reason AS parent_end
       FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id WHERE s.id = ?`,
      current,
    );
    const goesOn =
      row?.parent_end === "compression" &&
      continuesParent({ source: row.source, modelConfig: parseConfig(row.model_config) });
    if (!row?.parent || !goesOn || line.includes(row.parent)) return line.reverse();
    current = row.parent;
    line.push(current);
  }
}

function childrenOf(core: StoreCore, id: string): readonly SessionNode[] {
  const activity = core.shape.sessionColumns.has("last_activity_at") ? "s.last_activity_at" : "NULL";
  return core.db
    .all<{
      id: string;
      source: string;
      model_config: string | null;
      started_at: number;
      ended_at: number | null;
      end_reason: string | null;
      activity: number | null;
      last_message: number | null;
    }>(
      `SELECT s.id, s.source, s.model_config, s.started_at, s.ended_at, s.end_reason, ${activity} AS activity,
         (SELECT MAX(timestamp) FROM messages WHERE session_id = s.id) AS last_message
       FROM sessions s WHERE s.parent_session_id = ?`,
      id,
    )
    .map((row) => ({
      id: row.id,
      source: row.source,
      modelConfig: parseConfig(row.model_config),
      startedAt: row.started_at,
      endedAt: row.ended_at,
      endReason: row.end_reason,
      lastActive: Math.max(row.last_message ?? 0, row.activity ?? 0, row.started_at),
    }));
}

function endReasonOf(core: StoreCore, id: string): string | null {
  return (
    core.db.get<{ end_reason: string | null }>("SELECT end_reason FROM sessions WHERE id = ?", id)?.end_reason ?? null
  );
}

function parentOf(core: StoreCore, id: string): string | null {
  return (
    core.db.get<{ parent_session_id: string | null }>("SELECT parent_session_id FROM sessions WHERE id = ?", id)
      ?.parent_session_id ?? null
  );
}

/** The `model_config` of a session, which also holds the marks of branches and delegated work. One that is not a JSON object counts as none. */
export function parseConfig(text: string | null): Readonly<Record<string, unknown>> | null {
  const value = text === null ? null : parseJson(text);
  return isRecord(value) ? value : null;
}
