import assert from "node:assert/strict";
import { test } from "node:test";
import type OpenAI from "openai";
import { aRequest, aTarget, receive } from "../../../../test/support/model-target.ts";
import type { Json } from "../../../kit/json.ts";
import type { Message, ToolCall } from "../../messages.ts";
import type { ModelEvent, ModelRequest, Target } from "../../wire.ts";
import { WireFailure } from "../transport.ts";
import { fromResponsesOutput, toResponsesInput } from "./items.ts";
import { renderResponsesRequest } from "./protocol.ts";

type Input = OpenAI.Responses.ResponseInputItem;
const call = (id: string, more: Partial<ToolCall> = {}): ToolCall => ({
  id,
  type: "function",
  function: { name: "ls", arguments: "{}" },
  ...more,
});
const secret = (id: string, _issuer_kind = "me") => ({
  type: "reasoning",
  id,
  summary: [{ type: "summary_text", text: "s" }],
  encrypted_content: "c",
  _issuer_kind,
});

const inputs: readonly [what: string, messages: readonly Message[], items: readonly Input[]][] = [
  [
    "system messages are the instructions, not input",
    [
      { role: "system", content: "s" },
      { role: "user", content: "hi" },
    ],
    [{ role: "user", content: "hi" }],
  ],
  [
    "api_content is what is sent",
    [{ role: "user", content: "hi", api_content: "hi!" }],
    [{ role: "user", content: "hi!" }],
  ],
  [
    "parts with an image become input parts",
    [
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: "https://x/y.png" } },
        ],
      },
    ],
    [
      {
        role: "user",
        content: [
          { type: "input_text", text: "see" },
          { type: "input_image", image_url: "https://x/y.png", detail: "auto" },
        ],
      },
    ],
  ],
  [
    "reasoning, text, calls and results come in this order",
    [
      {
        role: "assistant",
        content: "look",
        codex_reasoning_items: [secret("rs_1")],
        tool_calls: [call("fc_1", { call_id: "call_1" }), call("call_2|fc_2")],
      },
      { role: "tool", content: "one", tool_call_id: "fc_1" },
      {
        role: "tool",
        content: [
          { type: "text", text: "two" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        ],
        tool_call_id: "call_2",
      },
    ],
    [
      { type: "reasoning", summary: [{ type: "summary_text", text: "s" }], encrypted_content: "c" } as unknown as Input, // the id is left out on purpose
      { role: "assistant", content: "look" },
      { type: "function_call", call_id: "call_1", name: "ls", arguments: "{}" },
      { type: "function_call", call_id: "call_2", name: "ls", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: "one" },
      {
        type: "function_call_output",
        call_id: "call_2",
        output: [
          { type: "input_text", text: "two" },
          { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "auto" },
        ],
      },
    ],
  ],
  [
    "reasoning that led to nothing is followed by an empty message",
    [{ role: "assistant", content: null, codex_reasoning_items: [secret("rs_1")] }],
    [
      { type: "reasoning", summary: [{ type: "summary_text", text: "s" }], encrypted_content: "c" } as unknown as Input,
      { role: "assistant", content: "" },
    ], // the id is left out on purpose
  ],
  [
    "recorded messages are replayed",
    [
      {
        role: "assistant",
        content: "done",
        codex_message_items: [
          {
            type: "message",
            id: "msg_1",
            role: "assistant",
            status: "completed",
            phase: "final_answer",
            content: [{ type: "output_text", text: "done", logprobs: [] }],
            _issuer_kind: "me",
          },
        ],
      },
    ],
    [
      {
        type: "message",
        role: "assistant",
        id: "msg_1",
        status: "completed",
        phase: "final_answer",
        content: [{ type: "output_text", text: "done", annotations: [] }],
      },
    ],
  ],
  [
    "a recorded message that differs from what is stored gives way to it",
    [
      {
        role: "assistant",
        content: "key ***",
        codex_message_items: [
          { type: "message", id: "msg_1", content: [{ type: "output_text", text: "key secret" }], _issuer_kind: "me" },
        ],
      },
    ],
    [{ role: "assistant", content: "key ***" }],
  ],
];
for (const [what, messages, items] of inputs)
  test(what, () => assert.deepEqual(toResponsesInput(messages, { issuer: "me" }), items));

test("encrypted items of another issuer, items seen before, and all of them when replay is off stay at home", () => {
  const messages: Message[] = [
    { role: "assistant", content: "a", codex_reasoning_items: [secret("rs_1"), secret("rs_2", "someone else")] },
    { role: "user", content: "hi" },
    { role: "assistant", content: "b", codex_reasoning_items: [secret("rs_1"), secret("rs_3")] },
  ];
  const count = (options: Parameters<typeof toResponsesInput>[1]) =>
    toResponsesInput(messages, options).filter((item) => item.type === "reasoning").length;
  assert.equal(count({ issuer: "me" }), 2);
  assert.equal(count({ issuer: "me", replay: false }), 0);
  assert.equal(count({}), 3);
});

