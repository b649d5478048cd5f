// Search over everything said and heard.
import { sliceCodePoints } from "../../kit/code-points.ts";
import { plainText } from "../content.ts";
import type { StoreCore } from "../core.ts";
import { isQuerySyntax, sqliteCode } from "../sqlite-errors.ts";
import type { SearchHit, SearchOptions, SearchResult } from "../store.ts";
import { StoreError } from "../store.ts";
import { chooseRoute, mayRetryOnTrigram, type Route } from "./route.ts";
import { sanitiseQuery } from "./sanitise.ts";
import { scanMessages } from "./scan.ts";
import { CUT, MARK_END, MARK_START, makeSnippet } from "./snippet.ts";
import { parseQuery, type QueryPart, quoteAll, splitQuery, wantedTerms } from "./terms.ts";

const SNIPPET_TOKENS = 40;
const CONTEXT_CHARS = 200;

type IndexTable = "messages_fts" | "messages_fts_trigram";

interface Found {
  readonly id: number;
  readonly timestamp: number;
  /** Absent for rows that were scanned. */
  readonly match?: { readonly table: IndexTable; readonly expression: string };
}

interface Search {
  readonly core: StoreCore;
  readonly parts: readonly QueryPart[];
  readonly filter: { readonly sql: string; readonly values: readonly string[] };
  readonly sort: "newest" | "oldest" | null;
  /** Rows needed from each source before the page is cut. */
  readonly wanted: number;
  readonly withContext: boolean;
}

export interface SearchSettings {
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
  const { shape } = core;
  if (!shape.fts5 || shape.main === "none") {
    return { hits: [], unavailable: "search is unavailable: this SQLite build or file has no full-text index" };
  }
  const sanitised = sanitiseQuery(query);
  const parts = splitQuery(sanitised);
  const { limit = 20, offset = 0 } = options;
  if (sanitised === "" || parts.length === 0 || limit <= 0) return { hits: [] };
  const facts = {
    trigram: shape.trigram !== "none",
    ...(options.roleFilter ? { roleFilter: options.roleFilter } : {}),
  };
  const search: Search = {
    core,
    parts,
    filter: filterOf(core, options),
    sort: options.sort ?? null,
    wanted: offset + limit,
    withContext: options.withContext ?? true,
  };
  let route: Route = chooseRoute(parts, facts);
  const gap = await unindexedRange(core);
  let found = await findBy(route, search, sanitised);
  if (route === "words" && found.length === 0 && mayRetryOnTrigram(parts, facts)) {
    route = "trigram";
    found = await findBy(route, search, sanitised);
  }
  if (gap && route !== "scan") found = merge(found, await scan(search, gap), search.sort);
  const page = found.slice(offset, offset + limit);
  const hits = await core.read(() => page.flatMap((one) => toHit(search, one)));
  const ms = performance.now() - started;
  if (ms > settings.slowMs) core.log.warn(`slow search: ${Math.round(ms)} ms, route ${route}, ${hits.length} hits`);
  return gap ? { hits, indexRebuild: describe(gap) } : { hits };
}

