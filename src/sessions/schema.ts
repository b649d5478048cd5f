import type { Connection } from "./connection.ts";

// The tables of state.db as data. Names and meanings are shared with the Python original, which opens the same file: columns are only
// ever added, with constant defaults, and nothing unknown is touched.

/** Column name -> declaration, in the order of a fresh table. */
export type Columns = Readonly<Record<string, string>>;

export const SESSION_COLUMNS: Columns = {
  id: "TEXT PRIMARY KEY",
  source: "TEXT NOT NULL",
  user_id: "TEXT",
  model: "TEXT",
  model_config: "TEXT",
  system_prompt: "TEXT",
  parent_session_id: "TEXT REFERENCES sessions(id)",
  started_at: "REAL NOT NULL",
  ended_at: "REAL",
  end_reason: "TEXT",
  message_count: "INTEGER DEFAULT 0",
  tool_call_count: "INTEGER DEFAULT 0",
  input_tokens: "INTEGER DEFAULT 0",
  output_tokens: "INTEGER DEFAULT 0",
  cache_read_tokens: "INTEGER DEFAULT 0",
  cache_write_tokens: "INTEGER DEFAULT 0",
  reasoning_tokens: "INTEGER DEFAULT 0",
  billing_provider: "TEXT",
  billing_base_url: "TEXT",
  billing_mode: "TEXT",
  estimated_cost_usd: "REAL",
  actual_cost_usd: "REAL",
  cost_status: "TEXT",
  cost_source: "TEXT",
  pricing_version: "TEXT",
  title: "TEXT",
  api_call_count: "INTEGER DEFAULT 0",
  handoff_state: "TEXT",
  handoff_platform: "TEXT",
  handoff_error: "TEXT",
  cwd: "TEXT",
  git_branch: "TEXT",
  git_repo_root: "TEXT",
  last_activity_at: "REAL",
  rewind_count: "INTEGER NOT NULL DEFAULT 0",
  archived: "INTEGER NOT NULL DEFAULT 0",
  pinned: "INTEGER NOT NULL DEFAULT 0",
  system_prompt_stable_chars: "INTEGER",
  prompt_fingerprint: "TEXT",
};

export const MESSAGE_COLUMNS: Columns = {
  id: "INTEGER PRIMARY KEY AUTOINCREMENT",
  session_id: "TEXT NOT NULL REFERENCES sessions(id)",
  role: "TEXT NOT NULL",
  content: "TEXT",
  tool_call_id: "TEXT",
  tool_calls: "TEXT",
  tool_name: "TEXT",
  timestamp: "REAL NOT NULL",
  token_count: "INTEGER",
  finish_reason: "TEXT",
  reasoning: "TEXT",
  reasoning_content: "TEXT",
  reasoning_details: "TEXT",
  codex_reasoning_items: "TEXT",
  codex_message_items: "TEXT",
  platform_message_id: "TEXT",
  observed: "INTEGER DEFAULT 0",
  active: "INTEGER NOT NULL DEFAULT 1",
  compacted: "INTEGER NOT NULL DEFAULT 0",
  api_content: "TEXT",
  anthropic_content_blocks: "TEXT",
  text_origin: "TEXT",
  loose: "INTEGER",
};

/** Tables besides the two above, whole. `model_calls` has no foreign key: what a deleted session cost stays spent. */
export const OTHER_TABLES: Readonly<Record<string, string>> = {
  schema_version: "CREATE TABLE schema_version (version INTEGER NOT NULL)",
  state_meta: "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
  session_kv: `CREATE TABLE session_kv (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (session_id, key)
  )`,
  approvals_open: `CREATE TABLE approvals_open (
    id TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    session_id TEXT,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    asked_at REAL NOT NULL,
    expires_at REAL,
    answer TEXT,
    answered_by TEXT,
    answered_at REAL
  )`,
  lanes: `CREATE TABLE lanes (
    lane TEXT PRIMARY KEY,
    holder TEXT,
    token INTEGER NOT NULL,
    expires REAL,
    prefer_holder TEXT,
    prefer_until REAL
  )`,
  tool_lists: "CREATE TABLE tool_lists (hash TEXT PRIMARY KEY, tools TEXT NOT NULL)",
  model_calls: `CREATE TABLE model_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT,
    turn INTEGER,
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    base_url TEXT NOT NULL,
    api_mode TEXT NOT NULL,
    started_at REAL NOT NULL,
    ms REAL NOT NULL,
    outcome TEXT NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    reasoning_tokens INTEGER,
    cost_usd REAL,
    cost_status TEXT NOT NULL,
    cost_source TEXT,
    job_id TEXT,
    bytes INTEGER,
    common_bytes INTEGER,
    broke_owner TEXT,
    broke_offset INTEGER,
    cause TEXT,
    loose INTEGER
  )`,
  session_model_usage: `CREATE TABLE session_model_usage (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    billing_provider TEXT NOT NULL DEFAULT '',
    billing_base_url TEXT NOT NULL DEFAULT '',
    billing_mode TEXT NOT NULL DEFAULT '',
    task TEXT NOT NULL DEFAULT '',
    api_call_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    estimated_cost_usd REAL NOT NULL DEFAULT 0,
    actual_cost_usd REAL NOT NULL DEFAULT 0,
    cost_status TEXT,
    cost_source TEXT,
    first_seen REAL,
    last_seen REAL,
    PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
  )`,
};

