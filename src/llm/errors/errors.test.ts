import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type ApiFailure, type ClassifyOptions, classifyApiError, type FailureReason } from "./classify.ts";
import {
  extractRetryDelaySeconds,
  jitteredBackoff,
  parseAbsoluteTimestamp,
  parseAvailableOutputTokensFromError,
  parseContextLimitFromError,
  parseRetryAfter,
  unsupportedParameter,
} from "./details.ts";
import { explainError, failureLine } from "./explain.ts";

const said = (status: number, message: string, more: object = {}): ApiFailure => ({
  status,
  message: `HTTP ${status}`,
  body: { error: { message, ...more } },
});

// error, reason, flags (R retryable, C compress, K rotate key, F fallback), options
const cases: readonly [ApiFailure, FailureReason, string, ClassifyOptions?][] = [
  [said(400, "This content was flagged for possible cybersecurity risk"), "content_policy_blocked", "F"],
  [said(403, "Your request was flagged by our filter"), "content_policy_blocked", "F"],
  [said(400, "The response was filtered", { code: "content_filter" }), "content_policy_blocked", "F"],
  [said(400, "messages.1.content.0: Invalid `signature` in `thinking` block"), "thinking_signature", "R"],
  [said(400, "thinking blocks cannot be modified"), "thinking_signature", "R"],
  [said(429, "Extra usage is required for long context requests"), "long_context_tier", "RC"],
  [
    said(400, "The long context beta is not yet available for this subscription"),
    "oauth_long_context_beta_forbidden",
    "R",
  ],
  [said(400, "error parsing grammar: unknown rule"), "llama_cpp_grammar_pattern", "R"],
  [said(400, "Unable to generate parser for this template"), "llama_cpp_grammar_pattern", "R"],
  [said(403, "no active Grok subscription"), "auth", "F"],

  [{ message: "spending limit, try again", code: "budget_exceeded" }, "budget_exceeded", ""],
  [{ message: "forbidden", code: "key_host_mismatch" }, "key_host_mismatch", ""],
  [{ message: "Invalid character in header content", code: "ERR_INVALID_CHAR" }, "auth", "KF"],

  [said(401, "bad key"), "auth", "KF"],
  [said(403, "nope"), "auth", "F"],
  [said(403, "Key limit exceeded (total limit)"), "billing", "KF"],
  [said(403, "insufficient credits"), "billing", "KF"],
  [said(402, "You have reached your usage limit. Try again in 3 hours."), "rate_limit", "RKF"],
  [said(402, "Insufficient credits"), "billing", "KF"],
  [said(404, "insufficient balance"), "billing", "KF"],
  [said(404, "No endpoints found matching your data policy"), "provider_policy_blocked", ""],
  [said(404, "The model `gpt-9` does not exist"), "model_not_found", "F"],
  [said(404, "model 'llama3.2' not found"), "model_not_found", "F"],
  [said(404, "page missing"), "unknown", "R"],
  [said(408, ""), "timeout", "R"],
  [said(413, ""), "payload_too_large", "RC"],
  [said(429, "slow down"), "rate_limit", "RKF"],
  [said(429, "The engine is currently overloaded"), "overloaded", "R"],
  [
    said(429, "Provider returned error", { metadata: { raw: '{"error":{"message":"limit"}}' } }),
    "upstream_rate_limit",
    "RF",
  ],
  [said(500, "oops"), "server_error", "R"],
  [said(502, "Unknown parameter: reasoning"), "format_error", "F"],
  [said(500, "provider returned an empty response"), "server_error", "R"],
  [said(500, "input is too long for this model"), "context_overflow", "RC"],
  [said(503, "busy"), "overloaded", "R"],
  [said(529, "overloaded_error"), "overloaded", "R"],
  [said(503, "prompt is too long"), "context_overflow", "RC"],
  [said(418, "teapot"), "format_error", "F"],
  [said(599, "odd"), "server_error", "R"],

  [said(400, "tool message content must be a string"), "multimodal_tool_content_unsupported", "R"],
  [said(400, "text is not set"), "multimodal_tool_content_unsupported", "R"],
  [said(400, "image exceeds 5 MB maximum"), "image_too_large", "R"],
  [said(400, "bad item", { code: "invalid_encrypted_content" }), "invalid_encrypted_content", "R"],
  [said(400, "Unsupported parameter: 'max_tokens' is not supported with this model."), "format_error", "F"],
  [said(400, "messages must have non-empty content"), "format_error", "F"],
  [said(400, "provider returned an empty response"), "server_error", "R"],
  [said(400, "This model's maximum context length is 8192 tokens"), "context_overflow", "RC"],
  [said(400, "输入超过最大长度"), "context_overflow", "RC"],
  [said(400, "no endpoints match your data policy"), "provider_policy_blocked", ""],
  [said(400, "foo/bar is not a valid model ID"), "model_not_found", "F"],
  [said(400, "Rate limit reached"), "rate_limit", "RKF"],
  [said(400, "Your credit balance is too low"), "billing", "KF"],
  [said(400, "Error", {}), "context_overflow", "RC", { approxTokens: 90_000 }],
  [said(400, "Error", {}), "context_overflow", "RC", { numMessages: 81 }],
  [said(400, "Error", {}), "context_overflow", "RC", { approxTokens: 450_000, contextLength: 1_000_000 }],
  [said(400, "Error", {}), "format_error", "F", { approxTokens: 300_000, numMessages: 500, contextLength: 1_000_000 }],
  [said(400, "Error", {}), "format_error", "F", { approxTokens: 1000 }],
  [said(400, "A sentence long enough to mean what it says", {}), "format_error", "F", { numMessages: 500 }],

  [{ message: "x", body: { error: { code: "rate_limit_exceeded" } } }, "rate_limit", "RK"],
  [{ message: "x", body: { code: "insufficient_quota" } }, "billing", "KF"],
  [{ message: "x", body: { error_code: "model_not_available" } }, "model_not_found", "F"],
  [{ message: "x", body: { errorCode: "context_length_exceeded" } }, "context_overflow", "RC"],
  [{ message: '{"error":{"code":"balance_depleted","message":"y"}}' }, "billing", "KF"],

  [{ message: "Payload Too Large" }, "payload_too_large", "RC"],
  [{ message: "usage limit reached, resets at noon" }, "rate_limit", "RKF"],
  [{ message: "usage limit reached" }, "billing", "KF"],
  [{ message: "Overloaded" }, "overloaded", "R"],
  [{ message: "out of funds" }, "billing", "KF"],
  [{ message: "Rate limit exceeded" }, "rate_limit", "RKF"],
  [{ message: "empty response" }, "server_error", "R"],
  [{ message: "too many tokens" }, "context_overflow", "RC"],
  [{ message: "Invalid API key" }, "auth", "KF"],
  [{ message: "unknown model" }, "model_not_found", "F"],
  [{ message: "The operation timed out" }, "timeout", "R"],

  [
    {
      message: "fetch failed",
      cause: { code: "SELF_SIGNED_CERT_IN_CHAIN", message: "self-signed certificate in certificate chain" },
    },
    "ssl_cert_verification",
    "",
  ],
  [{ message: "unable to verify the first certificate" }, "ssl_cert_verification", ""],
  [{ message: "ssl3_read_bytes: sslv3 alert bad record mac" }, "timeout", "R"],
  [{ message: "terminated" }, "timeout", "R"],
  [{ message: "read ECONNRESET", code: "ECONNRESET" }, "context_overflow", "RC", { approxTokens: 130_000 }],
  [{ message: "read ECONNRESET", code: "ECONNRESET" }, "timeout", "R", { approxTokens: 130_000, model: "openai/o3" }],
  [{ message: "peer closed connection" }, "context_overflow", "RC", { numMessages: 201 }],
  [{ message: "fetch failed", code: "ECONNREFUSED" }, "timeout", "R"],
  [{ message: "fetch failed", cause: { code: "UND_ERR_HEADERS_TIMEOUT" } }, "timeout", "R"],
  [{ message: "Connection error.", name: "APIConnectionError" }, "timeout", "R"],
  [{ message: "The connection was lost before the answer was complete.", code: "stream_cut" }, "timeout", "R"],
  [{ message: "nothing came", code: "stale_stream" }, "timeout", "R"],
  [{ message: "nothing came", code: "empty_stream" }, "server_error", "R"],
  [{ message: "something odd" }, "unknown", "R"],
  [{ message: "wrapped", cause: { message: "deeper", cause: { status: 401 } } } as ApiFailure, "auth", "KF"],
];
for (const [error, reason, flags, options] of cases) {
  test(`${JSON.stringify(error).slice(0, 110)} ${options ? JSON.stringify(options) : ""} is ${reason}`, () => {
    const verdict = classifyApiError(error, options);
    const shown = `${verdict.retryable ? "R" : ""}${verdict.shouldCompress ? "C" : ""}${verdict.shouldRotateCredential ? "K" : ""}${verdict.shouldFallback ? "F" : ""}`;
    assert.deepEqual([verdict.reason, shown], [reason, flags]);
  });
}

