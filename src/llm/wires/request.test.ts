import assert from "node:assert/strict";
import { test } from "node:test";
import type OpenAI from "openai";
import { aRequest, aTarget } from "../../../test/support/model-target.ts";
import type { Json } from "../../kit/json.ts";
import type { Message, ToolCall } from "../messages.ts";
import { profileFor } from "../providers/profiles.ts";
import type { ModelRequest, ProviderProfile, Target } from "../wire.ts";
import { renderChatRequest } from "./chat.ts";

type Body = OpenAI.Chat.ChatCompletionCreateParamsStreaming;
const chat = (target: Partial<Omit<Target, "profile">> & { profile?: Partial<ProviderProfile> } = {}) =>
  aTarget("chat_completions", target);
const bodyOf = (request: ModelRequest): Json => renderChatRequest(request).body;
const messagesOf = (messages: readonly Message[], target = chat()) => bodyOf(aRequest(target, { messages })).messages;

const call = (id: string, more: Partial<ToolCall> = {}): ToolCall => ({
  id,
  type: "function",
  function: { name: "ls", arguments: '{"path":"."}' },
  ...more,
});
const tool = {
  type: "function",
  function: { name: "ls", description: "List.", parameters: { type: "object", properties: {} } },
} as const;

test("a full request is what OpenAI's own types describe", () => {
  const request = aRequest(
    chat({
      provider: "openai-api",
      model: "gpt-5.1",
      baseUrl: "https://api.openai.com/v1",
      profile: { maxTokensField: "max_completion_tokens", developerRole: true, reasoningStyle: "openai" },
    }),
    {
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [call("c1")] },
        { role: "tool", content: "a\nb", tool_call_id: "c1", name: "ls" },
      ],
      tools: [tool],
      toolChoice: "auto",
      maxTokens: 100,
      temperature: 0.5,
      reasoning: { enabled: true, effort: "high" },
    },
  );
  const { prompt_cache_key, ...body } = bodyOf(request);
  assert.match(String(prompt_cache_key), /^pck_[0-9a-f]{24}$/);
  assert.deepEqual(body, {
    model: "gpt-5.1",
    messages: [
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "ls", arguments: '{"path":"."}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "a\nb", ...{ name: "ls" } },
    ],
    tools: [
      {
        type: "function",
        function: { name: "ls", description: "List.", parameters: { type: "object", properties: {} } },
      },
    ],
    tool_choice: "auto",
    max_completion_tokens: 100,
    temperature: 0.5,
    reasoning_effort: "high",
    stream: true,
    stream_options: { include_usage: true },
  } satisfies Body);
});

test("the same request gives the same bytes", () => {
  const request = aRequest(chat(), { tools: [tool], maxTokens: 5, reasoning: { enabled: true } });
  assert.equal(JSON.stringify(renderChatRequest(request)), JSON.stringify(renderChatRequest(structuredClone(request))));
});

test("what belongs to other wires, and to us alone, stays at home", () => {
  const messages: Message[] = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: "a",
      tool_calls: [call("fc_1", { call_id: "call_1", response_item_id: "fc_1" })],
      reasoning: "r",
      reasoning_content: "rc",
      reasoning_details: [{ type: "thinking", thinking: "t", signature: "s" }],
      anthropic_content_blocks: [{ type: "text", text: "a" }],
      codex_reasoning_items: [{ type: "reasoning" }],
      codex_message_items: [{ type: "message" }],
      finish_reason: "tool_calls",
    },
    { role: "tool", content: "x", tool_call_id: "fc_1", name: "ls", tool_name: "ls", text_origin: "local" },
  ];
  assert.deepEqual(messagesOf(messages), [
    { role: "user", content: "hi" },
    { role: "assistant", content: "a", tool_calls: [call("call_1")] },
    { role: "tool", tool_call_id: "call_1", name: "ls", content: "x" },
  ]);
});

test("api_content is what is sent", () => {
  const messages: Message[] = [
    { role: "user", content: "hi", api_content: "hi\n\nrecalled" },
    { role: "assistant", content: null, tool_calls: [call("c")] },
    { role: "tool", content: "a very long result", api_content: "pruned", tool_call_id: "c" },
  ];
  assert.deepEqual(
    (messagesOf(messages) as Json[]).map((message) => message.content),
    ["hi\n\nrecalled", null, "pruned"],
  );
});

