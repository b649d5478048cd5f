import assert from "node:assert/strict";
import { test } from "node:test";
import { contextLengthOf } from "../catalogue/context-length.ts";
import type { ApiMode, ProviderProfile } from "../wire.ts";
import { profileFor } from "./profiles.ts";
import { demoRuntime, resolveRuntimeProvider } from "./resolve.ts";
import { targetFor } from "./target.ts";

const C = "chat_completions";
const A = "anthropic_messages";
const R = "codex_responses";

// provider, model, base URL, mode, what the profile must hold
const profiles: readonly [string, string, string, ApiMode, Partial<ProviderProfile>][] = [
  [
    "custom",
    "m",
    "https://host.example/v1",
    C,
    {
      maxTokensField: "max_tokens",
      developerRole: false,
      reasoningStyle: "none",
      echoReasoning: false,
      cacheLayout: "none",
    },
  ],
  [
    "openai-api",
    "gpt-5.5",
    "https://api.openai.com/v1",
    R,
    { maxTokensField: "max_completion_tokens", developerRole: true, reasoningStyle: "openai" },
  ],
  ["openai-api", "gpt-4o", "https://api.openai.com/v1", C, { developerRole: false }],
  [
    "custom",
    "gpt-5",
    "https://me.openai.azure.com/v1",
    C,
    { maxTokensField: "max_completion_tokens", developerRole: false },
  ],
  ["copilot", "gpt-5", "https://api.githubcopilot.com", C, { maxTokensField: "max_completion_tokens" }],
  [
    "openrouter",
    "anthropic/claude-opus-5",
    "https://openrouter.ai/api/v1",
    C,
    { reasoningStyle: "openrouter", cacheLayout: "envelope" },
  ],
  [
    "openrouter",
    "moonshotai/kimi-k3",
    "https://openrouter.ai/api/v1",
    C,
    { reasoningStyle: "none", cacheLayout: "envelope", echoReasoning: false },
  ],
  [
    "openrouter",
    "mistralai/mistral-large",
    "https://openrouter.ai/api/v1",
    C,
    { reasoningStyle: "none", cacheLayout: "none" },
  ],
  [
    "nous",
    "qwen/qwen3.7-plus",
    "https://inference-api.nousresearch.com/v1",
    C,
    { reasoningStyle: "openrouter", cacheLayout: "envelope" },
  ],
  [
    "kimi-coding",
    "kimi-k3",
    "https://api.moonshot.ai/v1",
    C,
    { reasoningStyle: "kimi", defaultMaxTokens: 32_000, echoReasoning: true },
  ],
  ["kimi-coding", "kimi-for-coding", "https://api.kimi.com/coding", A, { thinkingReplay: "keep" }],
  [
    "deepseek",
    "deepseek-v4-pro",
    "https://api.deepseek.com/v1",
    C,
    { reasoningStyle: "deepseek", echoReasoning: true },
  ],
  ["deepseek", "deepseek-chat", "https://api.deepseek.com/v1", C, { reasoningStyle: "none", echoReasoning: true }],
  ["deepseek", "deepseek-v4-pro", "https://api.deepseek.com/anthropic", A, { thinkingReplay: "unsigned-only" }],
  ["nvidia", "nvidia/nemotron-3", "https://integrate.api.nvidia.com/v1", C, { defaultMaxTokens: 16_384 }],
  ["anthropic", "claude-opus-5", "https://api.anthropic.com", A, { cacheLayout: "native", thinkingReplay: "native" }],
  ["minimax", "MiniMax-M3", "https://api.minimax.io/anthropic", A, { cacheLayout: "native", thinkingReplay: "strip" }],
  ["custom", "claude-opus-5", "https://relay.example/anthropic", A, { cacheLayout: "native", thinkingReplay: "strip" }],
  ["alibaba", "qwen3.7-plus", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", C, { cacheLayout: "envelope" }],
  ["opencode-go", "deepseek-v4-pro", "https://opencode.ai/zen/go/v1", C, { cacheLayout: "none" }],
  ["custom", "llama3", "http://127.0.0.1:11434/v1", C, { reasoningStyle: "ollama" }],
];
for (const [provider, model, baseUrl, apiMode, expected] of profiles) {
  test(`profile of ${model} at ${baseUrl} (${provider})`, () => {
    const profile = profileFor({ provider, model, baseUrl, apiMode });
    assert.deepEqual({ ...profile, ...expected }, profile);
  });
}

const echoes: readonly [string, string, string, boolean][] = [
  ["kimi-coding-cn", "x", "https://api.moonshot.cn/v1", true],
  ["custom", "x", "https://api.kimi.com/coding", true],
  ["openrouter", "moonshotai/kimi-k3", "https://openrouter.ai/api/v1", false],
  ["openrouter", "deepseek/deepseek-v4", "https://openrouter.ai/api/v1", true],
  ["custom", "x", "https://api.deepseek.com/v1", true],
  ["custom", "x", "https://api.deepseek.com.evil.example/v1", false],
  ["xiaomi", "x", "https://api.xiaomimimo.com/v1", true],
  ["custom", "MiMo-v2.5", "https://host.example/v1", true],
  ["openai-api", "gpt-5", "https://api.openai.com/v1", false],
];
for (const [provider, model, baseUrl, needed] of echoes) {
  test(`${provider} ${model} at ${baseUrl} ${needed ? "wants" : "refuses"} reasoning back`, () =>
    assert.equal(profileFor({ provider, model, baseUrl, apiMode: "chat_completions" }).echoReasoning, needed));
}

test("the user's compat flags win over what we know, and wrong ones are named", async () => {
  const providers = {
    lab: {
      base_url: "https://lab.example.com/v1",
      compat: { max_tokens_field: "max_completion_tokens", streamUsage: false, images: "maybe", speed: 9 },
    },
  };
  const runtime = resolveRuntimeProvider({ requested: "lab", model: "m", config: { providers }, env: {} });
  const { profile } = await targetFor(runtime, { config: { providers } });
  assert.equal(profile.maxTokensField, "max_completion_tokens");
  assert.equal(profile.streamUsage, false);
  assert.equal(runtime.warnings.length, 2);
});

test("times of a provider that are no seconds are named", () => {
  const providers = {
    lab: {
      base_url: "https://lab.example.com/v1",
      request_timeout_seconds: 600,
      stale_timeout_seconds: "soon",
      models: { slow: { timeout_seconds: -1 } },
    },
  };
  const { warnings } = resolveRuntimeProvider({ requested: "lab", model: "m", config: { providers }, env: {} });
  assert.deepEqual(warnings, [
    'providers.lab.stale_timeout_seconds: "soon" is ignored. Legal: seconds, over 0.',
    "providers.lab.models.slow.timeout_seconds: -1 is ignored. Legal: seconds, over 0.",
  ]);
});

test("a target joins key, window, profile, headers and body of a custom provider", async () => {
  const config = {
    providers: {
      lab: {
        base_url: "https://lab.example.com/v1",
        api_key: "lab-key",
        headers: { "X-Team": "a" },
        extra_body: { top_k: 3 },
        models: { m1: { context_length: 5000 } },
      },
    },
  };
  const target = await targetFor(resolveRuntimeProvider({ requested: "lab", model: "m1", config, env: {} }), {
    config,
  });
  assert.equal(target.contextLength, 5000);
  assert.deepEqual(target.headers, { "X-Team": "a" });
  assert.deepEqual(target.extraBody, { top_k: 3 });
  assert.deepEqual(target.keyHosts, ["lab.example.com"]);
});

test("routing wishes go to OpenRouter and nowhere else, only the ones that are set", async () => {
  const config = {
    model: "anthropic/claude-opus-5",
    provider_routing: {
      sort: "price",
      only: ["a"],
      ignore: [],
      order: null,
      require_parameters: true,
      data_collection: "deny",
    },
    openrouter: { min_coding_score: 0.7 },
  };
  const env = { OPENROUTER_API_KEY: "sk-or-1", ANTHROPIC_API_KEY: "sk-ant-1" };
  const target = await targetFor(resolveRuntimeProvider({ config, env }), { config });
  assert.deepEqual(target.extraBody, {
    provider: { sort: "price", only: ["a"], require_parameters: true, data_collection: "deny" },
  });
  assert.ok(target.headers?.["X-Title"] && target.headers["HTTP-Referer"] && target.headers["x-anthropic-beta"]);
  assert.equal(target.profile.defaultMaxTokens, 128_000);
  const small = resolveRuntimeProvider({ config, env, model: "anthropic/claude-sonnet-4.6" });
  assert.equal((await targetFor(small, { config })).profile.defaultMaxTokens, 64_000);
  assert.equal(target.headers["X-OpenRouter-Cache"], undefined);
  const cached = async (ttl?: number) => {
    const request = { ...config, openrouter: { response_cache: true, response_cache_ttl: ttl } };
    const { headers } = await targetFor(resolveRuntimeProvider({ config: request, env }), { config: request });
    return [headers?.["X-OpenRouter-Cache"], headers?.["X-OpenRouter-Cache-TTL"]];
  };
  assert.deepEqual(await cached(), ["true", "300"]);
  assert.deepEqual(await cached(86_400), ["true", "86400"]);
  assert.deepEqual(await cached(86_401), ["true", "300"]);
  const auto = await targetFor(resolveRuntimeProvider({ config, env, model: "openrouter/auto" }), { config });
  assert.deepEqual(auto.extraBody?.plugins, [{ id: "pareto-router", min_coding_score: 0.7 }]);
  const direct = await targetFor(resolveRuntimeProvider({ requested: "anthropic", config, env }), { config });
  assert.deepEqual(direct.extraBody, {});
});

test("no model anywhere is an error that says where to set one", async () => {
  const runtime = resolveRuntimeProvider({ config: {}, env: { OPENROUTER_API_KEY: "sk-or-1" } });
  await assert.rejects(targetFor(runtime, { config: {} }), {
    code: "no_model_configured",
    message: /hermes model.*model\.default/s,
  });
});

test("the demo's window is 128,000", async () => {
  assert.equal((await targetFor(demoRuntime(), { config: {} })).contextLength, 128_000);
});

// provider, model, window
const windows: readonly [string, string, number][] = [
  ["openai-api", "gpt-4", 8192],
  ["openai-api", "gpt-4-turbo", 128_000],
  ["anthropic", "claude-3-opus", 200_000],
  ["deepseek", "deepseek-chat", 65_536],
  ["gemini", "gemini-2", 1_048_576],
  ["custom", "gpt-4", 8192],
  ["custom", "gpt-4-turbo", 128_000],
  ["custom", "claude-3-opus", 200_000],
  ["custom", "deepseek-chat", 65_536],
  ["custom", "gemini-2", 1_048_576],
  ["custom", "claude-3-opus-20240229", 200_000],
  ["custom", "acme/claude-opus-4.6-tuned", 1_000_000],
  ["custom", "gpt-5.4-mini-tuned", 400_000],
  ["custom", "gpt-5.9", 400_000],
  ["custom", "my-llama-3", 131_072],
  ["custom", "qwen3-coder-plus-x", 1_000_000],
  ["custom", "grok-4-fast-x", 2_000_000],
  ["custom", "nobody-knows", 256_000],
  ["openai-codex", "gpt-5.5", 272_000],
  ["openai-codex", "gpt-5.3-codex-spark", 128_000],
  ["anthropic", "claude-opus-5", 1_000_000],
  ["zai", "glm-4.7", 204_800],
];
for (const [provider, model, tokens] of windows) {
  test(`offline, ${model} at ${provider} has a window of ${tokens}`, async () => {
    assert.equal((await contextLengthOf({ provider, model, baseUrl: "https://host.example/v1" })).tokens, tokens);
  });
}

test("the window: configuration, custom model, learned, endpoint, then what is published", async () => {
  const asked: string[] = [];
  const note = (who: string, tokens: number) => {
    asked.push(who);
    return tokens;
  };
  const question = {
    provider: "anthropic",
    model: "claude-opus-5",
    baseUrl: "https://api.anthropic.com",
    configured: 1,
    customModel: 2,
    learned: {
      ...{ get: async () => note("learned", 3), set: async () => undefined },
      ...{ lastProbed: async () => note("remembered", 5), noteProbed: async () => undefined },
    },
    probe: async () => note("probe", 4),
  };
  const of = async (change: object) => (await contextLengthOf({ ...question, ...change })).tokens;
  assert.equal(await of({}), 1);
  assert.equal(await of({ configured: undefined }), 2);
  assert.deepEqual(asked, []);
  assert.equal(await of({ configured: undefined, customModel: undefined }), 3);
  assert.equal(await of({ configured: undefined, customModel: undefined, provider: "lmstudio" }), 4);
  assert.equal(await of({ configured: undefined, customModel: undefined, learned: undefined }), 4);
  const nobodyAsks = { configured: undefined, customModel: undefined, provider: "lmstudio", probe: undefined };
  assert.equal(await of(nobodyAsks), 5, "what it said last");
});

test("how long a provider may take is read from its own settings, the model's before the provider's", async () => {
  const config = {
    providers: {
      mine: {
        base_url: "http://127.0.0.1:9/v1",
        default_model: "slow",
        request_timeout_seconds: 100,
        stale_timeout_seconds: 20,
        models: { slow: { timeout_seconds: 900 } },
      },
      openrouter: { request_timeout_seconds: 55 },
    },
  };
  const patience = async (requested: string, model: string) =>
    (
      await targetFor(
        resolveRuntimeProvider({ requested, model, config, env: { OPENROUTER_API_KEY: "sk-or-0123456789" } }),
        { config },
      )
    ).patience;
  assert.deepEqual(await patience("mine", "slow"), { totalSeconds: 900, staleSeconds: 20 });
  assert.deepEqual(await patience("mine", "quick"), { totalSeconds: 100, staleSeconds: 20 });
  assert.deepEqual(await patience("openrouter", "a/b"), { totalSeconds: 55, staleSeconds: undefined });
});

test("a server elsewhere is asked for a window only where there would be a guess, and once", async () => {
  const kept = new Map<string, number>();
  let asked = 0;
  const options = {
    config: {},
    learned: {
      get: async (_url: string, model: string) => kept.get(model) ?? null,
      set: async (_url: string, model: string, tokens: number) => void kept.set(model, tokens),
      ...{ lastProbed: async () => null, noteProbed: async () => undefined },
    },
    lastResort: async () => {
      asked++;
      return { contextLength: 40_000 };
    },
  };
  const at = (model: string) =>
    targetFor(
      resolveRuntimeProvider({ requested: "custom", baseUrl: "https://host.example/v1", model, config: {}, env: {} }),
      options,
    );
  assert.equal((await at("qwen-of-mine")).contextLength, 131_072);
  assert.equal(asked, 0);
  assert.equal((await at("nobody-knows")).contextLength, 40_000);
  assert.equal((await at("nobody-knows")).contextLength, 40_000);
  assert.equal(asked, 1);
  kept.clear();
  const silent = { ...options, lastResort: async () => null };
  const runtime = resolveRuntimeProvider({
    ...{ requested: "custom", baseUrl: "https://host.example/v1", model: "nobody-knows", config: {}, env: {} },
  });
  const guessed = await targetFor(runtime, silent);
  assert.deepEqual([guessed.contextLength, guessed.windowAssumed], [256_000, true]);
  assert.equal(kept.size, 0, "a guess is not remembered");
});
