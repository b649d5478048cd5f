// One row of `sessions`, in and out.

import { parseJson } from "./content.ts";
import type { Columns } from "./schema.ts";
import { SESSION_COLUMNS } from "./schema.ts";
import type { FileShape } from "./shape.ts";
import type { Session } from "./store.ts";

export interface SessionRow {
  readonly id: string;
  readonly source: string;
  readonly user_id: string | null;
  readonly model: string | null;
  readonly model_config: string | null;
  readonly parent_session_id: string | null;
  readonly started_at: number;
  readonly ended_at: number | null;
  readonly end_reason: string | null;
  readonly message_count: number | null;
  readonly tool_call_count: number | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly billing_provider: string | null;
  readonly billing_base_url: string | null;
  readonly billing_mode: string | null;
  readonly estimated_cost_usd: number | null;
  readonly actual_cost_usd: number | null;
  readonly cost_status: string | null;
  readonly cost_source: string | null;
  readonly title: string | null;
  readonly api_call_count: number | null;
  readonly cwd: string | null;
  readonly git_branch: string | null;
  readonly git_repo_root: string | null;
  readonly last_activity_at: number | null;
  readonly rewind_count: number | null;
  readonly archived: number | null;
  readonly pinned: number | null;
}

/** Prompts are long and have a reader of their own. */
const LEFT_OUT: ReadonlySet<string> = new Set(["system_prompt", "prompt_fingerprint"]);

const selectLists = new WeakMap<FileShape, string>();

/** The SELECT list of a `SessionRow` with table alias `s`; columns an old read-only file lacks come as NULL. */
export function sessionSelect(shape: FileShape): string {
  let list = selectLists.get(shape);
  if (!list) {
    const names = Object.keys(SESSION_COLUMNS satisfies Columns).filter((name) => !LEFT_OUT.has(name));
    list = names.map((name) => (shape.sessionColumns.has(name) ? `s.${name}` : `NULL AS ${name}`)).join(", ");
    selectLists.set(shape, list);
  }
  return list;
}

export function toSession(row: SessionRow): Session {
  return {
    id: row.id,
    source: row.source,
    userId: row.user_id,
    model: row.model,
    modelConfig: parseConfig(row.model_config),
    parentSessionId: row.parent_session_id,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    endReason: row.end_reason,
    messageCount: row.message_count ?? 0,
    toolCallCount: row.tool_call_count ?? 0,
    inputTokens: row.input_tokens ?? 0,
    outputTokens: row.output_tokens ?? 0,
    cacheReadTokens: row.cache_read_tokens ?? 0,
    cacheWriteTokens: row.cache_write_tokens ?? 0,
    reasoningTokens: row.reasoning_tokens ?? 0,
    apiCallCount: row.api_call_count ?? 0,
    billingProvider: row.billing_provider,
    billingBaseUrl: row.billing_base_url,
    billingMode: row.billing_mode,
    estimatedCostUsd: row.estimated_cost_usd,
    actualCostUsd: row.actual_cost_usd,
    costStatus: row.cost_status,
    costSource: row.cost_source,
    title: row.title,
    cwd: row.cwd,
    gitBranch: row.git_branch,
    gitRepoRoot: row.git_repo_root,
    lastActivityAt: row.last_activity_at,
    archived: row.archived === 1,
    pinned: row.pinned === 1,
    rewindCount: row.rewind_count ?? 0,
  };
}

/** A setting that is not a JSON object counts as none. */
export function parseConfig(text: string | null): Readonly<Record<string, unknown>> | null {
  if (text === null) return null;
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null; // checked just now
}
