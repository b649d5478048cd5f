// Looking after the file: sizes, facts for `hermes doctor`, tidying up, copies.
import { closeSync, openSync, rmSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { backup } from "node:sqlite";
import { t } from "../home/language/words.ts";
import { makeDirectory } from "../home/paths.ts";
import { messageOf } from "../kit/errors.ts";
import { type Connection, findDamage, journalMode, storeError } from "./connection.ts";
import type { StoreCore } from "./core.ts";
import { withoutHeld } from "./lanes.ts";
import { checkIndex, type IndexTable } from "./schema.ts";
import { deleteSessionRows, removeSessionFiles } from "./sessions.ts";
import { type PruneFilter, StoreError, type StoreStats } from "./store.ts";
import { escapeLike } from "./titles.ts";
import { readMeta, setMeta } from "./upgrade.ts";

const LARGE_WAL = 50 * 1024 * 1024;

type HealthFact = { readonly ok: boolean; readonly text: string; readonly fix?: string };

export function readStats(core: StoreCore): StoreStats {
  const count = (table: string) => core.db.get<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)?.n ?? 0;
  const bySource = core.db.all<{ source: string; n: number }>(
    "SELECT source, COUNT(*) AS n FROM sessions GROUP BY source ORDER BY n DESC, source",
  );
  return {
    sessions: count("sessions"),
    messages: count("messages"),
    bySource: Object.fromEntries(bySource.map((row) => [row.source, row.n])),
    sizeBytes: sizeOf(core.db.path),
  };
}

/** A stat is harmless; opening the file by plain calls would drop SQLite's locks. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

export function readHealth(core: StoreCore): readonly HealthFact[] {
  const { db, shape } = core;
  const facts: HealthFact[] = [];
  try {
    const wal = sizeOf(`${db.path}-wal`);
    facts.push({
      ok: true,
      text: `state.db: ${megabytes(sizeOf(db.path))} MB, journal ${journalMode(db)}, schema ${shape.version}`,
    });
    if (wal > LARGE_WAL) {
      facts.push({
        ok: false,
        text: `the write-ahead log has grown to ${megabytes(wal)} MB`,
        fix: "quit other hermes processes, then run: hermes sessions optimize",
      });
    }
    const damage = findDamage(db.path);
    facts.push(
      damage.length === 0
        ? { ok: true, text: "state.db passes its quick check" }
        : { ok: false, text: `state.db is damaged: ${damage[0]}`, fix: "hermes sessions repair" },
    );
    facts.push(...searchFacts(core));
    const owed = owedByOriginal(core);
    if (owed !== null) facts.push({ ok: true, text: owed });
  } catch (error) {
    const wrapped = storeError(error, db.path);
    facts.push({ ok: false, text: messageOf(wrapped), fix: "hermes sessions repair" });
  }
  return facts;
}

/** Answers that v0.20 of the original had to deliver. The table is its own; nothing here writes it. Null: there are none. */
export function owedByOriginal({ db }: StoreCore): string | null {
  const isTable = db.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'delivery_obligations'");
  const rows = isTable ? (db.get<{ n: number }>("SELECT COUNT(*) AS n FROM delivery_obligations")?.n ?? 0) : 0;
  if (rows === 0) return null;
  return t(
    "state.db holds {count} answers that Python Hermes had to deliver (delivery_obligations); they are not taken over: its own gateway sends what is still open",
    { count: rows },
  );
}

function searchFacts(core: StoreCore): HealthFact[] {
  const { db, shape } = core;
  if (!shape.fts5 || shape.main === "none") {
    return [
      { ok: false, text: "search is unavailable: this SQLite has no FTS5", fix: "use a Node.js with full SQLite" },
    ];
  }
  if (readMeta(db, "fts_rebuild_high_water") !== null) {
    return [{ ok: true, text: "the search index is being rebuilt by another program" }];
  }
  const broken = damagedIndexes(core);
  if (broken.length === 0) return [{ ok: true, text: `the search index matches the messages (${shape.main})` }];
  return [{ ok: false, text: `the search index is damaged (${broken.join(", ")})`, fix: "hermes sessions repair" }];
}

/** The check is a write in SQLite's eyes, so a read-only file is not checked. */
function damagedIndexes(core: StoreCore): readonly IndexTable[] {
  if (core.db.readOnly) return [];
  const present: IndexTable[] = [];
  if (core.shape.main !== "none") present.push("messages_fts");
  if (core.shape.trigram !== "none") present.push("messages_fts_trigram");
  return present.filter((table) => {
    try {
      checkIndex(core.db, table);
      return false;
    } catch (error) {
      core.log.warn(`the search index ${table} does not match the messages`, error);
      return true;
    }
  });
}

