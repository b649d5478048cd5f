// Tool calls of a model that misbehaves, the budget of a turn, and what is sent. The whole turn runs; only the model is scripted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { echo, lastSent, tools, turn } from "../../test/support/agent/one-turn.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import type { AssistantMessage } from "../llm/messages.ts";
import type { Agent } from "./agent.ts";

// --- tool names and arguments

test("a name that is nearly right runs under the right name", async () => {
  const { outcome, gate } = await turn([{ calls: [{ name: "Echo_tool", args: { text: "x" } }] }, { text: "ok" }]);
  assert.equal(outcome.messages[2]?.content, "echo x");
  const sent = gate.requests[1]?.messages.at(-2) as AssistantMessage;
  assert.equal(sent.tool_calls?.[0]?.function.name, "echo");
});

test("an unknown name is answered with the list, its siblings are skipped, and the model may try again", async () => {
  const ran: string[] = [];
  const { outcome } = await turn(
    [{ calls: [{ name: "launch_rocket", args: {} }, echo("x")] }, { calls: [echo("y")] }, { text: "done" }],
    {
      tools: {
        echo: (args) => {
          ran.push(String(args.text));
          return "ok";
        },
      },
    },
  );
  assert.match(String(outcome.messages[2]?.content), /no tool named "launch_rocket". Available tools: echo$/);
  assert.match(String(outcome.messages[3]?.content), /^Skipped/);
  assert.deepEqual(ran, ["y"]);
  assert.equal(outcome.finalText, "done");
});

test("an empty name is told so without the list", async () => {
  const { outcome } = await turn([{ calls: [{ name: " ", args: {} }] }, { text: "done" }]);
  assert.match(String(outcome.messages[2]?.content), /the tool name was empty/);
  assert.doesNotMatch(String(outcome.messages[2]?.content), /echo/);
});

test("three unknown names in a row end the turn; the third is not stored", async () => {
  const bad = { calls: [{ name: "launch_rocket", args: {} }] };
  const { outcome } = await turn([bad, bad, bad]);
  assert.equal(outcome.exitReason, "invalid_tool_call");
  assert.equal(outcome.partial, true);
  assert.match(outcome.finalText ?? "", /launch_rocket/);
  assert.deepEqual(
    outcome.messages.map((message) => message.role),
    ["user", "assistant", "tool", "assistant", "tool"],
  );
});

test("a success in between resets the strikes", async () => {
  const bad = { calls: [{ name: "launch_rocket", args: {} }] };
  const { outcome } = await turn([bad, bad, { calls: [echo("x")] }, bad, bad, { text: "done" }]);
  assert.equal(outcome.finalText, "done");
});

test("invalid JSON is asked for again in silence, the third time the model reads why", async () => {
  const bad = { text: "", calls: [{ name: "echo", args: '{"text": nope}' }, echo("fine")] };
  const { outcome, gate, events } = await turn([bad, bad, bad, { text: "done" }]);
  assert.equal(gate.requests.length, 4);
  assert.equal(JSON.stringify(gate.requests[1]?.messages), JSON.stringify(gate.requests[0]?.messages));
  assert.match(
    String(outcome.messages[2]?.content),
    /not valid JSON .*\{"text": nope\}.*\{\} when there are no parameters/s,
  );
  assert.match(String(outcome.messages[3]?.content), /^Skipped/);
  assert.ok(!events.some((event) => event.type === "tool_start"));
});

test("arguments that can be mended without guessing are mended", async () => {
  const { outcome } = await turn([{ calls: [{ name: "echo", args: '{"text": "x",}' }] }, { text: "done" }]);
  assert.equal(outcome.messages[2]?.content, "echo x");
});

test("a cut call is never run: the output cap is raised, then smaller pieces are asked for, then the turn ends", async () => {
  const cut = { calls: [{ name: "echo", args: '{"text": "abc' }], finish: "length" } as const;
  const { outcome, gate, events } = await turn([cut, cut, cut, cut], {
    model: { target: aTarget("chat_completions"), maxTokens: 1000 },
  });
  assert.equal(outcome.exitReason, "truncated_tool_call");
  assert.equal(outcome.partial, true);
  assert.deepEqual(
    gate.requests.map((request) => request.maxTokens),
    [1000, 2000, 4000, 8000],
  );
  assert.doesNotMatch(JSON.stringify(gate.requests[1]?.messages), /smaller/);
  assert.match(JSON.stringify(gate.requests[2]?.messages), /smaller/);
  assert.ok(!events.some((event) => event.type === "tool_start"));
  assert.deepEqual(
    outcome.messages.map((message) => message.role),
    ["user"],
  );
});

test("the same call twice in one answer runs once, and repeated ids become different", async () => {
  const twins = [
    { id: "c", ...echo("x") },
    { id: "c", ...echo("x") },
    { id: "c", ...echo("y") },
  ];
  const { outcome } = await turn([{ calls: twins }, { calls: [{ id: "c", ...echo("z") }] }, { text: "done" }]);
  const ids = outcome.messages.flatMap((message) =>
    message.role === "tool" ? [`${message.tool_call_id} ${message.content}`] : [],
  );
  assert.deepEqual(ids, ["c echo x", "c_d2 echo y", "c_d3 echo z"]);
});

// --- the budget

test("at the limit one last answer is asked for, without tools, and nothing of the request is kept", async () => {
  const { outcome, gate } = await turn([{ calls: [echo("1")] }, { calls: [echo("2")] }, { text: "So far: 1, 2." }], {
    limits: { maxIterations: 2 },
  });
  assert.equal(outcome.exitReason, "max_iterations_reached(2/2)");
  assert.equal(outcome.completed, false);
  assert.equal(outcome.finalText, "So far: 1, 2.");
  assert.equal(gate.requests[2]?.toolChoice, "none");
  assert.deepEqual(gate.requests[2]?.tools, gate.requests[0]?.tools);
  assert.match(String(lastSent(gate)), /limit of 2 model calls/);
  assert.equal(outcome.messages.at(-1)?.content, "So far: 1, 2.");
  assert.ok(!JSON.stringify(outcome.messages).includes("System note"));
});

