import assert from "node:assert/strict";
import { test } from "node:test";
import { aTarget } from "../../test/support/model-target.ts";
import type { AssistantMessage, HistoryMessage } from "../llm/messages.ts";
import type { Target } from "../llm/wire.ts";
import { canonicalArguments } from "./repair.ts";
import { RequestBuilder, type RequestParts } from "./request.ts";

const chat = aTarget("chat_completions");
const build = (parts: Partial<RequestParts>) =>
  new RequestBuilder().build({ target: chat, system: "S", history: [], scaffold: [], images: true, ...parts });

const args: readonly [given: string, sent: string][] = [
  ['{ "b" : 1, "a" : { "d": [1, {"z":1,"y":2}], "c": null } }', '{"a":{"c":null,"d":[1,{"y":2,"z":1}]},"b":1}'],
  ['{"__proto__": {"x": 1}, "a": 2}', '{"__proto__":{"x":1},"a":2}'],
  ["", "{}"],
  ['{"a": 1,}', '{"a":1}'],
  ['{"a": "cut', "{}"],
];

for (const [given, sent] of args)
  test(`arguments ${given} are sent as ${sent}`, () => assert.equal(canonicalArguments(given), sent));

test("the system text is the prompt, a blank line, and the ephemeral text; without either there is no system message", () => {
  assert.equal(build({ ephemeral: "E" })[0]?.content, "S\n\nE");
  assert.equal(build({ ephemeral: " " })[0]?.content, "S");
  assert.equal(build({ system: "", ephemeral: "E" })[0]?.content, "E");
  assert.equal(build({ system: "" }).length, 0);
});

test("an assistant message loses what only we need, and keeps what the wires replay", () => {
  const call = {
    id: "c",
    call_id: "x",
    response_item_id: "fc",
    type: "function",
    function: { name: "t", arguments: "{}" },
  } as const;
  const history: HistoryMessage[] = [
    {
      role: "assistant",
      content: " hi ",
      reasoning: "r",
      finish_reason: "stop",
      reasoning_details: [1],
      tool_calls: [call],
    },
    { role: "tool", tool_call_id: "x", content: " out ", tool_name: "t", text_origin: "web", api_content: "sent" },
  ];
  assert.deepEqual(build({ history }).slice(2), [
    {
      role: "assistant",
      content: "hi",
      reasoning_details: [1],
      tool_calls: [{ id: "c", type: "function", function: { name: "t", arguments: "{}" } }],
    },
    { role: "tool", name: "t", tool_name: "t", content: "sent", tool_call_id: "x" },
  ]);
  const codex = build({ history, target: aTarget("codex_responses") })[2] as AssistantMessage;
  assert.deepEqual([codex.tool_calls?.[0]?.call_id, codex.tool_calls?.[0]?.response_item_id], ["x", "fc"]);
});

const echoes: readonly [name: string, target: Target, given: string | undefined, sent: string | undefined][] = [
  [
    "a server that wants it back gets it",
    aTarget("chat_completions", { profile: { echoReasoning: true } }),
    "why",
    "why",
  ],
  [
    "a server that wants it back gets a blank when there is none",
    aTarget("chat_completions", { profile: { echoReasoning: true } }),
    undefined,
    " ",
  ],
  ["every other chat server does not get the key", chat, "why", undefined],
  ["the Anthropic wire decides by itself", aTarget("anthropic_messages"), "why", "why"],
];

for (const [name, target, given, sent] of echoes) {
  test(`reasoning_content: ${name}`, () => {
    const message: AssistantMessage = {
      role: "assistant",
      content: "x",
      ...(given === undefined ? {} : { reasoning_content: given }),
    };
    const rendered = build({ target, history: [message] })[2] as AssistantMessage;
    assert.equal(rendered.reasoning_content, sent);
  });
}

test("a message that was rendered once is the same object in the next request", () => {
  const builder = new RequestBuilder();
  const history: HistoryMessage[] = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ];
  const parts = { target: chat, system: "S", scaffold: [], images: true };
  const first = builder.build({ ...parts, history });
  const second = builder.build({ ...parts, history: [...history, { role: "user", content: "c" }] });
  assert.equal(second[1], first[1]);
  assert.equal(second[2], first[2]);
});

test("the user speaks first, whatever the history begins with", () => {
  const [, first, second] = build({
    history: [
      { role: "assistant", content: "A summary." },
      { role: "user", content: "go" },
    ],
  });
  assert.deepEqual([first?.role, second?.content], ["user", "A summary."]);
});

test("answers that the Responses wire keeps apart become one on the other wires", () => {
  const apart = (content: string): HistoryMessage => ({
    role: "assistant",
    content,
    codex_message_items: [{ id: content }],
  });
  const history: HistoryMessage[] = [
    { role: "user", content: "go" },
    apart("one"),
    apart("two"),
    { role: "user", content: "on" },
  ];
  assert.deepEqual(
    build({ history }).map((message) => message.role),
    ["system", "user", "assistant", "user"],
  );
  const responses = build({ history, target: aTarget("codex_responses") });
  assert.equal(responses.filter((message) => message.role === "assistant").length, 2);
});
