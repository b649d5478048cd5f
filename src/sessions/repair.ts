// `hermes sessions repair`: looks, rebuilds what can be rebuilt, and otherwise rescues what is readable into a new file. The damaged
// file itself is never changed beyond its search index, and nothing is deleted. `hermes sessions restore` at the end of the file.
import { closeSync, copyFileSync, openSync, rmSync, statSync } from "node:fs";
import { backup, type SQLInputValue } from "node:sqlite";
import type { Logger } from "../home/log.ts";
import type { Clock } from "../kit/clock.ts";
import { messageOf } from "../kit/errors.ts";
import {
  Connection,
  connect,
  findDamage,
  isBusy,
  journalMode,
  namesIndex,
  settleJournal,
  storeError,
  walIsSafe,
} from "./connection.ts";
import { StoreCore } from "./core.ts";
import { hasLoose } from "./loose.ts";
import { backupTo } from "./maintenance.ts";
import { openSessionStore } from "./open.ts";
import { checkIndex, type IndexTable, readShape } from "./schema.ts";
import { StoreError } from "./store.ts";
import { rebuildSearch } from "./upgrade.ts";
import { transaction, waitWhileBusy } from "./write-queue.ts";

interface RepairOptions {
  readonly path: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Look, change nothing. */
  readonly checkOnly?: boolean;
  readonly onProgress?: (text: string) => void;
}

type RepairReport =
  | { readonly outcome: "sound" }
  | { readonly outcome: "index_rebuilt"; readonly damage: readonly string[] }
  | { readonly outcome: "damaged"; readonly damage: readonly string[] }
  | {
      readonly outcome: "rescued";
      readonly damage: readonly string[];
      readonly file: string;
      readonly rescued: readonly Rescued[];
    };

const WAIT_TIMEOUT_MS = 20_000;

export async function repairDatabase(options: RepairOptions): Promise<RepairReport> {
  const { path } = options;
  const report = options.onProgress ?? (() => undefined);
  if (!statSync(path, { throwIfNoEntry: false })) {
    throw new StoreError("unavailable", `no session database at ${path}; nothing to repair`);
  }
  report("checking the file");
  const damage = await lookForDamage(options);
  if (damage.length === 0) return { outcome: "sound" };
  if (options.checkOnly) return { outcome: "damaged", damage };
  if (damage.every(namesIndex) && (await rebuildInPlace(options, report))) return { outcome: "index_rebuilt", damage };
  report("rescuing readable rows into a new file");
  const { file, rescued } = await rescue(options);
  return { outcome: "rescued", damage, file, rescued };
}

async function lookForDamage(options: RepairOptions): Promise<readonly string[]> {
  try {
    const found = findDamage(options.path, "full");
    return found.length > 0 ? found : await indexesThatDoNotFit(options);
  } catch (error) {
    const wrapped = storeError(error, options.path);
    const readOnly = wrapped instanceof StoreError && wrapped.code === "read_only";
    if (readOnly && options.checkOnly) return []; // the check of the index is a write in SQLite's eyes
    if (readOnly || isBusy(error)) throw wrapped;
    return [messageOf(error)];
  }
}

/** SQLite's file check looks at an index by itself; whether it fits the messages is a check of its own. */
async function indexesThatDoNotFit({ path, clock, log, checkOnly }: RepairOptions): Promise<readonly string[]> {
  const db = new Connection({ path });
  try {
    const shape = readShape(db);
    const core = new StoreCore({ db, clock, log });
    if (!checkOnly) await core.settle();
    if (hasLoose(core)) return []; // what is not in the index yet is no damage
    const tables: IndexTable[] = [];
    if (shape.fts5 && shape.main !== "none") tables.push("messages_fts");
    if (shape.fts5 && shape.trigram !== "none") tables.push("messages_fts_trigram");
    const unfit: string[] = [];
    for (const table of tables) {
      await waitWhileBusy({ db, clock, timeoutMs: WAIT_TIMEOUT_MS }, () => {
        try {
          checkIndex(db, table);
        } catch (error) {
          if (isBusy(error)) throw error;
          unfit.push(`fts5: ${table} does not match the messages`);
        }
      });
    }
    return unfit;
  } finally {
    db.close();
  }
}

/** True when the file is sound afterwards. */
async function rebuildInPlace(options: RepairOptions, report: (text: string) => void): Promise<boolean> {
  report("rebuilding the search index");
  const db = new Connection({ path: options.path });
  try {
    await waitWhileBusy({ db, clock: options.clock, timeoutMs: WAIT_TIMEOUT_MS }, () =>
      transaction(db, () => rebuildSearch(db)),
    );
  } catch (error) {
    options.log.warn("the search index could not be rebuilt in place", error);
    return false;
  } finally {
    db.close();
  }
  return (await lookForDamage(options)).length === 0;
}

