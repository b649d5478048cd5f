import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyHistory, assertLegalHistory, assertLegalRequest } from "../../test/support/agent/legal.ts";
import { aTarget } from "../../test/support/model-target.ts";
import type { AssistantMessage, HistoryMessage, Message, ToolCall, ToolMessage, UserMessage } from "../llm/messages.ts";
import { refusesImages, stripImagesFromMessages, withoutImageBytes } from "../llm/pictures/fit.ts";
import {
  closeInterruptedToolSequence,
  repairCorruptArguments,
  repairMessageSequence,
  sanitizeApiMessages,
  unansweredCalls,
} from "./repair.ts";
import { RequestBuilder } from "./request.ts";

const user = (content: UserMessage["content"]): UserMessage => ({ role: "user", content });
const assistant = (content: string | null, ...calls: ToolCall[]): AssistantMessage => ({
  role: "assistant",
  content,
  ...(calls.length > 0 ? { tool_calls: calls } : {}),
});
const call = (id: string, name = "read_file", args = "{}"): ToolCall => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const result = (id: string, content = "ok"): ToolMessage => ({ role: "tool", tool_call_id: id, content });
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;

const sequences: readonly [name: string, given: HistoryMessage[], repaired: HistoryMessage[], repairs: number][] = [
  ["a legal history is left alone", [user("a"), assistant("b"), user("c")], [user("a"), assistant("b"), user("c")], 0],
  ["users are joined by a blank line", [user("a"), user("b")], [user("a\n\nb")], 1],
  ["a blank side is dropped", [user(" "), user("b")], [user("b")], 1],
  ["a list of parts takes a text in", [user("a"), user([image])], [user([{ type: "text", text: "a" }, image])], 1],
  [
    "assistants become one, calls in order",
    [assistant(" one ", call("c1")), assistant("two", call("c2")), result("c1"), result("c2")],
    [assistant("one\ntwo", call("c1"), call("c2")), result("c1"), result("c2")],
    1,
  ],
  ["a stray result goes", [user("a"), result("c9"), assistant("b")], [user("a"), assistant("b")], 1],
  [
    "a second result for one call goes",
    [assistant(null, call("c1")), result("c1", "first"), result("c1", "second")],
    [assistant(null, call("c1")), result("c1", "first")],
    1,
  ],
  [
    "a user closes the run",
    [assistant(null, call("c1")), user("stop"), result("c1")],
    [assistant(null, call("c1")), user("stop")],
    1,
  ],
  [
    "a user behind results is legal and stays",
    [assistant(null, call("c1")), result("c1"), user("other")],
    [assistant(null, call("c1")), result("c1"), user("other")],
    0,
  ],
  [
    "assistants that meet when a stray result goes are joined",
    [assistant("a"), result("x"), assistant("b")],
    [assistant("a\nb")],
    2,
  ],
];

for (const [name, given, repaired, repairs] of sequences) {
  test(`repairMessageSequence: ${name}`, () => {
    const done = repairMessageSequence(given);
    assert.deepEqual(done.messages, repaired);
    assert.equal(done.repairs, repairs);
  });
}

test("repairMessageSequence keeps the messages of the Responses wire apart", () => {
  const interim: AssistantMessage = { role: "assistant", content: "a", finish_reason: "incomplete" };
  assert.deepEqual(repairMessageSequence([interim, assistant("b")]).messages, [interim, assistant("b")]);
});

test("a result may name its call by call_id", () => {
  const one = { ...call("fc_1"), call_id: "call_1" };
  const history = [assistant(null, one), result("call_1")];
  assert.equal(repairMessageSequence(history).repairs, 0);
});

test("of two results with one id the second goes, also when two calls bear that id", () => {
  const history = [assistant(null, call("c1"), call("c1")), result("c1"), result("c1")];
  assert.deepEqual(repairMessageSequence(history).messages, history.slice(0, 2));
});

test("repairMessageSequence is legal and idempotent for every history", () => {
  fc.assert(
    fc.property(anyHistory, (history) => {
      const { messages } = repairMessageSequence(history);
      assertLegalHistory(messages);
      assert.equal(repairMessageSequence(messages).repairs, 0);
    }),
  );
});

test("every history renders to a legal request, twice to the same bytes", () => {
  const target = aTarget("chat_completions");
  fc.assert(
    fc.property(anyHistory, (raw) => {
      const history = repairMessageSequence(repairCorruptArguments(raw).messages).messages;
      const parts = { target, system: "s", history, scaffold: [], images: true };
      const builder = new RequestBuilder();
      const first = builder.build(parts);
      assertLegalRequest(first);
      assert.equal(JSON.stringify(builder.build(parts)), JSON.stringify(first));
      assert.equal(JSON.stringify(new RequestBuilder().build(parts)), JSON.stringify(first));
      assert.ok(JSON.stringify(first).isWellFormed());
    }),
  );
});

test("arguments that were stored as an object become their text, without a word about it", () => {
  const odd = assistant(null, call("c1", "terminal", { command: "ls" } as unknown as string));
  const { messages, repairs } = repairCorruptArguments([odd, result("c1", "done")]);
  assert.equal(repairs, 1);
  assert.equal((messages[0] as AssistantMessage).tool_calls?.[0]?.function.arguments, '{"command":"ls"}');
  assert.equal(messages[1]?.content, "done");
});

