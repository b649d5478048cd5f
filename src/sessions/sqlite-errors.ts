// What SQLite says, in the store's words. Only primary result codes are looked at, except for damage inside a virtual table.
import { accessSync, constants, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { StoreError } from "./store.ts";

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
export function isUnfitForWal(error: unknown): boolean {
  return error instanceof Error && /locking protocol|not authorized|disk i\/o error/i.test(error.message);
}

/** The file is there, but SQLite cannot make the files beside it that reading takes. */
export function isClosedOff(database: DatabaseSync): boolean {
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
      return new StoreError("busy", `another hermes process holds ${path}; try again, or end the other one`, options);
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
        `${path} is not a database; nothing was changed. Run: hermes sessions repair, or move the file away to start afresh`,
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
        ? new StoreError("unavailable", `${path} is closed already`, options)
        : error;
    default:
      return new StoreError("unavailable", `${path}: ${error.message}`, options);
  }
}

const full = (path: string, options: ErrorOptions) =>
  new StoreError("full", `the disk that holds ${path} is full; free some space and try again`, options);

const readOnly = (path: string, options: ErrorOptions) =>
  new StoreError("read_only", `${path} cannot be written; check the rights of the file and its folder`, options);

const SPARE_BYTES = 256 * 1024;

function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < SPARE_BYTES;
  } catch {
    return false; // it cannot be told; the other words serve
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