test("whatever comes, an error is classified with a message of at most 500 characters", () => {
  fc.assert(
    fc.property(
      fc.record({
        status: fc.option(fc.integer({ min: 0, max: 999 }), { nil: undefined }),
        message: fc.string({ maxLength: 900 }),
        body: fc.anything(),
      }),
      (error) => {
        const verdict = classifyApiError(error);
        assert.ok([...verdict.message].length <= 500);
        assert.equal(verdict.statusCode, error.status);
      },
    ),
  );
});

test("an expired certificate tells how to trust a CA of one's own", () => {
  assert.match(classifyApiError({ message: "certificate has expired" }).message, /NODE_EXTRA_CA_CERTS/);
});

test("backoff doubles up to its maximum and adds at most half", () => {
  const at = (attempt: number, random: number) => jitteredBackoff(attempt, { base: 2, max: 60, random: () => random });
  assert.deepEqual([at(1, 0), at(2, 0), at(5, 0), at(6, 0), at(60, 0)], [2, 4, 32, 60, 60]);
  assert.equal(at(2, 0.5), 5);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (attempt, random) => {
      const delay = at(attempt, random);
      assert.ok(delay >= 2 && delay < 90);
    }),
  );
});

const now = Date.parse("2026-01-01T00:00:00Z");
const retryAfter: readonly [string | number | null, number | null][] = [
  ["30", 30],
  ["1.5", 1.5],
  [7, 7],
  ["-4", 0],
  ["Thu, 01 Jan 2026 00:01:00 GMT", 60],
  ["Wed, 31 Dec 2025 23:00:00 GMT", 0],
  ["soon", null],
  ["1 2 3", null],
  ["", null],
  [null, null],
];
for (const [value, seconds] of retryAfter) {
  test(`Retry-After ${JSON.stringify(value)} is ${seconds}`, () => assert.equal(parseRetryAfter(value, now), seconds));
}

