// One conformance suite, run over all three wires against a real HTTP server.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../src/kit/clock.ts";
import type { AssistantMessage, FinishReason, Message } from "../src/llm/messages.ts";
import { API_MODES, type ApiMode, type ModelEvent, type ModelRequest } from "../src/llm/wire.ts";
import { createWire } from "../src/llm/wires/drive.ts";
import type { Answer } from "./support/model-server/script.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { aRequest, aTarget, collect } from "./support/model-target.ts";
import { validate, wireName } from "./support/wire-validators.ts";

const paths = {
  chat_completions: "/v1/chat/completions",
  anthropic_messages: "/v1/messages",
  codex_responses: "/v1/responses",
};
const tools = [
  {
    type: "function",
    function: {
      name: "ls",
      description: "List.",
      parameters: { type: "object", properties: { path: { type: "string" } } },
    },
  },
] as const;

let model: ModelServer;
before(async () => {
  model = await ModelServer.start();
});
after(() => model.close());

const requestFor = (mode: ApiMode, rest: Partial<ModelRequest> = {}) =>
  aRequest(
    aTarget(mode, {
      baseUrl: mode === "anthropic_messages" ? model.origin : model.url,
      model: mode === "anthropic_messages" ? "claude-opus-4-6" : "gpt-5",
    }),
    { tools, reasoning: { enabled: true, effort: "high" }, ...rest },
  );
const doneOf = (events: readonly ModelEvent[]) => {
  const last = events.at(-1);
  assert.ok(last?.type === "done", JSON.stringify(last));
  return last;
};
const failureOf = (events: readonly ModelEvent[]) => {
  const last = events.at(-1);
  assert.ok(last?.type === "failed", JSON.stringify(last));
  return last.error;
};
const joined = (events: readonly ModelEvent[], type: "text" | "thinking") =>
  events.map((event) => (event.type === type ? event.delta : "")).join("");

