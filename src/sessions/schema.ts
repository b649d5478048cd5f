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
    cause TEXT
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
  idx_messages_session: "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)",
  // Ours: rows of a session by id, which is the order they are read in.
  idx_messages_session_order: "CREATE INDEX idx_messages_session_order ON messages(session_id)",
  idx_messages_platform_msg_id:
    "CREATE INDEX idx_messages_platform_msg_id ON messages(session_id, platform_message_id) WHERE platform_message_id IS NOT NULL",
  [TITLE_INDEX]: `CREATE UNIQUE INDEX ${TITLE_INDEX} ON sessions(title) WHERE title IS NOT NULL`,
  idx_model_calls_session: "CREATE INDEX idx_model_calls_session ON model_calls(session_id)",
  idx_model_calls_started: "CREATE INDEX idx_model_calls_started ON model_calls(started_at)",
};

/** The schema number of the original that a file has at least when we have opened it. */
export const ORIGINAL_SCHEMA = 13;
/** Ours, in `state_meta`. */
export const OUR_SCHEMA_KEY = "hermes_ts_schema";
export const OUR_SCHEMA = "1";

export function createTable(name: string, columns: Columns): string {
  const lines = Object.entries(columns).map(([column, declaration]) => `  ${column} ${declaration}`);
  return `CREATE TABLE ${name} (\n${lines.join(",\n")}\n)`;
}
