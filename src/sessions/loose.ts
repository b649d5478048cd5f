// Loose rows: messages and calls of a running turn. They are on disk like all others, and what is made out of rows (search index, counters of
// the session) follows for many of them in one step: for each by itself it took thirty pages. Whoever needs what is made out of them, in
// whatever process, settles them first; a process that died leaves them to the next one.
import type { CallRecord } from "../llm/gate.ts";
import type { StoreCore } from "./core.ts";
import { addCall, type CountedCall, writeCall } from "./ledger.ts";
import { indexRows, LOOSE_KEY } from "./schema.ts";
import { readMeta, setMeta } from "./upgrade.ts";

/** So many are settled along the way, or so much text: the step must not be felt. */
const MOST_ROWS = 96;
const MOST_CHARS = 256 * 1024;

interface LooseFrom {
  readonly messages: number;
  readonly calls: number;
}

const chars = new WeakMap<StoreCore, number>();

export function recordModelCall(core: StoreCore, call: CallRecord, reservation?: number): void {
  const loose = core.shape.knowsLoose;
  const id = writeCall(core, call, { id: reservation ?? null, loose });
  if (loose) noteLoose(core, { calls: id }, 0);
  else addCall(core, call);
}

export function hasLoose(core: StoreCore): boolean {
  return core.shape.tables.has("state_meta") && readMeta(core.db, LOOSE_KEY) !== null;
}

/** The last message that is in the search index for sure; null when all are. */
export function looseAfter(core: StoreCore): number | null {
  const from = readFrom(core);
  return from && from.messages - 1;
}

/** Inside the transaction that writes them. */
export function noteLoose(core: StoreCore, row: Partial<LooseFrom>, length: number): void {
  const from = readFrom(core);
  const now = {
    messages: Math.min(from?.messages ?? Number.MAX_SAFE_INTEGER, row.messages ?? Number.MAX_SAFE_INTEGER),
    calls: Math.min(from?.calls ?? Number.MAX_SAFE_INTEGER, row.calls ?? Number.MAX_SAFE_INTEGER),
  };
  if (now.messages !== from?.messages || now.calls !== from.calls) setMeta(core.db, LOOSE_KEY, JSON.stringify(now));
  const total = (from ? (chars.get(core) ?? 0) : 0) + length;
  chars.set(core, total);
  if (
    total > MOST_CHARS ||
    ((row.messages ?? 0) - now.messages >= MOST_ROWS && row.messages !== Number.MAX_SAFE_INTEGER)
  )
    settleLoose(core);
}

/** Inside a transaction. */
export function settleLoose(core: StoreCore): void {
  const from = readFrom(core);
  if (!from) return;
  const { db, shape } = core;
  if (shape.messageColumns.has("loose")) {
    indexRows(db, shape, { sql: "id >= ? AND loose = 1", values: [from.messages] });
    countLoose(core, from.messages);
    db.run("UPDATE messages SET loose = NULL WHERE id >= ? AND loose = 1", from.messages);
  }
  const calls = db.all<CallRow>("SELECT * FROM model_calls WHERE id >= ? AND loose = 1 ORDER BY id", from.calls);
  for (const row of calls) addCall(core, callOf(row));
  db.run("UPDATE model_calls SET loose = NULL WHERE id >= ? AND loose = 1", from.calls);
  db.run("DELETE FROM state_meta WHERE key = ?", LOOSE_KEY);
  chars.delete(core);
}

function readFrom(core: StoreCore): LooseFrom | null {
  const text = hasLoose(core) ? readMeta(core.db, LOOSE_KEY) : null;
  if (text === null) return null;
  try {
    const { messages, calls } = JSON.parse(text) as Partial<LooseFrom>; // checked in the next line
    return { messages: Number(messages) || 0, calls: Number(calls) || 0 };
  } catch {
    return { messages: 0, calls: 0 }; // written by nobody we know: then all rows are looked at
  }
}

function countLoose(core: StoreCore, from: number): void {
  core.db.run(
    `UPDATE sessions SET
       message_count = COALESCE(message_count, 0) + loose.messages,
       tool_call_count = COALESCE(tool_call_count, 0) + loose.calls,
       last_activity_at = MAX(COALESCE(last_activity_at, 0), loose.at)
     FROM (
       SELECT session_id, COUNT(*) AS messages, MAX(timestamp) AS at,
         COALESCE(SUM(CASE WHEN json_valid(tool_calls) THEN json_array_length(tool_calls) END), 0) AS calls
       FROM messages WHERE id >= ? AND loose = 1 GROUP BY session_id
     ) AS loose WHERE sessions.id = loose.session_id`,
    from,
  );
}

interface CallRow {
  readonly session_id: string | null;
  readonly task: string;
  readonly model: string;
  readonly provider: string;
  readonly base_url: string;
  readonly api_mode: string;
  readonly started_at: number;
  readonly outcome: string;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly cost_usd: number | null;
  readonly cost_status: string;
  readonly cost_source: string | null;
}

const callOf = (row: CallRow): CountedCall => ({
  sessionId: row.session_id,
  task: row.task as CallRecord["task"], // written by us from one
  model: row.model,
  provider: row.provider,
  baseUrl: row.base_url,
  apiMode: row.api_mode,
  startedAt: row.started_at,
  outcome: row.outcome as CallRecord["outcome"], // as above
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  cacheReadTokens: row.cache_read_tokens,
  cacheWriteTokens: row.cache_write_tokens,
  reasoningTokens: row.reasoning_tokens,
  costUsd: row.cost_usd,
  costStatus: row.cost_status as CallRecord["costStatus"], // as above
  costSource: row.cost_source,
});