export const TITLE_INDEX = "idx_sessions_title_unique";

export const INDEXES: Readonly<Record<string, string>> = {
  idx_sessions_source: "CREATE INDEX idx_sessions_source ON sessions(source)",
  idx_sessions_parent: "CREATE INDEX idx_sessions_parent ON sessions(parent_session_id)",
  idx_sessions_started: "CREATE INDEX idx_sessions_started ON sessions(started_at DESC)",
  // Ours: the list of recent conversations reads its first lines only.
  idx_sessions_activity: "CREATE INDEX idx_sessions_activity ON sessions(last_activity_at)",
  idx_messages_session: "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)",
  // Ours: rows of a session by id, which is the order they are read in.
  idx_messages_session_order: "CREATE INDEX idx_messages_session_order ON messages(session_id)",
  idx_messages_platform_msg_id:
    "CREATE INDEX idx_messages_platform_msg_id ON messages(session_id, platform_message_id) WHERE platform_message_id IS NOT NULL",
  [TITLE_INDEX]: `CREATE UNIQUE INDEX ${TITLE_INDEX} ON sessions(title) WHERE title IS NOT NULL`,
  // Loose calls are few, and found without.
  idx_calls_session: "CREATE INDEX idx_calls_session ON model_calls(session_id) WHERE loose IS NULL",
  idx_calls_started: "CREATE INDEX idx_calls_started ON model_calls(started_at) WHERE loose IS NULL",
};

/** Ours of before. */
export const EARLIER_INDEXES = ["idx_model_calls_session", "idx_model_calls_started"];

/** In `state_meta`: from which ids on there may be loose rows (`loose.ts`). Absent: there are none. */
export const LOOSE_KEY = "hermes_ts_loose";

/** The schema number of the original that a file has at least when we have opened it. */
export const ORIGINAL_SCHEMA = 13;
/** Ours, in `state_meta`. */
export const OUR_SCHEMA_KEY = "hermes_ts_schema";
export const OUR_SCHEMA = "1";

export function createTable(name: string, columns: Columns): string {
  const lines = Object.entries(columns).map(([column, declaration]) => `  ${column} ${declaration}`);
  return `CREATE TABLE ${name} (\n${lines.join(",\n")}\n)`;
}

// The two search tables and the triggers that keep them. A fresh file gets external content: the text is stored once, in `messages`.
// Triggers must match the layout of the table they feed, or the index drifts away from the messages.

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
  for (const sql of triggersOf(table, layout)) db.exec(sql);
}

/** `knowing`: the rows that are loose are not in the index (`loose.ts`). */
function triggersOf(table: IndexTable, layout: IndexLayout, knowing = true): readonly string[] {
  const [onInsert, onDelete, onUpdate] = triggerNames(table);
  if (layout === "inline") {
    const add = `INSERT INTO ${table}(rowid, content) VALUES (new.id, ${inlineText("new.")});`;
    const remove = `DELETE FROM ${table} WHERE rowid = old.id;`;
    return [
      `CREATE TRIGGER ${onInsert} AFTER INSERT ON messages BEGIN ${add} END`,
      `CREATE TRIGGER ${onDelete} AFTER DELETE ON messages BEGIN ${remove} END`,
      `CREATE TRIGGER ${onUpdate} AFTER UPDATE ON messages BEGIN ${remove} ${add} END`,
    ];
  }
  const trigram = table === "messages_fts_trigram";
  const when = (row: string) => (trigram ? ` WHERE ${row}.role <> 'tool'` : "");
  const add = `INSERT INTO ${table}(rowid, ${COLUMNS}) SELECT new.id, new.content, new.tool_name, new.tool_calls${when("new")};`;
  const remove = `INSERT INTO ${table}(${table}, rowid, ${COLUMNS}) SELECT 'delete', old.id, old.content, old.tool_name, old.tool_calls${when("old")};`;
  const onlySettled = knowing ? " WHEN new.loose IS NULL" : "";
  // A rebuild takes in loose rows too.
  const onlyIndexed = knowing
    ? ` WHEN old.loose IS NULL OR EXISTS (SELECT 1 FROM ${table}_docsize WHERE id = old.id)`
    : "";
  return [
    `CREATE TRIGGER ${onInsert} AFTER INSERT ON messages${onlySettled} BEGIN ${add} END`,
    `CREATE TRIGGER ${onDelete} AFTER DELETE ON messages${onlyIndexed} BEGIN ${remove} END`,
    `CREATE TRIGGER ${onUpdate} AFTER UPDATE OF ${COLUMNS}${trigram ? ", role" : ""} ON messages${onlyIndexed} BEGIN ${remove} ${add} END`,
  ];
}

