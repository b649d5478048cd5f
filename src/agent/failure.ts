// What a failed model call means for the turn: wait and try again, or end with a sentence that helps.
import type { Clock } from "../kit/clock.ts";
import type { ModelError } from "../llm/wire.ts";
import type { Conversation } from "./conversation.ts";
import { type Ending, failedEnding } from "./outcome.ts";

export interface Failure {
  readonly reason: string;
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly message: string;
  /** Seconds the server asked us to wait. */
  readonly retryAfter: number | null;
}

export function judgeFailure(error: ModelError, _conversation: Conversation): Failure {
  const { status } = error;
  const refused = error.code === "budget_exceeded";
  const retryable = !refused && (status === undefined || status === 408 || status === 429 || status >= 500);
  const reason = refused ? "budget_exceeded" : status === 429 ? "rate_limit" : "unknown";
  return { reason, retryable, status, message: error.message.slice(0, 500), retryAfter: null };
}

export function retryDelayMs(failure: Failure, attempt: number, clock: Clock): number {
  if (failure.retryAfter !== null) return failure.retryAfter * 1000;
  return backoffMs(attempt, { base: 2, max: 60 }, clock);
}

export function backoffMs(
  attempt: number,
  range: { readonly base: number; readonly max: number },
  clock: Clock,
): number {
  const delay = Math.min(range.base * 2 ** (attempt - 1), range.max);
  return (delay + (clock.random() * delay) / 2) * 1000;
}

export function failureEnding(failure: Failure, attempts: number): Ending {
  const error = failure.status === undefined ? failure.message : `HTTP ${failure.status}: ${failure.message}`;
  if (failure.reason === "budget_exceeded") return failedEnding("budget_cap", failure.message, "budget_exceeded");
  if (failure.retryable)
    return failedEnding(
      "all_retries_exhausted_no_response",
      `API call failed after ${attempts} retries: ${error}`,
      error,
    );
  return failedEnding("non_retryable_error", `The model call failed: ${error}`, error);
}
