// What each API refuses, as far as its documentation and its error messages tell. Each validator throws at the first breach.
import assert from "node:assert/strict";
import type { ApiMode } from "../../src/llm/wire.ts";
import type { WireName } from "./model-server/script.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies of three protocols, looked into field by field
type Any = any;

/** Every string of the body can be written as UTF-8, and nothing private leaves. */
function checkStrings(value: unknown, path = "body"): void {
  if (typeof value === "string") assert.ok(value.isWellFormed(), `${path} has half a surrogate pair`);
  if (typeof value !== "object" || value === null) return;
  for (const [key, entry] of Object.entries(value)) {
    assert.ok(!key.startsWith("_"), `${path}.${key} is private`);
    checkStrings(entry, `${path}.${key}`);
  }
}

const markersIn = (value: unknown): number => JSON.stringify(value ?? null).split('"cache_control"').length - 1;
const notBlank = (text: unknown, path: string) =>
  assert.ok(typeof text === "string" && text.trim() !== "", `${path} is blank`);

export function validateChat(raw: string): void {
  const body: Any = JSON.parse(raw);
  checkStrings(body);
  assert.ok(markersIn(body) <= 4, "more than four cache markers");
  const KEYS: Record<string, string[]> = {
    system: ["role", "content"],
    developer: ["role", "content"],
    user: ["role", "content"],
    assistant: ["role", "content", "tool_calls", "reasoning_content", "reasoning_details"],
    tool: ["role", "content", "tool_call_id", "name"],
  };
  const ids = new Set<string>();
  let open = new Set<string>();
  let previous = "";
  body.messages.forEach((message: Any, index: number) => {
    const path = `messages[${index}]`;
    for (const key of Object.keys(message)) assert.ok(KEYS[message.role]?.includes(key), `${path}.${key} is unknown`);
    if (message.role !== "tool") assert.equal(open.size, 0, `${path}: calls ${[...open]} were not answered`);
    if (message.role === "user" || message.role === "assistant")
      assert.notEqual(message.role, previous, `${path} repeats a role`);
    if (message.role === "system" || message.role === "developer")
      assert.equal(index, 0, `${path}: system is not first`);
    if (index > 0 && message.role === "assistant")
      assert.notEqual(previous, "system", `${path}: the user speaks first`);
    if (Array.isArray(message.content)) {
      assert.ok(message.content.length > 0, `${path}: empty list`);
      for (const part of message.content) if (part.type === "text") notBlank(part.text, path);
    } else if (message.content === null) assert.ok(message.tool_calls?.length > 0, `${path} says nothing`);
    else assert.equal(typeof message.content, "string");
    if (message.role === "assistant" && message.tool_calls !== undefined) {
      assert.ok(message.tool_calls.length > 0, `${path}: empty tool_calls`);
      open = new Set();
      for (const call of message.tool_calls) {
        assert.ok(call.id && !ids.has(call.id), `${path}: id ${call.id} is used twice`);
        assert.deepEqual(Object.keys(call.function), ["name", "arguments"]);
        for (const key of Object.keys(call))
          assert.ok(["id", "type", "function", "extra_content"].includes(key), `${path}: ${key}`);
        JSON.parse(call.function.arguments);
        ids.add(call.id);
        open.add(call.id);
      }
    }
    if (message.role === "tool") assert.ok(open.delete(message.tool_call_id), `${path} answers no open call`);
    previous = message.role;
  });
  assert.equal(open.size, 0, "calls without results at the end");
}

export function validateAnthropic(raw: string): void {
  const body: Any = JSON.parse(raw);
  checkStrings(body);
  assert.ok(Number.isInteger(body.max_tokens) && body.max_tokens > 0, "max_tokens is missing");
  assert.ok(markersIn(body) <= 4, "more than four cache markers");
  if (Array.isArray(body.system)) for (const block of body.system) notBlank(block.text, "system");
  else if (body.system !== undefined) notBlank(body.system, "system");
  const ids = new Set<string>();
  assert.equal(body.messages[0]?.role, "user", "the first message is not the user's");
  body.messages.forEach((message: Any, index: number) => {
    const path = `messages[${index}]`;
    assert.equal(message.role, index % 2 === 0 ? "user" : "assistant", `${path} breaks the alternation`);
    assert.deepEqual(Object.keys(message), ["role", "content"]);
    if (typeof message.content === "string") {
      notBlank(message.content, path);
      return;
    }
    assert.ok(message.content.length > 0, `${path} is empty`);
    const uses: string[] = message.content
      .filter((block: Any) => block.type === "tool_use")
      .map((block: Any) => block.id);
    const answers: Any[] = [body.messages[index + 1]?.content ?? []]
      .flat()
      .filter((block: Any) => block.type === "tool_result");
    assert.deepEqual(
      answers.map((block) => block.tool_use_id).sort(),
      [...uses].sort(),
      `${path}: calls and the next message's results differ`,
    );
    if (index === 0)
      assert.ok(!message.content.some((block: Any) => block.type === "tool_result"), `${path}: results without calls`);
    let resultsOver = false;
    for (const block of message.content) {
      checkBlock(block, message.role, path, ids);
      if (block.type === "tool_result") assert.ok(!resultsOver, `${path}: a result after other content`);
      else resultsOver = true;
    }
  });
}

