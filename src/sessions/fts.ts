// The two search tables and the triggers that keep them. A fresh file gets external content: the text is stored once, in `messages`.
// Triggers must match the layout of the table they feed, or the index drifts away from the messages.
import type { Connection } from "./connection.ts";
import type { IndexLayout } from "./shape.ts";

export type IndexTable = "messages_fts" | "messages_fts_trigram";

const COLUMNS = "content, tool_name, tool_calls";
const TRIGRAM_VIEW = "messages_fts_trigram_src";

export const triggerNames = (table: string) => [`${table}_insert`, `${table}_delete`, `${table}_update`];

/** Creates table (and view) with their triggers, empty. */
export function createIndex(db: Connection, table: IndexTable): void {
  if (table === "messages_fts") {
    db.exec(`CREATE VIRTUAL TABLE messages_fts USING fts5(${COLUMNS}, content='messages', content_rowid='id')`);
  } else {
    db.exec(`CREATE VIEW IF NOT EXISTS ${TRIGRAM_VIEW} AS SELECT id, ${COLUMNS} FROM messages WHERE role <> 'tool'`);
    db.exec(
      `CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(${COLUMNS}, content='${TRIGRAM_VIEW}', content_rowid='id', tokenize='trigram')`,
    );
  }
  createTriggers(db, table, "external");
}

/** Drops and makes again the three triggers of one table. */
export function createTriggers(db: Connection, table: IndexTable, layout: IndexLayout): void {
  dropTriggers(db, table);
  const [onInsert, onDelete, onUpdate] = triggerNames(table);
  if (layout === "inline") {
    const text =
      "COALESCE(new.content, '') || ' ' || COALESCE(new.tool_name, '') || ' ' || COALESCE(new.tool_calls, '')";
    const add = `INSERT INTO ${table}(rowid, content) VALUES (new.id, ${text});`;
    const remove = `DELETE FROM ${table} WHERE rowid = old.id;`;
    db.exec(`CREATE TRIGGER ${onInsert} AFTER INSERT ON messages BEGIN ${add} END`);
    db.exec(`CREATE TRIGGER ${onDelete} AFTER DELETE ON messages BEGIN ${remove} END`);
    db.exec(`CREATE TRIGGER ${onUpdate} AFTER UPDATE ON messages BEGIN ${remove} ${add} END`);
    return;
  }
  const trigram = table === "messages_fts_trigram";
  const when = (row: string) => (trigram ? ` WHERE ${row}.role <> 'tool'` : "");
  const add = `INSERT INTO ${table}(rowid, ${COLUMNS}) SELECT new.id, new.content, new.tool_name, new.tool_calls${when("new")};`;
  const remove = `INSERT INTO ${table}(${table}, rowid, ${COLUMNS}) SELECT 'delete', old.id, old.content, old.tool_name, old.tool_calls${when("old")};`;
  db.exec(`CREATE TRIGGER ${onInsert} AFTER INSERT ON messages BEGIN ${add} END`);
  db.exec(`CREATE TRIGGER ${onDelete} AFTER DELETE ON messages BEGIN ${remove} END`);
  db.exec(
    `CREATE TRIGGER ${onUpdate} AFTER UPDATE OF ${COLUMNS}${trigram ? ", role" : ""} ON messages BEGIN ${remove} ${add} END`,
  );
}

export function dropTriggers(db: Connection, table: string): void {
  for (const trigger of triggerNames(table)) db.exec(`DROP TRIGGER IF EXISTS ${trigger}`);
}

/** Fills an index from the messages. */
export function rebuildIndex(db: Connection, table: IndexTable, layout: IndexLayout): void {
  if (layout === "none") return;
  if (layout !== "inline") {
    db.exec(`INSERT INTO ${table}(${table}) VALUES ('rebuild')`);
    return;
  }
  // A damaged inline index cannot even delete; made whole from its own copy first, it can.
  db.exec(`INSERT INTO ${table}(${table}) VALUES ('rebuild')`);
  db.exec(`DELETE FROM ${table}`);
  db.exec(
    `INSERT INTO ${table}(rowid, content)
     SELECT id, COALESCE(content, '') || ' ' || COALESCE(tool_name, '') || ' ' || COALESCE(tool_calls, '') FROM messages`,
  );
}

/** Throws SQLite's own error when the index does not fit the messages. */
export function checkIndex(db: Connection, table: IndexTable): void {
  db.exec(`INSERT INTO ${table}(${table}, rank) VALUES ('integrity-check', 1)`);
}

/** A few steps of tidying up, bounded. */
export function mergeIndex(db: Connection, table: IndexTable, options: { pages: number; rounds: number }): void {
  for (let round = 0; round < options.rounds; round++) {
    const before = totalChanges(db);
    db.run(`INSERT INTO ${table}(${table}, rank) VALUES ('merge', ?)`, options.pages);
    // FTS5 documents a difference below two as "nothing left to merge".
    if (totalChanges(db) - before < 2) return;
  }
}

function totalChanges(db: Connection): number {
  return db.get<{ n: number }>("SELECT total_changes() AS n")?.n ?? 0;
}
