import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory, assertLegalRequest } from "../../test/support/agent/legal.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { storeWith } from "../../test/support/agent/store-with.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { type SessionStore, StoreError } from "../sessions/store.ts";
import { Transcript } from "./transcript.ts";

const tools = { echo: (args: Readonly<Record<string, unknown>>) => `echo ${args.n}` };
const echo = (n: number) => ({ name: "echo", args: { n } });

/** The history as a fresh process would see it. */
async function reloaded(store: SessionStore, sessionId = "session-1"): Promise<readonly HistoryMessage[]> {
  const transcript = new Transcript({ sessionId, store, describe: () => ({}) });
  await transcript.open();
  return transcript.messages;
}

test("at each model call everything it is told is on disk already", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "a", calls: [echo(1), echo(2)] }, { calls: [echo(3)] }, { text: "done" });
  const onDisk: Promise<number>[] = [];
  gate.onRequest = () => onDisk.push(store.load("session-1").then((rows) => rows.length));
  await play(rigAgent({ gate, store, tools }), "go");
  // One message more is sent than stored: the system prompt.
  assert.deepEqual(
    await Promise.all(onDisk),
    gate.requests.map((request) => request.messages.length - 1),
  );
});

test("calls that act are on disk before the first of them runs", async (t) => {
  const { store } = await temporaryStore(t);
  const seen: string[] = [];
  const look = async () => {
    seen.push((await store.load("session-1")).map((row) => row.role).join(" "));
    return "ok";
  };
  await play(
    rigAgent({ gate: new ScriptedGate({ calls: [{ name: "look", args: {} }] }), store, tools: { look } }),
    "go",
  );
  assert.deepEqual(seen, ["user assistant"]);
});

test("a call that only looks at files is on disk very soon, also while it takes its time, and its rows stand in order", async (t) => {
  const { store } = await temporaryStore(t);
  const roles = async () => (await store.load("session-1")).map((row) => row.role).join(" ");
  const look = async () => {
    while ((await roles()) !== "user assistant") await delay(5);
    return "ok";
  };
  const quick = () => "ok";
  const gate = new ScriptedGate(
    ...[{ calls: [{ name: "read_file", args: {} }] }, { calls: [{ name: "search_files", args: {} }] }],
    { text: "done" },
  );
  await play(rigAgent({ gate, store, tools: { read_file: look, search_files: quick } }), "go");
  assert.equal(await roles(), "user assistant tool assistant tool assistant");
});

test("where a hook watches calls, what was asked is on disk before the call is made, also for a look at files", async (t) => {
  const { store } = await temporaryStore(t);
  const seen: string[] = [];
  const look = async () => {
    seen.push((await store.load("session-1")).map((row) => row.role).join(" "));
    return "ok";
  };
  for (const watched of [true, false]) {
    const gate = new ScriptedGate({ calls: [{ name: "read_file", args: {} }] }, { text: "done" });
    const events = { hasListeners: (event: string) => watched && event === "pre_tool_call", notify: async () => [] };
    await play(rigAgent({ gate, store, tools: { read_file: look }, ports: { events } }), "go");
  }
  assert.equal(seen[0], "user assistant");
});

test("a turn that is stopped while it looks at files leaves what was asked on disk", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ calls: [{ name: "read_file", args: {} }] });
  const stop = () => {
    stopped.interrupt();
    return new Promise<string>(() => undefined);
  };
  const stopped = rigAgent({
    gate,
    store,
    tools: { read_file: stop },
  });
  await play(stopped, "go");
  const rows = await store.load("session-1");
  assert.deepEqual(
    rows.slice(0, 3).map((row) => row.role),
    ["user", "assistant", "tool"],
  );
  assertLegalHistory(await reloaded(store));
});

