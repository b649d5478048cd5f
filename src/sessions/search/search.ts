// Search over everything said and heard.
import type { StoreCore } from "../core.ts";
import { isQuerySyntax, sqliteCode } from "../sqlite-errors.ts";
import { type SearchOptions, type SearchResult, StoreError } from "../store.ts";
import { type Found, type IndexTable, readHits, SNIPPET_TOKENS } from "./hits.ts";
import { parseQuery, type QueryPart, quoteAll, splitQuery, wantedTerms } from "./query.ts";
import { chooseRoute, mayRetryOnTrigram, type Route } from "./route.ts";
import { sanitiseQuery } from "./sanitise.ts";
import { scanMessages } from "./scan.ts";
import { CUT, MARK_END, MARK_START } from "./snippet.ts";

interface Search {
  readonly core: StoreCore;
  readonly parts: readonly QueryPart[];
  readonly filter: { readonly sql: string; readonly values: readonly string[] };
  readonly sort: "newest" | "oldest" | null;
  /** Rows needed from each source before the page is cut. */
  readonly wanted: number;
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
