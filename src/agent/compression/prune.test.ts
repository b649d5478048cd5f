import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage, Message, ToolMessage } from "../../llm/messages.ts";
import { formatSteer } from "../steer.ts";
import { stripHistoricalMedia } from "./compressor.ts";
import { pruneOldToolResults } from "./prune.ts";

const call = (id: string, name: string, args: object): HistoryMessage => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(args) } }],
});
const result = (id: string, content: ToolMessage["content"]): HistoryMessage => ({
  role: "tool",
  tool_call_id: id,
  content,
});
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
const big = (letter: string) => letter.repeat(300);

test("results before the protected tail become one line, those in it stay", () => {
  const messages = [
    call("c1", "read_file", { path: "a" }),
    result("c1", big("a")),
    call("c2", "read_file", { path: "b" }),
    result("c2", big("b")),
  ];
  const { messages: kept, pruned } = pruneOldToolResults(messages, { protectTailCount: 2 });
  assert.equal(kept[1]?.content, "[read_file] read a from line 1 (300 chars)");
  assert.equal(kept[3], messages[3]);
  assert.equal(pruned, 1);
});

test("a token budget protects more than the count, never less", () => {
  const messages = Array.from({ length: 10 }, (_, i) => [
    call(`c${i}`, "f", {}),
    result(`c${i}`, big(String(i))),
  ]).flat();
  const shortened = (options: { protectTailCount: number; protectTailTokens?: number }) =>
    pruneOldToolResults(messages, options).pruned;
  assert.equal(shortened({ protectTailCount: 4 }), 8);
  assert.equal(shortened({ protectTailCount: 4, protectTailTokens: 1 }), 8);
  assert.ok(shortened({ protectTailCount: 4, protectTailTokens: 700 }) < 8);
  assert.equal(shortened({ protectTailCount: 4, protectTailTokens: 1e9 }), 0);
});

test("of identical long results only the newest stays, in the protected tail too", () => {
  const messages = [call("c1", "f", {}), result("c1", big("a")), call("c2", "f", {}), result("c2", big("a"))];
  const { messages: kept, pruned } = pruneOldToolResults(messages, { protectTailCount: 10 });
  assert.equal(kept[1]?.content, "[Duplicate tool output — same content as a more recent call]");
  assert.equal(kept[3]?.content, big("a"));
  assert.equal(pruned, 1);
  const short = [call("c1", "f", {}), result("c1", "ok"), call("c2", "f", {}), result("c2", "ok")];
  assert.equal(pruneOldToolResults(short, { protectTailCount: 0 }).pruned, 0);
});

test("pictures of old results go, short results stay", () => {
  const messages = [
    call("c1", "browser_vision", {}),
    result("c1", [{ type: "text", text: "page" }, image]),
    call("c2", "f", {}),
    result("c2", "x".repeat(200)),
  ];
  const { messages: kept } = pruneOldToolResults(messages, { protectTailCount: 0 });
  assert.deepEqual(kept[1]?.content, [
    { type: "text", text: "page" },
    { type: "text", text: "[screenshot removed to save context]" },
  ]);
  assert.equal(kept[3], messages[3]);
});

test("long arguments of old calls are cut; an API copy leaves them and the stored text alone", () => {
  const args = { path: "a", content: "y".repeat(600) };
  const messages = [call("c1", "write_file", args), result("c1", big("r"))];
  const { messages: replaced } = pruneOldToolResults(messages, { protectTailCount: 0 });
  assert.match(JSON.stringify(replaced[0]), /y{200}\.\.\.\[truncated\]/);
  const { messages: copies } = pruneOldToolResults(messages, { protectTailCount: 0, mode: "api_copy" });
  assert.equal(copies[0], messages[0]);
  assert.deepEqual(copies[1], { ...messages[1], api_content: "[write_file] wrote to a (1 lines)" });
});

test("a pruned skill says that its text is gone", () => {
  const messages = [call("c1", "skill_view", { name: "deploy" }), result("c1", big("s"))];
  const { messages: kept } = pruneOldToolResults(messages, { protectTailCount: 0 });
  assert.equal(kept[1]?.content, "[SKILL_PRUNED] [skill_view] name=deploy (300 chars)");
});

test("what the user said in mid-turn outlives the result it rode on", () => {
  const messages = [call("c1", "terminal", { command: "ls" }), result("c1", big("o") + formatSteer("use tabs"))];
  const { messages: kept } = pruneOldToolResults(messages, { protectTailCount: 0 });
  assert.ok(String(kept[1]?.content).startsWith("[terminal] ran `ls`"));
  assert.ok(String(kept[1]?.content).endsWith(formatSteer("use tabs")));
});

test("pruning what was pruned changes nothing", () => {
  const messages: readonly Message[] = [
    call("c1", "web_extract", { urls: [`https://example.com/${"p".repeat(300)}`] }),
    result("c1", big("w")),
    call("c2", "terminal", { command: "ls" }),
    result("c2", big("o") + formatSteer("s".repeat(300))),
    call("c3", "f", {}),
    result("c3", big("w")),
  ];
  for (const mode of ["replace", "api_copy"] as const) {
    const once = pruneOldToolResults(messages, { protectTailCount: 0, mode }).messages;
    assert.deepEqual(pruneOldToolResults(once, { protectTailCount: 0, mode }).messages, once);
  }
});

test("pictures older than the newest one a user sent become a word", () => {
  const messages: readonly Message[] = [
    { role: "user", content: [{ type: "text", text: "look" }, image] },
    call("c1", "f", {}),
    result("c1", [image]),
    { role: "user", content: [image] },
    { role: "assistant", content: "seen" },
  ];
  const kept = stripHistoricalMedia(messages);
  const word = { type: "text", text: "[Attached image — stripped after compression]" };
  assert.deepEqual(kept[0]?.content, [{ type: "text", text: "look" }, word]);
  assert.deepEqual(kept[2]?.content, [word]);
  assert.equal(kept[3], messages[3]);
  assert.equal(stripHistoricalMedia(messages.slice(1, 3)).length, 2);
  assert.deepEqual(stripHistoricalMedia(messages.slice(1, 3)), messages.slice(1, 3));
});
