// Looking after the file: sizes, facts for `hermes doctor`, tidying up, copies.
import { statfsSync, statSync } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { backup } from "node:sqlite";
import { journalMode } from "./connection.ts";
import type { StoreCore } from "./core.ts";
import { findDamage } from "./file-check.ts";
import { checkIndex, type IndexTable } from "./fts.ts";
import { storeError } from "./sqlite-errors.ts";
import { StoreError, type StoreStats } from "./store.ts";
import { readMeta } from "./upgrade.ts";

const LARGE_WAL = 50 * 1024 * 1024;

export type HealthFact = { readonly ok: boolean; readonly text: string; readonly fix?: string };

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
        fix: "end other hermes processes, then run: hermes sessions optimize",
      });
    }
    const damage = findDamage(db.path);
    facts.push(
      damage.length === 0
        ? { ok: true, text: "state.db passes its quick check" }
        : { ok: false, text: `state.db is damaged: ${damage[0]}`, fix: "hermes sessions repair" },
    );
    facts.push(...searchFacts(core));
  } catch (error) {
    const told = storeError(error, db.path);
    facts.push({ ok: false, text: told instanceof Error ? told.message : String(told), fix: "hermes sessions repair" });
  }
  return facts;
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
  if (broken.length === 0) return [{ ok: true, text: `the search index fits the messages (${shape.main})` }];
  return [{ ok: false, text: `the search index is damaged (${broken.join(", ")})`, fix: "hermes sessions repair" }];
}

/** The check is a write in SQLite's eyes, so a read-only file is not checked. */
export function damagedIndexes(core: StoreCore): readonly IndexTable[] {
  if (core.db.readOnly) return [];
  const present: IndexTable[] = [];
  if (core.shape.main !== "none") present.push("messages_fts");
  if (core.shape.trigram !== "none") present.push("messages_fts_trigram");
  return present.filter((table) => {
    try {
      checkIndex(core.db, table);
      return false;
    } catch (error) {
      core.log.warn(`the search index ${table} does not fit the messages`, error);
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

export async function backupTo(core: StoreCore, path: string): Promise<void> {
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new StoreError("conflict", `${path} exists already; nothing was written`);
  try {
    await backup(core.db.database, path);
  } catch (error) {
    throw storeError(error, path);
  }
}

const megabytes = (bytes: number) => (bytes / (1024 * 1024)).toFixed(1);