export async function optimizeFile(
  core: StoreCore,
  onProgress: (text: string) => void,
): Promise<{ bytesBefore: number; bytesAfter: number }> {
  const { db } = core;
  const bytesBefore = sizeOf(db.path);
  const { bavail, bsize } = statfsSync(dirname(db.path));
  // VACUUM writes a whole second copy, and a journal of it.
  const needed = 2 * bytesBefore;
  if (bavail * bsize < needed) {
    throw new StoreError(
      "full",
      `optimizing ${db.path} needs ${megabytes(needed)} MB of free space, there are ${megabytes(bavail * bsize)} MB; free some and try again`,
    );
  }
  for (const table of ["messages_fts", "messages_fts_trigram"] as const) {
    if ((table === "messages_fts" ? core.shape.main : core.shape.trigram) === "none") continue;
    onProgress(`merging ${table}`);
    await core.write(() => db.exec(`INSERT INTO ${table}(${table}) VALUES ('optimize')`));
  }
  onProgress("compacting the file");
  await vacuum(core);
  return { bytesBefore, bytesAfter: sizeOf(db.path) };
}

/** Fails with `busy` while anybody else is connected and at work. */
export function vacuum(core: StoreCore): Promise<void> {
  return core.between(() => {
    try {
      core.db.exec("VACUUM");
      core.db.get("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      throw storeError(error, core.db.path);
    }
  });
}

/** In one step: between steps SQLite starts anew whenever somebody wrote, and beside a busy writer it would never come to an end. */
const ALL_PAGES = 2 ** 31 - 1;

/** A copy as the file is now, also while others write to it. For its owner's eyes only, as the file itself. */
export async function backupTo(db: Connection, path: string): Promise<void> {
  try {
    makeDirectory(dirname(path), 0o700);
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "EEXIST") throw new StoreError("conflict", `${path} already exists; nothing was written`);
    throw new StoreError("unavailable", `${path} cannot be written (${code ?? error})`, { cause: error });
  }
  try {
    await backup(db.database, path, { rate: ALL_PAGES });
  } catch (error) {
    rmSync(path, { force: true });
    throw storeError(error, db.path);
  }
}

const megabytes = (bytes: number) => (bytes / (1024 * 1024)).toFixed(1);

// Old sessions that have ended may go, or be put away.

const DAY = 86_400;
const LAST_PRUNE_KEY = "last_auto_prune";

interface PruneOptions {
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
  const archived = options.archiveOnly ? ` AND COALESCE(${column(core, "archived")}, 0) = 0` : "";
  const select = () => {
    const rows = core.db.all<{ id: string }>(
      `SELECT s.id FROM sessions s WHERE ${where.sql}${archived} ORDER BY s.started_at, s.id`,
      ...where.values,
    );
    // Somebody may be writing a conversation whose first sessions ended long ago.
    return withoutHeld(
      core,
      rows.map((row) => row.id),
    );
  };
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
  add(`${column(core, "cwd")} = ?`, filter.cwd);
  add("COALESCE(s.message_count, 0) >= ?", filter.minMessages);
  add("COALESCE(s.message_count, 0) <= ?", filter.maxMessages);
  add("s.model LIKE ? ESCAPE '\\'", filter.model === undefined ? undefined : `%${escapeLike(filter.model)}%`);
  add(`${column(core, "billing_provider")} = ?`, filter.provider);
  // Somebody said "keep this".
  sql.push(`COALESCE(${column(core, "pinned")}, 0) = 0`);
  return { sql: sql.join(" AND "), values };
}

/** A file of an older version that is only read lacks the newer columns. */
const column = (core: StoreCore, name: string) => (core.shape.sessionColumns.has(name) ? `s.${name}` : "NULL");

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
export function removeEmptySessions(core: StoreCore): Promise<readonly string[]> {
  return core.write(() => {
    const empty = core.db.all<{ id: string }>(
      `SELECT s.id FROM sessions s WHERE s.title IS NULL AND s.ended_at IS NOT NULL AND s.started_at < ? AND COALESCE(s.pinned, 0) = 0
         AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = s.id)
         AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = s.id)`,
      core.now() - DAY,
    );
    // Lanes that were taken for conversations which never began.
    core.db.run(
      `DELETE FROM lanes WHERE max(COALESCE(expires, 0), COALESCE(prefer_until, 0)) < unixepoch() - ?
         AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = lane)`,
      DAY,
    );
    return empty.flatMap(({ id }) => deleteSessionRows(core, id));
  });
}