const render = (target: Partial<Target> = {}, rest: Partial<ModelRequest> = {}) =>
  renderResponsesRequest(
    aRequest(
      aTarget("codex_responses", { model: "gpt-5", baseUrl: "https://api.openai.com/v1", ...target, profile: {} }),
      rest,
    ),
  );
const tools = [
  { type: "function", function: { name: "ls", description: "d", parameters: { type: "object", properties: {} } } },
] as const;

test("a full request is what OpenAI's own types describe", () => {
  const { prompt_cache_key, ...body } = render(
    {},
    { tools, maxTokens: 100, reasoning: { enabled: true, effort: "minimal" } },
  ).body;
  assert.match(String(prompt_cache_key), /^pck_[0-9a-f]{24}$/);
  assert.deepEqual(body, {
    model: "gpt-5",
    instructions: "You are a test.",
    input: [{ role: "user", content: "hi" }],
    tools: [
      { type: "function", name: "ls", description: "d", parameters: { type: "object", properties: {} }, strict: false },
    ],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { effort: "low", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    max_output_tokens: 100,
    store: false,
    stream: true,
  } satisfies OpenAI.Responses.ResponseCreateParamsStreaming);
});

const thinking: readonly [what: string, rest: Partial<ModelRequest>, model: string, fields: Json][] = [
  ["no wish: what was thought comes back all the same", {}, "gpt-5", { reasoning: { summary: "auto" }, include: true }],
  [
    "an effort",
    { reasoning: { enabled: true, effort: "high" } },
    "gpt-5",
    { reasoning: { effort: "high", summary: "auto" }, include: true },
  ],
  ["no summaries", { reasoning: { enabled: true, summary: false } }, "gpt-5", { include: true }],
  ["switched off", { reasoning: { enabled: false } }, "gpt-5", {}],
  ["effort none", { reasoning: { enabled: true, effort: "none" } }, "gpt-5", {}],
  ["a model that does not think", {}, "gpt-4o", {}],
  ["a chat edition", { reasoning: { enabled: true } }, "gpt-5.1-chat-latest", {}],
];
for (const [what, rest, model, fields] of thinking) {
  test(`thinking: ${what}`, () => {
    const { reasoning, include } = render({ model }, rest).body;
    const encrypted = JSON.stringify(include) === '["reasoning.encrypted_content"]';
    assert.deepEqual({ ...(reasoning ? { reasoning } : {}), ...(encrypted ? { include: true } : {}) }, fields);
  });
}

test("a ChatGPT plan is told which account pays, by what its token says", () => {
  const claims = { "https://api.openai.com/auth": { chatgpt_account_id: "acc-1" } };
  const apiKey = `eyJ0.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.sig`;
  const header = (target: Partial<Target>) => render(target).headers["chatgpt-account-id"];
  const baseUrl = "https://chatgpt.com/backend-api/codex";
  assert.equal(header({ baseUrl, apiKey }), "acc-1");
  assert.equal(header({ baseUrl, apiKey: "no-token" }), undefined);
  assert.equal(header({ apiKey }), undefined, "other hosts are not told");
});

test("a quicker answer is asked for where it is sold", () => {
  const tier = (baseUrl: string) => render({ baseUrl }, { serviceTier: "fast" }).body.service_tier;
  assert.equal(tier("https://api.openai.com/v1"), "priority");
  assert.equal(tier("https://chatgpt.com/backend-api/codex"), "priority");
  assert.equal(tier("https://api.x.ai/v1"), undefined);
  assert.equal(render({}, { serviceTier: "flex" }).body.service_tier, "flex");
});

test("hosts differ: no output cap on ChatGPT, no cache key on GitHub, a conversation id on xAI", () => {
  assert.equal(
    render({ baseUrl: "https://chatgpt.com/backend-api/codex" }, { maxTokens: 5 }).body.max_output_tokens,
    undefined,
  );
  assert.equal(render({ baseUrl: "https://api.githubcopilot.com" }).body.prompt_cache_key, undefined);
  assert.equal(render({ baseUrl: "https://api.x.ai/v1" }, { sessionId: "s1" }).headers["x-grok-conv-id"], "s1");
  assert.equal(render({}, { sessionId: "s1" }).headers["x-grok-conv-id"], undefined);
});

test("the cache key depends on system text and tools, not on the order of tools or on the conversation", () => {
  const key = (rest: Partial<ModelRequest>) => render({}, rest).body.prompt_cache_key;
  const other = { type: "function", function: { name: "pwd", description: "d", parameters: {} } } as const;
  assert.equal(key({ tools: [tools[0], other] }), key({ tools: [other, tools[0]] }));
  assert.equal(
    key({ tools }),
    key({
      tools,
      messages: [
        { role: "system", content: "You are a test." },
        { role: "user", content: "else" },
      ],
    }),
  );
  assert.notEqual(key({ tools }), key({ tools: [other] }));
});

test("without a system prompt there are default instructions", () => {
  assert.match(String(render({}, { messages: [{ role: "user", content: "hi" }] }).body.instructions), /Hermes/);
});

const text = (value: string, more: Json = {}): Json => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: value, annotations: [] }],
  ...more,
});
const made = (more: Json = {}): Json => ({
  type: "function_call",
  id: "fc_1",
  call_id: "call_1",
  name: "ls",
  arguments: '{"a":1}',
  status: "completed",
  ...more,
});
const thought = (id = "rs_1"): Json => ({
  type: "reasoning",
  id,
  summary: [{ type: "summary_text", text: "why" }],
  encrypted_content: "c",
});

