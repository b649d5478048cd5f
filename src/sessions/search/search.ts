// Full-text search over all messages.

import { sliceCodePoints } from "../../kit/code-points.ts";
import { isQuerySyntax, sqliteCode } from "../connection.ts";
import type { StoreCore } from "../core.ts";
import { looseAfter } from "../loose.ts";
import { plainText } from "../sessions.ts";
import { type SearchHit, type SearchOptions, type SearchResult, StoreError } from "../store.ts";
import { gluedRows, idsByTime, placesFor } from "./blankless.ts";
import { filterOf, type RowFilter } from "./filter.ts";
import { followMessages } from "./follow.ts";
import {
  chooseRoute,
  mayRetryOnTrigram,
  parseQuery,
  type QueryPart,
  quoteAll,
  type Route,
  sanitiseQuery,
  splitQuery,
  wantedTerms,
} from "./query.ts";
import { scanAmong, scanMessages } from "./scan.ts";
import { CUT, MARK_END, MARK_START, makeSnippet } from "./snippet.ts";

interface Search {
  readonly core: StoreCore;
  readonly parts: readonly QueryPart[];
  readonly filter: RowFilter;
  readonly sort: "newest" | "oldest" | null;
  /** Rows needed from each source before the page is cut. */
  readonly wanted: number;
  /** Snippets are made along with the match where that costs nothing; else only for those rows that are shown. */
  readonly withSnippets: boolean;
}

interface SearchSettings {
  /** Slower searches are logged, with their route and count, never their text. */
  readonly slowMs: number;
}

export async function searchMessages(
  core: StoreCore,
  query: string,
  options: SearchOptions,
  settings: SearchSettings,
): Promise<SearchResult> {
  const started = performance.now();
  const { limit = 20, offset = 0 } = options;
  const rows = await findRows(core, query, { ...options, limit: offset + limit, withSnippets: true });
  if (rows.unavailable !== undefined) return { hits: [], unavailable: rows.unavailable };
  const page = rows.found.slice(offset, offset + Math.max(0, limit));
  const hits = await readHits(core, page, { terms: rows.terms, withContext: options.withContext ?? true });
  const ms = performance.now() - started;
  if (ms > settings.slowMs)
    core.log.warn(`slow search: ${Math.round(ms)} ms, route ${rows.route}, ${hits.length} hits`);
  return rows.indexRebuild ? { hits, indexRebuild: rows.indexRebuild } : { hits };
}

export interface FoundRows {
  /** Best first, or by time. */
  readonly found: readonly Found[];
  /** What a snippet marks. */
  readonly terms: readonly string[];
  readonly route: Route | "none";
  readonly indexRebuild?: { readonly percent: number; readonly note: string };
  readonly unavailable?: string;
}

/** The rows that a query means, as many as the limit says. */
export async function findRows(
  core: StoreCore,
  query: string,
  options: Omit<SearchOptions, "offset"> & { readonly withSnippets?: boolean },
): Promise<FoundRows> {
  const { shape } = core;
  const nothing = { found: [], terms: [], route: "none" as const };
  if (!shape.fts5 || shape.main === "none")
    return {
      ...nothing,
      unavailable: "search is unavailable: this SQLite build or file has no full-text index",
    };
  const sanitised = sanitiseQuery(query);
  const parts = splitQuery(sanitised);
  const wanted = options.limit ?? 20;
  if (sanitised === "" || parts.length === 0 || wanted <= 0) return nothing;
  const facts = { trigram: shape.trigram !== "none", roleFilter: options.roleFilter };
  const search: Search = {
    ...{ core, parts, wanted },
    filter: filterOf(core, options),
    sort: options.sort ?? null,
    withSnippets: options.withSnippets ?? false,
  };
  let route: Route = chooseRoute(parts, facts);
  const gap = await unindexedRange(core);
  let found = await findBy(route, search, sanitised);
  if (route === "words" && found.length === 0 && mayRetryOnTrigram(parts, facts)) {
    route = "trigram";
    found = await findBy(route, search, sanitised);
  }
  if (gap && route !== "scan") found = merge(found, await scan(search, gap), search.sort);
  // Rows that nobody could settle: the file is only read, or another process holds it.
  const loose = route === "scan" ? null : await core.read(() => looseAfter(core));
  if (loose !== null) found = merge(found, await scan(search, { after: loose }), search.sort);
  const result = { found, route, terms: wantedTerms(parts) };
  return gap ? { ...result, indexRebuild: describe(gap) } : result;
}

