import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryMessage } from "../../llm/messages.ts";
import { digestOf } from "./review.ts";

const pair = (n: number): HistoryMessage[] => [
  { role: "user", content: `question ${n}` },
  { role: "assistant", content: `answer ${n}` },
];
const round = (id: string): HistoryMessage[] => [
  {
    role: "assistant",
    content: "",
    tool_calls: ["read_file", "patch"].map((name, at) => ({
      id: `${id}${at}`,
      type: "function" as const,
      function: { name, arguments: "{}" },
    })),
  },
  { role: "tool", tool_call_id: `${id}0`, content: "one" },
  { role: "tool", tool_call_id: `${id}1`, content: "two" },
];

test("a short conversation is its own digest", () => {
  const history = [0, 1, 2].flatMap(pair);
  assert.deepEqual(digestOf(history), history);
});

test("the last 24 messages stay as they are, what came before becomes one message of lines", () => {
  const history = [...round("a"), ...Array.from({ length: 13 }, (_, n) => pair(n)).flat()];
  const [first, ...rest] = digestOf(history);
  assert.deepEqual(rest, history.slice(-24));
  assert.equal(
    first?.content,
    "[Earlier in this conversation]\nASSISTANT[tools: read_file, patch]\nUSER: question 0\nASSISTANT: answer 0",
  );
});

test("it never begins with a result whose call is gone", () => {
  const history = [...pair(0), ...round("a"), ...Array.from({ length: 11 }, (_, n) => pair(n)).flat()];
  const digest = digestOf(history);
  assert.equal(digest[0]?.role, "user");
  assert.equal(digest[1]?.role, "user");
  assert.equal(digest.filter(({ role }) => role === "tool").length, 0);
});

test("long messages are cut to one line each", () => {
  const history: HistoryMessage[] = [
    { role: "user", content: `a\n${"b".repeat(400)}` },
    { role: "assistant", content: "c".repeat(400) },
    ...Array.from({ length: 12 }, (_, n) => pair(n)).flat(),
  ];
  const lines = String(digestOf(history)[0]?.content).split("\n").slice(1);
  assert.deepEqual(
    lines.map((line) => line.length),
    ["USER: ".length + 300, "ASSISTANT: ".length + 200],
  );
  assert.ok(lines.every((line) => line.endsWith("…")));
});
