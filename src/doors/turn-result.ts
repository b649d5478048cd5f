// The result of a turn for programs.
import type { TurnOutcome } from "../agent/events.ts";

/** The JSON object of `--json`: a format that scripts rely on. */
export function resultJson(outcome: TurnOutcome) {
  const { totals } = outcome;
  return {
    session_id: outcome.sessionId,
    final_response: outcome.finalText,
    completed: outcome.completed,
    failed: outcome.failed,
    interrupted: outcome.interrupted,
    error: outcome.error ?? null,
    turn_exit_reason: outcome.exitReason,
    model: outcome.model,
    provider: outcome.provider,
    api_calls: outcome.apiCalls,
    usage: {
      input_tokens: totals.inputTokens,
      output_tokens: totals.outputTokens,
      cache_read_tokens: totals.cacheReadTokens,
      cache_write_tokens: totals.cacheWriteTokens,
      reasoning_tokens: totals.reasoningTokens,
    },
    cost_usd: totals.costUsd,
    cost_status: totals.costStatus,
  };
}
