import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeUsage, parseRateLimitHeaders } from "./usage.ts";
import type { ApiMode } from "./wire.ts";

const cases: readonly [what: string, ApiMode, raw: object, numbers: readonly (number | null)[]][] = [
  // in, out, read, write, reasoning, prompt, total
  [
    "Anthropic's buckets are disjoint",
    "anthropic_messages",
    { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 20 },
    [10, 5, 100, 20, null, 130, 135],
  ],
  [
    "chat totals include what was cached",
    "chat_completions",
    {
      prompt_tokens: 100,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 2 },
    },
    [30, 5, 60, 10, 2, 100, 105],
  ],
  [
    "chat also takes Anthropic's names",
    "chat_completions",
    { prompt_tokens: 100, completion_tokens: 5, cache_read_input_tokens: 40, cache_creation_input_tokens: 20 },
    [40, 5, 40, 20, null, 100, 105],
  ],
  [
    "Responses totals include what was cached",
    "codex_responses",
    {
      input_tokens: 50,
      output_tokens: 7,
      input_tokens_details: { cached_tokens: 20 },
      output_tokens_details: { reasoning_tokens: 3 },
    },
    [30, 7, 20, null, 3, 50, 57],
  ],
  [
    "nothing falls below zero",
    "chat_completions",
    { prompt_tokens: 5, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 8 } },
    [0, 1, 8, null, null, 8, 9],
  ],
  [
    "what was not reported is unknown, not 0",
    "chat_completions",
    { completion_tokens: 4 },
    [null, 4, null, null, null, null, null],
  ],
  [
    "what cannot be is unknown, whether it is too large, negative or no number",
    "chat_completions",
    {
      prompt_tokens: 1e18,
      completion_tokens: -3,
      prompt_tokens_details: { cached_tokens: "many", cache_write_tokens: Number.MAX_SAFE_INTEGER },
      completion_tokens_details: { reasoning_tokens: 1e300 },
      cost: 1e308,
    },
    [null, null, null, null, null, null, null],
  ],
];
for (const [what, apiMode, raw, [input, output, read, write, reasoning, prompt, total]] of cases)
  test(what, () =>
    assert.deepEqual(normalizeUsage(raw, { provider: "x", apiMode }), {
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: read,
      cacheWriteTokens: write,
      reasoningTokens: reasoning,
      promptTokens: prompt,
      totalTokens: total,
    }),
  );

test("a reported cost is kept", () => {
  assert.equal(normalizeUsage({ cost: 0.25 }, { apiMode: "chat_completions" }).reportedCostUsd, 0.25);
  assert.ok(!("reportedCostUsd" in normalizeUsage(null, { apiMode: "chat_completions" })));
});

test("rate limits are read in any case, per minute and per hour", () => {
  const limits = parseRateLimitHeaders(
    new Headers({
      "X-RateLimit-Limit-Requests": "200",
      "x-ratelimit-remaining-requests": "150",
      "x-ratelimit-reset-requests": "1h2m3.5s",
      "x-ratelimit-limit-tokens-1h": "1000",
      "x-ratelimit-remaining-tokens-1h": "0",
      "x-ratelimit-reset-tokens-1h": "250ms",
    }),
    "openai",
  );
  assert.deepEqual(limits, {
    provider: "openai",
    requestsMin: { limit: 200, remaining: 150, used: 50, usagePct: 25, resetSeconds: 3723.5 },
    requestsHour: null,
    tokensMin: null,
    tokensHour: { limit: 1000, remaining: 0, used: 1000, usagePct: 100, resetSeconds: 0.25 },
  });
  assert.equal(parseRateLimitHeaders({ "content-type": "text/plain" }), null);
});
