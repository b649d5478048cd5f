// What every model call used and cost. One row per call; the session's own counters and the per-model table of the newer original are
// added to in the same transaction, so that its statistics go on. Unknown stays unknown: NULL, never 0.
import type { CallRecord, CostStatus, Reservation, SpendingLimit, SpendingScope } from "../llm/gate.ts";
import type { StoreCore } from "./core.ts";
import { isGone, newHolder } from "./lanes.ts";
import { parseConfig } from "./lineage.ts";
import { LOOSE_KEY } from "./schema.ts";
import { sessionExists } from "./sessions.ts";
import type { StoredCall, UsageQuery, UsageTotals } from "./store.ts";

/** What the counters of a session are told of a call. */
export type CountedCall = Omit<CallRecord, "ms">;

/** To the counters of its session. A refused call never left: it counts nowhere else. */
export function addCall(core: StoreCore, call: CountedCall): void {
  if (call.sessionId === null || call.outcome === "refused" || !sessionExists(core, call.sessionId)) return;
  addToSession(core, call.sessionId, call);
  addToModelUsage(core, call.sessionId, call);
}

/** `id` null: a new row. One whose reservation is gone already gets its number all the same. */
export function writeCall(
  core: StoreCore,
  call: CallRecord,
  { id, loose = false }: { readonly id: number | null; readonly loose?: boolean },
): number {
  const { lastId } = core.db.run(
    `INSERT OR REPLACE INTO model_calls (id, session_id, turn, task, model, provider, base_url, api_mode, started_at, ms, outcome, input_tokens,
       output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd, cost_status, cost_source, job_id,
       bytes, common_bytes, broke_owner, broke_offset, cause, loose)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[id, call.sessionId, call.turn ?? null, call.task, call.model, call.provider, call.baseUrl, call.apiMode],
    ...[call.startedAt, call.ms, call.outcome, call.inputTokens, call.outputTokens, call.cacheReadTokens],
    ...[
      call.cacheWriteTokens,
      call.reasoningTokens,
      call.costUsd,
      call.costStatus,
      call.costSource,
      call.jobId ?? null,
    ],
    ...[
      call.bytes ?? null,
      call.commonBytes ?? null,
      call.brokeOwner ?? null,
      call.brokeOffset ?? null,
      call.cause ?? null,
      loose ? 1 : null,
    ],
  );
  return lastId;
}

/** No call lasts longer by default. Whoever is still at work then is no longer counted, but settles as usual. */
const RESERVED_SECONDS = 3600;
const HOLDER = newHolder();

/** Inside one transaction: no other process decides meanwhile. A reservation's `cost_source` says whose it is. */
export function reserveModelCall(core: StoreCore, call: CallRecord, limits: readonly SpendingLimit[]): Reservation {
  dropDeadReservations(core);
  const next = { usd: call.costUsd, tokens: sum(tokens(call).slice(0, 4)) };
  for (const [exceeded, limit] of limits.entries()) {
    const spent = spentIn(core, limit.scope, { reserved: true });
    for (const unit of ["usd", "tokens"] as const) {
      const cap = limit[unit];
      const needed = next[unit];
      if (cap !== null && needed !== null && spent[unit] + needed > cap) return { exceeded, unit, spent: spent[unit] };
    }
  }
  return { reservation: writeCall(core, { ...call, costSource: HOLDER }, { id: null }) };
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** Those of processes that are gone, and those that nobody settled in time. */
function dropDeadReservations(core: StoreCore): void {
  const oldest = core.now() - RESERVED_SECONDS;
  const day = 86_400;
  core.db.run(
    "DELETE FROM model_calls WHERE loose IS NULL AND started_at BETWEEN ? AND ? AND outcome = 'reserved'",
    ...[oldest - day, oldest],
  );
  const holders = core.db.all<{ holder: string }>(
    "SELECT DISTINCT cost_source AS holder FROM model_calls WHERE loose IS NULL AND started_at > ? AND outcome = 'reserved'",
    oldest,
  );
  for (const { holder } of holders) {
    if (!isGone(holder)) continue;
    core.db.run(
      "DELETE FROM model_calls WHERE loose IS NULL AND outcome = 'reserved' AND started_at > ? AND cost_source = ?",
      oldest,
      holder,
    );
  }
}

/** All calls of that kind, with numbered parameters: those that are in an index, and the loose ones. */
function callsWhere({ shape }: StoreCore, where: string): string {
  if (!shape.callColumns.has("loose")) return `SELECT * FROM model_calls WHERE ${where}`;
  const from = `(SELECT json_extract(value, '$.calls') FROM state_meta WHERE key = '${LOOSE_KEY}' AND json_valid(value))`;
  return `SELECT * FROM model_calls WHERE loose IS NULL AND ${where}
    UNION ALL SELECT * FROM model_calls WHERE loose = 1 AND id >= ${from} AND ${where}`;
}

function addToSession(core: StoreCore, sessionId: string, call: CountedCall): void {
  const { estimated, actual } = costs(call);
  core.db.run(
    `UPDATE sessions SET
       input_tokens = COALESCE(input_tokens, 0) + ?, output_tokens = COALESCE(output_tokens, 0) + ?,
       cache_read_tokens = COALESCE(cache_read_tokens, 0) + ?, cache_write_tokens = COALESCE(cache_write_tokens, 0) + ?,
       reasoning_tokens = COALESCE(reasoning_tokens, 0) + ?, api_call_count = COALESCE(api_call_count, 0) + 1,
       estimated_cost_usd = CASE WHEN ?6 IS NULL THEN estimated_cost_usd ELSE COALESCE(estimated_cost_usd, 0) + ?6 END,
       actual_cost_usd = CASE WHEN ?7 IS NULL THEN actual_cost_usd ELSE COALESCE(actual_cost_usd, 0) + ?7 END,
       billing_provider = COALESCE(billing_provider, ?8), billing_base_url = COALESCE(billing_base_url, ?9),
       billing_mode = COALESCE(billing_mode, ?10),
       cost_status = CASE WHEN cost_status = 'unknown' THEN cost_status ELSE ?11 END,
       cost_source = COALESCE(?12, cost_source)
     WHERE id = ?13`,
    ...tokens(call),
    ...[estimated, actual, call.provider, call.baseUrl, call.apiMode, call.costStatus, call.costSource, sessionId],
  );
}

function addToModelUsage(core: StoreCore, sessionId: string, call: CountedCall): void {
  const { estimated, actual } = costs(call);
  core.db.run(
    `INSERT INTO session_model_usage (session_id, model, billing_provider, billing_base_url, billing_mode, task, api_call_count,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd, actual_cost_usd,
       cost_status, cost_source, first_seen, last_seen)
     VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT(session_id, model, billing_provider, billing_base_url, billing_mode, task) DO UPDATE SET
       api_call_count = api_call_count + 1,
       input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
       cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
       cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
       reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
       estimated_cost_usd = estimated_cost_usd + excluded.estimated_cost_usd,
       actual_cost_usd = actual_cost_usd + excluded.actual_cost_usd,
       cost_status = CASE WHEN cost_status = 'unknown' THEN cost_status ELSE excluded.cost_status END,
       cost_source = COALESCE(excluded.cost_source, cost_source), last_seen = excluded.last_seen`,
    ...[sessionId, call.model, call.provider, call.baseUrl, call.apiMode, call.task],
    ...tokens(call),
    ...[estimated ?? 0, actual ?? 0, call.costStatus, call.costSource, call.startedAt, call.startedAt],
  );
}

/** Input, output, cache read, cache write, reasoning. */
function tokens(call: CountedCall): number[] {
  return [call.inputTokens, call.outputTokens, call.cacheReadTokens, call.cacheWriteTokens, call.reasoningTokens].map(
    (count) => count ?? 0,
  );
}

function costs(call: CountedCall): { estimated: number | null; actual: number | null } {
  return call.costStatus === "actual"
    ? { estimated: null, actual: call.costUsd }
    : { estimated: call.costUsd, actual: null };
}

const SPENT = `COALESCE(SUM(cost_usd), 0) AS usd,
  COALESCE(SUM(COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0) + COALESCE(cache_read_tokens, 0) + COALESCE(cache_write_tokens, 0)), 0) AS tokens`;

export function spentIn(
  core: StoreCore,
  scope: SpendingScope,
  { reserved = false }: { readonly reserved?: boolean } = {},
): { usd: number; tokens: number } {
  const counted = reserved ? core.now() - RESERVED_SECONDS : Number.MAX_VALUE;
  const spent = (where: string, ...values: (string | number)[]) =>
    core.db.get<{ usd: number; tokens: number }>(
      `SELECT ${SPENT} FROM (${callsWhere(core, `${where} AND (outcome <> 'reserved' OR started_at > ?${values.length + 1})`)})`,
      ...values,
      counted,
    );
  const row =
    "session" in scope
      ? spent("session_id IN (SELECT value FROM json_each(?1))", JSON.stringify(withSubagents(core, scope.session)))
      : "job" in scope
        ? spent("job_id = ?1", scope.job)
        : spent("started_at >= ?1 AND started_at < ?2", ...dayBounds(scope.day));
  return { usd: row?.usd ?? 0, tokens: row?.tokens ?? 0 };
}

export function usageBy(core: StoreCore, query: UsageQuery): ReadonlyMap<string, UsageTotals> {
  const key = { purpose: "task", model: "model", day: "date(started_at, 'unixepoch', 'localtime')" }[query.by];
  const members = query.sessionId === undefined ? null : JSON.stringify(withSubagents(core, query.sessionId));
  const rows = core.db.all<{ key: string; doubt: number } & Omit<UsageTotals, "costStatus">>(
    `SELECT ${key} AS key, COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS inputTokens,
       COALESCE(SUM(output_tokens), 0) AS outputTokens, COALESCE(SUM(cache_read_tokens), 0) AS cacheReadTokens,
       COALESCE(SUM(cache_write_tokens), 0) AS cacheWriteTokens, COALESCE(SUM(reasoning_tokens), 0) AS reasoningTokens,
       COALESCE(SUM(cost_usd), 0) AS costUsd, SUM(cost_usd IS NULL) AS unknownCostCalls,
       MAX(CASE WHEN cost_usd IS NULL THEN 3 WHEN cost_status = 'included' THEN 0 WHEN cost_status = 'actual' THEN 1 ELSE 2 END) AS doubt
     FROM (${callsWhere(core, "outcome NOT IN ('refused', 'reserved') AND started_at >= ?1 AND (?2 IS NULL OR session_id IN (SELECT value FROM json_each(?2)))")})
     GROUP BY 1 ORDER BY 1`,
    query.sinceSeconds ?? 0,
    members,
  );
  return new Map(
    rows.map(({ key: name, doubt, ...totals }) => [name, { ...totals, costStatus: COST_STATUSES[doubt] ?? "unknown" }]),
  );
}

/** Columns of `model_calls` and their names in a row. */
const CALL_FIELDS: Readonly<Record<keyof StoredCall, string>> = {
  id: "id",
  sessionId: "session_id",
  turn: "turn",
  task: "task",
  model: "model",
  provider: "provider",
  baseUrl: "base_url",
  apiMode: "api_mode",
  startedAt: "started_at",
  ms: "ms",
  outcome: "outcome",
  inputTokens: "input_tokens",
  outputTokens: "output_tokens",
  cacheReadTokens: "cache_read_tokens",
  cacheWriteTokens: "cache_write_tokens",
  reasoningTokens: "reasoning_tokens",
  costUsd: "cost_usd",
  costStatus: "cost_status",
  costSource: "cost_source",
  jobId: "job_id",
  bytes: "bytes",
  commonBytes: "common_bytes",
  brokeOwner: "broke_owner",
  brokeOffset: "broke_offset",
  cause: "cause",
};
/** Left out of a row when they are NULL; everywhere else NULL says "unknown". */
const OPTIONAL: ReadonlySet<string> = new Set([
  "turn",
  "jobId",
  "bytes",
  "commonBytes",
  "brokeOwner",
  "brokeOffset",
  "cause",
]);

export function callsOf(core: StoreCore, sessionId: string): readonly StoredCall[] {
  const columns = Object.entries(CALL_FIELDS).map(([field, column]) => `${column} AS ${field}`);
  const rows = core.db.all<StoredCall>(
    `SELECT ${columns.join(", ")} FROM (${callsWhere(core, "session_id = ?1 AND outcome <> 'reserved'")}) ORDER BY id`,
    sessionId,
  );
  return rows.map((row) => {
    const known = Object.entries(row).filter(([field, value]) => value !== null || !OPTIONAL.has(field));
    return Object.fromEntries(known) as unknown as StoredCall; // only optional fields are gone
  });
}

/** One conversation with its subagents and side sessions; a branch is counted for itself. */
function withSubagents(core: StoreCore, id: string): readonly string[] {
  const members = [id];
  for (let current = id; ; ) {
    const row = core.db.get<{ parent: string | null; model_config: string | null }>(
      "SELECT parent_session_id AS parent, model_config FROM sessions WHERE id = ?",
      current,
    );
    if (!row?.parent || members.includes(row.parent) || parseConfig(row.model_config)?._branched_from) break;
    current = row.parent;
    members.push(current);
  }
  const open = [...members];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    const children = core.db.all<{ id: string; model_config: string | null }>(
      "SELECT id, model_config FROM sessions WHERE parent_session_id = ?",
      parent,
    );
    for (const child of children) {
      if (members.includes(child.id) || parseConfig(child.model_config)?._branched_from) continue;
      members.push(child.id);
      open.push(child.id);
    }
  }
  return members;
}

/** Midnight to midnight, local time, in Unix seconds. */
function dayBounds(day: Date): [number, number] {
  const start = new Date(day.getFullYear(), day.getMonth(), day.getDate());
  const end = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1);
  return [start.getTime() / 1000, end.getTime() / 1000];
}

// Sums of model calls: what several groups took together, and how sure the money is.

/** From sure to unsure: a sum is as unsure as its worst part. */
export const COST_STATUSES = ["included", "actual", "estimated", "unknown"] as const;

export function addUsage(one: UsageTotals, other: UsageTotals): UsageTotals {
  return {
    calls: one.calls + other.calls,
    ...addTokens(one, other),
    costUsd: one.costUsd + other.costUsd,
    unknownCostCalls: one.unknownCostCalls + other.unknownCostCalls,
    costStatus: worse(one.costStatus, other.costStatus),
  };
}

type Tokens = Pick<
  UsageTotals,
  "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens" | "reasoningTokens"
>;

export function addTokens(one: Tokens, other: Tokens): Tokens {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
  };
}

/** The less sure of the two. */
export function worse(a: CostStatus, b: CostStatus): CostStatus {
  return COST_STATUSES.indexOf(a) >= COST_STATUSES.indexOf(b) ? a : b;
}
