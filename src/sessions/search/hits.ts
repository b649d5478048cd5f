// From ids to what a search shows: in a few statements for the whole page, because a page is asked for in every search.
import { sliceCodePoints } from "../../kit/code-points.ts";
import { plainText } from "../content.ts";
import type { StoreCore } from "../core.ts";
import type { SearchHit } from "../store.ts";
import { CUT, MARK_END, MARK_START, makeSnippet } from "./snippet.ts";

export type IndexTable = "messages_fts" | "messages_fts_trigram";

export const SNIPPET_TOKENS = 40;
const CONTEXT_CHARS = 200;
/** A code point has four bytes at most. */
const CONTEXT_BYTES = 4 * CONTEXT_CHARS;

export interface Found {
  readonly id: number;
  readonly timestamp: number;
  /** Null when it was not made along with the match. */
  readonly snippet: string | null;
  /** Absent for rows that were scanned. */
  readonly match?: { readonly table: IndexTable; readonly expression: string };
}

interface HitRow {
  readonly id: number;
  readonly session_id: string;
  readonly role: string;
  readonly tool_name: string | null;
  readonly timestamp: number;
  readonly source: string;
  readonly model: string | null;
  readonly started_at: number;
  readonly compacted: number;
  readonly in_parts: number;
  readonly before: number | null;
  readonly after: number | null;
}

export function readHits(
  core: StoreCore,
  page: readonly Found[],
  options: { terms: readonly string[]; withContext: boolean },
): readonly SearchHit[] {
  const rows = new Map(hitRows(core, page, options.withContext).map((row) => [row.id, row]));
  const contents = options.withContext
    ? shortContents(
        core,
        [...rows.values()].flatMap(({ before, id, after }) => [before, id, after].filter((one) => one !== null)),
      )
    : new Map<number, { role: string; content: string }>();
  return page.flatMap((found) => {
    const row = rows.get(found.id);
    if (!row) return [];
    return [
      {
        id: row.id,
        sessionId: row.session_id,
        role: row.role,
        snippet: snippetOf(core, found, row, options.terms),
        timestamp: row.timestamp,
        toolName: row.tool_name,
        source: row.source,
        model: row.model,
        sessionStarted: row.started_at,
        compacted: row.compacted === 1,
        context: [row.before, row.id, row.after].flatMap((id) => (id === null ? [] : (contents.get(id) ?? []))),
      },
    ];
  });
}

function hitRows(core: StoreCore, page: readonly Found[], withNeighbours: boolean): readonly HitRow[] {
  const { messageColumns } = core.shape;
  const active = messageColumns.has("active") ? "AND n.active = 1" : "";
  const neighbour = (side: string, order: string) =>
    withNeighbours
      ? `(SELECT n.id FROM messages n WHERE n.session_id = m.session_id AND n.id ${side} m.id ${active} ORDER BY n.id ${order} LIMIT 1)`
      : "NULL";
  return core.db.all<HitRow>(
    `SELECT m.id, m.session_id, m.role, m.tool_name, m.timestamp, s.source, s.model, s.started_at,
       ${messageColumns.has("compacted") ? "m.compacted" : "0"} AS compacted,
       m.content IS NOT NULL AND unicode(m.content) IS NULL AS in_parts,
       ${neighbour("<", "DESC")} AS before, ${neighbour(">", "ASC")} AS after
     FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value CROSS JOIN sessions s ON s.id = m.session_id`,
    JSON.stringify(page.map((found) => found.id)),
  );
}

/** The beginnings of messages. Only content in parts (it begins with NUL) has to be read whole to be understood. */
function shortContents(core: StoreCore, ids: readonly number[]): Map<number, { role: string; content: string }> {
  const rows = core.db.all<{ id: number; role: string; content: Uint8Array | null }>(
    `SELECT m.id, m.role, CASE WHEN unicode(m.content) IS NULL THEN CAST(m.content AS BLOB)
       ELSE substr(CAST(m.content AS BLOB), 1, ${CONTEXT_BYTES}) END AS content
     FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value`,
    JSON.stringify(ids),
  );
  return new Map(
    rows.map(({ id, role, content }) => [
      id,
      { role, content: sliceCodePoints(plainText(content, core.log), 0, CONTEXT_CHARS) },
    ]),
  );
}

function snippetOf(core: StoreCore, found: Found, row: HitRow, terms: readonly string[]): string {
  if (found.match && row.in_parts === 0) {
    const made = found.snippet ?? indexSnippet(core, found.id, found.match);
    if (made) return made;
  }
  const whole = core.db.get<{ content: Uint8Array | null; tool_name: string | null; tool_calls: string | null }>(
    "SELECT CAST(content AS BLOB) AS content, tool_name, tool_calls FROM messages WHERE id = ?",
    found.id,
  );
  const text = plainText(whole?.content ?? null, core.log);
  const lower = text.toLowerCase();
  const inText = terms.some((term) => lower.includes(term.toLowerCase()));
  return makeSnippet(inText ? text : [text, whole?.tool_name, whole?.tool_calls].filter(Boolean).join(" "), terms);
}

function indexSnippet(core: StoreCore, id: number, { table, expression }: NonNullable<Found["match"]>): string | null {
  // Numbers are bound as doubles, and FTS5 passes over a rowid that is no integer: it would show the first match of all.
  const row = core.db.get<{ snippet: string | null }>(
    `SELECT snippet(${table}, -1, ?, ?, ?, ?) AS snippet FROM ${table} WHERE rowid = CAST(? AS INTEGER) AND ${table} MATCH ?`,
    ...[MARK_START, MARK_END, CUT, SNIPPET_TOKENS, id, expression],
  );
  return row?.snippet ?? null;
}