test("thought signatures of Gemini-compatible hosts go back unchanged", () => {
  const extra_content = { google: { thought_signature: "abc" } };
  const [message] = messagesOf([{ role: "assistant", content: null, tool_calls: [call("c", { extra_content })] }]) as {
    tool_calls: Json[];
  }[];
  assert.deepEqual(message?.tool_calls[0]?.extra_content, extra_content);
});

test("OpenRouter's thinking records go back to OpenRouter, signed blocks of other wires do not", () => {
  const details = [
    { type: "reasoning.text", text: "t", index: 0 },
    { type: "thinking", thinking: "t", signature: "s" },
  ];
  const target = chat({ baseUrl: "https://openrouter.ai/api/v1", profile: { reasoningStyle: "openrouter" } });
  const [message] = messagesOf([{ role: "assistant", content: "a", reasoning_details: details }], target) as Json[];
  assert.deepEqual(message?.reasoning_details, [details[0]]);
});

test("hosts that want their reasoning back get it, or a single blank", () => {
  const messages: Message[] = [
    { role: "assistant", content: "a", reasoning_content: "why" },
    { role: "assistant", content: "b" },
    { role: "assistant", content: "c", reasoning_content: "" },
  ];
  const echoed = (target: Target) =>
    (messagesOf(messages, target) as Json[]).map((message) => message.reasoning_content);
  assert.deepEqual(echoed(chat({ profile: { echoReasoning: true } })), ["why", " ", " "]);
  assert.deepEqual(echoed(chat()), [undefined, undefined, undefined]);
});

const on = { enabled: true, effort: "high" } as const;
const off = { enabled: false } as const;
const OPENROUTER = "https://openrouter.ai/api/v1";
const MOONSHOT = "https://api.moonshot.ai/v1";
const DEEPSEEK = "https://api.deepseek.com/v1";
const OLLAMA = "http://127.0.0.1:11434/v1";
const OPENAI = "https://api.openai.com/v1";
const reasonings: readonly [baseUrl: string, model: string, ModelRequest["reasoning"], fields: Json][] = [
  [OPENROUTER, "anthropic/claude-sonnet-5", on, { reasoning: { enabled: true, effort: "high" } }],
  [OPENROUTER, "openai/gpt-5", { enabled: true }, { reasoning: { enabled: true, effort: "medium" } }],
  [OPENROUTER, "qwen/qwen3-max", off, { reasoning: { enabled: false } }],
  [OPENROUTER, "x-ai/grok-4", { enabled: true, effort: "none" }, { reasoning: { enabled: false } }],
  [OPENROUTER, "meta/llama-4", on, {}],
  [MOONSHOT, "kimi-k2", on, { reasoning_effort: "high", thinking: { type: "enabled" } }],
  [MOONSHOT, "kimi-k2", off, { thinking: { type: "disabled" } }],
  [
    DEEPSEEK,
    "deepseek-reasoner",
    { enabled: true, effort: "xhigh" },
    { thinking: { type: "enabled" }, reasoning_effort: "max" },
  ],
  [DEEPSEEK, "deepseek-v4-pro", off, { thinking: { type: "disabled" } }],
  [DEEPSEEK, "deepseek-chat", on, {}],
  [OLLAMA, "qwen3", off, { think: false }],
  [OLLAMA, "qwen3", on, {}],
  [OPENAI, "gpt-5", on, { reasoning_effort: "high" }],
  [OPENAI, "gpt-4o", on, {}],
  ["https://example.com/v1", "x", on, {}],
];
for (const [baseUrl, model, reasoning, fields] of reasonings)
  test(`${model} at ${baseUrl} is asked to think (${JSON.stringify(reasoning)}) by ${JSON.stringify(fields)}`, () => {
    const target = chat({
      model,
      baseUrl,
      profile: profileFor({ provider: "custom", model, baseUrl, apiMode: "chat_completions" }),
    });
    assert.deepEqual(bodyOf(aRequest(target, { reasoning })), { ...bodyOf(aRequest(target)), ...fields });
  });

test("without a wish to think no field is sent", () => {
  const { reasoning_effort, thinking } = bodyOf(aRequest(chat({ profile: { reasoningStyle: "kimi" } })));
  assert.deepEqual([reasoning_effort, thinking], [undefined, undefined]);
});

