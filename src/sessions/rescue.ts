// Copies every row that can still be read from a damaged file into a sound one.
import type { SQLInputValue } from "node:sqlite";
import type { Logger } from "../home/log.ts";
import type { Connection } from "./connection.ts";

export interface Rescued {
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

export function copyReadable(source: Connection, target: Connection, log: Logger): readonly Rescued[] {
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
