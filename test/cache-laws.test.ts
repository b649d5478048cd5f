// Laws of cache markers on the wire: they are laid over the bytes and change none of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../src/kit/clock.ts";
import type { ApiMode, ModelRequest, ToolDefinition } from "../src/llm/wire.ts";
import { writeBody } from "../src/llm/wires/body.ts";
import { createWire } from "../src/llm/wires/create.ts";
import { legalHistory } from "./support/histories.ts";
import { aRequest, aTarget } from "./support/model-target.ts";
import { validateAnthropic, validateChat } from "./support/wire-validators.ts";

const ports = { fetch: globalThis.fetch, clock: systemClock };
const tool = (name: string): ToolDefinition => ({
  type: "function",
  function: { name, description: name, parameters: { type: "object", properties: {} } },
});
const destinations = [
  { mode: "anthropic_messages", baseUrl: "https://api.anthropic.com", profile: { cacheLayout: "native" } },
  { mode: "anthropic_messages", baseUrl: "https://relay.example", profile: { cacheLayout: "native" } },
  { mode: "chat_completions", baseUrl: "https://openrouter.ai/api/v1", profile: { cacheLayout: "envelope" } },
  { mode: "chat_completions", baseUrl: "https://api.openai.com/v1", profile: {} },
  { mode: "codex_responses", baseUrl: "https://api.openai.com/v1", profile: {} },
] as const;

const render = async (mode: ApiMode, request: ModelRequest) =>
  writeBody((await createWire(mode, ports).render(request)).body);

for (const { mode, baseUrl, profile } of destinations)
  test(`${mode} at ${baseUrl}: the marked request is the unmarked one with markers on it`, () =>
    fc.assert(
      fc.asyncProperty(
        legalHistory,
        fc.constantFrom("", "You are", "You are a test.", "Another"),
        fc.constantFrom<readonly ToolDefinition[]>([], [tool("ls"), tool("cat"), tool("ls")]),
        fc.constantFrom("5m", "1h"),
        async (history, stable, tools, cacheTtl) => {
          const request = aRequest(aTarget(mode, { model: "claude-opus-4-6", baseUrl, profile }), {
            messages: [{ role: "system", content: "You are a test." }, ...history],
            tools,
            promptLayout: { stable, blocks: [] },
          });
          const plain = await render(mode, { ...request, cacheTtl: "off" });
          const marked = await render(mode, { ...request, cacheTtl });
          const { text: _, ...bare } = plain;
          const { text, ...parts } = marked;
          assert.deepEqual(parts, bare);
          assert.ok(!plain.text.includes('"cache_control"'));
          const markers = text.match(/"cache_control":\{"type":"ephemeral"(,"ttl":"1h")?\}/g) ?? [];
          assert.ok(markers.length <= 4);
          assert.ok(markers.every((marker) => marker.includes("1h") === (cacheTtl === "1h")));
          assert.equal(markers.length > 0, "cacheLayout" in profile);
          if (mode === "anthropic_messages") validateAnthropic(text);
          if (mode === "chat_completions") validateChat(text);
        },
      ),
      { numRuns: 60 },
    ));

test("a last call without tools still carries the tool list, which stands first in the cached prefix", async () => {
  const target = aTarget("anthropic_messages", { baseUrl: "https://api.anthropic.com" });
  const request = aRequest(target, { tools: [tool("ls")] });
  const [with_, without] = await Promise.all([
    render("anthropic_messages", request),
    render("anthropic_messages", { ...request, toolChoice: "none" }),
  ]);
  assert.equal(without.tools, with_.tools);
  assert.deepEqual(JSON.parse(without.text).tool_choice, { type: "none" });
});

test("the cache key depends on prompt and tools, not on the conversation, and goes to nobody who did not ask for it", async () => {
  const at = (baseUrl: string, supportsPromptCacheKey?: boolean) =>
    aTarget("chat_completions", {
      baseUrl,
      profile: supportsPromptCacheKey === undefined ? {} : { supportsPromptCacheKey },
    });
  const key = async (request: ModelRequest) =>
    JSON.parse((await render("chat_completions", request)).text).prompt_cache_key;
  const openai = aRequest(at("https://api.openai.com/v1"), { tools: [tool("ls"), tool("cat")] });
  const later: ModelRequest = {
    ...openai,
    tools: [tool("cat"), tool("ls")],
    messages: [...openai.messages, { role: "assistant", content: "x" }],
  };
  assert.match(await key(openai), /^pck_[0-9a-f]{24}$/);
  assert.equal(await key(later), await key(openai));
  assert.equal(await key({ ...openai, target: at("https://api.openai.com.evil.example/v1") }), undefined);
  assert.match(await key({ ...openai, target: at("https://own.example/v1", true) }), /^pck_/);
  assert.equal(await key({ ...openai, target: at("https://api.openai.com/v1", false) }), undefined);
});
