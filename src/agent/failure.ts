// What a failed model call means for the turn: wait and try again, or end with a sentence that helps.
import type { Clock } from "../kit/clock.ts";
import { EMPTY_ANSWER_BACKOFF, ERROR_BACKOFF, jitteredBackoff, MAX_RETRY_AFTER } from "../llm/errors/backoff.ts";
import { type ClassifiedError, classifyApiError, type Failure, type FailureReason } from "../llm/errors/classify.ts";
import { parseRetryAfter } from "../llm/errors/details.ts";
import { explainError, failureLine } from "../llm/errors/explain.ts";
import type { ModelError, ModelRequest } from "../llm/wire.ts";
import type { Conversation } from "./conversation.ts";
import { type Ending, failedEnding } from "./outcome.ts";

/** A server that answered, with nothing in it: it needs longer to recover than one that refused. */
const HOLDS_NOTHING: ReadonlySet<string> = new Set(["bad_answer", "invalid_response", "empty_stream"]);
const ASKS_FOR_PATIENCE = new Set<FailureReason>(["rate_limit", "upstream_rate_limit", "overloaded"]);

export function judgeFailure(error: ModelError, { model, meter, transcript }: Conversation): Failure {
  const { provider, model: name, contextLength } = model.target;
  const classified = classifyApiError(error, {
    provider,
    model: name,
    contextLength,
    approxTokens: meter.lastPromptTokens ?? 0,
    numMessages: transcript.messages.length,
  });
  const { retryable, shouldCompress, shouldFallback } = classified;
  return {
    error,
    classified,
    worthRetrying: retryable && !shouldCompress,
    worthMoving: shouldFallback || (retryable && !shouldCompress),
  };
}

export function retryDelayMs({ error, classified }: Failure, attempt: number, clock: Clock): number {
  const asked = parseRetryAfter(error.headers?.["retry-after"], clock.now());
  if (asked !== null && ASKS_FOR_PATIENCE.has(classified.reason)) return Math.min(asked, MAX_RETRY_AFTER) * 1000;
  const pace = HOLDS_NOTHING.has(error.code ?? "") ? EMPTY_ANSWER_BACKOFF : ERROR_BACKOFF;
  return jitteredBackoff(attempt, { ...pace, random: clock.random }) * 1000;
}

/** The pause after the n-th answer in a row that held nothing. */
export function emptyAnswerDelayMs(times: number, clock: Clock): number {
  return jitteredBackoff(times, { ...EMPTY_ANSWER_BACKOFF, random: clock.random }) * 1000;
}

export function failureEnding(
  { error, classified, worthRetrying }: Failure,
  attempts: number,
  { model }: Conversation,
): Ending {
  const line = failureLine(classified, model.target.apiKey);
  const { text } = explainError(classified, model.target, error);
  if (worthRetrying) {
    const times = attempts === 1 ? "1 attempt" : `${attempts} retries`;
    return failedEnding("all_retries_exhausted_no_response", `API call failed after ${times}: ${text}`, line);
  }
  return failedEnding(exitReason(classified), text, line);
}

/** What a server will never take is kept for whoever looks into it. */
export async function keepRefused(
  { options, transcript }: Conversation,
  { error, classified, worthRetrying }: Failure,
  request: ModelRequest,
): Promise<void> {
  const { keepRefused: keep, log } = options.ports;
  const status = classified.statusCode ?? 0;
  if (!keep || worthRetrying || status < 400 || status >= 500) return;
  try {
    const path = await keep({ sessionId: transcript.sessionId, request, error });
    log.warn(`the refused request was kept in ${path}`);
  } catch (problem) {
    log.warn("the refused request could not be kept", problem);
  }
}

function exitReason({ reason, shouldCompress }: ClassifiedError): string {
  if (reason === "budget_exceeded") return "budget_cap";
  if (reason === "content_policy_blocked") return "content_policy_blocked";
  return shouldCompress ? "context_overflow_exhausted" : "non_retryable_error";
}