async function findBy(route: Route, search: Search, sanitised: string): Promise<readonly Found[]> {
  if (route === "trigram") return await match(search, "messages_fts_trigram", quoteAll(search.parts));
  const expression = parseQuery(search.parts);
  const { core, filter, parts, wanted, sort } = search;
  const index = await followMessages(core);
  if (route === "words") {
    const found = await match(search, "messages_fts", sanitised);
    if (!expression) return found;
    return merge(found, await gluedRows(core, index, { parts, expression, filter }), sort).slice(0, wanted);
  }
  const places = expression && placesFor(index, expression);
  if (!places) return await scan(search, {});
  const order = sort === "oldest" ? "oldest" : "newest";
  const hits = await scanAmong(core, { expression, filter, wanted, ids: idsByTime(index, places, order) });
  return inTime(hits, order).slice(0, wanted);
}

/** A query the parser still refuses is asked once more as one phrase. */
async function match(search: Search, table: IndexTable, expression: string): Promise<readonly Found[]> {
  try {
    return await matchOnce(search, table, expression);
  } catch (error) {
    if (!(error instanceof StoreError) || !isQuerySyntax(error.cause)) throw error;
  }
  try {
    return await matchOnce(search, table, `"${expression.replaceAll('"', " ")}"`);
  } catch (error) {
    if (error instanceof StoreError && sqliteCode(error.cause) === 1) return [];
    throw error;
  }
}

async function matchOnce(
  { core, filter, sort, wanted, withSnippets }: Search,
  table: IndexTable,
  expression: string,
): Promise<Found[]> {
  const order = { newest: "m.timestamp DESC, f.rank", oldest: "m.timestamp, f.rank", none: "f.rank" }[sort ?? "none"];
  // FTS5 sorts by rank itself, so only rows of the page pay for their snippet; in any other order all rows would.
  const snippet =
    sort === null && withSnippets
      ? `CASE WHEN ${SIZE} <= ${SNIPPET_CHARS} THEN snippet(${table}, -1, '${MARK_START}', '${MARK_END}', '${CUT}', ${SNIPPET_TOKENS}) END`
      : "NULL";
  const rows = await core.read(() =>
    core.db.all<{ id: number; timestamp: number; rank: number; snippet: string | null }>(
      `SELECT m.id, m.timestamp, ${table}.rank AS rank, ${snippet} AS snippet
       FROM ${table} CROSS JOIN messages m ON m.id = ${table}.rowid CROSS JOIN sessions s ON s.id = m.session_id
       WHERE ${table} MATCH ? AND ${filter.sql} ORDER BY ${order.replace("f.rank", `${table}.rank`)} LIMIT ?`,
      expression,
      ...filter.values,
      wanted,
    ),
  );
  return rows.map((row) => ({ ...row, match: { table, expression } }));
}

async function scan(search: Search, range: { after?: number; upTo?: number }): Promise<readonly Found[]> {
  const expression = parseQuery(search.parts);
  if (expression === null) return [];
  const hits = await scanMessages(search.core, { expression, filter: search.filter, ...range });
  return inTime(hits, search.sort ?? "newest").slice(0, search.wanted);
}

function inTime(hits: readonly Found[], order: "newest" | "oldest"): readonly Found[] {
  const direction = order === "oldest" ? 1 : -1;
  return hits.toSorted((a, b) => direction * (a.timestamp - b.timestamp || a.id - b.id));
}

/** Rows found in two ways, each once: by rank where both have one, by time if asked for. */
function merge(some: readonly Found[], others: readonly Found[], sort: Search["sort"]): readonly Found[] {
  const known = new Set(some.map((one) => one.id));
  const added = others.filter((one) => !known.has(one.id));
  if (added.length === 0) return some;
  const all = [...some, ...added];
  const direction = sort === "oldest" ? 1 : -1;
  if (sort !== null) return all.sort((a, b) => direction * (a.timestamp - b.timestamp));
  return all.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
}

