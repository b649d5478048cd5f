// Full-text search over all messages.

import { setImmediate } from "node:timers/promises";
import { sliceCodePoints } from "../../kit/code-points.ts";
import { isQuerySyntax, sqliteCode } from "../connection.ts";
import type { StoreCore } from "../core.ts";
import { decodeText, plainText } from "../sessions.ts";
import { type SearchHit, type SearchOptions, type SearchResult, StoreError } from "../store.ts";
import { escapeLike } from "../titles.ts";
import {
  chooseRoute,
  type Expression,
  mayRetryOnTrigram,
  parseQuery,
  type QueryPart,
  quoteAll,
  type Route,
  sanitiseQuery,
  splitQuery,
  wantedTerms,
} from "./query.ts";

interface Search {
  readonly core: StoreCore;
  readonly parts: readonly QueryPart[];
  readonly filter: { readonly sql: string; readonly values: readonly string[] };
  readonly sort: "newest" | "oldest" | null;
  /** Rows needed from each source before the page is cut. */
  readonly wanted: number;
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
    roleFilter: options.roleFilter,
  };
  const search: Search = {
    core,
    parts,
    filter: filterOf(core, options),
    sort: options.sort ?? null,
    wanted: offset + limit,
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
  const terms = wantedTerms(parts);
  const hits = await core.read(() => readHits(core, page, { terms, withContext: options.withContext ?? true }));
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
  // FTS5 sorts by rank itself, so only rows of the page pay for their snippet; in any other order all rows would.
  const snippet =
    sort === null ? `snippet(${table}, -1, '${MARK_START}', '${MARK_END}', '${CUT}', ${SNIPPET_TOKENS})` : "NULL";
  const rows = await core.read(() =>
    core.db.all<{ id: number; timestamp: number; snippet: string | null }>(
      `SELECT m.id, m.timestamp, ${snippet} AS snippet
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
  const direction = search.sort === "oldest" ? 1 : -1;
  return hits
    .sort((a, b) => direction * (a.timestamp - b.timestamp || a.id - b.id))
    .slice(0, search.wanted)
    .map((hit) => ({ ...hit, snippet: null }));
}

function merge(indexed: readonly Found[], scanned: readonly Found[], sort: Search["sort"]): readonly Found[] {
  const known = new Set(indexed.map((one) => one.id));
  const all = [...indexed, ...scanned.filter((one) => !known.has(one.id))];
  if (sort === null) return all;
  const direction = sort === "oldest" ? 1 : -1;
  return all.sort((a, b) => direction * (a.timestamp - b.timestamp));
}

// A search holds the words that were searched for, and its results all that was found: neither was said by anybody. A search that was
// called through the bridge to tools that wait is one too.
const SEARCH_TOOL = "session_search";
const BRIDGE = "tool_call";
const isSearch = (call: string) => {
  const args = `json_extract(${call}, '$.function.arguments')`;
  return `CASE json_extract(${call}, '$.function.name') WHEN '${SEARCH_TOOL}' THEN 1
    WHEN '${BRIDGE}' THEN json_valid(${args}) AND json_extract(CASE WHEN json_valid(${args}) THEN ${args} END, '$.name') IS '${SEARCH_TOOL}'
    ELSE 0 END`;
};
const callsOf = (row: string) =>
  `json_each(CASE WHEN json_valid(${row}.tool_calls) THEN ${row}.tool_calls ELSE '[]' END)`;
const NO_SEARCH = `COALESCE(m.tool_name, '') <> '${SEARCH_TOOL}' AND NOT (
  m.role = 'assistant' AND COALESCE(m.content, '') = '' AND COALESCE(m.tool_calls, '') LIKE '%${SEARCH_TOOL}%' AND json_valid(m.tool_calls)
  AND NOT EXISTS (SELECT 1 FROM ${callsOf("m")} AS one WHERE NOT ${isSearch("one.value")})
) AND NOT (
  COALESCE(m.tool_name, '') = '${BRIDGE}' AND EXISTS (
    SELECT 1 FROM (
      SELECT tool_calls FROM messages WHERE session_id = m.session_id AND role = 'assistant' AND id < m.id ORDER BY id DESC LIMIT 1
    ) AS asked, ${callsOf("asked")} AS one
    WHERE json_extract(one.value, '$.id') = m.tool_call_id AND ${isSearch("one.value")}))`;

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
  sql.push(NO_SEARCH);
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

// From ids to what a search shows: in a few statements for the whole page, because a page is asked for in every search.

type IndexTable = "messages_fts" | "messages_fts_trigram";

const SNIPPET_TOKENS = 40;
const CONTEXT_CHARS = 200;
/** A code point has four bytes at most. */
const CONTEXT_BYTES = 4 * CONTEXT_CHARS;

interface Found {
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

function readHits(
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

// The piece of a text around its first hit, hits marked, cuts shown.

const MARK_START = ">>>";
const MARK_END = "<<<";
const CUT = "...";
const LENGTH = 120;
const BEFORE = 40;

/** 120 code points from 40 before the first term that occurs; every whole hit inside is marked. Case is ignored. */
export function makeSnippet(text: string, terms: readonly string[]): string {
  const longestFirst = terms.filter((term) => term !== "").sort((a, b) => b.length - a.length);
  const hit = new RegExp(longestFirst.map(RegExp.escape).join("|") || "(?!)", "giu");
  const first = Math.max(0, text.search(hit));
  // A code point is at most two UTF-16 units, so these slices are long enough, and short for any length of text.
  const before = [...text.slice(Math.max(0, first - 2 * BEFORE), first)].slice(-BEFORE).join("");
  const after = [...text.slice(first, first + 2 * LENGTH)].slice(0, LENGTH - [...before].length).join("");
  const start = first - before.length;
  const end = first + after.length;
  const marked = (before + after).replace(hit, (found) => `${MARK_START}${found}${MARK_END}`);
  return `${start > 0 ? CUT : ""}${marked}${end < text.length ? CUT : ""}`;
}

// Row by row: for terms the indexes cannot answer, and for rows an unfinished rebuild has not reached. Scanned in slices of ids, so that
// a large history does not hold up everything else.

const SLICE = 4000;
const HAYSTACK = ["content", "tool_name", "tool_calls"];

interface ScanRequest {
  readonly expression: Expression;
  /** SQL conditions on `m` and `s`, with their values. */
  readonly filter: { readonly sql: string; readonly values: readonly string[] };
  /** Ids in (after, upTo]. */
  readonly after?: number;
  readonly upTo?: number;
}

interface ScanHit {
  readonly id: number;
  readonly timestamp: number;
}

async function scanMessages(core: StoreCore, request: ScanRequest): Promise<ScanHit[]> {
  offerContains(core);
  const condition = render(request.expression);
  const sql = `SELECT m.id, m.timestamp FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? AND m.id <= ? AND ${request.filter.sql} AND ${condition.sql}`;
  const newest = await core.read(
    () => core.db.get<{ id: number | null }>("SELECT MAX(id) AS id FROM messages")?.id ?? 0,
  );
  const upTo = Math.min(newest, request.upTo ?? newest);
  const hits: ScanHit[] = [];
  for (let from = request.after ?? 0; from < upTo; from += SLICE) {
    const to = Math.min(upTo, from + SLICE);
    hits.push(
      ...(await core.read(() => core.db.all<ScanHit>(sql, from, to, ...request.filter.values, ...condition.values))),
    );
    if (to < upTo) await setImmediate();
  }
  return hits;
}

function render(expression: Expression): { sql: string; values: (string | Uint8Array)[] } {
  if (expression.type === "term") return renderTerm(expression.text);
  const left = render(expression.left);
  const right = render(expression.right);
  const operator = { and: "AND", or: "OR", not: "AND NOT" }[expression.type];
  return { sql: `(${left.sql} ${operator} ${right.sql})`, values: [...left.values, ...right.values] };
}

/** LIKE stops at a NUL byte, comparing bytes does not; but bytes know no case, so only terms without ASCII letters are compared so. */
function renderTerm(term: string): { sql: string; values: (string | Uint8Array)[] } {
  if (!/[a-z]/i.test(term)) {
    const bytes = new TextEncoder().encode(term);
    return {
      sql: `(${HAYSTACK.map((name) => `COALESCE(instr(CAST(m.${name} AS BLOB), ?), 0) > 0`).join(" OR ")})`,
      values: HAYSTACK.map(() => bytes),
    };
  }
  const like = HAYSTACK.map((name) => `COALESCE(m.${name} LIKE ? ESCAPE '\\', 0)`).join(" OR ");
  const behindNul =
    "(COALESCE(instr(CAST(m.content AS BLOB), x'00'), 0) > 0 AND hermes_contains(CAST(m.content AS BLOB), ?))";
  const pattern = `%${escapeLike(term)}%`;
  return { sql: `(${like} OR ${behindNul})`, values: [...HAYSTACK.map(() => pattern), asciiLower(term)] };
}

const offered = new WeakSet<StoreCore>();

function offerContains(core: StoreCore): void {
  if (offered.has(core)) return;
  offered.add(core);
  core.db.database.function("hermes_contains", { deterministic: true }, (bytes, wanted) => {
    const text = bytes instanceof Uint8Array ? decodeText(bytes) : "";
    return asciiLower(text ?? "").includes(String(wanted)) ? 1 : 0;
  });
}

const asciiLower = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
