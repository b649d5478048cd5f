// One connection to one SQLite file: pragmas, cached statements, and the watch on the file's identity.
import { statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Logger } from "../home/log.ts";
import { isBusy, isClosedOff, isUnfitForWal, storeError } from "./sqlite-errors.ts";
import { StoreError } from "./store.ts";
import { walIsSafe } from "./wal-safety.ts";

/** node:sqlite blocks the event loop while SQLite waits, so SQLite waits briefly and the write queue does the rest. */
const BUSY_TIMEOUT_MS = 25;

export type JournalMode = "auto" | "wal" | "delete";

export interface ConnectionOptions {
  readonly path: string;
  readonly readOnly?: boolean;
  /** A copy of the file in memory; the file itself is only read, and may be missing. */
  readonly inMemory?: boolean;
}

/** A larger database is not copied into memory. */
const MOST_COPIED_BYTES = 256 * 1024 * 1024;

export class Connection {
  readonly path: string;
  readonly readOnly: boolean;
  readonly database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #identity: string;
  readonly #inMemory: boolean;

  constructor(options: ConnectionOptions) {
    this.path = options.path;
    this.readOnly = options.readOnly ?? false;
    this.#inMemory = options.inMemory ?? options.path === ":memory:";
    this.database = this.#inMemory ? copyInMemory(options.path) : openFile(options.path, this.readOnly);
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
    if (this.#inMemory || identityOf(this.path) === this.#identity) return;
    throw new StoreError(
      "moved",
      `${this.path} was moved, replaced or deleted while hermes had it open; nothing more is written to it. Start hermes again.`,
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
export function settleJournal(db: Connection, wish: JournalMode, sqliteVersion: string, log: Logger): string {
  const current = journalMode(db);
  const wanted = wish !== "auto" ? wish : !isEmpty(db) ? current : walIsSafe(sqliteVersion) ? "wal" : "delete";
  const mode = current === wanted ? current : switchJournal(db, wanted, log);
  // A committed WAL frame survives the end of this process without a sync; in the other modes a power cut could tear pages.
  db.exec(mode === "wal" ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
  return mode;
}

function switchJournal(db: Connection, wanted: string, log: Logger): string {
  try {
    const mode = db.get<{ journal_mode: string }>(`PRAGMA journal_mode=${wanted}`)?.journal_mode ?? "";
    if (mode === wanted) return mode;
    log.warn(`${db.path}: journal mode ${wanted} was refused, going on with ${mode}`);
    return mode;
  } catch (error) {
    if (isBusy(error) || wanted !== "wal" || !isUnfitForWal(error)) throw error;
    log.warn(`${db.path}: this file system cannot hold a WAL journal, going on without`, error);
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
  if (size === 0 || size > MOST_COPIED_BYTES || !memory.deserialize) return memory; // Node 24 cannot copy
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
