// A model that misbehaves in every way the loop knows, one test each. The whole turn runs; only the model is scripted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, type RigOptions, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory, assertLegalRequest } from "../../test/support/agent/legal.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { manualClock } from "../../test/support/session-store.ts";
import type { AssistantMessage, HistoryMessage } from "../llm/messages.ts";
import type { Agent } from "./agent.ts";

const tools = {
  echo: (args: Readonly<Record<string, unknown>>) => `echo ${args.text}`,
  memory: () => '{"success":true}',
};
const echo = (text: string) => ({ name: "echo", args: { text } });

async function turn(steps: ScriptedStep[], rig: Partial<RigOptions> = {}, input = "go") {
  const gate = new ScriptedGate(...steps);
  const agent = rigAgent({ gate, tools, ...rig });
  const { events, outcome } = await play(agent, input);
  for (const request of gate.requests) assertLegalRequest(request.messages);
  assertLegalHistory(outcome.messages);
  return { gate, agent, events, outcome };
}

const said = (messages: readonly HistoryMessage[]) =>
  messages.map((message) => `${message.role}: ${message.content ?? ""}`);
const lastSent = (gate: ScriptedGate) => gate.requests.at(-1)?.messages.at(-1)?.content;

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

// --- empty answers

test("an empty answer after tools is nudged, and nothing of the nudge is kept", async () => {
  const { outcome, gate } = await turn([{ calls: [echo("x")] }, {}, { text: "Now then." }]);
  assert.equal(outcome.finalText, "Now then.");
  assert.match(String(lastSent(gate)), /tools ran, but your answer was empty/);
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: ", "tool: echo x", "assistant: Now then."]);
});

test("a note to the model rides on one request only: once it has led to calls it is gone", async () => {
  const { gate } = await turn([{ calls: [echo("x")] }, {}, { calls: [echo("y")] }, { text: "done" }]);
  assert.match(JSON.stringify(gate.requests[2]?.messages), /your answer was empty/);
  assert.doesNotMatch(JSON.stringify(gate.requests[3]?.messages), /your answer was empty|\(empty\)/);
});

test("text beside housekeeping calls is the answer when nothing follows", async () => {
  const { outcome } = await turn([{ text: "Noted!", calls: [{ name: "memory", args: { action: "add" } }] }, {}]);
  assert.equal(outcome.finalText, "Noted!");
  assert.equal(outcome.exitReason, "fallback_prior_turn_content");
  assert.equal(outcome.completed, true);
});

test("an answer that was only thought is asked for twice more, then given up", async () => {
  const thought = { thinking: "hm" };
  const { outcome, gate } = await turn([thought, thought, thought]);
  assert.equal(gate.requests.length, 3);
  assert.equal(outcome.exitReason, "empty_response_exhausted");
  assert.equal(outcome.failed, true);
  assert.deepEqual(said(outcome.messages), ["user: go"]);
});

test("a server that wants reasoning back gets the thought handed back", async () => {
  const thought = { thinking: "hm", message: { reasoning_content: "hm" } };
  const target = aTarget("chat_completions", { profile: { echoReasoning: true } });
  const { gate } = await turn([thought, { text: "yes" }], { model: { target } });
  const last = gate.requests[1]?.messages.at(-1) as AssistantMessage;
  assert.deepEqual([last.role, last.reasoning_content], ["assistant", "hm"]);
});

test("nothing at all is asked for three times more, with growing pauses", async () => {
  const clock = manualClock(0);
  const { outcome, gate } = await turn([{}, {}, {}, {}], {
    ports: { clock: { ...clock, random: () => 0, sleep: clock.sleep, now: clock.now } },
  });
  assert.equal(gate.requests.length, 4);
  assert.equal(outcome.exitReason, "empty_response_exhausted");
  assert.equal(clock.ms, (5 + 10 + 20) * 1000);
  assert.match(outcome.finalText ?? "", /empty answer/);
});

test("text that was shown but is missing from the answer is the answer", async () => {
  const { outcome } = await turn([{ text: "shown", message: { content: null } }]);
  assert.equal(outcome.finalText, "shown");
  assert.equal(outcome.exitReason, "partial_stream_recovery");
});

test("an answer that ends inside its scratchpad is asked for twice more", async () => {
  const open = { text: "<REASONING_SCRATCHPAD>hm" };
  const { outcome, gate } = await turn([open, open, { text: "yes" }]);
  assert.equal(gate.requests.length, 3);
  assert.equal(outcome.finalText, "yes");
});

// --- answers in pieces

