import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRateLimitHeaders } from "../llm/usage.ts";
import { rateLimitLines } from "./session.ts";

test("what is left is told per window, and when it comes back counted from now", () => {
  const limits = parseRateLimitHeaders(
    {
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "45",
      "x-ratelimit-reset-requests": "1m30s",
      "X-RateLimit-Limit-Tokens-1h": "1000000",
      "X-RateLimit-Remaining-Tokens-1h": "10",
      "X-RateLimit-Reset-Tokens-1h": "5s",
    },
    "openrouter",
  );
  assert.ok(limits);
  assert.deepEqual(rateLimitLines(limits, 10), [
    "Rate limits of openrouter, 10s ago:",
    "  requests per minute  45 of 60 left (25% used), resets in 1m 20s",
    "  tokens per hour      10 of 1,000,000 left (100% used), reset since",
  ]);
});
