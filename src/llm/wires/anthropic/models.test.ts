import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeAnthropicModelName, outputLimit, thinkingStyle } from "./models.ts";

const names: readonly [model: string, preserveDots: boolean, name: string][] = [
  ["anthropic/claude-opus-4.6", false, "claude-opus-4-6"],
  ["Anthropic/claude-sonnet-4.5", false, "claude-sonnet-4-5"],
  ["claude-3.5-sonnet", false, "claude-3-5-sonnet"],
  ["claude-opus-4.6", true, "claude-opus-4.6"],
  ["anthropic.claude-3-5-sonnet-20241022-v2:0", false, "anthropic.claude-3-5-sonnet-20241022-v2:0"],
  ["us.anthropic.claude-opus-4.1", false, "us.anthropic.claude-opus-4.1"],
  ["MiniMax-M2.1", false, "MiniMax-M2.1"],
  ["qwen3.5-plus", false, "qwen3.5-plus"],
];
for (const [model, preserveDots, name] of names)
  test(`${model} is called ${name}${preserveDots ? " (dots kept)" : ""}`, () =>
    assert.equal(normalizeAnthropicModelName(model, preserveDots), name));

const limits: readonly [model: string, tokens: number][] = [
  ["claude-opus-4-6", 128_000],
  ["claude-opus-4.7", 128_000],
  ["claude-opus-4-8", 128_000],
  ["claude-sonnet-5", 128_000],
  ["claude-fable-5", 128_000],
  ["claude-sonnet-4-6", 64_000],
  ["claude-opus-4-5-20251101", 64_000],
  ["claude-sonnet-4.5", 64_000],
  ["claude-haiku-4-5", 64_000],
  ["claude-sonnet-4-20250514", 64_000],
  ["claude-opus-4-20250514", 32_000],
  ["claude-opus-4-1", 32_000],
  ["claude-3-7-sonnet-latest", 128_000],
  ["claude-3-5-haiku", 8_192],
  ["claude-3-opus-20240229", 4_096],
  ["MiniMax-M2", 131_072],
  ["qwen3-coder", 65_536],
  ["something-else", 128_000],
];
for (const [model, tokens] of limits)
  test(`${model} writes at most ${tokens} tokens`, () => assert.equal(outputLimit(model), tokens));

const styles: readonly [model: string, kind: string, sampling: boolean][] = [
  ["claude-opus-4-6", "adaptive", true],
  ["claude-opus-4-7", "adaptive", false],
  ["claude-sonnet-5", "adaptive", false],
  ["claude-mythos", "adaptive", false],
  ["claude-opus-4-5", "budget", true],
  ["claude-opus-4-1-20250805", "budget", true],
  ["claude-sonnet-4-20250514", "budget", true],
  ["claude-3-7-sonnet", "budget", true],
  ["claude-haiku-4-5", "none", true],
  ["kimi-k2", "adaptive", true],
  ["MiniMax-M2", "budget", true],
];
for (const [model, kind, sampling] of styles)
  test(`${model} thinks by ${kind} and ${sampling ? "takes" : "refuses"} a temperature`, () => {
    const style = thinkingStyle(model);
    assert.deepEqual([style.kind, style.sampling], [kind, sampling]);
  });
