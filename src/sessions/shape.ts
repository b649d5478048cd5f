// What a given file is made of: versions of the original and of ours differ in columns, tables and in how the search index is laid out.
import type { Connection } from "./connection.ts";

/** `inline`: the index holds its own copy of the text. `external`: it points at `messages` (or a view). `content-only`: v0.11. */
export type IndexLayout = "none" | "content-only" | "inline" | "external";

export interface FileShape {
  readonly version: number;
  readonly tables: ReadonlySet<string>;
  readonly triggers: ReadonlySet<string>;
  readonly indexes: ReadonlySet<string>;
  readonly sessionColumns: ReadonlySet<string>;
  readonly messageColumns: ReadonlySet<string>;
  readonly main: IndexLayout;
  readonly trigram: IndexLayout;
  /** This SQLite build knows FTS5. */
  readonly fts5: boolean;
}

export function readShape(db: Connection): FileShape {
  const objects = db.all<{ type: string; name: string; sql: string | null }>(
    "SELECT type, name, sql FROM sqlite_master",
  );
  const named = (type: string) =>
    new Set(objects.filter((object) => object.type === type).map((object) => object.name));
  const tables = named("table");
  const sqlOf = (name: string) => objects.find((object) => object.name === name)?.sql ?? null;
  return {
    version: tables.has("schema_version")
      ? (db.get<{ version: number }>("SELECT MAX(version) AS version FROM schema_version")?.version ?? 0)
      : 0,
    tables,
    triggers: named("trigger"),
    indexes: named("index"),
    sessionColumns: columnsOf(db, "sessions"),
    messageColumns: columnsOf(db, "messages"),
    main: layoutOf(sqlOf("messages_fts")),
    trigram: layoutOf(sqlOf("messages_fts_trigram")),
    fts5: hasFts5(db),
  };
}

export function columnsOf(db: Connection, table: "sessions" | "messages"): ReadonlySet<string> {
  return new Set(db.all<{ name: string }>(`PRAGMA table_info(${table})`).map((column) => column.name));
}

export function layoutOf(sql: string | null): IndexLayout {
  if (!sql) return "none";
  if (!/\bcontent\s*=/i.test(sql)) return "inline";
  return /\btool_name\b/i.test(sql) ? "external" : "content-only";
}

export function hasFts5(db: Connection): boolean {
  const row = db.get<{ found: number }>("SELECT 1 AS found FROM pragma_module_list WHERE name = 'fts5'");
  return row !== undefined;
}
