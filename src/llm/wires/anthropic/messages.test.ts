import assert from "node:assert/strict";
import { test } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import type { OutgoingMessage } from "../../cache-control.ts";
import type { Message, ToolCall } from "../../messages.ts";
import { type AnthropicOptions, toAnthropicMessages } from "./messages.ts";

type Param = Anthropic.MessageParam;
const call = (id: string, args = "{}"): ToolCall => ({
  id,
  type: "function",
  function: { name: "ls", arguments: args },
});
const convert = (messages: readonly OutgoingMessage[], options?: AnthropicOptions) =>
  toAnthropicMessages(messages, options).messages;
const user = { role: "user", content: "hi" } as const;
const thought = { type: "thinking", thinking: "hm", signature: "sig" } as const;
const png = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
const marker = { type: "ephemeral" } as const;

const cases: readonly [what: string, messages: readonly OutgoingMessage[], expected: readonly Param[]][] = [
  ["a user's text stays a string", [user], [{ role: "user", content: "hi" }]],
  ["a blank user message says so", [{ role: "user", content: " " }], [{ role: "user", content: "(empty message)" }]],
  [
    "api_content is what is sent",
    [{ role: "user", content: "hi", api_content: "hi!" }],
    [{ role: "user", content: "hi!" }],
  ],
  [
    "images become sources",
    [
      {
        role: "user",
        content: [{ type: "text", text: "see" }, png, { type: "image_url", image_url: { url: "https://x/y.jpg" } }],
      },
    ],
    [
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
          { type: "image", source: { type: "url", url: "https://x/y.jpg" } },
        ],
      },
    ],
  ],
  [
    "calls and results are paired, results share one message, ids fit the alphabet",
    [
      user,
      { role: "assistant", content: "look", tool_calls: [call("functions.ls:0", '{"a":1}'), call("", "nonsense")] },
      { role: "tool", content: "one", tool_call_id: "functions.ls:0" },
      { role: "tool", content: "", tool_call_id: "" },
    ],
    [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "look" },
          { type: "tool_use", id: "functions_ls_0", name: "ls", input: { a: 1 } },
          { type: "tool_use", id: "tool_0", name: "ls", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "functions_ls_0", content: "one" },
          { type: "tool_result", tool_use_id: "tool_0", content: "(no output)" },
        ],
      },
    ],
  ],
  [
    "a result with an image is a list of blocks",
    [
      user,
      { role: "assistant", content: null, tool_calls: [call("a")] },
      { role: "tool", content: [{ type: "text", text: "shot" }, png], tool_call_id: "a" },
    ],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "ls", input: {} }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "a",
            content: [
              { type: "text", text: "shot" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
            ],
          },
        ],
      },
    ],
  ],
  [
    "a call that the next message does not answer goes",
    [user, { role: "assistant", content: null, tool_calls: [call("a")] }, { role: "user", content: "never mind" }],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "text", text: "(tool call removed)" }] },
      { role: "user", content: "never mind" },
    ],
  ],
  [
    "a result without a call goes",
    [user, { role: "assistant", content: "ok" }, { role: "tool", content: "x", tool_call_id: "nobody" }],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "text", text: "ok" }] },
      { role: "user", content: [{ type: "text", text: "(tool result removed)" }] },
    ],
  ],
  [
    "neighbours of one role are merged: strings by a newline",
    [user, { role: "user", content: "again" }],
    [{ role: "user", content: "hi\nagain" }],
  ],
  [
    "neighbours of one role are merged: results and what the user said then",
    [
      user,
      { role: "assistant", content: null, tool_calls: [call("a")] },
      { role: "tool", content: "x", tool_call_id: "a" },
      { role: "user", content: "stop" },
    ],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "ls", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "x" },
          { type: "text", text: "stop" },
        ],
      },
    ],
  ],
  [
    "neighbours of one role are merged: assistants, without the thinking of the second",
    [
      user,
      { role: "assistant", content: "a", reasoning_details: [thought] },
      { role: "assistant", content: "b", reasoning_details: [thought] },
    ],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [thought, { type: "text", text: "a" }, { type: "text", text: "b" }] },
    ],
  ],
  [
    "the first message is the user's",
    [{ role: "assistant", content: "hello" }],
    [
      { role: "user", content: [{ type: "text", text: "(empty)" }] },
      { role: "assistant", content: [{ type: "text", text: "hello" }] },
    ],
  ],
  [
    "an assistant with nothing to say says so",
    [user, { role: "assistant", content: "" }],
    [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "text", text: "(empty)" }] },
    ],
  ],
];
for (const [what, messages, expected] of cases) test(what, () => assert.deepEqual(convert(messages), expected));

test("the system text: a string stays, parts are joined, marked parts are kept", () => {
  const system = (content: OutgoingMessage["content"]) =>
    toAnthropicMessages([{ role: "system", content: content ?? "" }, user]).system;
  assert.equal(system("s"), "s");
  assert.equal(
    system([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]),
    "a\nb",
  );
  const marked = [
    { type: "text", text: "a", cache_control: marker },
    { type: "text", text: "b" },
  ] as const;
  assert.deepEqual(system(marked), marked);
  assert.equal(system(""), undefined);
  assert.ok(convert([{ role: "system", content: "s" }, user]).every((turn) => (turn.role as string) !== "system"));
});