test("Kimi gets no temperature", () => {
  assert.equal(
    bodyOf(aRequest(chat({ profile: { reasoningStyle: "kimi" } }), { temperature: 1 })).temperature,
    undefined,
  );
});

test("the output cap: asked for, else the profile's default, else none", () => {
  const capped = chat({ profile: { defaultMaxTokens: 32_000 } });
  assert.equal(bodyOf(aRequest(capped, { maxTokens: 7 })).max_tokens, 7);
  assert.equal(bodyOf(aRequest(capped)).max_tokens, 32_000);
  assert.ok(!("max_tokens" in bodyOf(aRequest(chat()))));
});

test("usage in the stream is not asked of hosts that refuse the option, nor without a stream", () => {
  assert.equal(bodyOf(aRequest(chat({ profile: { streamUsage: false } }))).stream_options, undefined);
  assert.equal(bodyOf(aRequest(chat(), { stream: false })).stream_options, undefined);
});

test("extra fields and overrides are merged last, and an undefined override removes a field", () => {
  const request = aRequest(chat({ extraBody: { provider: { sort: "price" }, seed: 1 } }), {
    temperature: 1,
    overrides: { seed: 2, temperature: undefined },
  });
  const sent = JSON.parse(JSON.stringify(bodyOf(request)));
  assert.deepEqual([sent.provider, sent.seed, "temperature" in sent], [{ sort: "price" }, 2, false]);
});

test("a user's own cache key wins, and one that is too long is hashed", () => {
  const openai = (key?: string) =>
    bodyOf(
      aRequest(chat({ baseUrl: "https://api.openai.com/v1", ...(key && { extraBody: { prompt_cache_key: key } }) })),
    ).prompt_cache_key;
  assert.equal(openai("mine"), "mine");
  assert.match(String(openai("x".repeat(65))), /^pck_[0-9a-f]{24}$/);
  assert.match(String(openai()), /^pck_/);
  assert.equal(bodyOf(aRequest(chat())).prompt_cache_key, undefined);
});

test("the key goes out as a bearer token, and not at all where there is none", () => {
  const headers = (target: Partial<Target>) => renderChatRequest(aRequest(chat({ ...target, profile: {} }))).headers;
  assert.equal(headers({ apiKey: "k" }).authorization, "Bearer k");
  assert.equal(headers({ apiKey: "" }).authorization, undefined);
  assert.equal(headers({ apiKey: "no-key-required" }).authorization, undefined);
  assert.equal(headers({ headers: { Authorization: "Token t" } }).authorization, "Token t");
});

const urls: readonly [baseUrl: string, url: string][] = [
  ["http://x/v1", "http://x/v1/chat/completions"],
  ["http://x/v1/", "http://x/v1/chat/completions"],
  ["http://x/v1?api-version=1", "http://x/v1/chat/completions?api-version=1"],
  ["http://x/v1/chat/completions", "http://x/v1/chat/completions"],
  ["demo://local", "demo://local/chat/completions"],
];
for (const [baseUrl, url] of urls)
  test(`${baseUrl} is asked at ${url}`, () => assert.equal(renderChatRequest(aRequest(chat({ baseUrl }))).url, url));

test("OpenRouter is told which conversation this is, others are not", () => {
  const sessionOf = (baseUrl: string) => bodyOf(aRequest(chat({ baseUrl }), { sessionId: "s1" })).session_id;
  assert.deepEqual([sessionOf(OPENROUTER), sessionOf(OPENAI)], ["s1", undefined]);
});

test("a host without eyes gets words instead of images", () => {
  const messages: Message[] = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }];
  assert.deepEqual(messagesOf(messages, chat({ profile: { images: false } })), [
    { role: "user", content: [{ type: "text", text: "[image content removed — server does not support images]" }] },
  ]);
});

test("an envelope host gets its cache markers on content parts, never on messages", () => {
  const target = chat({ profile: { cacheLayout: "envelope" } });
  const [system, user] = messagesOf(
    [
      { role: "system", content: "s" },
      { role: "user", content: "u" },
    ],
    target,
  ) as Json[];
  const marked = (text: string) => [{ type: "text", text, cache_control: { type: "ephemeral" } }];
  assert.deepEqual(system, { role: "system", content: marked("s") });
  assert.deepEqual(user, { role: "user", content: marked("u") });
});
