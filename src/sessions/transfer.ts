// Whole sessions out as JSON: every column, decoded.

import { z } from "zod";
import { sliceCodePoints } from "../kit/code-points.ts";
import { parseJson } from "../kit/json.ts";
import type { StoreCore } from "./core.ts";
import { promptExpression } from "./session-values.ts";
import { decodeContent, decodeText, encodeContent, sessionExists } from "./sessions.ts";
import { type ImportReport, StoreError } from "./store.ts";
import { assignTitle, cleanTitle, nextTitleAfter } from "./titles.ts";

const JSON_SESSION = ["model_config", "prompt_fingerprint", "origin_json"];
const JSON_MESSAGE = [
  ...["tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"],
  ...["anthropic_content_blocks", "display_metadata"],
];
/** Free text may hold NUL bytes; it is read as BLOB. */
const TEXT_MESSAGE = ["api_content", "reasoning", "reasoning_content"];

type Exported = Readonly<Record<string, unknown>>;
type Row = Record<string, string | number | Uint8Array | null>;

export function exportableIds(core: StoreCore, filter: { sessionId?: string; source?: string }): readonly string[] {
  return core.db
    .all<{ id: string }>(
      "SELECT id FROM sessions WHERE (?1 IS NULL OR id = ?1) AND (?2 IS NULL OR source = ?2) ORDER BY started_at, id",
      filter.sessionId ?? null,
      filter.source ?? null,
    )
    .map((row) => row.id);
}

/** Every column of the session, its prompt resolved, and every column of every message. Null when it is gone meanwhile. */
export function exportSession(core: StoreCore, id: string): Exported | null {
  const { shape } = core;
  const sessionColumns = [...shape.sessionColumns]
    .filter((name) => name !== "system_prompt")
    .map((name) => `s."${name}"`);
  const session = core.db.get<Row>(
    `SELECT ${sessionColumns.join(", ")}, CAST(${promptExpression(core)} AS BLOB) AS system_prompt FROM sessions s WHERE s.id = ?`,
    id,
  );
  if (!session) return null;
  const asBlob = new Set(["content", ...TEXT_MESSAGE]);
  const messageColumns = [...shape.messageColumns].map((name) =>
    asBlob.has(name) ? `CAST(m."${name}" AS BLOB) AS "${name}"` : `m."${name}"`,
  );
  const messages = core.db.all<Row>(
    `SELECT ${messageColumns.join(", ")} FROM messages m WHERE m.session_id = ? ORDER BY m.id`,
    id,
  );
  return {
    ...withParsed(session, JSON_SESSION),
    system_prompt: textOrNull(session.system_prompt),
    messages: messages.map((row) => {
      const { content } = row;
      const texts = TEXT_MESSAGE.filter((name) => name in row).map((name) => [name, textOrNull(row[name])]);
      return {
        ...withParsed(row, JSON_MESSAGE),
        ...Object.fromEntries(texts),
        content: content instanceof Uint8Array ? decodeContent(content, core.log) : (content ?? null),
      };
    }),
  };
}

const textOrNull = (value: Row[string] | undefined) =>
  value instanceof Uint8Array || typeof value === "string" ? decodeText(value) : null;

function withParsed(row: Row, fields: readonly string[]): Record<string, unknown> {
  const parsed = fields.flatMap((name) => {
    const text = row[name];
    return typeof text === "string" ? [[name, parseJson(text) ?? text]] : [];
  });
  return { ...row, ...Object.fromEntries(parsed) };
}

// Exported sessions in again. Loaded on first use: it brings the schema library along.

const LIMITS = {
  sessions: 500,
  messagesPerSession: 10_000,
  messages: 50_000,
  sessionBytes: 5_000_000,
  bytes: 25_000_000,
};

/** What helps against a file that is too much at once. An export is in order of time, so parents come first. */
const SPLIT = "cut the file into smaller ones at line ends, as `split -l 100 FILE part-` does, and import each";

/** Unix seconds that a calendar has a day for. */
const time = z.number().min(0).max(253_402_300_799);
const messageSchema = z.looseObject({
  role: z.string().regex(/^[a-z_]{1,40}$/),
  timestamp: time.optional(),
});
const sessionSchema = z.looseObject({
  // An id is shown, typed and the name of files.
  id: z.string().regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\]{1,200}$/u),
  source: z.string().min(1).optional(),
  started_at: time.optional(),
  title: z.string().nullish(),
  parent_session_id: z.string().nullish(),
  messages: z.array(messageSchema).max(LIMITS.messagesPerSession).default([]),
});
type ImportedSession = z.infer<typeof sessionSchema>;