async function findBy(route: Route, search: Search, sanitised: string): Promise<readonly Found[]> {
  if (route === "words") return await match(search, "messages_fts", sanitised);
  if (route === "trigram") return await match(search, "messages_fts_trigram", quoteAll(search.parts));
  return await scan(search, {});
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
  { core, filter, sort, wanted }: Search,
  table: IndexTable,
  expression: string,
): Promise<Found[]> {
  const order = { newest: "m.timestamp DESC, f.rank", oldest: "m.timestamp, f.rank", none: "f.rank" }[sort ?? "none"];
  const rows = await core.read(() =>
    core.db.all<{ id: number; timestamp: number }>(
      `SELECT m.id, m.timestamp FROM ${table} f JOIN messages m ON m.id = f.rowid JOIN sessions s ON s.id = m.session_id
       WHERE f.${table} MATCH ? AND ${filter.sql} ORDER BY ${order} LIMIT ?`,
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
  const direction = search.sort === "oldest" ? 1 : -1;
  return hits.sort((a, b) => direction * (a.timestamp - b.timestamp || a.id - b.id)).slice(0, search.wanted);
}

function merge(indexed: readonly Found[], scanned: readonly Found[], sort: Search["sort"]): readonly Found[] {
  const known = new Set(indexed.map((one) => one.id));
  const all = [...indexed, ...scanned.filter((one) => !known.has(one.id))];
  if (sort === null) return all;
  const direction = sort === "oldest" ? 1 : -1;
  return all.sort((a, b) => direction * (a.timestamp - b.timestamp));
}

function filterOf(core: StoreCore, options: SearchOptions): Search["filter"] {
  const { messageColumns } = core.shape;
  const sql: string[] = ["1"];
  const values: string[] = [];
  const within = (column: string, list: readonly string[] | undefined, not = "") => {
    if (!list || (list.length === 0 && not !== "")) return;
    sql.push(`${column} ${not}IN (SELECT value FROM json_each(?))`);
    values.push(JSON.stringify(list));
  };
  within("s.source", options.sourceFilter);
  within("s.source", options.excludeSources, "NOT ");
  within("m.role", options.roleFilter);
  if (!options.includeInactive && messageColumns.has("active")) {
    sql.push(messageColumns.has("compacted") ? "(m.active = 1 OR m.compacted = 1)" : "m.active = 1");
  }
  return { sql: sql.join(" AND "), values };
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

interface HitRow {
  readonly session_id: string;
  readonly role: string;
  readonly content: Uint8Array | null;
  readonly tool_name: string | null;
  readonly tool_calls: string | null;
  readonly timestamp: number;
  readonly source: string;
  readonly model: string | null;
  readonly started_at: number;
  readonly compacted: number;
}

function toHit(search: Search, found: Found): SearchHit[] {
  const { core } = search;
  const compacted = core.shape.messageColumns.has("compacted") ? "m.compacted" : "0";
  const row = core.db.get<HitRow>(
    `SELECT m.session_id, m.role, CAST(m.content AS BLOB) AS content, m.tool_name, m.tool_calls, m.timestamp, s.source, s.model,
       s.started_at, ${compacted} AS compacted
     FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id = ?`,
    found.id,
  );
  if (!row) return [];
  return [
    {
      id: found.id,
      sessionId: row.session_id,
      role: row.role,
      snippet: snippetOf(search, found, row),
      timestamp: row.timestamp,
      toolName: row.tool_name,
      source: row.source,
      model: row.model,
      sessionStarted: row.started_at,
      compacted: row.compacted === 1,
      context: search.withContext ? contextOf(core, row.session_id, found.id) : [],
    },
  ];
}

function snippetOf({ core, parts }: Search, found: Found, row: HitRow): string {
  const inParts = row.content?.[0] === 0;
  if (found.match && !inParts) {
    const { table, expression } = found.match;
    const made = core.db.get<{ snippet: string | null }>(
      `SELECT snippet(${table}, -1, ?, ?, ?, ?) AS snippet FROM ${table} WHERE rowid = ? AND ${table} MATCH ?`,
      ...[MARK_START, MARK_END, CUT, SNIPPET_TOKENS, found.id, expression],
    );
    if (made?.snippet) return made.snippet;
  }
  const terms = wantedTerms(parts);
  const text = plainText(row.content, core.log);
  const lower = text.toLowerCase();
  const inText = terms.some((term) => lower.includes(term.toLowerCase()));
  return makeSnippet(inText ? text : [text, row.tool_name, row.tool_calls].filter(Boolean).join(" "), terms);
}

/** The message before, the hit, the message after. */
function contextOf(core: StoreCore, sessionId: string, id: number): SearchHit["context"] {
  const active = core.shape.messageColumns.has("active") ? "AND active = 1" : "";
  const near = (condition: string, order: string) =>
    core.db.get<{ role: string; content: Uint8Array | null }>(
      `SELECT role, CAST(content AS BLOB) AS content FROM messages
       WHERE session_id = ? AND id ${condition} ? ${condition === "=" ? "" : active} ORDER BY id ${order} LIMIT 1`,
      sessionId,
      id,
    );
  return [near("<", "DESC"), near("=", "ASC"), near(">", "ASC")].flatMap((row) =>
    row ? [{ role: row.role, content: cut(plainText(row.content, core.log)) }] : [],
  );
}

const cut = (text: string) => sliceCodePoints(text, 0, CONTEXT_CHARS);
