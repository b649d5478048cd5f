import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { comparePrefix, type Prefix, sizeOf } from "./sketch.ts";

const user = (content: unknown) => ({ role: "user", content });
const said = (content: string) => ({ role: "assistant", content });
const list = (...messages: readonly unknown[]) => messages.map((message) => JSON.stringify(message)).join(",");
const before: Prefix = { system: "I am é.\n\nNow.", tools: '[{"name":"ls"}]', messages: list(user("hi"), said("yes")) };
const blocks = [
  { id: "identity", length: 9 },
  { id: "session_line", length: 4 },
];

const breaks: readonly [what: string, change: Partial<Prefix>, owner: string | null, offset: number][] = [
  ["the same request", {}, null, 0],
  ["a longer one", { messages: list(user("hi"), said("yes"), user("more")) }, null, 0],
  ["a block of the prompt", { system: "I am x.\n\nNow." }, "identity", 5],
  ["the last block", { system: "I am é.\n\nNaw." }, "session_line", 11],
  ["a prompt that goes on", { system: "I am é.\n\nNow. And more." }, "ephemeral", 14],
  ["a prompt cut short", { system: "I am é.\n\nNo" }, "session_line", 12],
  ["the tools", { tools: '[{"name":"lx"}]' }, "tools", 25],
  ["no tools any more", { tools: "" }, "tools", 14],
  ["a message", { messages: list(user("ho"), said("yes")) }, "message 0 (user)", 56],
  ["an answer that was rewritten", { messages: list(user("hi"), said("yeah")) }, "message 1 (assistant)", 93],
  ["a message gone", { messages: list(user("hi")) }, "message 1 (assistant)", 59],
  [
    "a tool result in the place of an answer",
    { messages: list(user("hi"), { type: "function_call_output", output: "o" }) },
    "message 1 (tool)",
    62,
  ],
];
for (const [what, change, owner, offset] of breaks)
  test(`${what}: ${owner ?? "no break"}`, () => {
    const now = { ...before, ...change };
    const { broke, commonBytes, bytes } = comparePrefix(before, now, blocks);
    assert.equal(bytes, sizeOf(now));
    assert.deepEqual(broke, owner === null ? null : { owner, offset });
    assert.equal(commonBytes, owner === null ? sizeOf(before) : offset);
  });

test("a last user message may go on where it ended, and nothing else may", () => {
  const grows = (from: unknown, to: unknown) =>
    comparePrefix({ ...before, messages: list(from) }, { ...before, messages: list(to) }).broke === null;
  const a = { type: "text", text: "a" };
  assert.ok(grows(user("hi"), user("hi\n\nthere")));
  assert.ok(grows(user([a]), user([a, a])));
  assert.ok(grows(user(""), user("hi")));
  assert.ok(grows(user([a]), user([{ ...a, text: "a b" }])));
  assert.ok(!grows(user("hi"), user("ho")));
  assert.ok(!grows(user("hi]"), user("hi}")));
  assert.ok(!grows(user('say "yes"'), user('say "yes')));
  assert.ok(!grows(user([a, a]), user([a])));
  const result = { type: "tool_result", tool_use_id: "1", content: "out" };
  assert.ok(grows(user([result]), user([result, a])));
  assert.ok(!grows(user([result]), user([{ ...result, content: "output" }])));
  assert.ok(!grows(said("hi"), said("hi there")));
  const twice: Prefix = { ...before, messages: list(user("hi"), said("x")) };
  assert.ok(comparePrefix(twice, { ...before, messages: list(user("hi you"), said("x")) }).broke);
});

test("without blocks the owner is the system text", () => {
  assert.equal(comparePrefix(before, { ...before, system: "?" }).broke?.owner, "system");
});

test("the offset is that of the first byte that differs", () => {
  const prefix = fc.record({
    system: fc.string({ unit: "grapheme" }),
    tools: fc.string({ unit: "grapheme" }),
    messages: fc.array(fc.string({ unit: "grapheme" }).map(said), { maxLength: 4 }).map((all) => list(...all)),
  });
  const bytes = ({ system, tools, messages }: Prefix) => Buffer.from(system + tools + messages);
  fc.assert(
    fc.property(prefix, fc.nat(30), fc.constantFrom("!", "é", "漢", "😀"), (now, at, put) => {
      const changed = { ...now, system: now.system.slice(0, at) + put + now.system.slice(at) };
      if (!changed.system.isWellFormed()) return;
      const { broke } = comparePrefix(now, changed);
      if (!broke) return assert.equal(now.system, changed.system);
      const [a, b] = [bytes(now).subarray(0, Buffer.byteLength(now.system)), bytes(changed)];
      assert.ok(a.subarray(0, broke.offset).equals(b.subarray(0, broke.offset)));
      const [left, right] = [a.subarray(broke.offset).toString(), b.subarray(broke.offset).toString()];
      assert.notEqual([...left][0], [...right][0]);
    }),
  );
});
