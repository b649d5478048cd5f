// What happened in a period: totals, who did it, with what, and when. Read from the sessions and their messages alone.
import type { StoreCore } from "./core.ts";

export interface InsightsQuery {
  /** Unix seconds. */
  readonly since: number;
  readonly source?: string | undefined;
}

export interface Insights {
  readonly totals: InsightTotals;
  readonly models: readonly InsightGroup[];
  readonly sources: readonly InsightGroup[];
  readonly tools: readonly { readonly name: string; readonly calls: number }[];
  /** Messages of users: Sunday first, and by hour of the day; local time. */
  readonly byWeekday: readonly number[];
  readonly byHour: readonly number[];
  readonly notable: readonly NotableSession[];
}

export interface InsightTotals {
  readonly sessions: number;
  readonly messages: number;
  readonly userMessages: number;
  readonly toolCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** Known costs only. */
  readonly costUsd: number;
  /** Sessions that asked a model and whose cost nobody knows. */
  readonly unknownCostSessions: number;
  /** Pauses between two messages count up to ten minutes. */
  readonly activeSeconds: number;
}

export interface InsightGroup {
  readonly name: string;
  readonly sessions: number;
  readonly messages: number;
  readonly tokens: number;
  readonly costUsd: number;
  readonly unknownCostSessions: number;
}

export interface NotableSession {
  readonly why: "longest" | "most messages" | "most tokens" | "most tool calls";
  readonly id: string;
  readonly title: string | null;
  /** Seconds, messages, tokens or calls. */
  readonly value: number;
}

const LONGEST_PAUSE_SECONDS = 600;
const SHOWN_TOOLS = 15;

const TOKENS = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];

export function readInsights(core: StoreCore, { since, source }: InsightsQuery): Insights {
  const { db, shape } = core;
  // A file of an older version that is only read lacks the newer columns.
  const column = (name: string) => (shape.sessionColumns.has(name) ? `COALESCE(s.${name}, 0)` : "0");
  const cost = `COALESCE(${shape.sessionColumns.has("actual_cost_usd") ? "s.actual_cost_usd" : "NULL"}, ${shape.sessionColumns.has("estimated_cost_usd") ? "s.estimated_cost_usd" : "NULL"})`;
  const tokens = TOKENS.map(column).join(" + ");
  const unknownCost = `(${cost} IS NULL AND ${tokens} > 0)`;
  const where = "s.started_at >= ?1 AND (?2 IS NULL OR s.source = ?2)";
  const values = [since, source ?? null] as const;
  const inPeriod = `JOIN sessions s ON s.id = m.session_id WHERE ${where}`;
  // Pauses between neighbouring messages of one session.
  const pauses = `SELECT m.session_id AS id, m.timestamp - LAG(m.timestamp) OVER (PARTITION BY m.session_id ORDER BY m.id) AS pause
    FROM messages m ${inPeriod}`;
  const active = `SELECT id, SUM(MIN(MAX(pause, 0), ${LONGEST_PAUSE_SECONDS})) AS seconds FROM (${pauses}) GROUP BY id`;

  const totals = db.get<Omit<InsightTotals, "userMessages" | "activeSeconds">>(
    `SELECT COUNT(*) AS sessions, COALESCE(SUM(${column("message_count")}), 0) AS messages,
       COALESCE(SUM(${column("tool_call_count")}), 0) AS toolCalls,
       COALESCE(SUM(${column("input_tokens")}), 0) AS inputTokens, COALESCE(SUM(${column("output_tokens")}), 0) AS outputTokens,
       COALESCE(SUM(${column("cache_read_tokens")}), 0) AS cacheReadTokens,
       COALESCE(SUM(${column("cache_write_tokens")}), 0) AS cacheWriteTokens,
       COALESCE(SUM(${column("reasoning_tokens")}), 0) AS reasoningTokens,
       COALESCE(SUM(${cost}), 0) AS costUsd, COALESCE(SUM(${unknownCost}), 0) AS unknownCostSessions
     FROM sessions s WHERE ${where}`,
    ...values,
  );
  const groups = (key: string) =>
    db.all<InsightGroup>(
      `SELECT ${key} AS name, COUNT(*) AS sessions, COALESCE(SUM(${column("message_count")}), 0) AS messages,
         COALESCE(SUM(${tokens}), 0) AS tokens, COALESCE(SUM(${cost}), 0) AS costUsd,
         COALESCE(SUM(${unknownCost}), 0) AS unknownCostSessions
       FROM sessions s WHERE ${where} GROUP BY 1 ORDER BY tokens DESC, sessions DESC, name`,
      ...values,
    );
  const users = (format: string, length: number) => {
    const counts = db.all<{ slot: number; n: number }>(
      `SELECT CAST(strftime('${format}', m.timestamp, 'unixepoch', 'localtime') AS INTEGER) AS slot, COUNT(*) AS n
       FROM messages m ${inPeriod} AND m.role = 'user' GROUP BY 1`,
      ...values,
    );
    return Array.from({ length }, (_, slot) => counts.find((row) => row.slot === slot)?.n ?? 0);
  };
  const byHour = users("%H", 24);
  const notable = (why: NotableSession["why"], value: string, join = "") => {
    const row = db.get<Omit<NotableSession, "why">>(
      `SELECT s.id, s.title, ${value} AS value FROM sessions s ${join} WHERE ${where} AND ${value} > 0 ORDER BY value DESC, s.id LIMIT 1`,
      ...values,
    );
    return row ? [{ why, ...row }] : [];
  };
  return {
    totals: {
      ...(totals ?? NOTHING),
      userMessages: byHour.reduce((sum, count) => sum + count, 0),
      activeSeconds:
        db.get<{ seconds: number | null }>(`SELECT SUM(seconds) AS seconds FROM (${active})`, ...values)?.seconds ?? 0,
    },
    models: groups("COALESCE(s.model, '(none)')"),
    sources: groups("s.source"),
    tools: db.all(
      `SELECT m.tool_name AS name, COUNT(*) AS calls FROM messages m ${inPeriod} AND m.role = 'tool' AND m.tool_name <> ''
       GROUP BY 1 ORDER BY calls DESC, name LIMIT ${SHOWN_TOOLS}`,
      ...values,
    ),
    byWeekday: users("%w", 7),
    byHour,
    notable: [
      ...notable("longest", "a.seconds", `JOIN (${active}) a ON a.id = s.id`),
      ...notable("most messages", column("message_count")),
      ...notable("most tokens", `(${tokens})`),
      ...notable("most tool calls", column("tool_call_count")),
    ],
  };
}

const NOTHING: Omit<InsightTotals, "userMessages" | "activeSeconds"> = {
  sessions: 0,
  messages: 0,
  toolCalls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  unknownCostSessions: 0,
};