/** Reads and checks everything before anything is written. */
export async function readImport(lines: AsyncIterable<string>): Promise<readonly ImportedSession[]> {
  const sessions: ImportedSession[] = [];
  const ids = new Set<string>();
  let bytes = 0;
  let messages = 0;
  let number = 0;
  const refuse = (what: string): never => {
    throw new StoreError("invalid", `line ${number}: ${what}; nothing was imported`);
  };
  for await (const line of lines) {
    number++;
    if (line.trim() === "") continue;
    const size = Buffer.byteLength(line);
    bytes += size;
    if (size > LIMITS.sessionBytes) refuse(`the session is larger than ${LIMITS.sessionBytes / 1_000_000} MB`);
    if (bytes > LIMITS.bytes) refuse(`the file is larger than ${LIMITS.bytes / 1_000_000} MB (${SPLIT})`);
    const value = parseJson(line);
    if (value === undefined) refuse("not JSON; expected a file from `hermes sessions export`");
    const parsed = sessionSchema.safeParse(value);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      refuse(
        `not an exported session (${issue ? `${issue.path.join(".") || "line"}: ${issue.message}` : "unreadable"})`,
      );
      continue;
    }
    messages += parsed.data.messages.length;
    if (ids.has(parsed.data.id)) refuse(`session ${parsed.data.id} appears twice`);
    ids.add(parsed.data.id);
    sessions.push(parsed.data);
    if (sessions.length > LIMITS.sessions) refuse(`more than ${LIMITS.sessions} sessions (${SPLIT})`);
    if (messages > LIMITS.messages) refuse(`more than ${LIMITS.messages} messages (${SPLIT})`);
  }
  return sessions;
}

/** Inside one transaction: all of them or none. */
export function importSessions(core: StoreCore, sessions: readonly ImportedSession[]): ImportReport {
  const skipped = sessions.filter((session) => sessionExists(core, session.id)).map((session) => session.id);
  const fresh = sessions.filter((session) => !skipped.includes(session.id));
  const renamed: { id: string; from: string; to: string }[] = [];
  for (const session of fresh) {
    insertColumns(core, "sessions", core.shape.sessionColumns, {
      ...session,
      source: session.source ?? "import",
      started_at: session.started_at ?? core.now(),
      parent_session_id: null,
      title: null,
      system_prompt_hash: null,
      message_count: session.messages.length,
    });
    for (const message of session.messages) {
      insertColumns(core, "messages", core.shape.messageColumns, {
        ...message,
        id: undefined,
        session_id: session.id,
        timestamp: message.timestamp ?? session.started_at ?? core.now(),
        content: encodeContent(contentOf(message.content)),
      });
    }
    const change = giveTitle(core, session);
    if (change) renamed.push(change);
  }
  const detached = fresh.filter((session) => !attach(core, session)).map((session) => session.id);
  return { imported: fresh.map((session) => session.id), skipped, renamed, detached };
}

function giveTitle(core: StoreCore, session: ImportedSession): { id: string; from: string; to: string } | null {
  const from = cleanTitle(sliceCodePoints(session.title ?? "", 0, 100));
  if (from === null) return null;
  const taken = core.db.get("SELECT 1 FROM sessions WHERE title = ?", from) !== undefined;
  const to = taken ? nextTitleAfter(core, from) : from;
  assignTitle(core, session.id, to);
  return taken ? { id: session.id, from, to } : null;
}

/** False when a parent was named that is missing, or that would close a circle. */
function attach(core: StoreCore, session: ImportedSession): boolean {
  const parent = session.parent_session_id ?? null;
  if (parent === null) return true;
  const seen = new Set([session.id]);
  for (let current: string | null = parent; current !== null; ) {
    if (seen.has(current) || !sessionExists(core, current)) return false;
    seen.add(current);
    current =
      core.db.get<{ parent: string | null }>("SELECT parent_session_id AS parent FROM sessions WHERE id = ?", current)
        ?.parent ?? null;
  }
  core.db.run("UPDATE sessions SET parent_session_id = ? WHERE id = ?", parent, session.id);
  return true;
}

function contentOf(content: unknown): string | readonly never[] | null {
  if (content === null || content === undefined) return null;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? (content as never[]) : JSON.stringify(content); // parts are stored as they came
}

/** Writes the columns this file has; what is not plain becomes JSON. */
function insertColumns(
  core: StoreCore,
  table: "sessions" | "messages",
  known: ReadonlySet<string>,
  values: Readonly<Record<string, unknown>>,
): void {
  const names = Object.keys(values).filter(
    (name) => known.has(name) && values[name] !== undefined && values[name] !== null,
  );
  const list = names.map((name) => `"${name}"`).join(", ");
  core.db.run(
    `INSERT INTO ${table} (${list}) VALUES (${names.map(() => "?").join(", ")})`,
    ...names.map((name) => plain(values[name])),
  );
}

function plain(value: unknown): string | number {
  if (typeof value === "string" || typeof value === "number") return value;
  return typeof value === "boolean" ? Number(value) : JSON.stringify(value);
}
