import assert from "node:assert/strict";
import { test } from "node:test";
import { parseModelFlags, resolveModelName, stripProviderPrefix } from "./model-names.ts";

const stripped: readonly [string, string][] = [
  ["openrouter:x", "x"],
  ["openrouter:anthropic/claude-opus-5", "anthropic/claude-opus-5"],
  ["claude:claude-opus-5", "claude-opus-5"],
  ["local:my-model", "my-model"],
  ["Local:hf.co/me/my-model:q4", "hf.co/me/my-model:q4"],
  ["local:7b", "local:7b"],
  ["qwen:0.5b", "qwen:0.5b"],
  ["qwen:7b-instruct-q4_0", "qwen:7b-instruct-q4_0"],
  ["deepseek:latest", "deepseek:latest"],
  ["deepseek:q4_K_M", "deepseek:q4_K_M"],
  ["glm:fp16", "glm:fp16"],
  ["kimi:instruct", "kimi:instruct"],
  ["llama3:8b", "llama3:8b"],
  ["vendor/model:free", "vendor/model:free"],
  ["plain", "plain"],
  ["openrouter:", "openrouter:"],
];
for (const [name, expected] of stripped) {
  test(`${name} without its provider is ${expected}`, () => assert.equal(stripProviderPrefix(name), expected));
}

const flags: readonly [string, ReturnType<typeof parseModelFlags>][] = [
  ["sonnet", ["sonnet", "", false, false]],
  ["sonnet --provider anthropic --global", ["sonnet", "anthropic", true, false]],
  ["—refresh", ["", "", false, true]],
  ["opus –provider openrouter —global", ["opus", "openrouter", true, false]],
  ["--provider=zai glm", ["glm", "zai", false, false]],
  ["my-model --provider", ["my-model", "", false, false]],
  ["", ["", "", false, false]],
];
for (const [text, expected] of flags) {
  test(`/model ${text} is read as ${JSON.stringify(expected)}`, () =>
    assert.deepEqual(parseModelFlags(text), expected));
}

const newest: readonly [string, string, RegExp][] = [
  ["sonnet", "anthropic", /^claude-sonnet-5-5$/],
  ["opus", "openrouter", /^anthropic\/claude-opus-5\.5$/],
  ["Haiku", "anthropic", /^claude-haiku-5-5$/],
  ["gpt5", "openai-api", /^gpt-5\.6-/],
  ["grok", "xai", /^grok-4\.7$/],
  ["kimi", "kimi-coding", /^kimi-k3\.1-/],
  ["glm", "zai", /^glm-5\.3$/],
  ["gemini", "gemini", /^gemini-4-/],
  ["deepseek", "deepseek", /^deepseek-v4-pro$/],
  ["sonnet", "deepseek", /^sonnet$/],
  ["my-own-model", "anthropic", /^my-own-model$/],
];
for (const [alias, provider, expected] of newest) {
  test(`${alias} at ${provider} is the newest one published`, async () =>
    assert.match((await resolveModelName(alias, { provider })).model, expected));
}

test("the user's own aliases win", async () => {
  const aliases = { sonnet: "my/sonnet", fast: { model: "m1", provider: "zai", base_url: "https://x.example" } };
  assert.equal((await resolveModelName("sonnet", { provider: "anthropic", aliases })).model, "my/sonnet");
  assert.deepEqual(await resolveModelName("fast", { provider: "anthropic", aliases }), {
    model: "m1",
    provider: "zai",
    baseUrl: "https://x.example",
  });
});
