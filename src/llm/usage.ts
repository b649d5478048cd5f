// What a call cost in tokens, and how much of the provider's allowance is left.
import { asRecord } from "../kit/json.ts";
import type { CostStatus } from "./gate.ts";
import { type Message, userContentToSend } from "./messages.ts";
import type { ApiMode, ToolDefinition } from "./wire.ts";

/**
 * Tokens of one model call, in disjoint buckets. `null` = the provider did not say; unknown is never 0.
 * promptTokens = input + cacheRead + cacheWrite; totalTokens = prompt + output.
 */
export interface Usage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly promptTokens: number | null;
  readonly totalTokens: number | null;
  /** Present when the provider itself reported what the call cost. */
  readonly reportedCostUsd?: number;
  /** What the call cost, as the gate booked it. */
  readonly cost?: { readonly usd: number | null; readonly status: CostStatus; readonly source?: string | null };
}

/** Beyond these no call can be: whoever reports more is not believed, or sums of it could no longer be read back from the store. */
const MAX_TOKENS = 1e9;
const MAX_COST_USD = 1e6;

/** The usage object of any of the three wires, in our buckets. */
export function normalizeUsage(raw: unknown, { apiMode }: { provider?: string; apiMode: ApiMode }): Usage {
  const usage = asRecord(raw);
  const input = asRecord(usage.prompt_tokens_details ?? usage.input_tokens_details);
  const output = asRecord(usage.completion_tokens_details ?? usage.output_tokens_details);
  const cacheRead = count(input.cached_tokens) ?? count(usage.cache_read_input_tokens);
  const cacheWrite =
    count(input.cache_write_tokens) ?? count(input.cache_creation_tokens) ?? count(usage.cache_creation_input_tokens);
  const reported = count(usage.prompt_tokens) ?? count(usage.input_tokens);
  // Anthropic counts its buckets apart; the other two report a total that includes what was cached.
  const cached = apiMode === "anthropic_messages" ? 0 : (cacheRead ?? 0) + (cacheWrite ?? 0);
  const inputTokens = reported === null ? null : Math.max(0, reported - cached);
  const outputTokens = count(usage.completion_tokens) ?? count(usage.output_tokens);
  const promptTokens = inputTokens === null ? null : inputTokens + (cacheRead ?? 0) + (cacheWrite ?? 0);
  const cost = usage.cost;
  return {
    inputTokens,
    outputTokens,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    reasoningTokens: count(output.reasoning_tokens) ?? count(output.thinking_tokens),
    promptTokens,
    totalTokens: promptTokens === null || outputTokens === null ? null : promptTokens + outputTokens,
    ...(typeof cost === "number" && cost >= 0 && cost <= MAX_COST_USD ? { reportedCostUsd: cost } : {}),
  };
}

export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly used: number;
  /** 0 to 100. */
  readonly usagePct: number;
  readonly resetSeconds: number | null;
}

/** `null` = the provider said nothing about that window. */
export interface RateLimits {
  readonly provider: string;
  readonly requestsMin: RateLimit | null;
  readonly requestsHour: RateLimit | null;
  readonly tokensMin: RateLimit | null;
  readonly tokensHour: RateLimit | null;
}

/** The `x-ratelimit-*` headers of an answer; null when there are none. */
export function parseRateLimitHeaders(
  headers: Iterable<[string, string]> | Readonly<Record<string, string>>,
  provider = "",
): RateLimits | null {
  const entries = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  const values = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  const window = (suffix: string): RateLimit | null => {
    const limit = quantity(values.get(`x-ratelimit-limit-${suffix}`));
    const remaining = quantity(values.get(`x-ratelimit-remaining-${suffix}`));
    if (limit === null || remaining === null) return null;
    const used = Math.max(0, limit - remaining);
    const resetSeconds = parseDuration(values.get(`x-ratelimit-reset-${suffix}`));
    return { limit, remaining, used, usagePct: limit > 0 ? (used / limit) * 100 : 0, resetSeconds };
  };
  const limits = {
    provider,
    requestsMin: window("requests"),
    requestsHour: window("requests-1h"),
    tokensMin: window("tokens"),
    tokensHour: window("tokens-1h"),
  };
  return limits.requestsMin || limits.requestsHour || limits.tokensMin || limits.tokensHour ? limits : null;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };

/** `12`, `1.5`, `120ms`, `6m0s`, `1h2m` → seconds. */
function parseDuration(text: string | undefined): number | null {
  const value = text?.trim().toLowerCase() ?? "";
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(value)) return null;
  let seconds = 0;
  for (const [, amount, unit = "s"] of value.matchAll(/(?<![\d.])(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    seconds += Number(amount) * (UNIT_SECONDS[unit] ?? 1);
  }
  return seconds;
}

function quantity(text: string | undefined): number | null {
  const value = Number(text?.trim() || Number.NaN);
  return Number.isFinite(value) && value >= 0 ? value : null;
}

function count(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= MAX_TOKENS ? Math.trunc(value) : null;
}

// Rough token counts, for deciding before a request. Real numbers from the provider win as soon as they are known.

// Code points of these blocks are about one token each; everything else about four to a token.
const WIDE = /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g;
const IMAGE_TOKENS = 1500;

export function estimateTokens(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return wide + Math.ceil((codePoints(text) - wide) / 4);
}

/** System text, messages with their calls and echoed reasoning, and tool schemas. */
export function estimateRequest(messages: readonly Message[], tools: readonly ToolDefinition[]): number {
  const tooling = tools.length > 0 ? known(tools, () => estimateTokens(JSON.stringify(tools))) : 0;
  return messages.reduce((sum, message) => sum + known(message, () => estimateMessage(message)), tooling);
}

/** A message never changes, and a conversation sends the same ones again with each request. */
const estimates = new WeakMap<object, number>();

function known(of: object, estimate: () => number): number {
  const tokens = estimates.get(of) ?? estimate();
  estimates.set(of, tokens);
  return tokens;
}

function estimateMessage(message: Message): number {
  let tokens = 0;
  const content =
    message.role === "user"
      ? userContentToSend(message)
      : ("api_content" in message && message.api_content) || message.content;
  if (typeof content === "string") tokens += estimateTokens(content);
  else for (const part of content ?? []) tokens += part.type === "text" ? estimateTokens(part.text) : IMAGE_TOKENS;
  if (message.role !== "assistant") return tokens;
  if (message.tool_calls) tokens += estimateTokens(JSON.stringify(message.tool_calls));
  return tokens + estimateTokens(message.reasoning_content ?? "");
}

function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--;
      index++;
    }
  }
  return count;
}
