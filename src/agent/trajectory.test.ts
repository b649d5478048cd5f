import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { talk } from "../../test/support/talk.ts";
import { systemClock } from "../kit/clock.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { TurnOutcome } from "./events.ts";
import { hasReasoning, TrajectoryFiles, toTrajectory } from "./trajectory.ts";

const call = (id: string, name: string, args: string) => ({
  id,
  type: "function" as const,
  function: { name, arguments: args },
});

test("a conversation with thoughts, parallel calls and an answer has exactly this form", () => {
  const messages: HistoryMessage[] = [
    { role: "user", content: "as it was sent" },
    {
      role: "assistant",
      content: "Let me look.",
      reasoning: "two files",
      tool_calls: [call("c1", "read_file", '{"path":"a"}'), call("c2", "terminal", '{"command":"ls"}')],
    },
    { role: "tool", tool_call_id: "c1", name: "read_file", content: "plain text" },
    { role: "tool", tool_call_id: "c2", content: '{"output":"b","exit_code":0}' },
    { role: "assistant", content: "Done." },
  ];
  const tool = { type: "function" as const, function: { name: "t", description: "d", parameters: { type: "object" } } };
  const [system, ...rest] = toTrajectory(messages, "what is here?", [tool]);
  assert.equal(system?.from, "system");
  assert.ok(
    system?.value.endsWith('<tools>\n[{"name":"t","description":"d","parameters":{"type":"object"}}]\n</tools>'),
  );
  assert.deepEqual(rest, [
    { from: "human", value: "what is here?" },
    {
      from: "gpt",
      value:
        '<think>\ntwo files\n</think>\nLet me look.\n<tool_call>\n{"name":"read_file","arguments":{"path":"a"}}\n</tool_call>\n<tool_call>\n{"name":"terminal","arguments":{"command":"ls"}}\n</tool_call>',
    },
    {
      from: "tool",
      value:
        '<tool_response>\n{"tool_call_id":"c1","name":"read_file","content":"plain text"}\n</tool_response>\n<tool_response>\n{"tool_call_id":"c2","name":"terminal","content":{"output":"b","exit_code":0}}\n</tool_response>',
    },
    { from: "gpt", value: "<think>\n</think>\nDone." },
  ]);
});

const cases: readonly (readonly [string, HistoryMessage, string])[] = [
  [
    "a call without words or thoughts",
    { role: "assistant", content: null, tool_calls: [call("c", "x", "{}")] },
    '<think>\n</think>\n<tool_call>\n{"name":"x","arguments":{}}\n</tool_call>',
  ],
  [
    "arguments that are no JSON",
    { role: "assistant", content: "", tool_calls: [call("c", "x", "{oops")] },
    '<think>\n</think>\n<tool_call>\n{"name":"x","arguments":{}}\n</tool_call>',
  ],
  [
    "a scratchpad in the text",
    { role: "assistant", content: "<REASONING_SCRATCHPAD>hm</REASONING_SCRATCHPAD>yes" },
    "<think>hm</think>yes",
  ],
  [
    "reasoning beside the answer",
    { role: "assistant", content: "yes", reasoning_content: "why" },
    "<think>\nwhy\n</think>\nyes",
  ],
  ["no answer at all", { role: "assistant", content: null }, "<think>\n</think>"],
];
for (const [name, message, value] of cases) {
  test(`${name} is written so`, () => {
    assert.deepEqual(toTrajectory([{ role: "user", content: "q" }, message], "q").slice(2), [{ from: "gpt", value }]);
  });
}

test("reasoning counts wherever it stands, and only there", () => {
  assert.ok(hasReasoning([{ role: "assistant", content: "a", reasoning: "b" }]));
  assert.ok(hasReasoning([{ role: "assistant", content: "<REASONING_SCRATCHPAD>b</REASONING_SCRATCHPAD>a" }]));
  assert.ok(
    !hasReasoning([
      { role: "user", content: "<think>" },
      { role: "assistant", content: "a", reasoning: " " },
    ]),
  );
});

test("a home that wants trajectories keeps one line per turn, failed ones apart; others keep none", async (t) => {
  const kept = await talk(t, { config: "agent: { save_trajectories: true, api_max_retries: 1 }\n" });
  const lines = async (name: string) =>
    (await readFile(join(kept.project, name), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  kept.server.script(
    { thinking: "a tool", toolCalls: [{ name: "todo", arguments: {} }] },
    { text: "one" },
    { text: "two" },
    { fault: "status", status: 400, body: { error: { message: "no" } } },
  );
  for (const text of ["first", "second", "third"]) await kept.say(text);
  await kept.conversation.close("cli_close");
  const [one, two, ...none] = await lines("trajectory_samples.jsonl");
  assert.equal(none.length, 0);
  assert.deepEqual(Object.keys(one), ["conversations", "timestamp", "model", "completed"]);
  assert.deepEqual([one.model, one.completed, one.timestamp], ["fake-model", true, "2026-03-30T12:00:00.000Z"]);
  assert.deepEqual(
    one.conversations.map(({ from }: { from: string }) => from),
    ["system", "human", "gpt", "tool", "gpt"],
  );
  assert.match(one.conversations[0].value, /<tools>\n\[\{"name":/);
  assert.deepEqual(two.conversations.slice(-2), [
    { from: "human", value: "second" },
    { from: "gpt", value: "<think>\n</think>\ntwo" },
  ]);
  const [failed] = await lines("failed_trajectories.jsonl");
  assert.equal(failed.completed, false);
  assert.equal((await stat(join(kept.project, "trajectory_samples.jsonl"))).mode & 0o777, 0o600);

  const plain = await talk(t);
  plain.server.script({ text: "one" });
  await plain.say("first");
  await plain.conversation.close("cli_close");
  await assert.rejects(stat(join(plain.project, "trajectory_samples.jsonl")), { code: "ENOENT" });
});

test("a turn that cannot be written down is told, and nothing fails for it", async () => {
  const troubles: unknown[] = [];
  const files = new TrajectoryFiles({
    dir: "/nowhere",
    clock: systemClock,
    definitions: () => {
      throw new Error("no tools");
    },
    redact: (text) => text,
    onTrouble: (error) => troubles.push(error),
  });
  const messages: readonly HistoryMessage[] = [{ role: "user", content: "hi" }];
  files.turnEnded({ messages, model: "m", completed: true } as unknown as TurnOutcome); // all that is read of it
  await files.settled();
  assert.match(String(troubles), /no tools/);
});
