// Answers that are empty, cut, or nothing but thought, one test each. The whole turn runs; only the model is scripted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { echo, lastSent, said, turn } from "../../test/support/agent/one-turn.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { manualClock } from "../../test/support/session-store.ts";
import type { AssistantMessage, HistoryMessage } from "../llm/messages.ts";

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

test("text beside a call that does work is not yet the answer", async () => {
  const calls = [{ name: "memory", args: { action: "add" } }, echo("x")];
  const { outcome } = await turn([{ text: "Looking.", calls }, {}, { text: "Found." }]);
  assert.equal(outcome.finalText, "Found.");
});

test("a thought inside the text after tools is handed back, without a word about an empty answer", async () => {
  const thought = { message: { content: "<think>hm</think>" } };
  const { outcome, gate } = await turn([{ calls: [echo("x")] }, thought, { text: "Now then." }]);
  assert.equal(outcome.finalText, "Now then.");
  assert.doesNotMatch(JSON.stringify(gate.requests[2]?.messages), /your answer was empty/);
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

test("an output cap of the user's own is never lowered when it is raised for a cut answer", async () => {
  const target = aTarget("chat_completions");
  const steps = [{ text: "one ", finish: "length" }, { text: "two" }] as const;
  const { gate } = await turn([...steps], { model: { target, maxTokens: 40_000 } });
  assert.deepEqual(
    gate.requests.map(({ maxTokens }) => maxTokens),
    [40_000, 40_000],
  );
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

for (const [exitReason, steps] of [
  ["truncated_response", Array(4).fill({ text: "x", finish: "length" })],
  ["truncated_tool_call", Array(4).fill({ calls: [{ name: "echo", args: '{"text": "ab' }], finish: "length" })],
  ["invalid_tool_call", Array(3).fill({ calls: [{ name: "nothing_like_it", args: {} }] })],
  ["partial_stream_recovery", [{ text: "shown", message: { content: null } }]],
] as const)
  test(`a turn that ended as ${exitReason} is partial and not completed`, async () => {
    const { outcome } = await turn([...steps]);
    assert.deepEqual([outcome.exitReason, outcome.partial, outcome.completed], [exitReason, true, false]);
  });

test("text from before the cut stands in the message that carries the calls", async () => {
  const { outcome } = await turn([
    { text: "Let me ", finish: "length" },
    { text: "look.", calls: [echo("x")] },
    { text: "ok" },
  ]);
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: Let me look.", "tool: echo x", "assistant: ok"]);
});

test("text that came with a call that was refused is said once", async () => {
  const { outcome } = await turn([
    { text: "Let me ", finish: "length" },
    { text: "look.", calls: [{ name: "nothing_like_it", args: {} }] },
    { text: "ok" },
  ]);
  const answers = outcome.messages.filter(({ role }) => role === "assistant");
  assert.deepEqual(said(answers), ["assistant: Let me look.", "assistant: ok"]);
});

test("a cut answer whose rest was only thought is what was said of it", async () => {
  const { outcome } = await turn([
    { text: "One and two.", finish: "length" },
    { thinking: "long", finish: "length" },
  ]);
  assert.equal(outcome.finalText, "One and two.");
  assert.deepEqual(said(outcome.messages), ["user: go", "assistant: One and two."]);
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

test("a connection that is lost inside every call is given up after three more requests", async () => {
  const lost = { error: { message: "terminated", partial: { text: "", pendingTools: ["echo"] } } };
  const { outcome, gate } = await turn(Array(9).fill(lost));
  assert.equal(gate.requests.length, 4);
  assert.equal(outcome.exitReason, "truncated_tool_call");
});

test("arguments that do not parse are asked for twice more before the model is told, each time anew", async () => {
  const broken = { calls: [{ name: "echo", args: "[1, 2]" }] };
  const { outcome, gate } = await turn([...Array(6).fill(broken), { text: "ok" }]);
  assert.equal(gate.requests.length, 7);
  assert.equal(outcome.messages.filter(({ role }) => role === "tool").length, 2);
});

test("an incomplete answer that comes twice is said once", async () => {
  const interim = { text: "Looking.", finish: "incomplete" } as const;
  const { outcome } = await turn([interim, interim, { text: "Found." }]);
  assert.equal(outcome.finalText, "Looking.\n\nFound.");
});

test("an incomplete answer with nothing in it is asked for again as it was, at most three times", async () => {
  const nothing = { finish: "incomplete" } as const;
  const { outcome, gate } = await turn([nothing, nothing, nothing, nothing]);
  assert.equal(outcome.exitReason, "truncated_response");
  assert.equal(gate.requests.length, 4);
  assert.deepEqual(gate.requests[3]?.messages, gate.requests[0]?.messages);
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
