// The alternation rule, as a validator and as a source of broken histories.
import assert from "node:assert/strict";
import fc from "fast-check";
import type { AssistantMessage, HistoryMessage, Message, ToolCall } from "../../../src/llm/messages.ts";

/** Never two users nor two assistants in a row; each result answers a call of the assistant that opened the run, once. */
export function assertLegalHistory(
  messages: readonly Message[],
  /** Answers that one wire replays item by item, and joins itself for the others. */
  mayStayApart: (message: AssistantMessage) => boolean = () => false,
): void {
  let open = new Set<string>();
  messages.forEach((message, index) => {
    const before = messages[index - 1];
    const where = `message ${index} of ${messages.map((one) => one.role).join(" ")}`;
    const apart = [before, message].some((one) => one?.role === "assistant" && mayStayApart(one));
    if (message.role === "user" || (message.role === "assistant" && !apart))
      assert.notEqual(message.role, before?.role, `two in a row: ${where}`);
    if (message.role === "user") open = new Set();
    if (message.role === "assistant") open = new Set((message.tool_calls ?? []).map((call) => call.call_id ?? call.id));
    if (message.role === "tool") assert.ok(open.delete(message.tool_call_id), `a stray result: ${where}`);
  });
}

/** What a strict server demands of a request, on top of the alternation rule. */
export function assertLegalRequest(messages: readonly Message[]): void {
  assertLegalHistory(messages);
  const ids = new Set<string>();
  messages.forEach((message, index) => {
    if (message.role === "system") assert.equal(index, 0, "a system message stands first or nowhere");
    if (message.role !== "assistant" || !message.tool_calls) return;
    assert.ok(message.tool_calls.length > 0, "no empty list of calls");
    const answered = new Set<string>();
    for (let next = index + 1; messages[next]?.role === "tool"; next++)
      answered.add((messages[next] as Extract<Message, { role: "tool" }>).tool_call_id);
    for (const call of message.tool_calls) {
      assert.ok(answered.has(call.id), `call ${call.id} has a result right behind it`);
      assert.ok(!ids.has(call.id), `id ${call.id} stands once`);
      ids.add(call.id);
      assert.notEqual(call.function.name.trim(), "");
      assert.doesNotThrow(() => JSON.parse(call.function.arguments));
    }
  });
}

const text = fc.constantFrom("", " ", "a", "b c", "<think>x</think>", "say \ud800");
const callId = fc.constantFrom("c1", "c2", "c3", "c4");
const call: fc.Arbitrary<ToolCall> = fc.record({
  id: callId,
  type: fc.constant("function" as const),
  function: fc.record({
    name: fc.constantFrom("read_file", "", "terminal"),
    arguments: fc.constantFrom("{}", '{"b":1,"a":{"d":2,"c":3}}', "", '{"a":', "[1]"),
  }),
});

/** Any sequence of messages at all: what crashes, other programs and old versions may have left. */
export const anyHistory: fc.Arbitrary<HistoryMessage[]> = fc.array(
  fc.oneof(
    fc.record({ role: fc.constant("user" as const), content: text }),
    fc.record({
      role: fc.constant("user" as const),
      content: fc.constant([
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      ] as const),
    }),
    fc.record({ role: fc.constant("assistant" as const), content: fc.option(text) }),
    fc.record({ role: fc.constant("assistant" as const), content: fc.constant(""), reasoning: fc.constant("hm") }),
    fc.record({
      role: fc.constant("assistant" as const),
      content: fc.option(text),
      tool_calls: fc.array(call, { maxLength: 3 }),
    }),
    fc.record({ role: fc.constant("tool" as const), content: text, tool_call_id: callId }),
  ),
  { maxLength: 12 },
);
