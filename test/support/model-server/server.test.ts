// The fake must be a true server: the vendors' own clients read it.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { ModelServer } from "./server.ts";

const call = { name: "add", arguments: { a: 1, b: 2 } };

test("the official OpenAI client reads streamed chat completions with text, calls and usage", async () => {
  const server = await ModelServer.start();
  try {
    const client = new OpenAI({ baseURL: server.url, apiKey: "k", maxRetries: 0 });
    server.script({ text: "Hello 世界", toolCalls: [call] });
    const stream = client.chat.completions.stream({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0]?.message.content, "Hello 世界");
    const first = final.choices[0]?.message.tool_calls?.[0];
    assert.ok(first?.type === "function");
    assert.deepEqual(JSON.parse(first.function.arguments), call.arguments);
    assert.equal(final.choices[0]?.finish_reason, "tool_calls");
    assert.ok((final.usage?.prompt_tokens ?? 0) > 0);
  } finally {
    await server.close();
  }
});

test("the official OpenAI client reads a streamed response", async () => {
  const server = await ModelServer.start();
  try {
    const client = new OpenAI({ baseURL: server.url, apiKey: "k", maxRetries: 0 });
    server.script({ text: "Hello", thinking: "hm", toolCalls: [call] });
    const final = await client.responses.stream({ model: "m", input: "hi" }).finalResponse();
    assert.deepEqual(
      final.output.map((item) => item.type),
      ["reasoning", "message", "function_call"],
    );
  } finally {
    await server.close();
  }
});

test("the official Anthropic client reads a streamed message", async () => {
  const server = await ModelServer.start();
  try {
    const client = new Anthropic({ baseURL: server.origin, apiKey: "k", maxRetries: 0 });
    server.script({ text: "Hello", thinking: "hm", toolCalls: [call] });
    const final = await client.messages
      .stream({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }] })
      .finalMessage();
    assert.deepEqual(
      final.content.map((block) => block.type),
      ["thinking", "text", "tool_use"],
    );
    assert.equal(final.stop_reason, "tool_use");
  } finally {
    await server.close();
  }
});

test("a request that repeats an earlier one and adds to it is read from the cache up to the addition", async () => {
  const server = await ModelServer.start();
  try {
    const client = new OpenAI({ baseURL: server.url, apiKey: "k", maxRetries: 0 });
    const history: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "a".repeat(400) }];
    await client.chat.completions.create({ model: "m", messages: history });
    const second = await client.chat.completions.create({
      model: "m",
      messages: [...history, { role: "assistant", content: "ok" }, { role: "user", content: "more" }],
    });
    assert.equal(server.requests[0]?.cachedChars, 0);
    assert.ok((second.usage?.prompt_tokens_details?.cached_tokens ?? 0) >= 100);
  } finally {
    await server.close();
  }
});