test("an empty last answer is asked for once more, then a fixed sentence says how to go on", async () => {
  const { outcome, gate } = await turn([{ calls: [echo("1")] }, {}, {}], { limits: { maxIterations: 1 } });
  assert.equal(gate.requests.length, 3);
  assert.match(outcome.finalText ?? "", /limit of 1 model calls.*continue.*agent\.max_turns/);
  assert.equal(outcome.messages.at(-1)?.role, "tool");
  const child = await turn([{ calls: [echo("1")] }, {}, {}], {
    limits: { maxIterations: 1 },
    session: { task: "subagent" },
  });
  assert.match(child.outcome.finalText ?? "", /limit of 1 model calls.*delegation\.max_iterations/);
  assert.doesNotMatch(child.outcome.finalText ?? "", /continue|max_turns/);
});

test("a batch of nothing but execute_code gives its call back", async () => {
  const code = { calls: [{ name: "execute_code", args: { code: "1" } }] };
  const { outcome } = await turn([code, code, code, { text: "done" }], {
    limits: { maxIterations: 2 },
    tools: { execute_code: () => "ok" },
  });
  assert.equal(outcome.finalText, "done");
  assert.equal(outcome.apiCalls, 4);
});

test("a turn of nothing but scripts comes to an end", async () => {
  const code = { calls: [{ name: "execute_code", args: { code: "1" } }] };
  const { outcome } = await turn([code, code, code, code, code, { text: "That is all." }], {
    limits: { maxIterations: 2 },
    tools: { execute_code: () => "ok" },
  });
  assert.equal(outcome.exitReason, "max_iterations_reached(4/2)");
  assert.equal(outcome.finalText, "That is all.");
});

test("a door may grant one more call, once per turn", async () => {
  const gate = new ScriptedGate({ calls: [echo("1")] }, { text: "made it" });
  const agent = rigAgent({ gate, tools, limits: { maxIterations: 1 } });
  const granted: boolean[] = [];
  const { outcome } = await play(agent, "go", {
    onEvent: (event) => event.type === "tool_start" && granted.push(agent.grantGraceCall(), agent.grantGraceCall()),
  });
  assert.deepEqual(granted, [true, false]);
  assert.equal(outcome.finalText, "made it");
});

// --- what is sent

test("the prompt is asked for once; ephemeral text, prefill and recall are sent and never kept", async () => {
  let asked = 0;
  const rig = {
    prompt: {
      system: async () => {
        asked++;
        return "SYSTEM";
      },
      ephemeral: () => "Be brief.",
      prefill: [
        { role: "user", content: "p1" },
        { role: "assistant", content: "p2" },
      ] as const,
      recall: async (text: string) => [`<memory-context>about ${text}</memory-context>`],
    },
  };
  const { gate, outcome, agent } = await turn([{ text: "one" }, { text: "two" }], rig, "first");
  await play(agent as Agent, "second");
  assert.equal(asked, 1);
  assert.deepEqual(
    gate.requests[1]?.messages.map((message) => [message.role, message.content]),
    [
      ["system", "SYSTEM\n\nBe brief."],
      ["user", "p1"],
      ["assistant", "p2"],
      ["user", "first\n\n<memory-context>about first</memory-context>"],
      ["assistant", "one"],
      ["user", "second\n\n<memory-context>about second</memory-context>"],
    ],
  );
  assert.equal(outcome.messages[0]?.content, "first");
});

test("a door's notes reach the model, the history keeps what the user typed", async () => {
  const gate = new ScriptedGate({ text: "ok" });
  const { outcome } = await play(rigAgent({ gate }), { text: "[note]\nhi", persistText: "hi" });
  assert.equal(gate.requests[0]?.messages.at(-1)?.content, "[note]\nhi");
  assert.equal(outcome.messages[0]?.content, "hi");
});

test("secrets are masked in what is kept, and the tool still gets them", async () => {
  const got: unknown[] = [];
  const { outcome, gate } = await turn(
    [{ text: "Using hunter2.", calls: [{ name: "login", args: { password: "hunter2" } }] }, { text: "in" }],
    {
      tools: {
        login: (args) => {
          got.push(args.password);
          return "welcome hunter2";
        },
      },
      ports: { redact: (text) => text.replaceAll("hunter2", "***") },
    },
  );
  assert.deepEqual(got, ["hunter2"]);
  assert.ok(!JSON.stringify(outcome.messages).includes("hunter2"));
  assert.ok(!JSON.stringify(gate.requests.at(-1)?.messages).includes("hunter2"));
});

test("a secret that a model calls as if it were a tool is masked in what is kept, sent and said", async () => {
  const calls = [{ name: "login_hunter2", args: {} }];
  const redact = (text: string) => text.replaceAll("hunter2", "***");
  const { outcome, gate } = await turn([{ calls }, { calls }, { calls }], { ports: { redact } });
  assert.equal(outcome.exitReason, "invalid_tool_call");
  const results = outcome.messages.filter((message) => message.role === "tool");
  assert.deepEqual(
    results.map(({ name, tool_name }) => [name, tool_name]),
    [
      ["login_***", "login_***"],
      ["login_***", "login_***"],
    ],
  );
  for (const told of [outcome, ...gate.requests]) assert.doesNotMatch(JSON.stringify(told), /hunter2/);
});