async function rescue(options: RepairOptions): Promise<{ file: string; rescued: readonly Rescued[] }> {
  const { path, clock, log } = options;
  const stamp = new Date(clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const file = `${path}.rescued-${stamp}`;
  if (statSync(file, { throwIfNoEntry: false }))
    throw new StoreError("conflict", `${file} already exists; rename it first`);
  const store = await openSessionStore({ path: file, journalMode: "delete", log, clock });
  await store.close();
  const source = openForRescue(path);
  const target = new Connection({ path: file });
  try {
    const rescued = copyReadable(source, target, log);
    takeJournal(source, target, log);
    return { file, rescued };
  } finally {
    source.close();
    target.close();
  }
}

/** The rescued file goes where the damaged one is; it was written as one file without a log so that it can be moved at any time. */
function takeJournal(source: Connection, target: Connection, log: Logger): void {
  try {
    if (journalMode(source) === "wal") settleJournal(target, "wal", process.versions.sqlite ?? "0", log);
  } catch (error) {
    log.warn(`the journal mode of ${source.path} cannot be read`, error);
  }
}

function openForRescue(path: string): Connection {
  try {
    return new Connection({ path, readOnly: true });
  } catch (error) {
    throw storeError(error, path);
  }
}

// Copies every row that can still be read from a damaged file into a sound one.

interface Rescued {
  readonly table: string;
  readonly rows: number;
  /** Stretches of the table that could not be read. */
  readonly gaps: number;
}

/** Parents before children, so that foreign keys hold. Tables of versions we do not know are left in the damaged file. */
const TABLES = [
  ...["sessions", "messages", "state_meta", "session_kv", "tool_lists", "model_calls", "session_model_usage"],
  "system_prompts",
];
/** Search tables of the new file are filled by its own triggers; these keys describe the old file's. */
const LEFT_BEHIND =
  "key NOT IN ('fts_rebuild_high_water', 'fts_rebuild_progress', 'fts_cjk_stale', 'hermes_ts_fts_stale')";

function copyReadable(source: Connection, target: Connection, log: Logger): readonly Rescued[] {
  target.exec("PRAGMA foreign_keys=OFF");
  return TABLES.flatMap((table) => {
    try {
      return [copyTable(source, target, table)];
    } catch (error) {
      log.warn(`nothing of table ${table} could be read`, error);
      return [];
    }
  });
}

function copyTable(source: Connection, target: Connection, table: string): Rescued {
  const names = columnNames(source, table);
  if (names.length === 0) return { table, rows: 0, gaps: 0 };
  adoptColumns(source, target, table);
  const known = columnNames(target, table).filter((name) => names.includes(name));
  const list = known.map((name) => `"${name}"`).join(", ");
  const filter = table === "state_meta" ? ` AND ${LEFT_BEHIND}` : "";
  const insert = `INSERT OR REPLACE INTO ${table} (${list}) VALUES (${known.map(() => "?").join(", ")})`;
  let rows = 0;
  target.exec("BEGIN");
  const gaps = readInto(source, `SELECT rowid AS _row, ${list} FROM ${table} WHERE rowid`, filter, (row) => {
    target.run(insert, ...known.map((name) => row[name] ?? null));
    rows++;
  });
  target.exec("COMMIT");
  return { table, rows, gaps };
}

type Row = Record<string, SQLInputValue> & { readonly _row: number };

/** Rows on an unreadable page are passed over one by one; a long unreadable stretch in growing steps. */
const SINGLE_STEPS = 2000;

function readInto(source: Connection, select: string, filter: string, take: (row: Row) => void): number {
  let gaps = 0;
  let failures = 0;
  let last = 0;
  let taken = 0;
  while (last < Number.MAX_SAFE_INTEGER / 4) {
    try {
      for (const row of source.iterate<Row>(`${select} > ?${filter} ORDER BY rowid`, last)) {
        take(row);
        last = row._row;
        taken++;
        failures = 0;
      }
      return gaps;
    } catch (error) {
      // Not a single row, not even a table to walk: there is nothing to step over.
      if (taken === 0 && failures === 0 && !hasRows(source, select, filter)) throw error;
      if (failures === 0) gaps++;
      failures++;
      last += failures < SINGLE_STEPS ? 1 : 2 ** Math.min(40, failures - SINGLE_STEPS);
    }
  }
  return gaps;
}

/** Some row can be reached from the far end. */
function hasRows(source: Connection, select: string, filter: string): boolean {
  try {
    return source.get(`${select} > 0${filter} ORDER BY rowid DESC LIMIT 1`) !== undefined;
  } catch {
    return false; // neither end of the table can be read
  }
}

function columnNames(db: Connection, table: string): string[] {
  return db.all<{ name: string }>(`PRAGMA table_info(${table})`).map((column) => column.name);
}

/** Columns and tables the newer original added come along. */
function adoptColumns(source: Connection, target: Connection, table: string): void {
  const present = columnNames(target, table);
  if (present.length === 0) {
    const sql = source.get<{ sql: string }>(
      "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?",
      table,
    )?.sql;
    if (sql) target.exec(sql);
    return;
  }
  for (const column of source.all<{ name: string; type: string }>(`PRAGMA table_info(${table})`)) {
    if (!present.includes(column.name)) target.exec(`ALTER TABLE ${table} ADD COLUMN "${column.name}" ${column.type}`);
  }
}

// A saved database back into its place. Through SQLite's backup into the live file: replacing the file under an open connection, or next to
// an old write-ahead log, would mix two databases.

interface RestoreOptions {
  readonly from: string;
  readonly to: string;
  /** What `to` holds now is kept there. */
  readonly keepAs: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/** What `countSessions` found in a file that it could read. */
interface Counts {
  readonly sessions: number;
  readonly messages: number;
}

/** Resolves to whether there was something to keep. Nothing is changed while another process has the database open. */
export async function restoreDatabase({ from, to, keepAs, log, clock }: RestoreOptions): Promise<boolean> {
  if (isSameFile(from, to)) throw new StoreError("conflict", `${from} is the database in use; nothing to restore`);
  countSessions(from);
  return putDatabase({ from, to, keepAs, log, clock });
}

/** The same for a database of any kind. Without `keepAs` what `to` holds now is gone. */
export async function putDatabase({
  from,
  to,
  keepAs,
  log,
  clock,
}: Omit<RestoreOptions, "keepAs"> & { readonly keepAs?: string }): Promise<boolean> {
  const damage = findDamage(from);
  if (damage.length > 0)
    throw new StoreError("damaged", `${from} is damaged (${damage[0]}) and was not restored; ${to} was not changed`);
  const mode = await takeAlone(to, clock);
  const kept = keepAs !== undefined && (await keepCopy(to, keepAs));
  if (mode === "unreadable") removeDatabase(to);
  if (mode !== "wal" && mode !== "delete") closeSync(openSync(to, "a", 0o600));
  const source = connect({ path: from, readOnly: true });
  try {
    await backup(source.database, to);
  } catch (error) {
    throw storeError(error, to);
  } finally {
    source.close();
    putJournal(to, mode, log);
  }
  return kept;
}

/** Throws when the file holds no conversations, or cannot be read. */
export function countSessions(path: string): Counts {
  if (!statSync(path, { throwIfNoEntry: false })) throw new StoreError("unavailable", `no such file: ${path}`);
  try {
    const db = new Connection({ path, readOnly: true });
    try {
      const { tables } = readShape(db);
      const count = (table: string) => db.get<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)?.n ?? 0;
      if (tables.has("sessions") && tables.has("messages"))
        return { sessions: count("sessions"), messages: count("messages") };
    } finally {
      db.close();
    }
  } catch (error) {
    if (isBusy(error)) throw storeError(error, path);
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreError("damaged", `${path} cannot be read (${reason})`, { cause: error });
  }
  throw new StoreError("invalid", `${path} is not a database of conversations`);
}

type JournalBefore = "wal" | "delete" | "missing" | "unreadable";

/** Leaves the write-ahead log, which only the one process that has the file open can do. Resolves to how it was. */
async function takeAlone(path: string, clock: Clock): Promise<JournalBefore> {
  if (!statSync(path, { throwIfNoEntry: false })?.size) return "missing";
  const db = connect({ path });
  try {
    const wait = { db, clock, timeoutMs: ALONE_TIMEOUT_MS };
    const before = await waitWhileBusy(wait, () => journalMode(db));
    await waitWhileBusy(wait, () => {
      db.get("PRAGMA journal_mode=DELETE");
      db.exec("BEGIN EXCLUSIVE; ROLLBACK");
    });
    return before === "wal" ? "wal" : "delete";
  } catch (error) {
    const wrapped = storeError(error, path);
    if (wrapped instanceof StoreError && wrapped.code === "damaged") return "unreadable";
    throw wrapped;
  } finally {
    db.close();
  }
}

const ALONE_TIMEOUT_MS = 3000;

async function keepCopy(path: string, keepAs: string): Promise<boolean> {
  if (!statSync(path, { throwIfNoEntry: false })?.size) return false;
  await copyDatabase(path, keepAs).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.code !== "damaged") throw error;
    // SQLite cannot read it; its bytes are all there is to keep.
    for (const end of ["", "-wal"])
      if (statSync(path + end, { throwIfNoEntry: false })) copyFileSync(path + end, keepAs + end);
  });
  return true;
}

/** A copy of any database as it is now, also while others write to it. */
export async function copyDatabase(path: string, to: string): Promise<void> {
  const source = connect({ path, readOnly: true });
  try {
    await backupTo(source, to);
  } finally {
    source.close();
  }
}

function removeDatabase(path: string): void {
  for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(path + end, { force: true });
}

/** A file that was there has its journal mode again; one that is new gets what a new one has. */
function putJournal(path: string, before: JournalBefore, log: Logger): void {
  const version = process.versions.sqlite ?? "0";
  const journal = before === "delete" || (before !== "wal" && !walIsSafe(version)) ? "delete" : "wal";
  try {
    const db = new Connection({ path });
    try {
      settleJournal(db, journal, version, log);
    } finally {
      db.close();
    }
  } catch (error) {
    log.warn(`${path}: the journal mode could not be set to ${journal}`, error);
  }
}

function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }));
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino;
}
