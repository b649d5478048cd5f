// One connection to one SQLite file: pragmas, cached statements, and the watch on the file's identity.
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Logger } from "../home/log.ts";
import { StoreError } from "./store.ts";

/** node:sqlite blocks the event loop while SQLite waits, so SQLite waits briefly and the write queue does the rest. */
const BUSY_TIMEOUT_MS = 25;

export type JournalMode = "auto" | "wal" | "delete";

interface ConnectionOptions {
  readonly path: string;
  readonly readOnly?: boolean;
  /** A copy of the file in memory; the file itself is only read, and may be missing. */
  readonly inMemory?: boolean;
}

/** A larger database is not copied into memory. */
const MAX_COPIED_BYTES = 256 * 1024 * 1024;

export class Connection {
  readonly path: string;
  readonly readOnly: boolean;
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #identity: string;
  readonly inMemory: boolean;

  constructor(options: ConnectionOptions) {
    this.path = options.path;
    this.readOnly = options.readOnly ?? false;
    this.inMemory = options.inMemory ?? options.path === ":memory:";
    this.database = this.inMemory ? copyInMemory(options.path) : openFile(options.path, this.readOnly);
    this.database.exec("PRAGMA foreign_keys=ON");
    this.#identity = identityOf(options.path) ?? "";
  }

  get isOpen(): boolean {
    return this.database.isOpen;
  }

  statement(sql: string): StatementSync {
    let found = this.#statements.get(sql);
    if (!found) {
      found = this.database.prepare(sql);
      this.#statements.set(sql, found);
    }
    return found;
  }

  /** The row type is the caller's promise about its own SELECT list. */
  get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.statement(sql).get(...values) as Row | undefined; // SQL results are typed by the statement's author
  }

  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.statement(sql).all(...values) as Row[]; // as above
  }

  iterate<Row>(sql: string, ...values: SQLInputValue[]): IterableIterator<Row> {
    return this.statement(sql).iterate(...values) as IterableIterator<Row>; // as above
  }

  run(sql: string, ...values: SQLInputValue[]): { readonly changes: number; readonly lastId: number } {
    const { changes, lastInsertRowid } = this.statement(sql).run(...values);
    return { changes: Number(changes), lastId: Number(lastInsertRowid) };
  }

  exec(sql: string): void {
    this.database.exec(sql);
  }

  /** Changes whenever any process changed tables, triggers or indexes. */
  schemaCookie(): number {
    return this.get<{ schema_version: number }>("PRAGMA schema_version")?.schema_version ?? 0;
  }

  /** Writing on after the file was replaced would put rows where nobody ever reads them. */
  assertSameFile(): void {
    if (this.inMemory || identityOf(this.path) === this.#identity) return;
    throw new StoreError(
      "moved",
      `${this.path} was moved, replaced or deleted while hermes had it open; nothing more will be saved. Restart hermes.`,
    );
  }

  close(): void {
    this.#statements.clear();
    if (this.database.isOpen) this.database.close();
  }
}

/**
 * Sets the journal mode of a new file to the one that is safe here; one with content keeps its own, unless the settings name another.
 * Returns the mode in force. Throws while another process holds the file (caller retries).
 */
export function settleJournal(db: Connection, requested: JournalMode, sqliteVersion: string, log: Logger): string {
  const current = journalMode(db);
  const wanted =
    requested !== "auto" ? requested : !isEmpty(db) ? current : walIsSafe(sqliteVersion) ? "wal" : "delete";
  const mode = current === wanted ? current : switchJournal(db, wanted, log);
  // A committed WAL frame survives the end of this process without a sync; in the other modes a power cut could tear pages.
  db.exec(mode === "wal" ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
  return mode;
}

function switchJournal(db: Connection, wanted: string, log: Logger): string {
  try {
    const mode = db.get<{ journal_mode: string }>(`PRAGMA journal_mode=${wanted}`)?.journal_mode ?? "";
    if (mode === wanted) return mode;
    log.warn(`${db.path}: journal mode ${wanted} was refused, continuing with ${mode}`);
    return mode;
  } catch (error) {
    if (isBusy(error) || wanted !== "wal" || !isUnfitForWal(error)) throw error;
    log.warn(`${db.path}: this file system does not support WAL, continuing without it`, error);
    return db.get<{ journal_mode: string }>("PRAGMA journal_mode=DELETE")?.journal_mode ?? "delete";
  }
}

const isEmpty = (db: Connection) => db.get<{ page_count: number }>("PRAGMA page_count")?.page_count === 0;

export function journalMode(db: Connection): string {
  return db.get<{ journal_mode: string }>("PRAGMA journal_mode")?.journal_mode ?? "";
}

function openFile(path: string, readOnly: boolean): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly, timeout: BUSY_TIMEOUT_MS });
  if (!readOnly || !isClosedOff(database)) return database;
  database.close();
  // A file with a write-ahead log in a folder where no log can be made: as nobody can write it here, it is read without.
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly });
}

function copyInMemory(path: string): DatabaseSync {
  const memory = new DatabaseSync(":memory:");
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 || size > MAX_COPIED_BYTES || !memory.deserialize) return memory; // Node 24 cannot copy
  const file = openFile(path, true);
  try {
    const bytes = file.serialize();
    bytes.fill(1, 18, 20); // memory has no write-ahead log; the header must not ask for one
    memory.deserialize(bytes);
    return memory;
  } finally {
    file.close();
  }
}

