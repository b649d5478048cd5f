// The result of a turn for programs, and the signals that stop one.
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

/** Calls back on the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once. Returns how to stop listening. */
export function onInterruptSignal(stop: (signal: NodeJS.Signals) => void): () => void {
  const codes: Partial<Record<NodeJS.Signals, number>> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
  let seen = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (seen) process.exit(codes[signal]);
    seen = true;
    stop(signal);
  };
  const names = Object.keys(codes) as NodeJS.Signals[]; // the keys just written
  for (const name of names) process.on(name, onSignal);
  return () => {
    for (const name of names) process.off(name, onSignal);
  };
}
