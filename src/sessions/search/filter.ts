// Which rows a search may find.
import type { StoreCore } from "../core.ts";
import type { SearchOptions } from "../store.ts";

/** SQL conditions on a message `m` and its session `s`, with their values. */
export interface RowFilter {
  readonly sql: string;
  readonly values: readonly string[];
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
export const NO_SEARCH = `COALESCE(m.tool_name, '') <> '${SEARCH_TOOL}' AND NOT (
  m.role = 'assistant' AND COALESCE(m.content, '') = '' AND COALESCE(m.tool_calls, '') LIKE '%${SEARCH_TOOL}%' AND json_valid(m.tool_calls)
  AND NOT EXISTS (SELECT 1 FROM ${callsOf("m")} AS one WHERE NOT ${isSearch("one.value")})
) AND NOT (
  COALESCE(m.tool_name, '') = '${BRIDGE}' AND EXISTS (
    SELECT 1 FROM (
      SELECT tool_calls FROM messages WHERE session_id = m.session_id AND role = 'assistant' AND id < m.id ORDER BY id DESC LIMIT 1
    ) AS asked, ${callsOf("asked")} AS one
    WHERE json_extract(one.value, '$.id') = m.tool_call_id AND ${isSearch("one.value")}))`;

export function filterOf(core: StoreCore, options: SearchOptions): RowFilter {
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
