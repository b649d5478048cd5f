import { asRecord, asText } from "../../kit/json.ts";
import type { ModelError } from "../wire.ts";

// When to try again, in the many ways servers say it. All results in seconds.

/** A `Retry-After` header: seconds or an HTTP date; past or negative = 0; anything else = null. `now` in milliseconds. */
export function parseRetryAfter(value: string | number | null | undefined, now: number = Date.now()): number | null {
  const text = String(value ?? "").trim();
  if (text === "") return null;
  if (/^[+-]?(\d+(?:\.\d*)?|\.\d+)$/.test(text)) return Math.max(0, Number(text));
  if (!/[a-z]{3}/i.test(text)) return null;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, (date - now) / 1000);
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 };

/** `Resets in 4hr 5min`, `retry after 20 s`, `retry 5s`, `quotaResetDelay: 1500ms`, `try again in 1m30s`; null when nothing is said. */
export function extractRetryDelaySeconds(text: string): number | null {
  const lead =
    /(?<named>resets?\s+in|retry\s+(?:after|in)|try\s+again\s+(?:after|in)|(?:quota)?reset_?delay|retry_?delay|retry[-_]after)["'\s:=]*|\b(?:retry|try\s+again|wait)(?:ing)?["'\s:=]+/gi;
  for (const { index, 0: found, groups } of text.matchAll(lead)) {
    // "retry 3 times" is no delay: a number behind the bare word needs its unit.
    const seconds = readDuration(text.slice(index + found.length), { needsUnit: groups?.named === undefined });
    if (seconds !== null) return seconds;
  }
  return null;
}

function readDuration(text: string, { needsUnit }: { readonly needsUnit: boolean }): number | null {
  const part =
    /^[\s,]*(?:and\s+)?(\d+(?:\.\d+)?)\s*(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d)?(?![a-z])/i;
  let rest = text;
  let total: number | null = null;
  for (let match = part.exec(rest); match; match = part.exec(rest)) {
    const unit = match[2]?.toLowerCase();
    // A second bare number is no part of the duration.
    if (!unit && (total !== null || needsUnit)) break;
    total = (total ?? 0) + Number(match[1]) * (UNITS[unitKey(unit ?? "s")] ?? 1);
    rest = rest.slice(match[0].length);
    if (!unit) break;
  }
  return total;
}

function unitKey(unit: string): string {
  return unit.startsWith("ms") || unit.startsWith("milli") ? "ms" : unit.charAt(0);
}

/** Epoch seconds, epoch milliseconds or ISO text -> epoch seconds; null when it is none of them. */
export function parseAbsoluteTimestamp(value: unknown): number | null {
  if (typeof value === "number") return fromEpoch(value);
  if (typeof value !== "string" || value.trim() === "") return null;
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return fromEpoch(Number(text));
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date / 1000;
}

function fromEpoch(value: number): number | null {
  if (!Number.isFinite(value) || value <= 0) return null;
  return value > 1e11 ? value / 1000 : value;
}

// The moment a provider names for its quota to be there again.

const FIELDS = ["reset_at", "resets_at", "retry_until"] as const;

/** Unix seconds; null when the error says nothing. A field of the body wins over its text, the text over the header. `now` in milliseconds. */
export function namedReset(error: Pick<ModelError, "message" | "body" | "headers">, now: number): number | null {
  for (const source of [error.body, inner(error.body)]) {
    for (const field of FIELDS) {
      const time = parseAbsoluteTimestamp(fieldOf(source, field));
      if (time !== null) return time;
    }
  }
  const said = typeof error.body === "string" ? error.body : JSON.stringify(error.body ?? "");
  const delay =
    extractRetryDelaySeconds(`${error.message} ${said}`) ?? parseRetryAfter(error.headers?.["retry-after"], now);
  return delay === null ? null : now / 1000 + delay;
}

function inner(body: unknown): unknown {
  return fieldOf(body, "error");
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
}

/** Seconds before the next attempt: d + U(0, d/2), d = min(base * 2^(attempt-1), max). `attempt` counts from 1. */
export function jitteredBackoff(
  attempt: number,
  { base, max, random = Math.random }: { readonly base: number; readonly max: number; readonly random?: () => number },
): number {
  const delay = Math.min(base * 2 ** (Math.max(1, attempt) - 1), max);
  return delay + (random() * delay) / 2;
}

/** Seconds. Errors of the request; answers that came but hold nothing. */
export const ERROR_BACKOFF = { base: 2, max: 60 } as const;
export const EMPTY_ANSWER_BACKOFF = { base: 5, max: 120 } as const;
/** What a server asks us to wait is honoured up to here. */
export const MAX_RETRY_AFTER = 120;

// Numbers in refusals of requests that are too long.

const LIMIT_PATTERNS: readonly RegExp[] = [
  /(?:maximum|max)(?:imum)? (?:context|model|input|prompt|sequence) (?:length|size|window)(?: of this model| for this model)?(?: is| of| =|:)?\s*(?:only )?(\d[\d,_]*)/i,
  /context[ _](?:length|size|window)(?: limit)?(?: of| is| =|:)\s*(?:only )?(\d[\d,_]*)/i,
  /context_length_exceeded:?\s*(\d[\d,_]*)/i,
  /\d[\d,_]{0,20} tokens?\s*>\s*(\d[\d,_]*)(?: tokens?)? (?:maximum|limit)/i,
  /(?:exceeds?|over|greater than|larger than)(?: the)?(?: available| model'?s?)?(?: maximum| max)?(?: context)?(?: length| size| window| limit| token limit)?(?: of| is)? \(?(\d[\d,_]*)(?: tokens?)?/i,
  /(?:n_ctx(?:_slot)?|max_model_len|max_position_embeddings)["' ]*[=:(]\s*(\d[\d,_]*)/i,
  /(?:limit|maximum)(?: is| of| =|:)\s*(\d[\d,_]*) tokens/i,
  /(?:最大长度|上下文长度)[^\d]{0,8}(\d[\d,_]*)/,
];

/** The window a server names when it refuses a request as too long; null when it names none (1,024 ... 10 million). */
export function parseContextLimitFromError(text: string): number | null {
  for (const pattern of LIMIT_PATTERNS) {
    const limit = toNumber(pattern.exec(text)?.[1]);
    if (limit !== null && limit >= 1024 && limit <= 10_000_000) return limit;
  }
  return null;
}

const AVAILABLE_PATTERNS: readonly RegExp[] = [
  /available[_ ]tokens?(?: is| are| =|:)?\s*(\d[\d,_]*)/i,
  /(?<!\d)(\d[\d,_]{0,20})\s*(?:tokens? )?(?:are |is )?available(?: tokens?)?/i,
  /(?:only|leaves?|remaining)(?: room for)?\s*(\d[\d,_]*)\s*(?:output )?tokens?/i,
];

/** How many output tokens the server says are left, when the output cap alone was too large; else null. */
export function parseAvailableOutputTokensFromError(text: string): number | null {
  if (!/max(?:imum)?[_ ](?:completion_|output_|new_)?tokens/i.test(text)) return null;
  if (!/available|leaves?|remaining/i.test(text)) return null;
  for (const pattern of AVAILABLE_PATTERNS) {
    const available = toNumber(pattern.exec(text)?.[1]);
    if (available !== null && available >= 1) return available;
  }
  return null;
}

function toNumber(digits: string | undefined): number | null {
  if (!digits) return null;
  const value = Number(digits.replace(/[,_]/g, ""));
  return Number.isSafeInteger(value) ? value : null;
}

// A server that names a parameter it does not take: the request can be repeated without it, and the session remembers.

const DROPPABLE = [
  "temperature",
  "top_p",
  "max_tokens",
  "max_completion_tokens",
  "reasoning_effort",
  "reasoning",
  "thinking",
  "stream_options",
  "parallel_tool_calls",
  "service_tier",
  "response_format",
] as const;

type DroppableParameter = (typeof DROPPABLE)[number];

const REFUSALS =
  /(?:unsupported|unknown|unrecognized|unexpected|extra|invalid)[^.\n]{0,40}(?:parameter|argument|field|value|key)s?[^\w\n]{0,6}\s{0,9}(?:supplied|named)?[\s:'"`]{0,20}([a-z_]+)|(?<![a-z_])([a-z_]{1,64})['"`]?\s{0,9}(?:is|are) (?:not supported|unsupported|deprecated|not permitted|not allowed)|(?<![a-z_])([a-z_]{1,64})['"`]? does not support|(?<![a-z_])([a-z_]{1,64}):? extra inputs are not permitted/gi;

/** The parameter a refusal names, if it is one that a request can do without; else null. */
export function unsupportedParameter(text: string): DroppableParameter | null {
  // OpenAI's words for a model that does not think but was asked for its thoughts.
  if (/encrypted content is not supported/i.test(text)) return "reasoning";
  for (const match of text.matchAll(REFUSALS)) {
    const named = match
      .slice(1)
      .find((name) => name !== undefined)
      ?.toLowerCase();
    const known = DROPPABLE.find((name) => name === named);
    if (known) return known;
  }
  return null;
}

/** The server said that it cannot stream: the same request may be sent again with `stream: false`, and so may all that follow. */
export function refusesStreaming({ status, message, body }: ModelError): boolean {
  if (status === undefined || status < 400 || status >= 500) return false;
  const said = `${message} ${asText(body)} ${asText(asRecord(asRecord(body).error).message)}`.toLowerCase();
  return (
    /\bstream/.test(said) && !said.includes("stream_options") && /not supported|unsupported|not support/.test(said)
  );
}
