// Opening what is there: a new file, one of ours, or one of the Python original's versions. Nothing unknown is dropped or renamed, the
// schema number is never lowered, and the original must go on working with the file afterwards.
import type { Logger } from "../home/log.ts";
import type { Connection } from "./connection.ts";
import {
  areEarlier,
  type Columns,
  columnsOf,
  createIndex,
  createTable,
  createTriggers,
  dropTriggers,
  EARLIER_INDEXES,
  type FileShape,
  INDEXES,
  type IndexTable,
  MESSAGE_COLUMNS,
  ORIGINAL_SCHEMA,
  OTHER_TABLES,
  OUR_SCHEMA,
  OUR_SCHEMA_KEY,
  readShape,
  rebuildIndex,
  SESSION_COLUMNS,
  TITLE_INDEX,
  triggerNames,
} from "./schema.ts";

const INDEX_TABLES: readonly IndexTable[] = ["messages_fts", "messages_fts_trigram"];
/** Set when triggers had to go because SQLite lacked FTS5; a build that has it rebuilds and clears it. */
const INDEX_STALE_KEY = "hermes_ts_fts_stale";
const REBUILD_KEYS = ["fts_rebuild_high_water", "fts_rebuild_progress"] as const;

type Step = () => void;

/** What has to be done to this file; empty for one that is as it should be. Only reads. */
export function planUpgrade(db: Connection, log: Logger, shape: FileShape = readShape(db)): readonly Step[] {
  return [
    ...planTables(db, shape),
    ...planColumns(db, "sessions", SESSION_COLUMNS, shape.sessionColumns),
    ...planColumns(db, "messages", MESSAGE_COLUMNS, shape.messageColumns),
    ...planColumns(db, "model_calls", { loose: "INTEGER" }, shape.callColumns),
    ...planIndexes(db, shape, log),
    ...planSearch(db, shape, log),
    ...planVersions(db, shape),
  ];
}

/** Runs inside one transaction; plans again there, because another process may have been faster. */
export function upgrade(db: Connection, log: Logger): void {
  for (const step of planUpgrade(db, log)) step();
}

type TableWithColumns = Parameters<typeof columnsOf>[1];

function planTables(db: Connection, shape: FileShape): Step[] {
  const wanted = {
    sessions: createTable("sessions", SESSION_COLUMNS),
    messages: createTable("messages", MESSAGE_COLUMNS),
    ...OTHER_TABLES,
  };
  return Object.entries(wanted).flatMap(([name, sql]) => (shape.tables.has(name) ? [] : [() => db.exec(sql)]));
}

function planColumns(db: Connection, table: TableWithColumns, wanted: Columns, present: ReadonlySet<string>): Step[] {
  if (present.size === 0) return [];
  return Object.entries(wanted).flatMap(([name, declaration]) =>
    present.has(name) ? [] : [() => addColumn(db, table, name, declaration)],
  );
}

function addColumn(db: Connection, table: TableWithColumns, name: string, declaration: string): void {
  try {
    db.exec(`ALTER TABLE ${table} ADD COLUMN ${name} ${declaration}`);
  } catch (error) {
    // Another process may have added it since the plan was made.
    if (!columnsOf(db, table).has(name)) throw error;
  }
}

function planIndexes(db: Connection, shape: FileShape, log: Logger): Step[] {
  const earlier = EARLIER_INDEXES.filter((name) => shape.indexes.has(name));
  return [...missingIndexes(db, shape, log), ...earlier.map((name) => () => db.exec(`DROP INDEX IF EXISTS ${name}`))];
}

function missingIndexes(db: Connection, shape: FileShape, log: Logger): Step[] {
  return Object.entries(INDEXES).flatMap(([name, sql]) => {
    if (shape.indexes.has(name)) return [];
    return [
      () => {
        if (name === TITLE_INDEX) clearDuplicateTitles(db, log);
        db.exec(sql);
      },
    ];
  });
}