for (const mode of API_MODES)
  describe(mode, () => {
    const wire = createWire(mode, { fetch: globalThis.fetch, clock: systemClock });
    const ask = (rest: Partial<ModelRequest> = {}) => collect(wire, requestFor(mode, rest));

    const whole: Answer = {
      text: "Hello, 世界 😀!",
      thinking: "Let me think about it.",
      toolCalls: [
        { name: "ls", arguments: { path: "a" } },
        { name: "ls", arguments: { path: "b" } },
      ],
      usage: { input: 100, output: 20, cacheRead: 60, reasoning: 5 },
    };
    for (const stream of [true, false])
      test(`an answer with thinking, text and calls arrives in our words (stream: ${stream})`, async () => {
        model.script(whole);
        const events = await ask({ stream });
        assert.equal(model.last.path, paths[mode]);
        assert.equal(model.last.body.stream, stream);
        assert.equal(joined(events, "text"), whole.text);
        assert.equal(joined(events, "thinking"), whole.thinking);
        const { message, finishReason } = doneOf(events);
        assert.equal(finishReason, "tool_calls");
        assert.equal(message.content, whole.text);
        assert.equal(message.reasoning, whole.thinking);
        assert.deepEqual(
          message.tool_calls?.map((call) => call.function),
          [
            { name: "ls", arguments: '{"path":"a"}' },
            { name: "ls", arguments: '{"path":"b"}' },
          ],
        );
        assert.deepEqual(
          events.flatMap((event) => (event.type === "tool_call" ? [event.call] : [])),
          message.tool_calls,
        );
        assert.equal(events.filter((event) => event.type === "tool_pending").length, 2);
        const usage = events.find((event) => event.type === "usage");
        assert.equal(usage?.usage.inputTokens, 100);
        assert.equal(usage?.usage.cacheReadTokens, 60);
        assert.equal(usage?.usage.promptTokens, 160);
        assert.equal(usage?.usage.outputTokens, 20);
        assert.equal(events.filter((event) => event.type === "done" || event.type === "failed").length, 1);
      });

    test("the conversation goes on: the answer goes back with its results, in a request the API accepts", async () => {
      model.script(whole, { text: "Done." });
      const first = requestFor(mode);
      const { message } = doneOf(await collect(wire, first));
      const results = (message.tool_calls ?? []).map(
        (call, index): Message => ({ role: "tool", content: `result ${index}`, tool_call_id: call.id, name: "ls" }),
      );
      const messages = [...first.messages, message, ...results];
      const before = model.last;
      assert.equal(doneOf(await collect(wire, { ...first, messages })).message.content, "Done.");
      validate(wireName[mode], before.raw);
      validate(wireName[mode], model.last.raw);
      assert.ok(model.last.raw.includes("result 0") && model.last.raw.includes("result 1"));
      assert.equal(model.last.cachedChars, before.promptChars, "the second request begins with the first");
    });

    const ends: readonly [Answer["finish"], FinishReason][] = [
      ["stop", "stop"],
      ["length", mode === "codex_responses" ? "incomplete" : "length"],
      ["content_filter", "content_filter"],
    ];
    for (const [finish, expected] of ends)
      test(`an answer that ends by ${finish} ends by ${expected}`, async () => {
        model.script({ text: "some text", ...(finish && { finish }) });
        assert.equal(doneOf(await ask()).finishReason, expected);
      });

    test("ids of earlier turns are not given again", async () => {
      const call = { id: "call_0", type: "function", function: { name: "ls", arguments: "{}" } } as const;
      const assistant: AssistantMessage = { role: "assistant", content: null, tool_calls: [call] };
      const messages: Message[] = [
        { role: "user", content: "hi" },
        assistant,
        { role: "tool", content: "x", tool_call_id: "call_0" },
      ];
      model.script({ toolCalls: [{ id: "call_0", name: "ls", arguments: {} }] });
      assert.equal(doneOf(await ask({ messages })).message.tool_calls?.[0]?.id, "call_0_d2");
    });

    test("arguments that cannot be saved are never handed out to be run", async () => {
      model.script({ toolCalls: [{ name: "ls", arguments: '{"path":"/tmp/re' }] });
      const events = await ask();
      assert.ok(!events.some((event) => event.type === "tool_call"));
      const { finishReason, message } = doneOf(events);
      assert.equal(finishReason, "length");
      assert.equal(message.tool_calls?.[0]?.function.arguments, '{"path":"/tmp/re');
    });

    test("complete arguments that are no JSON are not handed out either, and nothing says that they were cut", async () => {
      model.script({ toolCalls: [{ name: "ls", arguments: '{"command": ls}' }] });
      const events = await ask();
      assert.ok(!events.some((event) => event.type === "tool_call"));
      const { finishReason, message } = doneOf(events);
      assert.equal(finishReason, "tool_calls");
      assert.equal(message.tool_calls?.[0]?.function.arguments, '{"command": ls}');
    });

    test("an error status is a failure with the server's words", async () => {
      model.script({
        fault: "status",
        status: 529,
        body: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      });
      const error = failureOf(await ask());
      assert.deepEqual([error.status, error.code, error.message], [529, "overloaded_error", "Overloaded"]);
    });

    test("a broken connection is a failure that says what had arrived", async () => {
      model.script({ fault: "cut", after: 6, answer: { text: "an answer that is long enough to be cut" } });
      const error = failureOf(await ask());
      assert.ok(error.code);
      assert.ok(error.partial?.text.startsWith("an a"), JSON.stringify(error));
    });

    test("a call that was cut is only a name", async () => {
      model.script({
        fault: "cut",
        after: 4,
        answer: { toolCalls: [{ name: "ls", arguments: { path: "a long path to be cut" } }] },
      });
      const events = await ask();
      assert.deepEqual(failureOf(events).partial, { text: "", pendingTools: ["ls"] });
      assert.ok(!events.some((event) => event.type === "tool_call"));
    });

    test("an abort ends the call at once and closes the socket", async () => {
      model.script({ fault: "stall", after: 5, answer: { text: "an answer that never ends" } });
      const stop = new AbortController();
      const events: ModelEvent[] = [];
      for await (const event of wire.stream(requestFor(mode), stop.signal)) {
        events.push(event);
        stop.abort();
      }
      assert.equal(failureOf(events).code, "aborted");
      await model.last.clientLeft;
    });

    test("a silent server is a stale stream", async () => {
      model.script({ fault: "stall", after: 0, answer: { text: "never" } });
      assert.equal(failureOf(await ask({ limits: { staleMs: 50 } })).code, "stale_stream");
    });
  });