test("a cut text goes on where it stopped and is kept as one message", async () => {
  const { outcome, gate } = await turn([
    { text: "one two ", finish: "length" },
    { text: "three", finish: "length" },
    { text: " four." },
  ]);
  assert.equal(outcome.finalText, "one two three four.");
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: one two three four."]);
  assert.deepEqual(
    gate.requests.map((request) => request.maxTokens),
    [undefined, 8192, 16_384],
  );
  assert.match(String(lastSent(gate)), /exactly where it stopped/);
});

test("after three continuations the text so far is the partial answer", async () => {
  const piece = { text: "x", finish: "length" } as const;
  const { outcome, gate } = await turn([piece, piece, piece, piece]);
  assert.equal(gate.requests.length, 4);
  assert.equal(outcome.exitReason, "truncated_response");
  assert.equal(outcome.partial, true);
  assert.equal(outcome.finalText, "xxxx");
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: xxxx"]);
});

test("text from before the cut stands in the message that carries the calls", async () => {
  const { outcome } = await turn([
    { text: "Let me ", finish: "length" },
    { text: "look.", calls: [echo("x")] },
    { text: "ok" },
  ]);
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: Let me look.", "tool: echo x", "assistant: ok"]);
});

test("thinking that used up the whole output is said so", async () => {
  const { outcome } = await turn([{ thinking: "long", finish: "length" }]);
  assert.equal(outcome.exitReason, "truncated_response");
  assert.match(outcome.finalText ?? "", /thinking/);
});

test("a lost connection is worded as one, and the half call is named but never run", async () => {
  const lost = {
    error: { message: "terminated", partial: { text: "Well, ", pendingTools: ["echo"] } },
    text: "Well, ",
  };
  const { outcome, gate, events } = await turn([lost, { text: "here it is." }]);
  assert.equal(outcome.finalText, "Well, here it is.");
  assert.match(String(lastSent(gate)), /connection was lost.*echo was not run/s);
  assert.ok(!events.some((event) => event.type === "tool_start"));
});

test("a connection lost inside a call asks for the call again", async () => {
  const lost = { error: { message: "terminated", partial: { text: "", pendingTools: ["echo"] } } };
  const { outcome, gate } = await turn([lost, { calls: [echo("x")] }, { text: "ok" }]);
  assert.equal(outcome.finalText, "ok");
  assert.match(
    String(gate.requests[1]?.messages.at(-1)?.content),
    /connection was lost while you were writing a call of echo/,
  );
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: ", "tool: echo x", "assistant: ok"]);
});

test("an incomplete answer is asked to go on and joined with what follows", async () => {
  const interim = {
    text: "Looking.",
    finish: "incomplete",
    message: { codex_reasoning_items: [{ id: "r1" }] },
  } as const;
  const { outcome } = await turn([interim, { text: "Found.", message: { codex_reasoning_items: [{ id: "r2" }] } }]);
  assert.equal(outcome.finalText, "Looking.\n\nFound.");
  const [, answer] = outcome.messages as [HistoryMessage, AssistantMessage];
  assert.deepEqual(answer.codex_reasoning_items, [{ id: "r1" }, { id: "r2" }]);
});

test("a refusal by policy is not repeated and not stored", async () => {
  const { outcome, gate } = await turn([{ text: "I can't help with that.", finish: "content_filter" }]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "content_policy_blocked");
  assert.equal(outcome.failed, true);
  assert.match(outcome.finalText ?? "", /^I can't help with that\.\n\n.*content policy/s);
  assert.deepEqual(said(outcome.messages), ["user: go"]);
});

// --- thinking

test("think tags are neither shown nor kept, their text is kept as reasoning", async () => {
  const { outcome, events } = await turn([{ text: "<think>secret plan</think>Hello" }]);
  assert.equal(outcome.finalText, "Hello");
  assert.equal(events.flatMap((event) => (event.type === "text" ? [event.delta] : [])).join(""), "Hello");
  assert.equal(outcome.lastReasoning, "secret plan");
});

test("reasoning that was not streamed is shown once, whole", async () => {
  const { events } = await turn([{ text: "Hi", message: { reasoning: "because" } }]);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "thinking" ? [event.delta] : [])),
    ["because"],
  );
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
  assert.match(outcome.finalText ?? "", /limit of 1 model calls.*continue/);
  assert.equal(outcome.messages.at(-1)?.role, "tool");
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

// --- failures of the call