const outputs: readonly [what: string, response: Json, finish: string, content: string | null, calls: number][] = [
  ["a message", { status: "completed", output: [text("hi")] }, "stop", "hi", 0],
  ["a call", { status: "completed", output: [thought(), made()] }, "tool_calls", null, 1],
  [
    "a custom call",
    { status: "completed", output: [{ type: "custom_tool_call", call_id: "call_1", name: "sh", input: "ls -l" }] },
    "tool_calls",
    null,
    1,
  ],
  [
    "an unfinished call alone",
    { status: "completed", output: [made({ status: "incomplete" })] },
    "incomplete",
    null,
    0,
  ],
  [
    "text beside an unfinished call",
    { status: "completed", output: [text("hi"), made({ status: "in_progress" })] },
    "stop",
    "hi",
    0,
  ],
  [
    "an incomplete response",
    { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, output: [text("hal")] },
    "incomplete",
    "hal",
    0,
  ],
  ["a queued response", { status: "queued", output: [] }, "incomplete", null, 0],
  [
    "a filtered response",
    { status: "incomplete", incomplete_details: { reason: "content_filter" }, output: [text("h")] },
    "content_filter",
    "h",
    0,
  ],
  [
    "a refusal",
    { status: "completed", output: [text("", { content: [{ type: "refusal", refusal: "no" }] })] },
    "content_filter",
    "no",
    0,
  ],
  [
    "commentary alone",
    { status: "completed", output: [text("looking", { phase: "commentary" })] },
    "incomplete",
    null,
    0,
  ],
  [
    "commentary and an answer",
    {
      status: "completed",
      output: [text("looking", { phase: "commentary" }), text("found", { phase: "final_answer" })],
    },
    "stop",
    "found",
    0,
  ],
  ["reasoning alone", { status: "completed", output: [thought()] }, "incomplete", null, 0],
  ["a call leaked as text", { status: "completed", output: [text('to=functions.ls {"a":1}')] }, "incomplete", "", 0],
  ["nothing", { status: "completed", output: [] }, "stop", null, 0],
];
for (const [what, response, finish, content, calls] of outputs)
  test(`${what} ends by ${finish}`, () => {
    const answer = fromResponsesOutput(response, { issuer: "me" });
    assert.deepEqual([answer.finishReason, answer.content, answer.toolCalls.length], [finish, content, calls]);
  });

test("what must go back is kept and stamped; temporary items are not", () => {
  const answer = fromResponsesOutput(
    { status: "completed", output: [thought(), thought("rs_tmp_1"), text("looking", { phase: "analysis" }), made()] },
    { issuer: "me" },
  );
  assert.deepEqual(answer.reasoningItems, [{ ...thought(), _issuer_kind: "me" }]);
  assert.equal(answer.reasoning, "why\n\nwhy\n\nlooking");
  assert.deepEqual(answer.toolCalls, [
    { id: "call_1", callId: "call_1", itemId: "fc_1", name: "ls", arguments: '{"a":1}' },
  ]);
});

for (const status of ["failed", "cancelled"])
  test(`a ${status} response is a failure with its code`, () =>
    assert.throws(
      () => fromResponsesOutput({ status, error: { code: "server_error", message: "boom" }, output: [] }),
      (thrown) => thrown instanceof WireFailure && thrown.error.code === "server_error" && thrown.message === "boom",
    ));

type Event = Partial<OpenAI.Responses.ResponseStreamEvent> & { type: OpenAI.Responses.ResponseStreamEvent["type"] };
const answerOf = (...events: readonly object[]) =>
  receive("codex_responses", events, { target: { baseUrl: "http://me/v1" } });
