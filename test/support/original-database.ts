// A state.db as a version of the Python original would have left it, filled through that version's own triggers.
import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

export type OriginalVersion = "v0.11" | "v0.15" | "v0.20";
export const ORIGINAL_VERSIONS: readonly OriginalVersion[] = ["v0.11", "v0.15", "v0.20"];

const folder = new URL("../fixtures/original-databases/", import.meta.url);

/** One conversation of four messages, its compression, and another session. */
export function makeOriginalDatabase(path: string, version: OriginalVersion): void {
  const db = new DatabaseSync(path, { timeout: 10_000 });
  db.exec(readFileSync(new URL(`${version}.sql`, folder), "utf8"));
  db.exec("PRAGMA journal_mode=WAL");
  const session = db.prepare(
    "INSERT INTO sessions (id, source, model, system_prompt, parent_session_id, started_at, ended_at, end_reason, title, message_count, model_config) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  session.run(
    "20250101_100000_aaaaaa",
    "cli",
    "m",
    "You are the original.",
    null,
    1000,
    1500,
    "compression",
    "old talk",
    4,
    "{}",
  );
  session.run(
    "20250101_110000_bbbbbb",
    "cli",
    "m",
    null,
    "20250101_100000_aaaaaa",
    1500,
    null,
    null,
    "old talk #2",
    1,
    "{}",
  );
  session.run("20250102_100000_cccccc", "telegram", "m", null, null, 2000, 2100, "session_reset", null, 1, null);
  insertAsOriginal(db, {
    session: "20250101_100000_aaaaaa",
    role: "user",
    content: "where is the walrus 修改youer服务端",
    at: 1001,
  });
  insertAsOriginal(db, {
    session: "20250101_100000_aaaaaa",
    role: "assistant",
    content: null,
    calls:
      '[{"id":"c1","type":"function","function":{"name":"search_files","arguments":"{\\"pattern\\":\\"walrus\\"}"}}]',
    at: 1002,
  });
  insertAsOriginal(db, {
    session: "20250101_100000_aaaaaa",
    role: "tool",
    content: "zoo.txt: penguin 数据库表",
    call: "c1",
    tool: "search_files",
    at: 1003,
  });
  insertAsOriginal(db, { session: "20250101_100000_aaaaaa", role: "assistant", content: "in the zoo", at: 1004 });
  insertAsOriginal(db, {
    session: "20250101_110000_bbbbbb",
    role: "user",
    content: '\u0000json:[{"type":"text","text":"summary of the walrus"}]',
    at: 1501,
  });
  insertAsOriginal(db, { session: "20250102_100000_cccccc", role: "user", content: "数据库部署失败", at: 2001 });
  if (version === "v0.20") {
    db.exec(`INSERT INTO system_prompts VALUES ('h1', 'The hashed prompt.');
      UPDATE sessions SET system_prompt = NULL, system_prompt_hash = 'h1' WHERE id = '20250101_100000_aaaaaa'`);
  }
  db.close();
}

interface OriginalMessage {
  readonly session: string;
  readonly role: string;
  readonly content: string | null;
  readonly at: number;
  readonly calls?: string;
  readonly call?: string;
  readonly tool?: string;
}

/** The statement every version of the original uses, as far as the columns go that all of them have. */
export function insertAsOriginal(db: DatabaseSync, message: OriginalMessage): number {
  const { lastInsertRowid } = db
    .prepare(
      "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp, token_count, finish_reason, reasoning, reasoning_details, codex_reasoning_items) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL)",
    )
    .run(
      message.session,
      message.role,
      message.content,
      message.call ?? null,
      message.calls ?? null,
      message.tool ?? null,
      message.at,
    );
  db.prepare("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?").run(message.session);
  return Number(lastInsertRowid);
}

/** How the original asks its main index. */
export function searchAsOriginal(
  db: DatabaseSync,
  table: "messages_fts" | "messages_fts_trigram",
  query: string,
): number[] {
  return db
    .prepare(
      `SELECT m.id, snippet(${table}, 0, '>>>', '<<<', '...', 40) AS snippet, s.source FROM ${table}
       JOIN messages m ON m.id = ${table}.rowid JOIN sessions s ON s.id = m.session_id WHERE ${table} MATCH ? ORDER BY rank LIMIT 20`,
    )
    .all(query)
    .map((row) => Number(row.id))
    .sort((a, b) => a - b);
}