/** The newest holder keeps the title. */
function clearDuplicateTitles(db: Connection, log: Logger): void {
  const losers = db.all<{ id: string; title: string }>(
    `SELECT id, title FROM (
       SELECT id, title, ROW_NUMBER() OVER (PARTITION BY title ORDER BY started_at DESC, id DESC) AS place
       FROM sessions WHERE title IS NOT NULL
     ) WHERE place > 1`,
  );
  for (const { id, title } of losers) {
    db.run("UPDATE sessions SET title = NULL WHERE id = ?", id);
    log.warn(`session ${id} lost its title "${title}": a newer session has the same title`);
  }
}

function planSearch(db: Connection, shape: FileShape, log: Logger): Step[] {
  const has = (trigger: string) => shape.triggers.has(trigger);
  if (!shape.fts5) {
    const bearing = [...INDEX_TABLES, "messages_fts_cjk"].filter((table) => triggerNames(table).some(has));
    if (bearing.length === 0) return [];
    return [
      () => {
        for (const table of bearing) dropTriggers(db, table);
        setMeta(db, INDEX_STALE_KEY, "1");
        log.warn(
          "this SQLite has no FTS5: messages are stored, but search is unavailable until one that has it opens the file",
        );
      },
    ];
  }
  const steps: Step[] = [];
  if (triggerNames("messages_fts_cjk").some(has) && !tokenizerWorks(db)) {
    steps.push(() => {
      dropTriggers(db, "messages_fts_cjk");
      setMeta(db, "fts_cjk_stale", "1");
    });
  }
  const unfinished = shape.tables.has("state_meta") && readMeta(db, REBUILD_KEYS[0]) !== null;
  const stale = shape.tables.has("state_meta") && readMeta(db, INDEX_STALE_KEY) !== null;
  for (const table of INDEX_TABLES) {
    const layout = table === "messages_fts" ? shape.main : shape.trigram;
    if (layout === "none" || layout === "content-only") {
      steps.push(() => {
        dropTriggers(db, table);
        db.exec(`DROP TABLE IF EXISTS ${table}`);
        createIndex(db, table);
        rebuildIndex(db, table, "external");
      });
    } else if (!unfinished && !stale && layout === "external" && areEarlier(table, shape.triggerSql)) {
      steps.push(() => createTriggers(db, table, layout));
    } else if (!unfinished && (stale || !triggerNames(table).every(has))) {
      steps.push(() => {
        createTriggers(db, table, layout);
        rebuildIndex(db, table, layout);
      });
    }
  }
  if (stale && !unfinished) steps.push(() => db.run("DELETE FROM state_meta WHERE key = ?", INDEX_STALE_KEY));
  return steps;
}

/** The native tokenizer of the original's third index is an extension; it is looked up only when there is text to take apart. */
function tokenizerWorks(db: Connection): boolean {
  try {
    db.database.prepare("SELECT rowid FROM messages_fts_cjk WHERE messages_fts_cjk MATCH 'a' LIMIT 1").get();
    return true;
  } catch {
    return false; // "no such tokenizer", or the table is gone: every INSERT into messages would fail the same way
  }
}

function planVersions(db: Connection, shape: FileShape): Step[] {
  const steps: Step[] = [];
  if (shape.version < ORIGINAL_SCHEMA) {
    steps.push(() => {
      db.exec("DELETE FROM schema_version");
      db.run("INSERT INTO schema_version (version) VALUES (?)", ORIGINAL_SCHEMA);
    });
  }
  if (!shape.tables.has("state_meta") || readMeta(db, OUR_SCHEMA_KEY) === null) {
    steps.push(() => setMeta(db, OUR_SCHEMA_KEY, OUR_SCHEMA));
  }
  return steps;
}

export function readMeta(db: Connection, key: string): string | null {
  return db.get<{ value: string | null }>("SELECT value FROM state_meta WHERE key = ?", key)?.value ?? null;
}

export function setMeta(db: Connection, key: string, value: string): void {
  db.run(
    "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
    key,
    value,
  );
}

/** Rebuilds both indexes from the messages, in the layout they have, and forgets an unfinished rebuild of the original. */
export function rebuildSearch(db: Connection): void {
  const shape = readShape(db);
  for (const key of REBUILD_KEYS) db.run("DELETE FROM state_meta WHERE key = ?", key);
  if (shape.main !== "none") rebuildIndex(db, "messages_fts", shape.main);
  if (shape.trigram !== "none") rebuildIndex(db, "messages_fts_trigram", shape.trigram);
}
