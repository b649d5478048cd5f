// Laws of cache markers on the wire: they are laid over the bytes and change none of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../src/kit/clock.ts";
import type { ApiMode, ModelRequest, ToolDefinition } from "../src/llm/wire.ts";
import { createWire, writeBody } from "../src/llm/wires/drive.ts";
import { legalHistory } from "./support/histories.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { aRequest, aTarget } from "./support/model-target.ts";
import { talkAtLength } from "./support/prefix-commands.ts";
import { MODELS, World } from "./support/prefix-world.ts";
import { fewer } from "./support/sample.ts";
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
      { numRuns: fewer(60, 3) },
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

const SUMMARY = "hand-over notes";
const settings: readonly (readonly [setting: string, marker: RegExp | null])[] = [
  ["5m", /"cache_control":\{"type":"ephemeral"\}/],
  ["1h", /"cache_control":\{"type":"ephemeral","ttl":"1h"\}/],
  ["off", null],
  ["false", null],
  ["none", null],
  ["~", null],
];
for (const [setting, marker] of settings)
  test(`prompt_caching.cache_ttl: ${setting} holds for every request, after another model was chosen and for side calls too`, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    server.otherwise(({ raw }) => ({ text: raw.includes(SUMMARY) ? "## Active Task\nNone" : "Well. ".repeat(200) }));
    await using world = await World.begin(server, "anthropic_messages", `prompt_caching: { cache_ttl: ${setting} }\n`);
    await talkAtLength(world);
    await world.agent.switchModel({ model: MODELS[1] });
    await world.say("and now");
    assert.ok(await world.compress());
    await world.say("after it");
    assert.ok(server.requests.some(({ raw }) => raw.includes(SUMMARY)));
    for (const { raw } of server.requests) {
      const markers = raw.match(/"cache_control":\{[^}]*\}/g) ?? [];
      assert.ok(markers.length <= 4);
      assert.ok(marker ? markers.length > 0 && markers.every((each) => marker.test(each)) : markers.length === 0);
    }
  });

test("a request that goes to another place is the one that would have been made for it, and the tools stay bare", async () => {
  const bare = [tool("ls"), tool("cat")];
  const before = structuredClone(bare);
  const messages: ModelRequest["messages"] = [
    { role: "system", content: "You are a test.\n\nToday." },
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
    { role: "assistant", content: "c" },
    { role: "user", content: "d" },
  ];
  const rendered: Record<string, string[]> = {};
  for (const order of [destinations, destinations.toReversed()])
    for (const { mode, baseUrl, profile } of order) {
      const target = aTarget(mode, { model: "claude-opus-4-6", baseUrl, profile });
      const request = aRequest(target, {
        messages,
        tools: bare,
        promptLayout: { stable: "You are a test.", blocks: [] },
      });
      const { text } = await render(mode, { ...request, cacheTtl: "1h" });
      const place = `${mode} ${baseUrl}`;
      rendered[place] = [...(rendered[place] ?? []), text];
    }
  for (const [first, again] of Object.values(rendered)) assert.equal(again, first);
  assert.deepEqual(bare, before);
});
