import assert from "node:assert/strict";
import { test } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import { WireFailure } from "../transport.ts";
import { AnthropicAssembler, fromAnthropicResponse } from "./stream.ts";

const stops: readonly [stop: string, finish: string][] = [
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
  ["pause_turn", "stop"],
];
for (const [stop_reason, finish] of stops)
  test(`stop reason ${stop_reason} is ${finish}`, () =>
    assert.equal(fromAnthropicResponse({ content: [{ type: "text", text: "x" }], stop_reason }).finishReason, finish));

test("an answer is read block by block", () => {
  const thinking = { type: "thinking", thinking: "t1", signature: "s" };
  const redacted = { type: "redacted_thinking", data: "d" };
  const use = { type: "tool_use", id: "toolu_1", name: "ls", input: { a: 1 } };
  const content = [
    thinking,
    { type: "text", text: "a" },
    redacted,
    { type: "thinking", thinking: "t2", signature: "s" },
    { type: "text", text: "b" },
    use,
  ];
  assert.deepEqual(fromAnthropicResponse({ content, stop_reason: "tool_use" }), {
    valid: true,
    content: "a\nb",
    reasoning: "t1\n\nt2",
    finishReason: "tool_calls",
    toolCalls: [{ id: "toolu_1", name: "ls", arguments: '{"a":1}' }],
    reasoningDetails: [thinking, redacted, content[3]],
    orderedBlocks: content,
  });
});

test("the order is recorded only where signed thinking meets calls", () => {
  const use = { type: "tool_use", id: "a", name: "ls", input: {} };
  const ordered = (...content: object[]) => fromAnthropicResponse({ content, stop_reason: "tool_use" }).orderedBlocks;
  assert.equal(ordered({ type: "text", text: "x" }, use), null);
  assert.equal(ordered({ type: "thinking", thinking: "x" }, use), null);
  assert.equal(ordered({ type: "thinking", thinking: "x", signature: "s" }), null);
  assert.equal(ordered({ type: "thinking", thinking: "x", signature: "s" }, use)?.length, 2);
});

test("an empty answer is valid only when the model meant to end, or refused", () => {
  const valid = (stop_reason: string | null, content: unknown = []) =>
    fromAnthropicResponse({ content, stop_reason }).valid;
  assert.deepEqual(
    [valid("end_turn"), valid("refusal"), valid("max_tokens"), valid("tool_use"), valid("end_turn", null)],
    [true, true, false, false, false],
  );
  assert.equal(fromAnthropicResponse({ content: [], stop_reason: "end_turn" }).content, null);
});

type Event = Anthropic.RawMessageStreamEvent;
type Start = Anthropic.RawContentBlockStartEvent["content_block"];
const begin = {
  type: "message_start",
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    model: "x",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 5 },
  },
};
const open = (index: number, content_block: Partial<Start> & { type: Start["type"] }) => ({
  type: "content_block_start",
  index,
  content_block,
});
const grow = (index: number, delta: Anthropic.RawContentBlockDelta): Event => ({
  type: "content_block_delta",
  index,
  delta,
});
const end = (stop_reason: Anthropic.StopReason) => [
  {
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 7, input_tokens: null },
  },
  { type: "message_stop" },
];
const assemble = (...events: object[]) => {
  const assembler = new AnthropicAssembler();
  return [...events.flatMap((data) => assembler.push({ data })), ...assembler.end()];
};

test("a stream grows into the same answer", () => {
  const events = assemble(
    begin,
    { type: "ping" },
    open(0, { type: "thinking", thinking: "", signature: "" }),
    grow(0, { type: "thinking_delta", thinking: "h" }),
    grow(0, { type: "thinking_delta", thinking: "m" }),
    grow(0, { type: "signature_delta", signature: "sig" }),
    { type: "content_block_stop", index: 0 },
    open(1, { type: "text", text: "" }),
    grow(1, { type: "text_delta", text: "a" }),
    open(2, { type: "text", text: "" }),
    grow(2, { type: "text_delta", text: "b" }),
    open(3, { type: "tool_use", id: "toolu_1", name: "ls", input: {} }),
    grow(3, { type: "input_json_delta", partial_json: '{"a"' }),
    grow(3, { type: "input_json_delta", partial_json: ": 1}" }),
    open(4, { type: "tool_use", id: "toolu_2", name: "pwd", input: {} }),
    ...end("tool_use"),
  );
  const thought = { type: "thinking", thinking: "hm", signature: "sig" };
  const calls = [
    { id: "toolu_1", type: "function", function: { name: "ls", arguments: '{"a":1}' } },
    { id: "toolu_2", type: "function", function: { name: "pwd", arguments: "{}" } },
  ] as const;
  assert.deepEqual(events, [
    { type: "thinking", delta: "h" },
    { type: "thinking", delta: "m" },
    { type: "text", delta: "a" },
    { type: "text", delta: "\n" },
    { type: "text", delta: "b" },
    { type: "tool_pending", name: "ls" },
    { type: "tool_pending", name: "pwd" },
    { type: "tool_call", call: calls[0] },
    { type: "tool_call", call: calls[1] },
    {
      type: "usage",
      usage: {
        inputTokens: 10,
        outputTokens: 7,
        cacheReadTokens: 5,
        cacheWriteTokens: null,
        reasoningTokens: null,
        promptTokens: 15,
        totalTokens: 22,
      },
    },
    {
      type: "done",
      finishReason: "tool_calls",
      message: {
        role: "assistant",
        content: "a\nb",
        tool_calls: calls,
        reasoning: "hm",
        reasoning_details: [thought],
        anthropic_content_blocks: [
          thought,
          { type: "text", text: "a" },
          { type: "text", text: "b" },
          { type: "tool_use", id: "toolu_1", name: "ls", input: {} },
          { type: "tool_use", id: "toolu_2", name: "pwd", input: {} },
        ],
        finish_reason: "tool_calls",
      },
    },
  ]);
});

const fails = (what: string, code: string, status: number | undefined, ...events: object[]) =>
  test(what, () =>
    assert.throws(
      () => assemble(...events),
      (thrown) => thrown instanceof WireFailure && thrown.error.code === code && thrown.error.status === status,
    ),
  );
fails("an overload inside the stream has the status 529", "overloaded_error", 529, begin, {
  type: "error",
  error: { type: "overloaded_error", message: "Overloaded" },
});
fails(
  "a stream without a stop reason was cut",
  "stream_cut",
  undefined,
  begin,
  open(0, { type: "text", text: "half" }),
);
fails("a stream with nothing in it is empty", "empty_stream", undefined, begin);
fails(
  "nothing said although the limit was hit is no answer",
  "invalid_response",
  undefined,
  begin,
  ...end("max_tokens"),
);
