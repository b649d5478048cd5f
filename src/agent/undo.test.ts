import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory } from "../../test/support/agent/legal.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";

const tools = { echo: (args: Readonly<Record<string, unknown>>) => `echo ${args.n}` };
const echo = (n: number) => ({ name: "echo", args: { n } });

test("turns that are taken back are gone from the store and from the next request, and come back as texts", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "one" }, { calls: [echo(1)] }, { text: "two" }, { text: "three" });
  const agent = rigAgent({ gate, store, tools });
  for (const text of ["first", "second", "third"]) await play(agent, text);
  const before = gate.requests[0]?.messages;

  assert.deepEqual(
    (await agent.undo(2)).map(({ text }) => text),
    ["second", "third"],
  );
  assert.deepEqual(
    (await store.load("session-1")).map((row) => row.content),
    ["first", "one"],
  );
  gate.script({ text: "again" });
  const { outcome } = await play(agent, "other");
  assertLegalHistory(outcome.messages);
  const sent = gate.requests.at(-1)?.messages ?? [];
  assert.deepEqual(
    sent.map((message) => message.content),
    ["You are a test.", "first", "one", "other"],
  );
  assert.deepEqual(sent.slice(0, 2), before, "what was sent before is sent again, byte for byte");
});

test("an agent that was resumed takes turns back before it says anything", async (t) => {
  const { store } = await temporaryStore(t);
  await play(rigAgent({ gate: new ScriptedGate({ text: "one" }), store }), "first");
  const agent = rigAgent({ gate: new ScriptedGate({ text: "two" }), store });
  assert.deepEqual(
    (await agent.undo()).map(({ text }) => text),
    ["first"],
  );
  assert.deepEqual(
    (await agent.undo()).map(({ text }) => text),
    [],
  );
  const { outcome } = await play(agent, "new");
  assert.deepEqual(
    outcome.messages.map((message) => message.content),
    ["new", "two"],
  );
});

test("nothing is taken back while a turn runs", async () => {
  const gate = new ScriptedGate({ hang: "wait" });
  const agent = rigAgent({ gate });
  const started = Promise.withResolvers<void>();
  gate.onRequest = () => started.resolve();
  const turn = play(agent, "go");
  await started.promise;
  await assert.rejects(agent.undo(), /while a turn is running/);
  agent.interrupt();
  await turn;
});

test("a diff of a call reaches the door, masked, and not the model", async () => {
  const gate = new ScriptedGate({ calls: [{ name: "edit", args: {} }] }, { text: "done" });
  const edit = (_args: unknown, ctx: { showDiff?(diff: string): void }) => {
    ctx.showDiff?.("+token=hunter2\n");
    return '{"bytes_written":1}';
  };
  const redact = (text: string) => text.replaceAll("hunter2", "***");
  const { events } = await play(rigAgent({ gate, tools: { edit }, ports: { redact } }), "go");
  const end = events.find((event) => event.type === "tool_end");
  assert.equal(end?.type === "tool_end" && end.diff, "+token=***\n");
  assert.ok(!JSON.stringify(gate.requests).includes("token="));
});