/** Opens the file, in words a user understands when that fails. */
export function connect(options: ConnectionOptions): Connection {
  try {
    return new Connection(options);
  } catch (error) {
    throw storeError(error, options.path);
  }
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

// SQLite before 3.51.3 has a WAL-reset bug that can damage a database shared by processes; 3.50.7 and 3.44.6 carry the fix.

/** Whether a new file may be switched to WAL with this SQLite version. */
export function walIsSafe(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  if (major !== 3) return major > 3;
  if (minor === 44) return patch >= 6;
  if (minor === 50) return patch >= 7;
  if (minor === 51) return patch >= 3;
  return minor > 51;
}

// SQLite's own check of a whole file. Always through a connection of its own: FTS5 keeps the layout of its index between queries, and a
// check on a connection that has not noticed other processes' writes reports damage where there is none.

/** What is wrong, in SQLite's words; empty for a sound file. Throws when the file cannot even be read. */
export function findDamage(path: string, depth: "quick" | "full" = "quick"): readonly string[] {
  const db = new Connection({ path, readOnly: true });
  try {
    const pragma = depth === "quick" ? "quick_check" : "integrity_check";
    const lines = db.all<Record<string, string>>(`PRAGMA ${pragma}`).map((row) => row[pragma] ?? "");
    return lines.filter((line) => line !== "ok");
  } finally {
    db.close();
  }
}

/** The search index can be made again from the messages; everything else cannot. */
export const namesIndex = (line: string) => /fts5/i.test(line);

// What SQLite says, in the store's words. Only primary result codes are looked at, except for damage inside a virtual table.

const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const CONSTRAINT = 19;
const NOTADB = 26;
const CORRUPT_VTAB = 267;

/** The extended result code, or 0 when the error is not SQLite's. */
export function sqliteCode(error: unknown): number {
  if (!(error instanceof Error) || !("errcode" in error)) return 0;
  return typeof error.errcode === "number" ? error.errcode : 0;
}

const primary = (error: unknown) => sqliteCode(error) & 0xff;

export function isBusy(error: unknown): boolean {
  return primary(error) === BUSY || primary(error) === LOCKED;
}

/** Network drives and locked-down mounts refuse shared memory in these words. */
function isUnfitForWal(error: unknown): boolean {
  return error instanceof Error && /locking protocol|not authorized|disk i\/o error/i.test(error.message);
}

/** The file is there, but SQLite cannot make the files next to it that reading takes. */
function isClosedOff(database: DatabaseSync): boolean {
  try {
    database.prepare("PRAGMA schema_version").get();
    return false;
  } catch (error) {
    return primary(error) === CANTOPEN; // whatever else is wrong shows with the first query
  }
}

/** The damage is in the search index, which can be made again from the messages. */
export function isIndexDamage(error: unknown): boolean {
  if (sqliteCode(error) === CORRUPT_VTAB) return true;
  return primary(error) === CORRUPT && error instanceof Error && /fts5|vtable|virtual table/i.test(error.message);
}

/** The query text is at fault, not the file. */
export function isQuerySyntax(error: unknown): boolean {
  return (
    primary(error) === 1 &&
    error instanceof Error &&
    /fts5: |unterminated string|malformed MATCH|no such column|unknown special query/i.test(error.message)
  );
}

export function storeError(error: unknown, path: string): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const options = { cause: error };
  switch (primary(error)) {
    case BUSY:
    case LOCKED:
      return new StoreError(
        "busy",
        `another hermes process has locked ${path}; try again, or stop the other one`,
        options,
      );
    case READONLY:
      return readOnly(path, options);
    case FULL:
      return full(path, options);
    case CORRUPT:
      return new StoreError(
        "damaged",
        `${path} is damaged (${error.message}); nothing was changed. Run: hermes sessions repair`,
        options,
      );
    case NOTADB:
      return new StoreError(
        "damaged",
        `${path} is not a database; nothing was changed. Run: hermes sessions repair, or rename the file to start over`,
        options,
      );
    case IOERR:
      // Shared memory that cannot grow is reported as an input/output error.
      if (isFull(path)) return full(path, options);
      return new StoreError(
        "unavailable",
        `reading or writing ${path} failed (${error.message}); check the disk`,
        options,
      );
    case CONSTRAINT:
      return new StoreError("invalid", `${path} refuses this row (${error.message}); nothing was stored`, options);
    case CANTOPEN:
      if (!isWritable(dirname(path))) return readOnly(path, options);
      return new StoreError(
        "unavailable",
        `${path} cannot be opened; check that its folder exists and is accessible`,
        options,
      );
    case 0:
      return "code" in error && error.code === "ERR_INVALID_STATE"
        ? new StoreError("unavailable", `${path} is already closed`, options)
        : error;
    default:
      return new StoreError("unavailable", `${path}: ${error.message}`, options);
  }
}

const full = (path: string, options: ErrorOptions) =>
  new StoreError("full", `the disk with ${path} is full; free some space and try again`, options);

const readOnly = (path: string, options: ErrorOptions) =>
  new StoreError("read_only", `${path} is not writable; check the permissions of the file and its folder`, options);

const SPARE_BYTES = 256 * 1024;

function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < SPARE_BYTES;
  } catch {
    return false; // unknown: the general words are used
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