test("a failing server is tried again with growing pauses, then the turn ends with a sentence", async () => {
  const clock = manualClock(0);
  const down = { error: { message: "internal error", status: 500 } };
  const { outcome, gate, events } = await turn([down, down, down], { ports: { clock: { ...clock, random: () => 0 } } });
  assert.equal(gate.requests.length, 3);
  assert.equal(clock.ms, 6000);
  assert.equal(outcome.exitReason, "all_retries_exhausted_no_response");
  assert.match(outcome.finalText ?? "", /^API call failed after 3 retries: /);
  assert.equal(outcome.error, "HTTP 500: internal error");
  assert.equal(events.filter((event) => event.type === "status" && event.kind === "lifecycle").length, 2);
});

test("a server that says when to come back is obeyed, up to two minutes", async () => {
  for (const [header, waited] of [
    ["7", 7000],
    ["9999", 120_000],
  ] as const) {
    const clock = manualClock(0);
    const limited = { error: { message: "slow down", status: 429, headers: { "retry-after": header } } };
    const { outcome } = await turn([limited, { text: "ok" }], { ports: { clock } });
    assert.equal(outcome.finalText, "ok");
    assert.equal(clock.ms, waited);
  }
});

test("a wrong key is not tried again, and the sentence says what to do", async () => {
  const { outcome, gate } = await turn([{ error: { message: "invalid api key", status: 401 } }]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "non_retryable_error");
  assert.match(outcome.finalText ?? "", /did not accept the API key/);
});

test("a spending cap ends the turn at once", async () => {
  const refused = {
    error: { message: "The session has spent 1.02 of 1.00 USD (budget.session.usd).", code: "budget_exceeded" },
  };
  const { outcome, gate } = await turn([refused]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "budget_cap");
  assert.match(outcome.finalText ?? "", /budget\.session\.usd/);
});

test("a request that is too long is not repeated as it is", async () => {
  const { outcome, gate } = await turn([{ error: { message: "maximum context length is 8192 tokens", status: 400 } }]);
  assert.equal(gate.requests.length, 1);
  assert.equal(outcome.exitReason, "context_overflow_exhausted");
  assert.match(outcome.finalText ?? "", /\/compress/);
});

test("a server without eyes gets the conversation without pictures, from then on", async () => {
  const gate = new ScriptedGate(
    { error: { message: "this model does not support image input", status: 400 } },
    { text: "a cat" },
    { text: "still" },
  );
  const agent = rigAgent({ gate });
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
  assert.equal((await play(agent, { text: "look", parts: [image] })).outcome.finalText, "a cat");
  await play(agent, "and now?");
  assert.deepEqual(
    gate.requests.map((request) => JSON.stringify(request.messages).includes("AAAA")),
    [true, false, false],
  );
});

test("a parameter the server refuses is left out from then on", async () => {
  const refusal = { message: "Unsupported parameter: 'max_tokens' is not supported with this model.", status: 400 };
  const { outcome, gate } = await turn([{ error: refusal }, { text: "ok" }], {
    model: { target: aTarget("chat_completions"), maxTokens: 500 },
  });
  assert.equal(outcome.finalText, "ok");
  assert.deepEqual(gate.requests[1]?.overrides, { max_tokens: undefined, max_completion_tokens: 500 });
});

test("a hopeless 400 in a long conversation takes the message back", async () => {
  const history = Array.from(
    { length: 90 },
    (_, index): HistoryMessage =>
      index % 2 === 0 ? { role: "user", content: `q${index}` } : { role: "assistant", content: `a${index}` },
  );
  const { outcome } = await turn(
    [{ error: { message: "unknown parameter: frobnicate is not a known field of this request", status: 400 } }],
    { session: { history } },
  );
  assert.equal(outcome.failed, true);
  assert.equal(outcome.messages.length, 90);
  assert.match(outcome.finalText ?? "", /taken back/);
});

test("a defect of ours in an iteration is survived", async () => {
  const broken = { limitBatch: () => Promise.reject(new Error("disk on fire")) };
  const { outcome } = await turn([{ calls: [echo("x")] }, { text: "sorry" }], { port: broken });
  assert.equal(outcome.finalText, "sorry");
  assert.match(String(outcome.messages[2]?.content), /^Error executing tool: disk on fire/);
});

test("a prompt that cannot be built fails the turn with its reason; the message is kept", async () => {
  const { outcome, gate } = await turn([], {
    prompt: { system: () => Promise.reject(new Error("SOUL.md is not readable")) },
  });
  assert.equal(gate.requests.length, 0);
  assert.equal(outcome.failed, true);
  assert.match(outcome.finalText ?? "", /SOUL\.md/);
  assert.deepEqual(said(outcome.messages), ["user: go"]);
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