const delays: readonly [string, number | null][] = [
  ["Resets in 4hr 5min", 4 * 3600 + 5 * 60],
  ["Please retry after 20 s", 20],
  ["retry after 20 seconds.", 20],
  ['"quotaResetDelay": "1500ms"', 1.5],
  ["Try again in 1m30s", 90],
  ["please try again in 6m0s.", 360],
  ['"retryDelay": "34.5s"', 34.5],
  ["resets in 2 days and 3 hours", 2 * 86_400 + 3 * 3600],
  ["retry after 5", 5],
  ["rate limited, retry 5s", 5],
  ["Retry: 2 minutes", 120],
  ["please wait 20 seconds and try again", 20],
  ["wait a moment, then retry in 7s", 7],
  ["retry 3 times at most", null],
  ["no retry 429", null],
  ["no number here", null],
  ["limit 500 per day", null],
];
for (const [text, seconds] of delays) {
  test(`${JSON.stringify(text)} means ${seconds} s`, () => assert.equal(extractRetryDelaySeconds(text), seconds));
}

const stamps: readonly [unknown, number | null][] = [
  [1_767_225_600, 1_767_225_600],
  [1_767_225_600_000, 1_767_225_600],
  ["1767225600", 1_767_225_600],
  ["2026-01-01T00:00:00Z", 1_767_225_600],
  ["later", null],
  [0, null],
  [null, null],
];
for (const [value, seconds] of stamps) {
  test(`the timestamp ${JSON.stringify(value)} is ${seconds}`, () =>
    assert.equal(parseAbsoluteTimestamp(value), seconds));
}

const limits: readonly [string, number | null][] = [
  ["This model's maximum context length is 32768 tokens. However, you requested 40000", 32_768],
  ["prompt is too long: 250000 tokens > 200000 maximum", 200_000],
  ["context_length_exceeded: 131072", 131_072],
  ["the request exceeds the available context size (8192 tokens)", 8192],
  ["max_model_len=16384", 16_384],
  ["The input token count exceeds the maximum of 1,048,576 tokens", 1_048_576],
  ["input is too long", null],
  ["maximum context length is 12 tokens", null],
  ["maximum context length is 99999999999 tokens", null],
];
for (const [text, limit] of limits) {
  test(`${JSON.stringify(text)} names a window of ${limit}`, () =>
    assert.equal(parseContextLimitFromError(text), limit));
}

