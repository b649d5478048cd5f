import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyCacheControl, type CacheLayout, type OutgoingMessage } from "./cache-control.ts";

const marker = { type: "ephemeral" } as const;
const call = { id: "c", type: "function", function: { name: "ls", arguments: "{}" } } as const;
const markersOn = (message: OutgoingMessage) =>
  Number(message.cache_control !== undefined) +
  (typeof message.content === "object" ? (message.content ?? []).filter((part) => part.cache_control).length : 0);
const plan = (messages: readonly OutgoingMessage[], layout: CacheLayout) =>
  applyCacheControl(messages, { ttl: "5m", layout }).map(markersOn);
const talk = (length: number): OutgoingMessage[] =>
  Array.from({ length }, (_, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content: `m${index}` }));

test("the system message and the last three messages are marked", () => {
  assert.deepEqual(plan([{ role: "system", content: "s" }, ...talk(5)], "native"), [1, 0, 0, 1, 1, 1]);
});

test("without a system message the last four are marked", () => {
  assert.deepEqual(plan(talk(6), "envelope"), [0, 0, 1, 1, 1, 1]);
});

const shapes: readonly [what: string, OutgoingMessage, CacheLayout, expected: OutgoingMessage | null][] = [
  [
    "a string becomes one marked part",
    { role: "user", content: "x" },
    "envelope",
    { role: "user", content: [{ type: "text", text: "x", cache_control: marker }] },
  ],
  [
    "a string becomes one marked part",
    { role: "assistant", content: "x" },
    "native",
    { role: "assistant", content: [{ type: "text", text: "x", cache_control: marker }] },
  ],
  [
    "a list is marked on its last part",
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
    "native",
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b", cache_control: marker },
      ],
    },
  ],
  [
    "a tool result is marked as a whole",
    { role: "tool", content: "x", tool_call_id: "c" },
    "native",
    { role: "tool", content: "x", tool_call_id: "c", cache_control: marker },
  ],
  [
    "a tool result is marked on its text",
    { role: "tool", content: "x", tool_call_id: "c" },
    "envelope",
    { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "x", cache_control: marker }] },
  ],
  [
    "an empty message is marked as a whole",
    { role: "assistant", content: null, tool_calls: [call] },
    "native",
    { role: "assistant", content: null, tool_calls: [call], cache_control: marker },
  ],
  [
    "an empty message cannot carry a marker",
    { role: "assistant", content: null, tool_calls: [call] },
    "envelope",
    null,
  ],
  [
    "api_content is what gets marked",
    { role: "user", content: "x", api_content: "sent" },
    "envelope",
    { role: "user", content: [{ type: "text", text: "sent", cache_control: marker }] },
  ],
];
for (const [what, message, layout, expected] of shapes)
  test(`${layout}: ${what} (${message.role})`, () =>
    assert.deepEqual(applyCacheControl([message], { ttl: "5m", layout }), [expected ?? message]));

test("in an envelope an earlier message takes the slot of one that cannot carry a marker", () => {
  const messages: OutgoingMessage[] = [
    ...talk(4),
    { role: "user", content: "u" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", content: "", tool_call_id: "c" },
  ];
  assert.deepEqual(plan([{ role: "system", content: "s" }, ...messages], "envelope"), [1, 0, 0, 1, 1, 1, 0, 0]);
});

test("an hour is said so, and off means off", () => {
  const [message] = applyCacheControl([{ role: "user", content: "x" }], { ttl: "1h", layout: "envelope" });
  assert.deepEqual(message?.content, [{ type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "1h" } }]);
  const messages = talk(3);
  assert.equal(applyCacheControl(messages, { ttl: "off", layout: "native" }), messages);
});

test("inputs stay as they were, there are never more than four markers, and marking twice is marking once", () => {
  const content = fc.oneof(fc.constant(""), fc.constant("x"), fc.constant([{ type: "text" as const, text: "p" }]));
  const message: fc.Arbitrary<OutgoingMessage> = fc.oneof(
    content.map((c) => ({ role: "user" as const, content: c })),
    content.map((c) => ({ role: "tool" as const, content: c, tool_call_id: "c" })),
    fc.constantFrom(null, "", "x").map((c) => ({ role: "assistant" as const, content: c })),
  );
  fc.assert(
    fc.property(
      fc.array(message),
      fc.constantFrom<CacheLayout>("native", "envelope"),
      fc.boolean(),
      (messages, layout, withSystem) => {
        const all: OutgoingMessage[] = withSystem ? [{ role: "system", content: "s" }, ...messages] : messages;
        const before = structuredClone(all);
        const marked = applyCacheControl(all, { ttl: "5m", layout });
        assert.deepEqual(all, before);
        assert.ok(marked.reduce((sum, each) => sum + markersOn(each), 0) <= 4);
        assert.deepEqual(applyCacheControl(marked, { ttl: "5m", layout }), marked);
      },
    ),
  );
});
