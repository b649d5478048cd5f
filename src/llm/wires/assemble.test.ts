import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type OpenAI from "openai";
import { receive } from "../../../test/support/model-target.ts";
import { deterministicCallId } from "../call-ids.ts";
import type { ModelEvent } from "../wire.ts";

type Chunk = OpenAI.Chat.ChatCompletionChunk;
type Delta = Chunk["choices"][number]["delta"] & { reasoning_content?: string; reasoning?: string };
const chunk = (delta: Delta, finish_reason: Chunk["choices"][number]["finish_reason"] = null): Chunk => ({
  id: "x",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});
/** The end of the answer and what was shown on the way to it. */
async function assemble(...chunks: unknown[]) {
  const events = await receive("chat_completions", chunks);
  const last = events.at(-1);
  assert.equal(last?.type, "done", JSON.stringify(last));
  const { message, finishReason } = last as Extract<ModelEvent, { type: "done" }>; // asserted just before
  const seen = events.flatMap((event) => {
    if (event.type === "text" || event.type === "thinking") return [`${event.type}:${event.delta}`];
    return event.type === "tool_pending" ? [`tool:${event.name}`] : [];
  });
  const usage = events.find((event) => event.type === "usage")?.usage;
  return { ...message, toolCalls: message.tool_calls ?? [], finishReason, usage, seen };
}
const piece = (index: number, id?: string, name?: string, args?: string) => ({
  tool_calls: [
    {
      index,
      ...(id !== undefined && { id }),
      function: { ...(name && { name }), ...(args !== undefined && { arguments: args }) },
    },
  ],
});
const argsOf = (result: { toolCalls: readonly { function: { arguments: string } }[] }) =>
  result.toolCalls.map((call) => call.function.arguments);

test("text is passed on as it comes", async () => {
  const result = await assemble(
    chunk({ role: "assistant", content: "" }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo" }),
    chunk({}, "stop"),
  );
  assert.deepEqual(result.seen, ["text:Hel", "text:lo"]);
  assert.equal(result.content, "Hello");
  assert.equal(result.finishReason, "stop");
});

test("usage may come in a last chunk without choices", async () => {
  const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 };
  const result = await assemble(chunk({ content: "x" }, "stop"), { ...chunk({}), choices: [], usage } satisfies Chunk);
  assert.equal(result.finishReason, "stop");
  assert.equal(result.usage?.totalTokens, 13);
});

test("reasoning is thinking, never visible text, under either name", async () => {
  const result = await assemble(
    chunk({ reasoning_content: "a" }),
    chunk({ reasoning: "b" }),
    chunk({ content: "x" }, "stop"),
  );
  assert.equal(result.reasoning, "ab");
  assert.equal(result.content, "x");
  assert.deepEqual(result.seen, ["thinking:a", "thinking:b", "text:x"]);
});

test("text after the first call is kept but not shown", async () => {
  const result = await assemble(
    chunk({ content: "a" }),
    chunk(piece(0, "c", "ls", "{}")),
    chunk({ content: "b" }),
    chunk({}, "tool_calls"),
  );
  assert.equal(result.content, "ab");
  assert.deepEqual(result.seen, ["text:a", "tool:ls"]);
});

test("arguments grow, names do not, and content is null beside calls", async () => {
  const result = await assemble(
    chunk(piece(0, "c1", "read_file", "")),
    chunk(piece(0, undefined, "read_file", '{"path"')),
    chunk(piece(1, "c2", "ls", "{}")),
    chunk(piece(0, undefined, undefined, ': "a"}')),
    chunk({}, "tool_calls"),
  );
  assert.equal(result.content, null);
  assert.deepEqual(result.toolCalls, [
    { id: "c1", type: "function", function: { name: "read_file", arguments: '{"path":"a"}' } },
    { id: "c2", type: "function", function: { name: "ls", arguments: "{}" } },
  ]);
  assert.deepEqual(result.seen, ["tool:read_file", "tool:ls"]);
});

test("another id on a used index is another call", async () => {
  const result = await assemble(
    chunk(piece(0, "a", "ls", "{}")),
    chunk(piece(0, "b", "pwd", "{}")),
    chunk(piece(0, undefined, undefined, "")),
    chunk({}, "stop"),
  );
  assert.deepEqual(
    result.toolCalls.map((call) => [call.id, call.function.name]),
    [
      ["a", "ls"],
      ["b", "pwd"],
    ],
  );
  assert.equal(result.finishReason, "tool_calls");
});

test("a piece without an index belongs to the last call", async () => {
  const result = await assemble(
    { choices: [{ delta: { tool_calls: [{ id: "a", function: { name: "ls", arguments: '{"p"' } }] } }] },
    { choices: [{ delta: { tool_calls: [{ function: { arguments: ":1}" } }] } }] },
    chunk({}, "tool_calls"),
  );
  assert.deepEqual(argsOf(result), ['{"p":1}']);
});

test("a call without an id gets a deterministic one", async () => {
  const result = await assemble(chunk(piece(0, undefined, "ls", '{"a":1}')), chunk({}, "tool_calls"));
  assert.equal(result.toolCalls[0]?.id, deterministicCallId("ls", '{"a":1}', 0));
});

test("arguments that can be repaired are, and arguments that were cut make the answer one that was cut", async () => {
  assert.deepEqual(argsOf(await assemble(chunk(piece(0, "a", "ls", '{"a":[1,')), chunk({}, "tool_calls"))), [
    '{"a":[1]}',
  ]);
  const cut = await assemble(chunk(piece(0, "a", "ls", '{"path":"/tmp/re')), chunk({}, "tool_calls"));
  assert.deepEqual(argsOf(cut), ['{"path":"/tmp/re']);
  assert.equal(cut.finishReason, "length");
});

