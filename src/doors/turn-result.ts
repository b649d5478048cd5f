// The result of a turn for programs.
import type { AgentEvent, TurnOutcome } from "../agent/events.ts";

/** What an event warns of; null for all others. */
export function warningOf(event: AgentEvent): string | null {
  return event.type === "status" && event.kind === "warn" ? event.message : null;
}

/** The JSON object of `--json`: a format that scripts rely on. `warnings` is what a person would have been shown. */
export function resultJson(outcome: TurnOutcome, warnings: readonly string[]) {
  const { totals } = outcome;
  return {
    session_id: outcome.sessionId,
    final_response: outcome.finalText,
    completed: outcome.completed,
    failed: outcome.failed,
    interrupted: outcome.interrupted,
    error: outcome.error ?? null,
    warnings,
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