const inlineText = (row: string) =>
  `COALESCE(${row}content, '') || ' ' || COALESCE(${row}tool_name, '') || ' ' || COALESCE(${row}tool_calls, '')`;

/** The triggers are those that earlier versions of ours made: they may be made anew, those of the original may not. */
export const areEarlier = (table: IndexTable, written: readonly string[]): boolean =>
  triggersOf(table, "external", false).every((sql) => written.includes(sql));

/** Rows that no trigger has put into the index; those that are in it all the same (it was rebuilt) are left out. */
export function indexRows(
  db: Connection,
  { fts5, main, trigram }: Pick<FileShape, "fts5" | "main" | "trigram">,
  which: { readonly sql: string; readonly values: readonly number[] },
): void {
  if (!fts5) return; // whoever has FTS5 rebuilds it
  for (const [table, layout] of [
    ["messages_fts", main],
    ["messages_fts_trigram", trigram],
  ] as const) {
    if (layout === "none" || layout === "content-only") continue;
    const [columns, values] = layout === "inline" ? ["content", inlineText("")] : [COLUMNS, COLUMNS];
    const some = table === "messages_fts_trigram" && layout === "external" ? " AND role <> 'tool'" : "";
    db.run(
      `INSERT INTO ${table}(rowid, ${columns}) SELECT id, ${values} FROM messages
       WHERE ${which.sql}${some} AND id NOT IN (SELECT id FROM ${table}_docsize)`,
      ...which.values,
    );
  }
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
  db.exec(`INSERT INTO ${table}(rowid, content) SELECT id, ${inlineText("")} FROM messages`);
}

/** Throws SQLite's own error when the index does not match the messages. */
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

// What a given file is made of: versions of the original and of ours differ in columns, tables and in how the search index is laid out.

/** `inline`: the index holds its own copy of the text. `external`: it points at `messages` (or a view). `content-only`: v0.11. */
type IndexLayout = "none" | "content-only" | "inline" | "external";

export interface FileShape {
  readonly version: number;
  readonly tables: ReadonlySet<string>;
  readonly triggers: ReadonlySet<string>;
  readonly indexes: ReadonlySet<string>;
  readonly sessionColumns: ReadonlySet<string>;
  readonly messageColumns: ReadonlySet<string>;
  readonly callColumns: ReadonlySet<string>;
  readonly main: IndexLayout;
  readonly trigram: IndexLayout;
  /** Messages may be loose: no trigger would put them into an index, or take them out again. */
  readonly knowsLoose: boolean;
  /** The statement that made a trigger. */
  readonly triggerSql: readonly string[];
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
  const triggerSql = objects.flatMap(({ type, sql }) => (type === "trigger" && sql !== null ? [sql] : []));
  return {
    version: tables.has("schema_version")
      ? (db.get<{ version: number }>("SELECT MAX(version) AS version FROM schema_version")?.version ?? 0)
      : 0,
    tables,
    triggers: named("trigger"),
    indexes: named("index"),
    sessionColumns: columnsOf(db, "sessions"),
    messageColumns: columnsOf(db, "messages"),
    callColumns: columnsOf(db, "model_calls"),
    main: layoutOf(sqlOf("messages_fts")),
    trigram: layoutOf(sqlOf("messages_fts_trigram")),
    knowsLoose: (["messages_fts", "messages_fts_trigram"] as const).every((table) =>
      triggersOf(table, "external").every((sql) => triggerSql.includes(sql)),
    ),
    triggerSql,
    fts5: hasFts5(db),
  };
}

export function columnsOf(db: Connection, table: "sessions" | "messages" | "model_calls"): ReadonlySet<string> {
  return new Set(db.all<{ name: string }>(`PRAGMA table_info(${table})`).map((column) => column.name));
}

function layoutOf(sql: string | null): IndexLayout {
  if (!sql) return "none";
  if (!/\bcontent\s*=/i.test(sql)) return "inline";
  return /\btool_name\b/i.test(sql) ? "external" : "content-only";
}

function hasFts5(db: Connection): boolean {
  const row = db.get<{ found: number }>("SELECT 1 AS found FROM pragma_module_list WHERE name = 'fts5'");
  return row !== undefined;
}
