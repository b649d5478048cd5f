// Whether a question that failed is worth asking again: attempts, pauses, and the repairs that a refusal teaches.

import { mkdir } from "node:fs/promises";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { writeFileAtomic } from "../kit/files.ts";
import { type ClassifiedError, classifyApiError, type Failure, type FailureReason } from "../llm/errors/classify.ts";
import {
  EMPTY_ANSWER_BACKOFF,
  ERROR_BACKOFF,
  jitteredBackoff,
  MAX_RETRY_AFTER,
  parseAvailableOutputTokensFromError,
  parseContextLimitFromError,
  parseRetryAfter,
} from "../llm/errors/details.ts";
import { explainError, failureLine } from "../llm/errors/explain.ts";
import type { KeyStep } from "../llm/keys/ring.ts";
import { hostBelongs, hostOf } from "../llm/providers/hosts.ts";
import type { ModelError, ModelRequest, Target } from "../llm/wire.ts";
import type { Asking } from "./ask-model.ts";
import type { RefusedRequest } from "./assembly.ts";
import type { Conversation } from "./conversation.ts";
import { type Ending, failedEnding } from "./outcome.ts";

/** A sign of life while a model or a pause is waited for. */
export const HEARTBEAT_MS = 30_000;
const STREAM_RETRIES = 2;
/** So often in a row a provider may fall silent before somebody else is asked. */
const MAX_SILENCES = 5;

const BREAKS: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "stream_cut", "stream_ended"]);

/** Refusals that waiting does not mend soon: with somebody to stand in, nobody waits. */
const GIVES_WAY = new Set<FailureReason>(["rate_limit", "upstream_rate_limit", "billing"]);
const NO_QUOTA = new Set<FailureReason>([...GIVES_WAY, "budget_exceeded"]);

/** What one question has cost so far, and whether it is worth asking again. */
export class RetryPolicy {
  readonly #asking: Asking;
  #attempt = 1;
  #reconnected = 0;
  /** A fresh connection was tried, or cannot be had. */
  #renewed: boolean;

  constructor(asking: Asking) {
    this.#asking = asking;
    this.#renewed = asking.conversation.assembly.renewConnections === undefined;
  }

  get made(): number {
    return this.#attempt;
  }

  async after(failure: Failure, request: ModelRequest): Promise<"again" | "failed" | "interrupted"> {
    // These cost no attempt: there are only so many lessons, breaks in a row, and keys.
    const { conversation, onBlind } = this.#asking;
    const saw = conversation.takesImages;
    if (this.#learns(failure, request)) {
      if (saw && !conversation.takesImages) await onBlind?.();
      return "again";
    }
    if (this.#reconnects(failure)) return "again";
    const key = await conversation.keys.afterFailure(conversation.model.target, failure);
    if (key.type === "next" || key.type === "renewed") {
      this.#adopt(key, failure);
      return "again";
    }
    return this.#waitFor(failure, key);
  }

  #learns({ error, classified }: Failure, request: ModelRequest): boolean {
    const { conversation, emit } = this.#asking;
    const { lessons, transcript, assembly } = conversation;
    const lesson = lessons.learn(error, classified, request);
    if (lesson === null) return false;
    assembly.gate.expectNewPrefix(transcript.sessionId, "repair");
    emit({ type: "status", kind: "warn", message: lesson });
    return true;
  }