/** The newer original rebuilds its index in the background; ids in (after, upTo] are not in it yet. */
async function unindexedRange(core: StoreCore): Promise<{ after: number; upTo: number } | null> {
  if (!core.shape.tables.has("state_meta")) return null;
  const rows = await core.read(() =>
    core.db.all<{ key: string; value: string }>(
      "SELECT key, value FROM state_meta WHERE key IN ('fts_rebuild_high_water', 'fts_rebuild_progress')",
    ),
  );
  const number = (key: string) => Number(rows.find((row) => row.key === key)?.value ?? Number.NaN);
  const upTo = number("fts_rebuild_high_water");
  const after = number("fts_rebuild_progress") || 0;
  return Number.isFinite(upTo) && upTo > after ? { after, upTo } : null;
}

function describe(gap: { after: number; upTo: number }): { percent: number; note: string } {
  const percent = Math.floor((gap.after / gap.upTo) * 100);
  return {
    percent,
    note: `the search index is being rebuilt (${percent}%); rows it has not reached were searched directly`,
  };
}

// From ids to what a search shows: in a few statements for the whole page, because a page is asked for in every search.

type IndexTable = "messages_fts" | "messages_fts_trigram";

const SNIPPET_TOKENS = 40;
/** SQLite weighs each hit of a message against every other: a long run of one letter would take it hours. */
const SNIPPET_CHARS = 2000;
const SNIPPET_HITS = 64;
const SIZE = "COALESCE(length(m.content), 0) + COALESCE(length(m.tool_calls), 0)";
const CONTEXT_CHARS = 200;
/** A code point has four bytes at most. */
const CONTEXT_BYTES = 4 * CONTEXT_CHARS;

export interface Found {
  readonly id: number;
  readonly timestamp: number;
  /** Absent when it was not made along with the match. */
  readonly snippet?: string | null;
  /** As SQLite ranks: the lower, the better. Rows that were scanned have none. */
  readonly rank?: number;
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
  readonly size: number;
  readonly before: number | null;
  readonly after: number | null;
}

export function readHits(
  core: StoreCore,
  page: readonly Found[],
  options: { terms: readonly string[]; withContext: boolean },
): Promise<readonly SearchHit[]> {
  return core.read(() => hitsOf(core, page, options));
}

function hitsOf(
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
       m.content IS NOT NULL AND unicode(m.content) IS NULL AS in_parts, ${SIZE} AS size,
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
  const fromIndex = () => found.snippet ?? (found.match ? indexSnippet(core, found.id, found.match) : null);
  const made = row.in_parts === 0 && row.size <= SNIPPET_CHARS ? fromIndex() : null;
  if (made) return made;
  const whole = core.db.get<{ content: Uint8Array | null; tool_name: string | null; tool_calls: string | null }>(
    "SELECT CAST(content AS BLOB) AS content, tool_name, tool_calls FROM messages WHERE id = ?",
    found.id,
  );
  const text = plainText(whole?.content ?? null, core.log);
  const lower = text.toLowerCase();
  const inText = terms.some((term) => lower.includes(term.toLowerCase()));
  const isLong = row.in_parts === 0 && row.size > SNIPPET_CHARS;
  const best = isLong && hitsIn(`${lower} ${whole?.tool_calls ?? ""}`, terms) <= SNIPPET_HITS ? fromIndex() : null;
  if (best && best.length <= SNIPPET_CHARS) return best;
  return makeSnippet(inText ? text : [text, whole?.tool_name, whole?.tool_calls].filter(Boolean).join(" "), terms);
}

/** How often any of the terms occurs, as far as it matters. */
function hitsIn(lower: string, terms: readonly string[]): number {
  let hits = 0;
  for (const term of terms.map((one) => one.toLowerCase()).filter((one) => one !== ""))
    for (let at = lower.indexOf(term); at !== -1 && hits <= SNIPPET_HITS; at = lower.indexOf(term, at + 1)) hits++;
  return hits;
}

function indexSnippet(core: StoreCore, id: number, { table, expression }: NonNullable<Found["match"]>): string | null {
  // Numbers are bound as doubles, and FTS5 passes over a rowid that is no integer: it would show the first match of all.
  const row = core.db.get<{ snippet: string | null }>(
    `SELECT snippet(${table}, -1, ?, ?, ?, ?) AS snippet FROM ${table} WHERE rowid = CAST(? AS INTEGER) AND ${table} MATCH ?`,
    ...[MARK_START, MARK_END, CUT, SNIPPET_TOKENS, id, expression],
  );
  return row?.snippet ?? null;
}
