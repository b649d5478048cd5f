import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { play, rigAgent, typesOf } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";

test("chat gives the final text, and its pieces as they come to whoever asks for them", async () => {
  const agent = rigAgent({
    gate: new ScriptedGate({ text: "hello" }, { text: "hello again" }, { error: { status: 401, message: "no" } }),
  });
  assert.equal(await agent.chat("hi"), "hello");
  let shown = "";
  const onDelta = (delta: string) => {
    shown += delta;
  };
  assert.equal(await agent.chat("hi", { onDelta }), "hello again");
  assert.equal(shown, "hello again");
  assert.match(await agent.chat("hi"), /\S/, "a failing turn says why");
});

test("work between turns is done one piece at a time, and a turn waits for all of it", async () => {
  const agent = rigAgent({ gate: new ScriptedGate({ text: "hello" }) });
  const order: string[] = [];
  const work = (name: string) =>
    agent.betweenTurns(async () => {
      order.push(`${name} begins`);
      await delay(20);
      order.push(`${name} ends`);
    });
  const pieces = [work("one"), work("two")];
  await play(agent, "hi", { onEvent: (event) => event.type === "turn_start" && order.push("turn") });
  await Promise.all(pieces);
  assert.deepEqual(order, ["one begins", "one ends", "two begins", "two ends", "turn"]);
});

test("a turn with tools asks, runs, asks again, and every message is stored in order", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate(
    { text: "Let me look.", calls: [{ name: "echo", args: { text: "ping" } }] },
    { text: "It said ping." },
  );
  const agent = rigAgent({ gate, store, tools: { echo: (args) => String(args.text) } });
  const { events, outcome } = await play(agent, "try it");
  assert.equal(outcome.finalText, "It said ping.");
  assert.equal(outcome.exitReason, "text_response(finish_reason=stop)");
  assert.equal(outcome.completed, true);
  assert.equal(outcome.apiCalls, 2);
  const shown = typesOf(events).filter((type, at, all) => !["status", "usage", all[at - 1]].includes(type));
  assert.deepEqual(
    shown,
    "turn_start step text tool_pending text_end tool_start tool_end step text text_end done".split(" "),
  );
  const rows = await store.load("session-1");
  assert.deepEqual(
    rows.map((row) => [row.role, row.content]),
    [
      ["user", "try it"],
      ["assistant", "Let me look."],
      ["tool", "ping"],
      ["assistant", "It said ping."],
    ],
  );
  assert.equal(gate.requests[1]?.messages.at(-1)?.role, "tool");
});