const consume = async (...events: readonly object[]) => {
  const received = await answerOf(...events);
  const last = received.at(-1);
  assert.equal(last?.type, "done", JSON.stringify(last));
  const { message, finishReason } = last as Extract<ModelEvent, { type: "done" }>; // asserted just before
  return { message, finishReason, seen: received.flatMap((event) => (event.type === "text" ? [event.delta] : [])) };
};
const failureOf = async (...events: readonly object[]) => {
  const last = (await answerOf(...events)).at(-1);
  assert.equal(last?.type, "failed", JSON.stringify(last));
  return (last as Extract<ModelEvent, { type: "failed" }>).error; // asserted just before
};
const said = (delta: string, output_index = 0): Event => ({
  type: "response.output_text.delta",
  item_id: `msg_${output_index}`,
  output_index,
  content_index: 0,
  delta,
});
const item = (value: Json, output_index = 0) =>
  ({ type: "response.output_item.done", output_index, item: value }) as unknown as Event; // items as plain JSON
const over = (response: Json = {}) =>
  ({ type: "response.completed", response: { status: "completed", output: null, ...response } }) as unknown as Event; // the output may be null

test("a stream is built from its items, not from its last event", async () => {
  const { message, finishReason, seen } = await consume(said("he"), said("llo"), item(text("hello")), over());
  assert.deepEqual([message.content, finishReason, seen], ["hello", "stop", ["he", "llo"]]);
  assert.deepEqual(message.codex_message_items, [{ ...text("hello"), _issuer_kind: "me" }]);
});

test("items that all have the same number are kept in their order, and one that comes twice is one", async () => {
  const call = (id: string) => ({ type: "function_call", id: `fc_${id}`, call_id: id, name: "ls", arguments: "{}" });
  const { message } = await consume(item(call("a")), item(call("b")), item(call("c"), 2), item(call("c"), 2), over());
  assert.deepEqual(
    message.tool_calls?.map(({ id }) => id),
    ["a", "b", "c"],
  );
});

test("the output of the last event counts when nothing else came", async () => {
  const { message, seen } = await consume(over({ output: [text("hello")] }));
  assert.deepEqual([message.content, seen], ["hello", ["hello"]]);
});

test("text without a message becomes one", async () => {
  const { message } = await consume(said("hello"), over());
  assert.deepEqual(message.codex_message_items, [{ ...text("hello"), _issuer_kind: "me" }]);
});

test("a stream that ends without its last event counts if anything came", async () => {
  assert.equal((await consume(item(text("hello")))).message.content, "hello");
  assert.equal((await failureOf()).code, "empty_stream");
});

test("errors inside the stream are failures with their code", async () => {
  const error = { code: "rate_limit_exceeded", message: "slow" };
  const failed = { type: "response.failed", response: { status: "failed", error } };
  assert.equal((await failureOf(failed)).code, "rate_limit_exceeded");
  const { code, message } = await failureOf({ type: "error", code: "server_error", message: "boom", param: null });
  assert.deepEqual([code, message], ["server_error", "boom"]);
});

test("commentary is thinking, and an item that never ended is a lost connection", async () => {
  const events = await answerOf(
    { type: "response.output_item.added", output_index: 0, item: { type: "message", phase: "commentary" } },
    said("looking"),
    item(text("looking", { phase: "commentary" })),
    { type: "response.output_item.added", output_index: 1, item: { type: "message" } },
    said("half", 1),
  );
  assert.deepEqual(events.slice(0, -1), [
    { type: "thinking", delta: "looking" },
    { type: "remark", text: "looking" },
    { type: "text", delta: "half" },
  ]);
  const last = events.at(-1);
  assert.ok(last?.type === "failed");
  assert.deepEqual([last.error.code, last.error.partial], ["stream_cut", { text: "half", pendingTools: [] }]);
});

test("a call that was begun and never finished makes the answer incomplete", async () => {
  const begun = made({ arguments: "", status: "in_progress" });
  const added = { type: "response.output_item.added", output_index: 0, item: begun };
  const { message, finishReason } = await consume(added, over());
  assert.deepEqual([finishReason, message.content, message.tool_calls], ["incomplete", "", undefined]);
});

test("an answer as a message carries its replay state, stamped", async () => {
  const { message } = await consume(item(thought(), 0), item(text("hi"), 1), item(made(), 2), over());
  assert.deepEqual(message, {
    role: "assistant",
    content: "hi",
    tool_calls: [
      {
        id: "call_1",
        type: "function",
        function: { name: "ls", arguments: '{"a":1}' },
        call_id: "call_1",
        response_item_id: "fc_1",
      },
    ],
    reasoning: "why",
    codex_reasoning_items: [{ ...thought(), _issuer_kind: "me" }],
    codex_message_items: [{ ...text("hi"), _issuer_kind: "me" }],
    finish_reason: "tool_calls",
  });
});
