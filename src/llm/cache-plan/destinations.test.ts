// Who gets cache markers, in which layout, and what of it is on the wire.
import assert from "node:assert/strict";
import { test } from "node:test";
import { profileFor } from "../providers/profiles.ts";
import type { ApiMode } from "../wire.ts";

const C: ApiMode = "chat_completions";
const R: ApiMode = "codex_responses";
const A: ApiMode = "anthropic_messages";

const table: readonly (readonly [provider: string, model: string, baseUrl: string, wire: ApiMode, layout: string])[] = [
  // Anthropic itself, by provider or by host.
  ["anthropic", "claude-opus-5", "https://api.anthropic.com", A, "native"],
  ["custom", "some-model", "https://api.anthropic.com/v1", A, "native"],
  ["anthropic", "claude-opus-5", "https://proxy.company.example", A, "native"],
  ["custom", "some-model", "https://evil.example/api.anthropic.com", A, "none"],
  ["custom", "some-model", "https://api.anthropic.com.evil.example", A, "none"],
  // OpenRouter and the portal, chat wire: Claude, Kimi, Moonshot.
  ["openrouter", "anthropic/claude-sonnet-5", "https://openrouter.ai/api/v1", C, "envelope"],
  ["openrouter", "moonshotai/kimi-k3", "https://openrouter.ai/api/v1", C, "envelope"],
  ["openrouter", "Moonshot/v2", "https://eu.openrouter.ai/api/v1", C, "envelope"],
  ["nous", "anthropic/claude-sonnet-5", "https://inference-api.nousresearch.com/v1", C, "envelope"],
  ["openrouter", "openai/gpt-5.5", "https://openrouter.ai/api/v1", C, "none"],
  ["openrouter", "qwen/qwen3", "https://openrouter.ai/api/v1", C, "none"],
  ["openrouter", "anthropic/claude-sonnet-5", "https://openrouter.ai/api/v1", R, "none"],
  ["custom", "anthropic/claude-sonnet-5", "https://notopenrouter.ai/api/v1", C, "none"],
  // The portal takes them for Qwen too, wherever the name says so.
  ["nous", "qwen/qwq-32b", "https://inference-api.nousresearch.com/v1", C, "envelope"],
  ["nous", "hermes-4", "https://inference-api.nousresearch.com/v1", C, "none"],
  // The same wire elsewhere: Claude by name.
  ["custom", "claude-opus-5", "https://relay.example/anthropic", A, "native"],
  ["custom", "vendor/Claude-x", "https://relay.example/anthropic", A, "native"],
  ["custom", "deepseek-v4", "https://relay.example/anthropic", A, "none"],
  // MiniMax speaks the same wire.
  ["minimax", "MiniMax-M3", "https://api.minimax.io/anthropic", A, "native"],
  ["minimax-cn", "MiniMax-M3", "https://api.minimaxi.com/anthropic", A, "native"],
  ["custom", "MiniMax-M3", "https://api.minimaxi.com/anthropic", A, "native"],
  ["minimax", "MiniMax-M3", "https://api.minimax.io/v1", C, "none"],
  ["minimaxish", "m", "https://relay.example", A, "none"],
  // Qwen at those who pass markers on; DeepSeek there must stay without, the relay rejects lists of parts.
  ["opencode", "qwen3-coder", "https://opencode.ai/zen/v1", C, "envelope"],
  ["opencode-zen", "qwen3-coder", "https://opencode.ai/zen/v1", C, "envelope"],
  ["opencode-go", "qwen/coder", "https://opencode.ai/zen/go/v1", C, "envelope"],
  ["opencode-go", "deepseek-v4-pro", "https://opencode.ai/zen/go/v1", C, "none"],
  ["alibaba", "qwen3.7-plus", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", C, "envelope"],
  ["custom", "qwen3.7-plus", "https://own.example/v1", C, "none"],
  // Everybody else.
  ["openai-api", "gpt-5.5", "https://api.openai.com/v1", R, "none"],
  ["custom", "claude-opus-5", "https://own.example/v1", C, "none"],
  ["custom", "llama", "http://127.0.0.1:11434/v1", C, "none"],
];
for (const [provider, model, baseUrl, apiMode, layout] of table)
  test(`${provider}, ${model} at ${baseUrl} over ${apiMode}: ${layout}`, () =>
    assert.equal(profileFor({ provider, model, baseUrl, apiMode }).cacheLayout, layout));

test("the user's own word about an endpoint wins", () => {
  const to = { provider: "custom", model: "m", baseUrl: "https://own.example", apiMode: "chat_completions" } as const;
  assert.equal(profileFor(to, { cacheLayout: "envelope" }).cacheLayout, "envelope");
});