test("corrupt arguments become {} and their result says so, also when there was none", () => {
  const bad = [
    assistant(null, call("c1", "terminal", '{"a":'), call("c2", "terminal", "")),
    result("c1", "done"),
    user("x"),
  ];
  const { messages, repairs } = repairCorruptArguments(bad);
  assert.equal(repairs, 2);
  assert.deepEqual(
    (messages[0] as AssistantMessage).tool_calls?.map((one) => one.function.arguments),
    ["{}", "{}"],
  );
  assert.match(String(messages[1]?.content), /^\[hermes-agent: tool call arguments were corrupted.*\]\ndone$/s);
  const unanswered = repairCorruptArguments([assistant(null, call("c1", "terminal", "{oops"))]).messages;
  assert.deepEqual(
    unanswered.map((one) => one.role),
    ["assistant", "tool"],
  );
  assert.match(String(unanswered[1]?.content), /^\[hermes-agent: tool call arguments were corrupted/);
});

const api: readonly [name: string, given: Message[], clean: Message[]][] = [
  ["unknown roles go", [{ role: "critic", content: "x" } as unknown as Message, user("a")], [user("a")]],
  [
    "an empty message in the middle says so",
    [user("a"), assistant(""), user("b")],
    [user("a"), assistant("[response interrupted]"), user("b")],
  ],
  ["an empty message at the end is left alone", [user("a"), assistant("")], [user("a"), assistant("")]],
  ["an empty list of calls goes", [{ role: "assistant", content: "x", tool_calls: [] }], [assistant("x")]],
  [
    "a blank name gets one",
    [assistant(null, call("c1", " ")), result("c1")],
    [assistant(null, call("c1", "invalid_tool_call")), result("c1")],
  ],
  ["a result without a call goes", [user("a"), result("c1"), assistant("b")], [user("a"), assistant("b")]],
  [
    "a call without a result gets one right behind it",
    [assistant(null, call("c1"), call("c2")), result("c1")],
    [
      assistant(null, call("c1"), call("c2")),
      {
        role: "tool",
        name: "read_file",
        content: "[Result unavailable — see context summary above]",
        tool_call_id: "c2",
      },
      result("c1"),
    ],
  ],
  [
    "of two calls and two results with one id the first stay",
    [assistant(null, call("c1", "a"), call("c1", "b")), result("c1", "x"), result("c1", "y")],
    [assistant(null, call("c1", "a")), result("c1", "x")],
  ],
  [
    "an id that an earlier answer used is renamed, not lost",
    [assistant(null, call("c1")), result("c1", "x"), assistant(null, call("c1")), result("c1", "y")],
    [assistant(null, call("c1")), result("c1", "x"), assistant(null, call("c1_d2")), result("c1_d2", "y")],
  ],
];

for (const [name, given, clean] of api) {
  test(`sanitizeApiMessages: ${name}`, () => assert.deepEqual(sanitizeApiMessages(given), clean));
}

test("sanitizeApiMessages returns what needs nothing as the same list", () => {
  const fine = [user("a"), assistant(null, call("c1")), result("c1"), assistant("b")];
  assert.equal(
    sanitizeApiMessages(fine).every((message, index) => message === fine[index]),
    true,
  );
});

test("an answer that was only thought is not sent, and the users around it become one", () => {
  const thought: AssistantMessage = { role: "assistant", content: "<think>x</think>", reasoning: "x" };
  const target = aTarget("chat_completions");
  const history = [user("a"), thought, user("b")];
  const sent = new RequestBuilder().build({ target, system: "", history, scaffold: [], images: true });
  assert.deepEqual(
    sent.filter(({ role }) => role !== "system"),
    [user("a\n\nb")],
  );
});

test("a history that ends in a result gets an answer; any other is left alone", () => {
  const open = [user("a"), assistant(null, call("c1")), result("c1")];
  assert.deepEqual(closeInterruptedToolSequence(open, "  stopped ").at(-1), assistant("stopped"));
  assert.deepEqual(closeInterruptedToolSequence(open, " ").at(-1), assistant("Operation interrupted."));
  assert.equal(closeInterruptedToolSequence([user("a")], "x").length, 1);
});

test("unanswered calls are those of the newest answer only", () => {
  const open = [user("a"), assistant(null, call("c1"), call("c2")), result("c2")];
  assert.deepEqual(
    unansweredCalls(open).map((one) => one.id),
    ["c1"],
  );
  assert.deepEqual(unansweredCalls([...open, user("b")]), []);
});

test("images are stripped: empty users go, empty results say so", () => {
  const { messages, changed } = stripImagesFromMessages([
    user([{ type: "text", text: "look" }, image]),
    user([image]),
    { ...result("c1"), content: [image] },
    user("text"),
  ]);
  assert.equal(changed, true);
  assert.deepEqual(messages, [
    user([{ type: "text", text: "look" }]),
    result("c1", "[image content removed — server does not support images]"),
    user("text"),
  ]);
  assert.equal(stripImagesFromMessages([user("a")]).changed, false);
});

test("picture bytes stay out of the database, addresses of pictures stay in", () => {
  assert.deepEqual(withoutImageBytes(user([{ type: "text", text: "look" }, image])), user("look\n[screenshot]"));
  const linked = user([{ type: "image_url", image_url: { url: "https://example.com/a.png" } }]);
  assert.equal(withoutImageBytes(linked), linked);
});

for (const [text, refuses] of [
  ["This model does not support image input", true],
  ["messages[1]: unknown variant `image_url`, expected `text`", true],
  ["Multimodal content is not supported", true],
  ["invalid api key", false],
] as const) {
  test(`${text} ${refuses ? "refuses" : "does not refuse"} images`, () => {
    assert.equal(refusesImages(400, text), refuses);
    assert.equal(refusesImages(500, text), false);
  });
}