const available: readonly [string, number | null][] = [
  ["max_tokens: 64000 > 12000 available tokens: context 200000", 12_000],
  ["max_tokens is too large: 8192. available_tokens: 1024", 1024],
  ["max_tokens must be smaller", null],
  ["12000 tokens available", null],
];
for (const [text, tokens] of available) {
  test(`${JSON.stringify(text)} leaves ${tokens} output tokens`, () =>
    assert.equal(parseAvailableOutputTokensFromError(text), tokens));
}

const target = {
  provider: "anthropic",
  model: "claude-opus-5",
  baseUrl: "https://api.anthropic.com",
  apiKey: "sk-ant-api03-secretsecret",
};
const explained: readonly [ApiFailure & { message: string }, RegExp][] = [
  [
    { status: 401, message: "invalid x-api-key" },
    /api\.anthropic\.com did not accept the API key\. Check ANTHROPIC_API_KEY/,
  ],
  [
    { code: "ERR_INVALID_CHAR", message: 'Invalid character in header content ["authorization"]' },
    /The API key for api\.anthropic\.com cannot be sent.*Check ANTHROPIC_API_KEY/,
  ],
  [{ status: 404, message: "model: does not exist" }, /does not know the model "claude-opus-5".*hermes model/],
  [{ status: 402, message: "insufficient credits" }, /no credit left/],
  [{ status: 400, message: "This model's maximum context length is 8192" }, /\/compress.*\/new/],
  [
    { status: 418, message: "bad thing happened with sk-ant-api03-secretsecret" },
    /refused the request: bad thing happened with \*\*\*\. Choose/,
  ],
  [{ message: "fetch failed", code: "ENOTFOUND" }, /could not be found/],
];
for (const [error, pattern] of explained) {
  test(`${JSON.stringify(error)} is explained with what to do`, () =>
    assert.match(explainError(classifyApiError(error), target, error).text, pattern));
}

test("a refused connection names the address", () => {
  const error = { message: "fetch failed", code: "ECONNREFUSED" };
  const local = { provider: "custom", model: "llama3", baseUrl: "http://127.0.0.1:11434/v1" };
  assert.match(
    explainError(classifyApiError(error), local, error).text,
    /Nothing answers at http:\/\/127\.0\.0\.1:11434\/v1.*Start the server/,
  );
});

test("no explanation ever shows a key, a body or a stack", () => {
  const bodies = [
    '{"error":{"message":"key sk-ant-api03-secretsecret"}}',
    "<html>sk-ant-api03-secretsecret</html>",
    "Bearer sk-proj-abcdefgh12345678 is wrong",
  ];
  fc.assert(
    fc.property(fc.integer({ min: 400, max: 599 }), fc.constantFrom(...bodies), (status, message) => {
      const { text } = explainError(classifyApiError({ status, message, body: message }), target, { message });
      assert.doesNotMatch(text, /secretsecret|abcdefgh|<html|\n {4}at /);
      assert.ok(text.length > 10 && text.length < 500);
    }),
  );
});

test("a failure line has the status, the server's words and no key", () => {
  const verdict = classifyApiError({
    status: 401,
    message: "Incorrect API key provided: sk-proj-abc***xyz. See accounts/models/llama-v3-405b-instruct",
  });
  assert.equal(
    failureLine(verdict),
    "HTTP 401: Incorrect API key provided: *** See accounts/models/llama-v3-405b-instruct",
  );
  assert.equal(failureLine(classifyApiError({ message: "terminated" })), "terminated");
});

const refusedParameters: readonly [string, string | null][] = [
  [
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens",
  ],
  ["Unsupported value: 'temperature' does not support 0.3 with this model.", "temperature"],
  ["`temperature` is deprecated for this model.", "temperature"],
  ["Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"],
  ["stream_options: Extra inputs are not permitted", "stream_options"],
  ["Unknown parameter: 'messages'", null],
  ["prompt is too long", null],
];
for (const [text, name] of refusedParameters) {
  test(`${JSON.stringify(text)} names ${name}`, () => assert.equal(unsupportedParameter(text), name));
}

test("our own refusals are shown as they are", () => {
  const error = { code: "budget_exceeded", message: "Nothing was sent: the cap is 0." };
  assert.equal(explainError(classifyApiError(error), target, error).text, error.message);
});
