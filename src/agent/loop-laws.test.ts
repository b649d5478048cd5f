// Laws of the loop over whatever a model and a user may do: it ends, memory is what the disk says, every history and request is legal,
// results stand in call order, what was sent is never rewritten, nothing the user said is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory, assertLegalRequest } from "../../test/support/agent/legal.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage, Message } from "../llm/messages.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { ToolContext } from "../tools/toolset/context.ts";
import type { Agent } from "./agent.ts";
import { Transcript } from "./transcript.ts";

type Behaviour = ScriptedStep | "hang";

const call = fc.record({
  id: fc.constantFrom("a", "b", "call_x"),
  name: fc.constantFrom("web_search", "todo", "read_file", "memory", "ReadFile", "no_such_tool_at_all", "clarify"),
  args: fc.constantFrom<unknown>(
    { path: "x" },
    { path: "y", deep: { b: 1, a: 2 } },
    '{"path": "x",}',
    '{"path": no}',
    '{"path": "cu',
    "",
    '{"text":"\ud800"}',
  ),
});

const behaviour: fc.Arbitrary<Behaviour> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      text: fc.constantFrom("", "Well.", "<think>hm</think>So."),
      calls: fc.array(call, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Behaviour>(
      { text: "An answer." },
      { text: " <think>only this</think> " },
      { text: "<think>never closed" },
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Behaviour>(
      {},
      { thinking: "hm" },
      { text: "One half and", finish: "length" },
      { thinking: "hm", finish: "length" },
      { text: "No.", finish: "content_filter" },
      { text: "Interim.", finish: "incomplete" },
      { text: "<REASONING_SCRATCHPAD>open" },
      { text: "shown", message: { content: null } },
      { calls: [{ name: "todo", args: '{"a": "cu' }], finish: "length" },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Behaviour>(
      { error: { message: "down", status: 503 } },
      { error: { message: "bad key", status: 401 } },
      { error: { message: "socket hang up", code: "ECONNRESET" } },
      { error: { message: "terminated", partial: { text: "So f", pendingTools: [] } }, text: "So f" },
      { error: { message: "terminated", partial: { text: "", pendingTools: ["todo"] } } },
    ),
  },
  { weight: 1, arbitrary: fc.constant<Behaviour>("hang") },
);

const turn = fc.record({
  text: fc.constantFrom("hello", "", "  spaced  ", "again \udfff"),
  steps: fc.array(behaviour, { maxLength: 6 }),
  interruptAt: fc.option(fc.nat(25), { freq: 3 }),
  steerAt: fc.option(fc.nat(15), { freq: 3 }),
});

const scenario = fc.record({ turns: fc.array(turn, { minLength: 1, maxLength: 4 }), restartAfter: fc.nat(4) });

test("the laws of the loop hold for whatever a model and a user may do", async (t) => {
  const { store } = await temporaryStore(t);
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(scenario, async ({ turns, restartAfter }) => {
      const sessionId = `session-${++serial}`;
      const gate = new ScriptedGate();
      let agent = open(gate, store, sessionId);
      for (const [index, { text, steps, interruptAt, steerAt }] of turns.entries()) {
        if (index === restartAfter) agent = open(gate, store, sessionId);
        const steer = `steer-${serial}-${index}`;
        let seen = 0;
        let steered = false;
        gate.drop();
        gate.script(...steps.map((step) => (step === "hang" ? hangUntilStopped(agent) : step)));
        const { outcome, events } = await play(agent, text, {
          onEvent: (event) => {
            if (event.type === "done") return;
            if (seen === steerAt) steered = agent.steer(steer);
            if (seen++ === interruptAt) agent.interrupt("stop");
          },
        });
        assert.equal(events.filter((event) => event.type === "done").length, 1);
        assertLegalHistory(outcome.messages);
        assert.deepEqual(await reload(store, sessionId), outcome.messages);
        assertOwnResults(outcome.messages);
        assert.ok(!/System note|\(empty\)/.test(JSON.stringify(outcome.messages)), "no scaffolding is kept");
        if (!outcome.interrupted) assert.equal(typeof outcome.finalText, "string");
        if (steered && !outcome.interrupted)
          assert.ok(
            outcome.pendingSteer?.includes(steer) || JSON.stringify(outcome.messages).includes(steer),
            "steering is lost",
          );
      }
      for (const request of gate.requests) assertLegalRequest(request.messages);
      assertPrefixLaw(gate);
    }),
    { numRuns: 150 },
  );
});

function open(gate: ScriptedGate, store: SessionStore, id: string): Agent {
  const reply = async (_: unknown, ctx: ToolContext) => {
    if (ctx.callId.length % 2 === 0) await Promise.resolve();
    return `result of ${ctx.callId}`;
  };
  const tools = { web_search: reply, todo: reply, read_file: reply, memory: reply, clarify: reply };
  return rigAgent({ gate, store, tools, session: { id }, limits: { maxIterations: 8 } });
}

function hangUntilStopped(agent: Agent): ScriptedStep {
  return () => {
    setImmediate(() => agent.interrupt("stop"));
    return { hang: "So far " };
  };
}

async function reload(store: SessionStore, sessionId: string): Promise<readonly HistoryMessage[]> {
  const transcript = new Transcript({ sessionId, store, describe: () => ({}) });
  await transcript.open();
  return transcript.messages;
}

/** Each result belongs to its call, and results stand in the order of the calls. */
function assertOwnResults(messages: readonly HistoryMessage[]): void {
  messages.forEach((message, index) => {
    if (message.role !== "assistant" || !message.tool_calls) return;
    const results = messages.slice(index + 1, index + 1 + message.tool_calls.length);
    const ids = results.map((result) => (result.role === "tool" ? result.tool_call_id : result.role));
    assert.deepEqual(
      ids,
      message.tool_calls.map((one) => one.id),
    );
    for (const result of results) {
      const own = /result of (\S+)/.exec(String(result.content))?.[1];
      if (own !== undefined && result.role === "tool") assert.equal(own, result.tool_call_id);
    }
  });
}

/** Each request begins with the last one that was answered and carried no scaffolding; only an unanswered user message may grow. */
function assertPrefixLaw(gate: ScriptedGate): void {
  let baseline: readonly Message[] = [];
  gate.requests.forEach(({ messages }, index) => {
    baseline.forEach((before, at) => {
      const now = messages[at];
      if (at === baseline.length - 1 && before.role === "user" && now?.role === "user")
        assert.ok(String(now.content).startsWith(String(before.content)));
      else assert.equal(JSON.stringify(now), JSON.stringify(before), `message ${at} of request ${index} was rewritten`);
    });
    const last = messages.at(-1);
    const scaffolded = last?.role === "assistant" || /System note/.test(JSON.stringify(last?.content));
    if (gate.answered.has(index) && !scaffolded) baseline = messages;
  });
}
