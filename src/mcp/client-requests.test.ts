import assert from "node:assert/strict";
import { test } from "node:test";
import type { CreateMessageRequest } from "@modelcontextprotocol/client";
import type { Clock } from "../kit/clock.ts";
import { Sampler } from "./client-requests.ts";
import type { SamplingAnswer, SamplingCall } from "./contract.ts";
import { parseServer } from "./settings.ts";

type Params = CreateMessageRequest["params"];

const hello: Params = { messages: [{ role: "user", content: { type: "text", text: "hello" } }], maxTokens: 100_000 };
const tool = { name: "look", inputSchema: { type: "object" as const, properties: {} } };

function rig(sampling: object, answer: Partial<SamplingAnswer> = {}) {
  let now = 0;
  const clock: Clock = { now: () => now, random: () => 0, sleep: () => Promise.resolve() };
  const calls: SamplingCall[] = [];
  const settings = parseServer("s", { command: "x", sampling }).settings?.sampling;
  assert.ok(settings);
  const sampler = new Sampler({
    server: "s",
    settings,
    clock,
    sample: async (call) => {
      calls.push(call);
      return { text: "hi", toolCalls: [], finishReason: "stop", model: "m", ...answer };
    },
  });
  const run = { sessionId: "one", signal: new AbortController().signal };
  return {
    calls,
    ask: (params: Params = hello) => sampler.answer(params, run),
    later: (ms: number) => {
      now += ms;
    },
  };
}

test("the token cap holds, and the conversation that pays is named", async () => {
  const { ask, calls } = rig({ max_tokens_cap: 50 });
  assert.deepEqual(await ask(), {
    role: "assistant",
    model: "m",
    stopReason: "endTurn",
    content: { type: "text", text: "hi" },
  });
  assert.equal(calls[0]?.maxTokens, 50);
  assert.equal(calls[0]?.sessionId, "one");
});

test("a server that asks too often is refused until the minute is over", async () => {
  const { ask, later } = rig({ max_rpm: 2 });
  await ask();
  await ask();
  await assert.rejects(ask(), /more than 2 sampling requests in a minute/);
  later(60_000);
  await ask();
});

test("a model that is not on the list is refused, one that is gets used", async () => {
  const { ask, calls } = rig({ allowed_models: ["small"] });
  await ask({ ...hello, modelPreferences: { hints: [{ name: "huge" }, { name: "small" }] } });
  assert.equal(calls[0]?.model, "small");
  await assert.rejects(ask({ ...hello, modelPreferences: { hints: [{ name: "huge" }] } }), /"huge" is not among/);
});

test("switched off means refused", async () => {
  await assert.rejects(rig({ enabled: false }).ask(), /disabled/);
});

test("rounds of tool use are passed on and counted", async () => {
  const call = { id: "1", type: "function" as const, function: { name: "look", arguments: '{"a":1}' } };
  const { ask } = rig({ max_tool_rounds: 2 }, { text: "", toolCalls: [call] });
  const withTools = { ...hello, tools: [tool] };
  const answer = await ask(withTools);
  assert.equal(answer.stopReason, "toolUse");
  assert.deepEqual(answer.content, [{ type: "tool_use", id: "1", name: "look", input: { a: 1 } }]);
  await ask(withTools);
  await assert.rejects(ask(withTools), /more than 2 rounds of tool use/);
});

test("what the server's conversation holds reaches the model: system text, pictures, calls and their results", async () => {
  const { ask, calls } = rig({});
  await ask({
    maxTokens: 10,
    systemPrompt: "be short",
    messages: [
      { role: "user", content: { type: "image", data: "AAAA", mimeType: "image/png" } },
      { role: "assistant", content: [{ type: "tool_use", id: "1", name: "look", input: {} }] },
      { role: "user", content: [{ type: "tool_result", toolUseId: "1", content: [{ type: "text", text: "seen" }] }] },
    ],
  });
  assert.deepEqual(calls[0]?.messages, [
    { role: "system", content: "be short" },
    { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "1", type: "function", function: { name: "look", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "1", content: "seen" },
  ]);
});
