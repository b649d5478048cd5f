import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { estimateTokens } from "../usage.ts";
import { learnedLimits } from "./context-length.ts";
import { modelFacts, modelsOf } from "./facts.ts";
import { costOf, type Price, priceOf } from "./prices.ts";

// provider, model, base URL, kind of price
const prices: readonly [string, string, string, Price["type"]][] = [
  ["anthropic", "claude-opus-5", "https://api.anthropic.com", "per_token"],
  ["anthropic", "claude-haiku-4-5-20251001", "https://api.anthropic.com", "per_token"],
  ["openrouter", "anthropic/claude-opus-5", "https://openrouter.ai/api/v1", "per_token"],
  ["custom", "claude-opus-5", "https://api.anthropic.com", "per_token"],
  ["openrouter", "openrouter/auto", "https://openrouter.ai/api/v1", "unknown"],
  ["openrouter", "google/gemma-4-31b-it:free", "https://openrouter.ai/api/v1", "included"],
  ["zai", "glm-5.3-highspeed", "https://api.z.ai/api/paas/v4", "unknown"],
  ["zai", "glm-5.3-highspeed", "https://api.z.ai/api/coding/paas/v4", "included"],
  ["alibaba", "qwen3.7-plus", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "unknown"],
  ["openai-codex", "gpt-5.5", "https://chatgpt.com/backend-api/codex", "included"],
  ["copilot", "gpt-5.4-nano", "https://api.githubcopilot.com", "included"],
  ["custom", "llama3", "http://127.0.0.1:11434/v1", "included"],
  ["demo", "demo", "demo:/v1", "included"],
  ["custom", "whatever", "https://host.example/v1", "unknown"],
];
for (const [provider, model, baseUrl, type] of prices) {
  test(`the price of ${model} at ${baseUrl} is ${type}`, async () =>
    assert.equal((await priceOf({ provider, model, baseUrl })).type, type));
}

const tiered: Price = {
  type: "per_token",
  rates: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  tiers: [{ above: 200_000, input: 6, output: 22.5, cacheRead: 0.6, cacheWrite: 7.5 }],
  source: "catalogue",
};
const tokens = (input: number, output: number, read = 0, write = 0) => ({
  inputTokens: input,
  outputTokens: output,
  cacheReadTokens: read,
  cacheWriteTokens: write,
});

test("a tier counts all prompt tokens and starts above its edge", () => {
  assert.equal(costOf(tokens(200_000, 0), tiered).usd, 0.6);
  assert.equal(costOf(tokens(100_001, 1000, 50_000, 50_000), tiered).usd, 0.600006 + 0.0225 + 0.03 + 0.375);
});

test("a published model with tiers keeps them", async () => {
  const price = await priceOf({
    provider: "openrouter",
    model: "anthropic/claude-sonnet-4.5",
    baseUrl: "https://openrouter.ai/api/v1",
  });
  assert.equal(price.type === "per_token" && price.tiers[0]?.above, 200_000);
});

test("costs add up exactly: n calls of one token cost as much as one call of n tokens", () => {
  const price: Price = {
    type: "per_token",
    rates: { input: 0.1, output: 0.7, cacheRead: 0.01, cacheWrite: 0.125 },
    tiers: [],
    source: "x",
  };
  const nano = (usd: number | null) => Math.round((usd ?? Number.NaN) * 1e9);
  assert.equal(nano(costOf(tokens(10, 0), price).usd) * 100_000, nano(costOf(tokens(1_000_000, 0), price).usd));
});

test("a cost never falls when more tokens are used", () => {
  const count = fc.nat({ max: 500_000 });
  fc.assert(
    fc.property(count, count, count, (input, output, more) => {
      const less = costOf(tokens(input, output), tiered).usd ?? 0;
      assert.ok((costOf(tokens(input + more, output), tiered).usd ?? 0) >= less);
    }),
  );
});

const estimates: readonly [string, number][] = [
  ["", 0],
  ["a", 1],
  ["abcd", 1],
  ["abcde", 2],
  ["你好", 2],
  ["你好ab", 3],
  ["안녕", 2],
  ["！", 1],
  ["é", 1],
  ["😀😀😀😀😀", 2],
  ["漢 ".repeat(4), 5],
];
for (const [text, count] of estimates) {
  test(`${JSON.stringify(text)} is about ${count} tokens`, () => assert.equal(estimateTokens(text), count));
}

test("every line of the snapshot is sound", async () => {
  for (const provider of ["openrouter", "anthropic", "openai-api", "zai", "kimi-coding", "copilot"]) {
    const models = await modelsOf(provider);
    assert.ok(models.length > 0, provider);
    for (const { id, contextLength, price } of models) {
      assert.ok(contextLength === null || contextLength > 1000, `${provider} ${id}`);
      assert.ok(price === null || (price.input >= 0 && price.output >= 0), `${provider} ${id}`);
    }
  }
  assert.equal(await modelFacts("anthropic", "no-such-model"), null);
});

test("a learned window is kept by endpoint and model, and a broken file counts as empty", async () => {
  let file: string | null = null;
  const limits = learnedLimits({
    read: async () => file,
    write: async (text) => {
      file = text;
    },
  });
  assert.equal(await limits.get("https://a.example/v1", "m"), null);
  await limits.set("https://a.example/v1/", "m", 32_768);
  assert.equal(await limits.get("https://a.example/v1", "m"), 32_768);
  assert.equal(await limits.get("https://b.example/v1", "m"), null);
  file = "context_lengths: [unclosed";
  assert.equal(await limits.get("https://a.example/v1", "m"), null);
});