test("recorded order is replayed, with inputs and texts as they are stored", () => {
  const assistant: Message = {
    role: "assistant",
    content: "my key is ***",
    tool_calls: [call("a", '{"k":"***"}'), call("b")],
    anthropic_content_blocks: [
      { ...thought, extra: 1 },
      { type: "text", text: "my key is secret", citations: null },
      { type: "tool_use", id: "a", name: "ls", input: { k: "secret" } },
      { type: "redacted_thinking", data: "d" },
      { type: "tool_use", id: "b", name: "ls", input: {} },
    ],
  };
  const results: Message[] = ["a", "b"].map((id) => ({ role: "tool", content: "x", tool_call_id: id }));
  assert.deepEqual(convert([user, assistant, ...results])[1]?.content, [
    thought,
    { type: "text", text: "my key is ***" },
    { type: "tool_use", id: "a", name: "ls", input: { k: "***" } },
    { type: "redacted_thinking", data: "d" },
    { type: "tool_use", id: "b", name: "ls", input: {} },
  ]);
});

test("reasoning text of other servers becomes unsigned thinking where that is allowed", () => {
  const messages: Message[] = [user, { role: "assistant", content: "a", reasoning_content: "why" }];
  assert.deepEqual(convert(messages, { baseUrl: "https://api.kimi.com/coding" })[1]?.content, [
    { type: "thinking", thinking: "why" },
    { type: "text", text: "a" },
  ]);
});

const said = { type: "text", text: "a" } as const;
const unsigned = { type: "thinking", thinking: "raw" } as const;
const native = "https://api.anthropic.com";
const policies: readonly [what: string, AnthropicOptions, older: readonly unknown[], newest: readonly unknown[]][] = [
  [
    "native, latest: only the newest keeps its signed thinking, unsigned becomes text",
    { baseUrl: native },
    [said],
    [thought, { type: "text", text: "raw" }, said],
  ],
  [
    "native, all: signed thinking stays everywhere, unsigned goes",
    { baseUrl: native, keepThinking: "all" },
    [thought, said],
    [thought, said],
  ],
  ["other hosts: all thinking goes", { baseUrl: "https://api.minimax.io/anthropic" }, [said], [said]],
  [
    "Kimi: all thinking stays",
    { baseUrl: "https://api.kimi.com/coding" },
    [thought, unsigned, said],
    [thought, unsigned, said],
  ],
  [
    "DeepSeek: signed thinking goes",
    { baseUrl: "https://api.deepseek.com/anthropic" },
    [unsigned, said],
    [unsigned, said],
  ],
];
for (const [what, options, older, newest] of policies)
  test(what, () => {
    const assistant: Message = { role: "assistant", content: "a", reasoning_details: [thought, unsigned] };
    const turns = convert([user, assistant, user, assistant], options);
    assert.deepEqual([turns[1]?.content, turns[3]?.content], [older, newest]);
  });

test("an answer that was nothing but thinking says that it is gone", () => {
  const assistant: Message = { role: "assistant", content: null, reasoning_details: [thought] };
  assert.deepEqual(convert([user, assistant, user], { baseUrl: "https://example.com/anthropic" })[1]?.content, [
    { type: "text", text: "(thinking elided)" },
  ]);
});

test("thinking of an answer that lost a call becomes text: its signature is dead", () => {
  const assistant: Message = { role: "assistant", content: "a", reasoning_details: [thought], tool_calls: [call("x")] };
  for (const keepThinking of ["latest", "all"] as const)
    assert.deepEqual(convert([user, assistant, user], { keepThinking })[1]?.content, [
      { type: "text", text: "hm" },
      said,
    ]);
});

test("only the newest images of tool results stay, unless all are asked for", () => {
  const rounds = ["a", "b", "c", "d"].flatMap((id): Message[] => [
    { role: "assistant", content: null, tool_calls: [call(id)] },
    { role: "tool", content: [png], tool_call_id: id },
  ]);
  const images = (options: AnthropicOptions) =>
    JSON.stringify(convert([user, ...rounds], options)).split('"type":"image"').length - 1;
  assert.deepEqual([images({}), images({ keepImages: 1 }), images({ keepImages: Infinity })], [3, 1, 4]);
  const [, , first] = convert([user, ...rounds]);
  assert.match(JSON.stringify(first), /\[screenshot removed to save context\]/);
});

test("markers land on blocks that can carry them", () => {
  const messages: OutgoingMessage[] = [
    { role: "user", content: [{ type: "text", text: "hi", cache_control: marker }] },
    { role: "assistant", content: null, tool_calls: [call("a")], reasoning_details: [thought], cache_control: marker },
    { role: "tool", content: "x", tool_call_id: "a", cache_control: marker },
  ];
  assert.deepEqual(convert(messages), [
    { role: "user", content: [{ type: "text", text: "hi", cache_control: marker }] },
    {
      role: "assistant",
      content: [thought, { type: "tool_use", id: "a", name: "ls", input: {}, cache_control: marker }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "x", cache_control: marker }] },
  ] satisfies Param[]);
});