  #reconnects(failure: Failure): boolean {
    const most = this.#asking.conversation.assembly.limits.streamRetries ?? STREAM_RETRIES;
    const again = this.#reconnected < most && brokeOff(failure);
    this.#reconnected = again ? this.#reconnected + 1 : 0;
    if (again) this.#report(`${this.#line(failure)} — reconnecting`);
    return again;
  }

  #adopt({ type, target }: Extract<KeyStep, { target: Target }>, failure: Failure): void {
    const what =
      type === "renewed"
        ? `the login to ${target.provider} was renewed.`
        : `continuing with the next key of ${target.provider}.`;
    const message = `${this.#line(failure)} — ${what}`;
    this.#asking.conversation.adoptTarget(target);
    this.#asking.emit({ type: "status", kind: "warn", message });
  }

  async #waitFor(failure: Failure, key: KeyStep): Promise<"again" | "failed" | "interrupted"> {
    const { fallback, model, assembly } = this.#asking.conversation;
    const { error, classified, worthRetrying } = failure;
    const attempts = Math.max(1, assembly.limits.apiMaxRetries);
    const used = this.#attempt >= attempts && key.type !== "same";
    if (!worthRetrying) return "failed";
    const silences = error.code === "stale_stream" ? fallback.noteSilence() : 0;
    if (silences >= MAX_SILENCES && (await fallback.available())) return "failed";
    if (key.type === "none" && GIVES_WAY.has(classified.reason) && (await fallback.available())) return "failed";
    if (used && (this.#renewed || !mayBeStale(failure, model.target))) return "failed";
    const delay = used ? Math.min(3 + this.#attempt, 8) * 1000 : retryDelayMs(failure, this.#attempt, assembly.clock);
    const next = used ? "with a new connection" : `attempt ${this.#attempt + 1} of ${attempts}`;
    this.#report(`${this.#line(failure)} — retrying in ${Math.round(delay / 100) / 10} s (${next})`);
    if (!(await pause(this.#asking, delay))) return "interrupted";
    if (used) {
      this.#renewed = true;
      assembly.renewConnections?.();
    }
    if (key.type !== "same") this.#attempt = used ? 1 : this.#attempt + 1;
    return "again";
  }

  #line({ classified }: Failure): string {
    return failureLine(classified, this.#asking.conversation.model.target.apiKey);
  }

  #report(message: string): void {
    this.#asking.emit({ type: "status", kind: "lifecycle", message, recovery: true });
  }
}

/** The connection broke before anything came: most often the next one holds, and nobody has to wait for it. */
function brokeOff({ error, classified }: Failure): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  return BREAKS.has(error.code ?? "");
}

/** The connection itself may be what is broken: a fresh one is worth one more round. Relays break for other reasons. */
function mayBeStale({ error, classified }: Failure, { provider, baseUrl }: Target): boolean {
  if (classified.reason !== "timeout" || classified.statusCode !== undefined) return false;
  if (error.code === "ECONNREFUSED" || error.code === "ENOTFOUND") return false;
  return provider !== "openrouter" && provider !== "nous" && !hostBelongs(hostOf(baseUrl), "openrouter.ai");
}

/** Waits, with a sign of life every half minute. False when the turn was interrupted meanwhile. */
export async function pause({ conversation, signal, emit }: Asking, ms: number): Promise<boolean> {
  const { clock } = conversation.assembly;
  for (let left = ms; left > 0 && !signal.aborted; left -= HEARTBEAT_MS) {
    try {
      await clock.sleep(Math.min(left, HEARTBEAT_MS), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (left > HEARTBEAT_MS) emit({ type: "status", kind: "heartbeat", message: "waiting to retry" });
  }
  return !signal.aborted;
}

// What a failed model call means for the turn: wait and try again, or end with a sentence that helps.

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
  const facts = {
    failure: { reason: classified.reason },
    ...(NO_QUOTA.has(classified.reason) ? { stoppedByQuota: true as const } : {}),
  };
  if (worthRetrying) {
    const times = attempts === 1 ? "1 attempt" : `${attempts} retries`;
    const said = `API call failed after ${times}: ${text}`;
    return { ...failedEnding("all_retries_exhausted_no_response", said, line), ...facts };
  }
  return { ...failedEnding(exitReason(classified), text, line), ...facts };
}

/** What a server will never take is kept for whoever looks into it. */
export async function keepRefused(
  { assembly, transcript }: Conversation,
  { error, classified, worthRetrying }: Failure,
  request: ModelRequest,
): Promise<void> {
  const { keepRefused: keep, log } = assembly;
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

// A request was refused as too long: less room for the answer, a smaller window, or a shorter conversation.

const MAX_ATTEMPTS = 3;
const PAUSE_MS = 2000;
const SPARE_TOKENS = 64;
const STANDARD_WINDOW = 200_000;

type Rescue =
  /** Send it again; the answer may take so much room. */
  | { readonly type: "again"; readonly outputRoom?: number }
  /** Not about length. */
  | { readonly type: "fail" }
  /** About length, and nothing helps. */
  | { readonly type: "exhausted" }
  | { readonly type: "interrupted" };

interface RescueMeans {
  readonly conversation: Conversation;
  /** The n-th try since a request was answered. */
  readonly attempt: number;
  /** False when the turn was interrupted meanwhile. */
  pause(ms: number): Promise<boolean>;
  /** One line for the user about what is done. */
  report(message: string): void;
  /** False when nothing could be made shorter. */
  shorten(): Promise<boolean>;
}

export async function rescueFromOverflow({ error, classified }: Failure, means: RescueMeans): Promise<Rescue> {
  if (!classified.shouldCompress) return { type: "fail" };
  if (means.attempt > MAX_ATTEMPTS) return { type: "exhausted" };
  const { conversation } = means;
  const body = typeof error.body === "string" ? error.body : JSON.stringify(error.body ?? "");
  const text = `${error.message} ${body}`;
  const line = failureLine(classified, conversation.model.target.apiKey);
  const room = parseAvailableOutputTokensFromError(text);
  if (room !== null && room > SPARE_TOKENS) {
    means.report(`${line} — retrying with an answer limit of ${room - SPARE_TOKENS} tokens`);
    return { type: "again", outputRoom: room - SPARE_TOKENS };
  }

  const { target } = conversation.model;
  const tier = classified.reason === "long_context_tier" ? STANDARD_WINDOW : null;
  const limit = tier ?? parseContextLimitFromError(text);
  if (limit !== null && limit < target.contextLength) {
    conversation.adoptWindow(limit);
    if (tier === null) await learn(conversation, limit);
  }
  if (means.attempt > 1 && !(await means.pause(PAUSE_MS))) return { type: "interrupted" };
  if (!(await means.shorten())) return { type: "exhausted" };
  means.report(`${line} — the conversation was shortened; retrying`);
  return { type: "again" };
}

async function learn({ model, assembly }: Conversation, tokens: number): Promise<void> {
  try {
    await assembly.learnWindow?.(model.target, tokens);
  } catch (error) {
    assembly.log.warn("the window a server named could not be remembered", error);
  }
}

// A request that was refused for good is kept next to the sessions, without its secrets.

/** Resolves to the file's path. The key is left out, every known secret is masked. */
export async function dumpRequest(home: OpenHome, clock: Clock, refused: RefusedRequest): Promise<string> {
  const { sessionId, request, error } = refused;
  const { target, ...rest } = request;
  const { apiKey: _, headers: __, ...destination } = target;
  const at = new Date(clock.now()).toISOString();
  const stamp = at
    .replace(/[-:]/g, "")
    .replace(/\.\d+Z$/, "")
    .replace("T", "_");
  const folder = home.paths.at("sessions");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = home.paths.at(`sessions/request_dump_${sessionId}_${stamp}.json`);
  const text = JSON.stringify({ at, session_id: sessionId, error, target: destination, request: rest }, null, 2);
  await writeFileAtomic(path, home.redact(text), { mode: 0o600 });
  return path;
}
