import { setImmediate } from "node:timers/promises";
import type { StoreCore } from "../core.ts";
import { decodeText } from "../sessions.ts";
import { escapeLike } from "../titles.ts";
import type { RowFilter } from "./filter.ts";
import type { Expression } from "./query.ts";

// Row by row: for terms the indexes cannot answer, and for rows an unfinished rebuild has not reached. Scanned in slices of ids, so that
// a large history does not hold up everything else.

const SLICE = 4000;
const HAYSTACK = ["content", "tool_name", "tool_calls"];

interface ScanRequest {
  readonly expression: Expression;
  readonly filter: RowFilter;
  /** Ids in (after, upTo]. */
  readonly after?: number;
  readonly upTo?: number;
}

interface ScanHit {
  readonly id: number;
  readonly timestamp: number;
}

export async function scanMessages(core: StoreCore, request: ScanRequest): Promise<ScanHit[]> {
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

/** The same among some rows only, as many as are wanted, in the order of the ids. */
export async function scanAmong(
  core: StoreCore,
  request: Pick<ScanRequest, "expression" | "filter"> & { readonly ids: readonly number[]; readonly wanted: number },
): Promise<ScanHit[]> {
  offerContains(core);
  const condition = render(request.expression);
  const sql = `SELECT m.id, m.timestamp FROM json_each(?) CROSS JOIN messages m ON m.id = json_each.value
    CROSS JOIN sessions s ON s.id = m.session_id WHERE ${request.filter.sql} AND ${condition.sql}`;
  const hits: ScanHit[] = [];
  let size = Math.max(50, 2 * request.wanted);
  for (
    let at = 0;
    at < request.ids.length && hits.length < request.wanted;
    at += size, size = Math.min(SLICE, 2 * size)
  ) {
    if (at > 0) await setImmediate();
    const ids = JSON.stringify(request.ids.slice(at, at + size));
    hits.push(
      ...(await core.read(() => core.db.all<ScanHit>(sql, ids, ...request.filter.values, ...condition.values))),
    );
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
