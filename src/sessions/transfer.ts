// Whole sessions out as JSON: every column, decoded.
import { decodeContent, decodeText, parseJson } from "./content.ts";
import type { StoreCore } from "./core.ts";
import { promptExpression } from "./session-values.ts";

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