test("a crash at any row leaves a conversation that goes on", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate(
    { text: "a", calls: [echo(1), echo(2)] },
    { calls: [{ name: "no_such_tool_at_all", args: {} }] },
    { calls: [echo(3)] },
    { text: "one" },
    { text: "two" },
  );
  const agent = rigAgent({ gate, store, tools });
  await play(agent, "first");
  await play(agent, "second");
  const rows = (await store.load("session-1")).map(({ id: _, timestamp: __, ...message }) => message as HistoryMessage);
  assert.equal(rows.length, 11);
  for (let cut = 0; cut <= rows.length; cut++) {
    const id = `cut-${cut}`;
    await store.create({ id });
    if (cut > 0) await store.append(id, rows.slice(0, cut));
    const next = new ScriptedGate({ calls: [echo(9)] }, { text: "back" }, { text: "still" });
    const resumed = rigAgent({ gate: next, store, tools, session: { id } });
    const { outcome } = await play(resumed, "again");
    await play(resumed, "and again");
    assert.equal(outcome.finalText, "back", id);
    for (const request of next.requests) assertLegalRequest(request.messages);
    assertLegalHistory(outcome.messages);
    assert.deepEqual(await reloaded(store, id), resumed.lastOutcome?.messages, id);
    assertPrefixes(next);
  }
});

function assertPrefixes(gate: ScriptedGate): void {
  for (let n = 1; n < gate.requests.length; n++) {
    const before = gate.requests[n - 1]?.messages ?? [];
    assert.equal(JSON.stringify(gate.requests[n]?.messages.slice(0, before.length)), JSON.stringify(before));
  }
}

test("a call that was running when the process died is answered honestly", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "session-1" });
  const call = { id: "c1", type: "function", function: { name: "echo", arguments: "{}" } } as const;
  await store.append("session-1", [
    { role: "user", content: "go" },
    { role: "assistant", content: null, tool_calls: [call] },
  ]);
  const { outcome } = await play(rigAgent({ gate: new ScriptedGate({ text: "ok" }), store, tools }), "what happened?");
  assert.match(String(outcome.messages[2]?.content), /may or may not have taken effect/);
  assert.deepEqual(await reloaded(store), outcome.messages);
});

test("an unanswered message and the next one are two rows and one message", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ error: { message: "bad key", status: 401 } }, { text: "hello" });
  const agent = rigAgent({ gate, store });
  await play(agent, "one");
  const { outcome } = await play(agent, "two");
  assert.deepEqual(
    (await store.load("session-1")).map((row) => row.content),
    ["one", "two", "hello"],
  );
  assert.equal(outcome.messages[0]?.content, "one\n\ntwo");
  assert.deepEqual(await reloaded(store), outcome.messages);
});

test("recall on a message that joined an unanswered one is replayed byte for byte after a restart", async (t) => {
  const { store } = await temporaryStore(t);
  const prompt = { recall: async (text: string) => [`(about ${text})`] };
  const gate = new ScriptedGate({ error: { message: "bad key", status: 401 } }, { text: "hello" });
  const agent = rigAgent({ gate, store, prompt });
  await play(agent, "one");
  await play(agent, "two");
  const sent = gate.requests[1]?.messages.at(-1)?.content;
  assert.equal(sent, "one\n\n(about one)\n\ntwo\n\n(about two)");
  const after = new ScriptedGate({ text: "hi" });
  await play(rigAgent({ gate: after, store }), "three");
  assert.equal(after.requests[0]?.messages[1]?.content, sent);
});

test("a message that cannot be stored is not acted on; once the disk is back nothing is lost and nothing doubled", async (t) => {
  const { store } = await temporaryStore(t);
  let full = true;
  const unlessFull =
    <A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
    (...args: A) =>
      full ? Promise.reject(new StoreError("full", "the disk is full; free some space")) : write(...args);
  const troubled = storeWith(store, { append: unlessFull(store.append), releaseLane: unlessFull(store.releaseLane) });
  const gate = new ScriptedGate({ text: "hello" });
  const agent = rigAgent({ gate, store: troubled });
  const failed = (await play(agent, "one")).outcome;
  assert.equal(failed.finalText, "the disk is full; free some space");
  assert.equal(failed.failed, true);
  assert.equal(gate.requests.length, 0);
  full = false;
  const { outcome } = await play(agent, "two");
  assert.deepEqual(
    (await store.load("session-1")).map((row) => row.content),
    ["one", "two", "hello"],
  );
  assert.deepEqual(await reloaded(store), outcome.messages);
});

test("a disk that fills while tools run ends the turn; their rows follow with the next one", async (t) => {
  const { store } = await temporaryStore(t);
  let full = false;
  const append: SessionStore["append"] = (id, rows) => {
    if (rows[0]?.role === "tool" && !full) {
      full = true;
      return Promise.reject(new StoreError("full", "the disk is full"));
    }
    return store.append(id, rows);
  };
  const gate = new ScriptedGate({ calls: [echo(1)] }, { text: "there" });
  const agent = rigAgent({ gate, store: storeWith(store, { append }), tools });
  assert.equal((await play(agent, "go")).outcome.error, "the disk is full");
  const { outcome } = await play(agent, "on");
  assert.equal(outcome.finalText, "there");
  assert.deepEqual(await reloaded(store), outcome.messages);
  assert.equal((await store.load("session-1"))[2]?.content, "echo 1");
});

