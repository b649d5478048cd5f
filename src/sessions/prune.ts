// Old sessions that have ended may go, or be put away.
import type { StoreCore } from "./core.ts";
import { deleteSessionRows, removeSessionFiles } from "./sessions.ts";
import type { PruneFilter } from "./store.ts";
import { escapeLike } from "./titles.ts";
import { readMeta, setMeta } from "./upgrade.ts";

const DAY = 86_400;
const LAST_PRUNE_KEY = "last_auto_prune";

export interface PruneOptions {
  readonly dryRun?: boolean;
  readonly archiveOnly?: boolean;
}

export async function pruneSessions(
  core: StoreCore,
  sessionsDir: string | null,
  filter: PruneFilter,
  options: PruneOptions,
): Promise<readonly string[]> {
  const where = conditions(core, filter);
  const select = () =>
    core.db
      .all<{ id: string }>(
        `SELECT s.id FROM sessions s WHERE ${where.sql}${options.archiveOnly ? " AND s.archived = 0" : ""} ORDER BY s.started_at, s.id`,
        ...where.values,
      )
      .map((row) => row.id);
  if (options.dryRun) return await core.read(select);
  const gone = await core.write(() => {
    const ids = select();
    if (options.archiveOnly) {
      core.db.run("UPDATE sessions SET archived = 1 WHERE id IN (SELECT value FROM json_each(?))", JSON.stringify(ids));
      return ids;
    }
    return [...new Set(ids.flatMap((id) => deleteSessionRows(core, id)))];
  });
  if (!options.archiveOnly) await removeSessionFiles(core, sessionsDir, gone);
  return gone;
}

function conditions(core: StoreCore, filter: PruneFilter): { sql: string; values: (string | number)[] } {
  const sql = ["s.ended_at IS NOT NULL"];
  const values: (string | number)[] = [];
  const add = (condition: string, value: string | number | undefined) => {
    if (value === undefined) return;
    sql.push(condition);
    values.push(value);
  };
  const daysAgo = (days: number | undefined) => (days === undefined ? undefined : core.now() - days * DAY);
  add("s.started_at < ?", daysAgo(filter.olderThanDays));
  add("s.started_at >= ?", daysAgo(filter.newerThanDays));
  add("s.started_at < ?", filter.before);
  add("s.started_at >= ?", filter.after);
  add("s.source = ?", filter.source);
  add("s.title LIKE ? ESCAPE '\\'", filter.title === undefined ? undefined : `%${escapeLike(filter.title)}%`);
  add("s.end_reason = ?", filter.endReason);
  add("s.cwd = ?", filter.cwd);
  add("COALESCE(s.message_count, 0) >= ?", filter.minMessages);
  add("COALESCE(s.message_count, 0) <= ?", filter.maxMessages);
  add("s.model LIKE ? ESCAPE '\\'", filter.model === undefined ? undefined : `%${escapeLike(filter.model)}%`);
  add("s.billing_provider = ?", filter.provider);
  // Somebody said "keep this".
  sql.push("COALESCE(s.pinned, 0) = 0");
  return { sql: sql.join(" AND "), values };
}

/** True when this process is the one to prune now; remembered in the same transaction, so that only one of several does. */
export function claimAutoPrune(core: StoreCore, minIntervalHours: number): Promise<boolean> {
  return core.write(() => {
    const last = Number(readMeta(core.db, LAST_PRUNE_KEY) ?? 0);
    if (core.now() - last < minIntervalHours * 3600) return false;
    setMeta(core.db, LAST_PRUNE_KEY, String(core.now()));
    return true;
  });
}

/** Sessions that were opened and left without a word: no messages, no title, ended, a day old. */
export function removeGhosts(core: StoreCore): Promise<readonly string[]> {
  return core.write(() => {
    const ghosts = core.db.all<{ id: string }>(
      `SELECT s.id FROM sessions s WHERE s.title IS NULL AND s.ended_at IS NOT NULL AND s.started_at < ? AND COALESCE(s.pinned, 0) = 0
         AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = s.id)
         AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)`,
      core.now() - DAY,
    );
    return ghosts.flatMap(({ id }) => deleteSessionRows(core, id));
  });
}
