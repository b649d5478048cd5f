import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unicodeText } from "../../../test/support/unicode-text.ts";
import { scrubSurrogates } from "../../kit/code-points.ts";
import type { Json } from "../../kit/json.ts";
import { writeBody } from "./drive.ts";

/** The slow and simple way to the same bytes. */
const plainly = (value: unknown) => JSON.stringify(scrubSurrogates(value));
const marker = { cache_control: { type: "ephemeral" } };
const hour = { cache_control: { type: "ephemeral", ttl: "1h" } };

test("a body is written with the bytes of JSON.stringify", () => {
  const text = fc.oneof(unicodeText(), fc.constantFrom("\ud800", "\\ud800", '"}'));
  const value = fc.oneof(
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
    fc.array(fc.dictionary(text, text), { maxLength: 3 }),
  );
  const key = fc.oneof(fc.constantFrom("messages", "input", "tools", "system", "stream"), text);
  fc.assert(
    fc.property(fc.dictionary(key, value), (body) => {
      const sent = writeBody(body);
      assert.equal(sent.text, plainly(body));
      const spoken = Object.entries(body).find(
        ([name, list]) => /^(messages|input)$/.test(name) && Array.isArray(list),
      );
      assert.equal(`[${sent.messages}]`, plainly(spoken?.[1] ?? []));
    }),
  );
});

const shapes: readonly [what: string, body: Json, system: string, tools: string, messages: string][] = [
  [
    "chat",
    {
      model: "m",
      messages: [
        { role: "system", content: "s" },
        { role: "user", content: "u" },
      ],
      tools: [{ a: 1 }],
    },
    "s",
    '[{"a":1}]',
    '{"role":"user","content":"u"}',
  ],
  [
    "chat with a developer message in two parts",
    {
      messages: [
        {
          role: "developer",
          content: [
            { type: "text", text: "sta", ...marker },
            { type: "text", text: "ble", ...marker },
          ],
        },
        { role: "user", content: [{ type: "text", text: "u", ...hour }] },
      ],
    },
    "stable",
    "",
    '{"role":"user","content":[{"type":"text","text":"u"}]}',
  ],
  [
    "anthropic",
    {
      system: [{ type: "text", text: "s", ...marker }],
      messages: [{ role: "user", content: [{ type: "text", text: "u", ...marker }] }],
      tools: [{ name: "a" }, { name: "b", ...marker }],
    },
    "s",
    '[{"name":"a"},{"name":"b"}]',
    '{"role":"user","content":[{"type":"text","text":"u"}]}',
  ],
  [
    "responses",
    { instructions: "s", input: [{ type: "function_call_output", output: "o" }] },
    "s",
    "",
    '{"type":"function_call_output","output":"o"}',
  ],
];
for (const [what, body, system, tools, messages] of shapes)
  test(`${what}: system text, tools and messages are told apart, markers taken out`, () => {
    const { text: _, ...parts } = writeBody(body);
    assert.deepEqual(parts, { system, tools, messages });
  });

test("a user who writes about markers is not cut", () => {
  const said = 'say ,"cache_control":{"type":"ephemeral"} aloud';
  const { messages } = writeBody({ messages: [{ role: "user", content: said }] });
  assert.equal(JSON.parse(messages).content, said);
});