test("a session that another process compressed goes on as its tip, with the tip's history and prompt", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "one" }, { text: "two" }, { text: "three" });
  const prompts: string[] = [];
  const agent = rigAgent({
    gate,
    store,
    prompt: {
      system: async ({ sessionId }) => {
        prompts.push(sessionId);
        return `prompt of ${sessionId}`;
      },
    },
  });
  await play(agent, "first");
  const tip = await store.continueAfterCompression("session-1", [
    { role: "user", content: "[summary]" },
    { role: "assistant", content: "understood" },
  ]);
  const { outcome } = await play(agent, "second");
  assert.equal(outcome.sessionId, tip);
  assert.equal(agent.sessionId, tip);
  assert.deepEqual(
    gate.requests[1]?.messages.map((message) => message.content),
    [`prompt of ${tip}`, "[summary]", "understood", "second"],
  );
  assert.deepEqual(await reloaded(store, tip), outcome.messages);
  assert.deepEqual(
    (await store.load("session-1")).map((row) => row.content),
    ["first", "one"],
  );
});

test("a session compressed in the middle of a turn goes on as its tip; nothing is lost", async (t) => {
  const { store } = await temporaryStore(t);
  let tip = "";
  const squeeze = async () => {
    tip = await store.continueAfterCompression("session-1", [{ role: "user", content: "[summary]" }]);
    return "done";
  };
  const gate = new ScriptedGate({ calls: [{ name: "squeeze", args: {} }] }, { text: "one" }, { text: "two" });
  const agent = rigAgent({ gate, store, tools: { squeeze } });
  const { events, outcome } = await play(agent, "first");
  assert.equal(outcome.sessionId, tip);
  assert.equal(
    events.some((event) => event.type === "session" && event.reason === "compressed" && event.id === tip),
    true,
  );
  const second = (await play(agent, "second")).outcome;
  for (const request of gate.requests) assertLegalRequest(request.messages);
  assert.deepEqual(await reloaded(store, tip), second.messages);
});

test("totals and turn numbers go on after a restart", async (t) => {
  const { store } = await temporaryStore(t);
  await play(rigAgent({ gate: new ScriptedGate({ text: "a" }), store }), "one");
  const { events } = await play(rigAgent({ gate: new ScriptedGate({ text: "b" }), store }), "two");
  assert.equal(events[0]?.turn, 2);
});

test("a history handed in is copied, used, and not stored again", async (t) => {
  const { store } = await temporaryStore(t);
  const history: HistoryMessage[] = [
    { role: "user", content: "before" },
    { role: "assistant", content: "yes" },
  ];
  const gate = new ScriptedGate({ text: "now" });
  await play(rigAgent({ gate, store, session: { history } }), "go");
  assert.equal(history.length, 2);
  assert.equal(gate.requests[0]?.messages.length, 4);
  assert.deepEqual(
    (await store.load("session-1")).map((row) => row.content),
    ["go", "now"],
  );
});

test("switching the model is all or nothing", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "a" }, { text: "b" }, { text: "c" });
  let broken = false;
  const system = async ({ target }: { target: { model: string } }) => {
    if (broken) throw new Error("no prompt");
    return `I am ${target.model}`;
  };
  const agent = rigAgent({ gate, store, prompt: { system } });
  await play(agent, "one");
  const other = { ...agent.model, target: { ...agent.model.target, model: "other-model" } };
  broken = true;
  await assert.rejects(agent.switchModel(other), /no prompt/);
  assert.equal(agent.model.target.model, "fake-model");
  await play(agent, "two");
  assert.equal(gate.requests[1]?.messages[0]?.content, "I am fake-model");
  broken = false;
  await agent.switchModel(other);
  const { outcome } = await play(agent, "three");
  assert.equal(outcome.model, "other-model");
  assert.equal(gate.requests[2]?.messages[0]?.content, "I am other-model");
  assert.equal((await store.get("session-1"))?.model, "other-model");
});