test("at the length limit no bracket is invented", async () => {
  const result = await assemble(chunk(piece(0, "a", "ls", '{"a":[1')), chunk({}, "length"));
  assert.deepEqual([argsOf(result), result.finishReason], [['{"a":[1'], "length"]);
});

test("old shapes are read: function_call, content as parts or as one part", async () => {
  const old = await assemble(
    chunk({ function_call: { name: "ls", arguments: "{" } }),
    chunk({ function_call: { arguments: "}" } }),
    chunk({}, "function_call"),
  );
  assert.deepEqual([old.toolCalls[0]?.function, old.finishReason], [{ name: "ls", arguments: "{}" }, "tool_calls"]);
  assert.equal(
    (
      await assemble({
        choices: [
          {
            delta: {
              content: [
                { type: "text", text: "a" },
                { type: "text", text: "b" },
              ],
            },
            finish_reason: "stop",
          },
        ],
      })
    ).content,
    "ab",
  );
  assert.equal(
    (await assemble({ choices: [{ delta: { content: { type: "text", text: "a" } }, finish_reason: "stop" }] })).content,
    "a",
  );
  assert.deepEqual(
    argsOf(
      await assemble({
        choices: [
          {
            delta: { tool_calls: [{ index: 0, id: "a", function: { name: "ls", arguments: { a: 1 } } }] },
            finish_reason: "stop",
          },
        ],
      }),
    ),
    ['{"a":1}'],
  );
});

test("a refusal is a filtered answer whose text is the refusal", async () => {
  const result = await assemble(chunk({ refusal: "I will not." }), chunk({}, "stop"));
  assert.deepEqual([result.content, result.finishReason], ["I will not.", "content_filter"]);
});

test("an error inside the stream is a failure with its code", async () => {
  const body = { error: { message: "upstream died", code: 502 } };
  const last = (await receive("chat_completions", [chunk({ content: "a" }), body])).at(-1);
  assert.ok(last?.type === "failed");
  assert.deepEqual([last.error.message, last.error.status], ["upstream died", 502]);
});

test("the answer as a message keeps what must go back: echo, records, signatures", async () => {
  const deltas = [
    { reasoning_content: "", reasoning_details: [{ type: "reasoning.text", index: 0, text: "a" }] },
    {
      reasoning_details: [
        { type: "reasoning.text", index: 0, text: "b", signature: "s" },
        { type: "reasoning.encrypted", index: 1, data: "d" },
      ],
    },
    {
      tool_calls: [
        {
          index: 0,
          id: "c",
          function: { name: "ls", arguments: "{}" },
          extra_content: { google: { thought_signature: "t" } },
        },
      ],
    },
  ];
  const chunks = deltas.map((delta) => ({ choices: [{ delta }] }));
  const done = (await receive("chat_completions", [...chunks, chunk({}, "tool_calls")])).at(-1);
  assert.ok(done?.type === "done");
  assert.deepEqual(done.message, {
    role: "assistant",
    content: null,
    tool_calls: [
      {
        id: "c",
        type: "function",
        function: { name: "ls", arguments: "{}" },
        extra_content: { google: { thought_signature: "t" } },
      },
    ],
    reasoning_content: "",
    reasoning_details: [
      { type: "reasoning.text", index: 0, text: "ab", signature: "s" },
      { type: "reasoning.encrypted", index: 1, data: "d" },
    ],
    finish_reason: "tool_calls",
  });
});

test("ids of earlier turns are not used again", async () => {
  const messages = [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_0", type: "function", function: { name: "ls", arguments: "{}" } }],
    },
  ] as const;
  const answer = [chunk(piece(0, "call_0", "ls", "{}"), "tool_calls")];
  const called = (await receive("chat_completions", answer, { messages })).find(({ type }) => type === "tool_call");
  assert.equal(called?.type === "tool_call" && called.call.id, "call_0_d2");
});

test("a cut call is announced, shown in the message, and never handed out to be run", async () => {
  const answer = [chunk(piece(0, "a", "write_file", '{"text":"hal')), chunk({}, "tool_calls")];
  assert.deepEqual(
    (await receive("chat_completions", answer)).map((event) => event.type),
    ["tool_pending", "done"],
  );
});

test("repaired arguments are reported", async () => {
  const answer = [chunk(piece(0, "a", "ls", '{"a":1,}'), "tool_calls")];
  const done = (await receive("chat_completions", answer)).at(-1);
  assert.deepEqual(done?.type === "done" && done.repaired, ["ls"]);
});

test("however the arguments are cut into pieces, the call is the same", async () => {
  await fc.assert(
    fc.asyncProperty(fc.object(), fc.array(fc.nat(), { maxLength: 8 }), async (args, cuts) => {
      const json = JSON.stringify(args);
      const places = [...new Set(cuts.map((cut) => cut % (json.length + 1)))].sort((a, b) => a - b);
      const parts = [0, ...places].map((start, index) => json.slice(start, places[index] ?? json.length));
      const result = await assemble(
        chunk(piece(0, "a", "f", "")),
        ...parts.map((part) => chunk(piece(0, undefined, undefined, part))),
        chunk({}, "tool_calls"),
      );
      assert.deepEqual(argsOf(result), [json]);
    }),
    { numRuns: 50 },
  );
});