function checkBlock(block: Any, role: string, path: string, ids: Set<string>): void {
  switch (block.type) {
    case "text":
      notBlank(block.text, path);
      return;
    case "image":
      if (block.source.type === "base64") assert.match(block.source.media_type, /^image\/(jpeg|png|gif|webp)$/);
      else assert.match(block.source.url, /^https?:/);
      return;
    case "thinking":
    case "redacted_thinking":
      assert.equal(role, "assistant", `${path}: a user thinks`);
      assert.ok(!("cache_control" in block), `${path}: a marker on thinking`);
      assert.ok(block.signature || block.data, `${path}: unsigned thinking`);
      return;
    case "tool_use":
      assert.equal(role, "assistant", `${path}: a user calls a tool`);
      assert.match(block.id, /^[A-Za-z0-9_-]+$/);
      assert.ok(!ids.has(block.id), `${path}: id ${block.id} is used twice`);
      assert.equal(typeof block.input, "object");
      ids.add(block.id);
      return;
    case "tool_result":
      assert.equal(role, "user", `${path}: an assistant answers a call`);
      if (typeof block.content === "string") {
        notBlank(block.content, path);
        return;
      }
      assert.ok(block.content.length > 0, `${path}: an empty result`);
      for (const inner of block.content) checkBlock(inner, role, path, ids);
      return;
    default:
      assert.fail(`${path}: unknown block ${block.type}`);
  }
}

export function validateResponses(raw: string): void {
  const body: Any = JSON.parse(raw);
  checkStrings(body);
  notBlank(body.instructions, "instructions");
  assert.equal(body.store, false);
  assert.equal(markersIn(body), 0, "cache markers mean nothing here");
  const calls = new Set<string>();
  const open = new Set<string>();
  body.input.forEach((item: Any, index: number) => {
    const path = `input[${index}]`;
    if (item.type === "function_call") {
      assert.ok(item.call_id && item.call_id.length <= 64, `${path}: bad call id`);
      assert.ok(!calls.has(item.call_id), `${path}: id ${item.call_id} is used twice`);
      JSON.parse(item.arguments);
      calls.add(item.call_id);
      open.add(item.call_id);
      return;
    }
    if (item.type === "function_call_output") {
      assert.ok(open.delete(item.call_id), `${path} answers no open call`);
      if (Array.isArray(item.output))
        assert.ok(item.output.length > 0 && item.output.every((part: Any) => /^input_(text|image)$/.test(part.type)));
      return;
    }
    if (item.role === "user") {
      assert.equal(open.size, 0, `${path}: calls ${[...open]} were not answered`);
      if (Array.isArray(item.content))
        assert.ok(item.content.length > 0 && item.content.every((part: Any) => /^input_(text|image)$/.test(part.type)));
      else notBlank(item.content, path);
      return;
    }
    if (item.type === "reasoning") {
      assert.ok(
        item.encrypted_content && Array.isArray(item.summary) && !("id" in item),
        `${path}: reasoning that cannot be replayed`,
      );
      const next = body.input[index + 1];
      assert.ok(
        next?.type === "reasoning" || next?.type === "function_call" || next?.role === "assistant",
        `${path} stands alone`,
      );
      return;
    }
    assert.equal(item.role, "assistant", `${path}: unknown item`);
    if (Array.isArray(item.content)) assert.ok(item.content.every((part: Any) => part.type === "output_text"));
  });
  assert.equal(open.size, 0, "calls without results at the end");
}

export const wireName: Readonly<Record<ApiMode, WireName>> = {
  chat_completions: "chat",
  codex_responses: "responses",
  anthropic_messages: "anthropic",
};
const validators: Readonly<Record<WireName, (raw: string) => void>> = {
  chat: validateChat,
  responses: validateResponses,
  anthropic: validateAnthropic,
};

export function validate(wire: WireName, raw: string): void {
  validators[wire](raw);
}
