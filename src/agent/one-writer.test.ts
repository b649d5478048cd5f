// One conversation, several processes: one of them writes at a time, and what it wrote is what the others go on from.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { play, type RigOptions, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory } from "../../test/support/agent/legal.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { storeWith } from "../../test/support/agent/store-with.ts";
import { manualClock, temporaryStore } from "../../test/support/session-store.ts";
import { systemClock } from "../kit/clock.ts";
import { openSessionStore } from "../sessions/open.ts";
import { type LaneToken, type SessionStore, StoreError } from "../sessions/store.ts";
import type { Agent } from "./agent.ts";
import { AgentBusyError } from "./agent.ts";

async function open(t: TestContext) {
  const { store, path, log, clock } = await temporaryStore(t);
  const db = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => db.close());
  const another = async (
    rig: Omit<RigOptions, "store">,
    change: (own: SessionStore) => Partial<SessionStore> = () => ({}),
  ) => {
    const own = await openSessionStore({ path, journalMode: "auto", log, clock });
    t.after(() => own.close());
    return rigAgent({ ports: { clock: systemClock }, ...rig, store: storeWith(own, change(own)) });
  };
  /** What another machine does with the conversation while it holds it. */
  const elsewhere = async (work: (lease: LaneToken) => Promise<unknown> = async () => undefined) => {
    const answer = await store.takeLane("session-1", "elsewhere:1:x");
    assert.ok(answer.type === "taken");
    await work(answer.lease);
    return answer.lease;
  };
  const rows = async () => (await store.load("session-1")).map(({ role, content }) => `${role}: ${content}`);
  const letLeaseExpire = () => db.exec("UPDATE lanes SET expires = 0");
  return { store, another, elsewhere, rows, letLeaseExpire };
}

/** A turn in the middle of its answer; `end` interrupts it. */
async function inTheMiddle(agent: Agent, text: string) {
  const { promise: talking, resolve } = Promise.withResolvers<void>();
  const done = play(agent, text, { onEvent: (event) => event.type === "text" && resolve() });
  await talking;
  return {
    done,
    async end() {
      agent.interrupt();
      return (await done).outcome;
    },
  };
}

test("a conversation that another process has done with is taken at once", async (t) => {
  const { another } = await open(t);
  const unwatched = { session: { interactive: false }, ports: { clock: manualClock() } };
  const ann = await another({ ...unwatched, gate: new ScriptedGate({ text: "one" }, { text: "three" }) });
  const bob = await another({ ...unwatched, gate: new ScriptedGate({ text: "two" }) });
  for (const [agent, answer] of [
    [ann, "one"],
    [bob, "two"],
    [ann, "three"],
  ] as const) {
    const { outcome, events } = await play(agent, "go");
    assert.equal(outcome.finalText, answer);
    const waits = events.filter((event) => event.type === "status" && /works on this/.test(event.message));
    assert.deepEqual(waits, []);
  }
});

test("a turn waits for the one of another process and goes on from what that said", async (t) => {
  const { another, rows } = await open(t);
  const bobGate = new ScriptedGate({ text: "early" }, { text: "late" });
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }, { text: "Ann's answer" }) });
  const bob = await another({ gate: bobGate });
  await play(bob, "first");
  const running = await inTheMiddle(ann, "second");
  const { promise: waits, resolve } = Promise.withResolvers<string>();
  const waiting = play(bob, "third", {
    onEvent: (event) => event.type === "status" && event.kind === "waiting" && resolve(event.message),
  });
  assert.match(await waits, /^process \d+ is using this conversation; waiting$/);
  await running.end();
  const { events } = await waiting;
  assert.equal(events.at(-1)?.turn, 3, "the turns of others count");
  assert.deepEqual(await rows(), ["user: first", "assistant: early", "user: second", "user: third", "assistant: late"]);
  assert.deepEqual(
    bobGate.requests.at(-1)?.messages.map((message) => message.content),
    ["You are a test.", "first", "early", "second\n\nthird"],
  );
  await play(ann, "fourth");
  assert.deepEqual((await rows()).slice(-2), ["user: fourth", "assistant: Ann's answer"]);
});

test("a turn that nobody watches gives up after half a minute and says who has the conversation", async (t) => {
  const { another, rows } = await open(t);
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }) });
  const running = await inTheMiddle(ann, "first");
  const clock = manualClock();
  const started = clock.now();
  const gate = new ScriptedGate({ text: "never" });
  const bob = await another({ gate, session: { interactive: false }, ports: { clock } });
  const { outcome } = await play(bob, "second");
  assert.equal(outcome.exitReason, "conversation_in_use");
  assert.match(outcome.finalText ?? "", /^This conversation is in use by process \d+\. Nothing was sent/);
  assert.ok(clock.now() - started >= 30_000);
  const cat = await another({ gate, ports: { clock } });
  const { outcome: alone } = await play(cat, "third", { interactive: false });
  assert.equal(alone.exitReason, "conversation_in_use", "one turn of a conversation that is watched otherwise");
  assert.equal(gate.requests.length, 0);
  await running.end();
  assert.deepEqual(await rows(), ["user: first"]);
});

test("a turn that somebody watches waits longer than that", async (t) => {
  const { another } = await open(t);
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }) });
  const running = await inTheMiddle(ann, "first");
  const clock = manualClock();
  const tired = clock.now() + 3_600_000;
  const sleep = async (ms: number) => {
    await clock.sleep(ms * 40);
    if (clock.now() > tired) await running.end();
  };
  const bob = await another({
    gate: new ScriptedGate({ text: "at last" }),
    ports: { clock: { ...clock, now: () => clock.ms, sleep } },
  });
  assert.equal((await play(bob, "second")).outcome.finalText, "at last");
});

test("an interrupt ends the waiting, and nothing was sent", async (t) => {
  const { another, rows } = await open(t);
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }) });
  const running = await inTheMiddle(ann, "first");
  const bob = await another({ gate: new ScriptedGate({ text: "never" }) });
  const { outcome } = await play(bob, "second", { onEvent: (event) => event.type === "status" && bob.interrupt() });
  assert.equal(outcome.exitReason, "interrupted_by_user");
  assert.match(outcome.finalText ?? "", /nothing was sent/);
  await running.end();
  assert.deepEqual(await rows(), ["user: first"]);
});

test("what is done between turns is refused while another process has the conversation", async (t) => {
  const { another, rows } = await open(t);
  const bob = await another({ gate: new ScriptedGate({ text: "early" }) });
  await play(bob, "first");
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }) });
  const running = await inTheMiddle(ann, "second");
  const inUse = (error: unknown) => error instanceof AgentBusyError && /in use by process/.test(error.message);
  await assert.rejects(bob.undo(), inUse);
  await assert.rejects(bob.compress(), inUse);
  await assert.rejects(bob.undoCompression(), inUse);
  await assert.rejects(bob.reloadPrompt(), inUse);
  await running.end();
  assert.deepEqual(
    (await bob.undo()).map(({ text }) => text),
    ["second"],
  );
  assert.deepEqual(await rows(), ["user: first", "assistant: early"]);
});

test("a turn whose conversation was taken over writes nothing more, and the next one goes on from what is there", async (t) => {
  const { another, rows, letLeaseExpire } = await open(t);
  const { promise: released, resolve: release } = Promise.withResolvers<string>();
  const { promise: calling, resolve: called } = Promise.withResolvers<void>();
  const slow = () => {
    called();
    return released;
  };
  const gate = new ScriptedGate({ calls: [{ id: "c1", name: "slow", args: {} }] }, { text: "mine" });
  const ann = await another({ gate, tools: { slow } });
  const late = play(ann, "first");
  await calling;
  letLeaseExpire();
  const bob = await another({ gate: new ScriptedGate({ text: "Bob's answer" }) });
  await play(bob, "second");
  const stored = await rows();
  release("too late");
  const { outcome } = await late;
  assert.equal(outcome.exitReason, "conversation_moved");
  assert.equal(outcome.interrupted, true);
  assert.match(outcome.finalText ?? "", /nothing more was saved/);
  assert.equal(gate.requests.length, 1, "no model is asked for what cannot be kept");
  assert.deepEqual(await rows(), stored);
  const { outcome: next } = await play(ann, "third");
  assert.equal(next.finalText, "mine");
  assertLegalHistory(next.messages);
  assert.deepEqual(await rows(), [...stored, "user: third", "assistant: mine"]);
});

test("a turn whose conversation was taken over stops in the middle of its answer and says why", async (t) => {
  const { another, elsewhere, rows, letLeaseExpire } = await open(t);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ann = await another({ gate: new ScriptedGate({ hang: "Once" }) });
  const { done } = await inTheMiddle(ann, "first");
  letLeaseExpire();
  await elsewhere();
  t.mock.timers.tick(20_000);
  const { outcome } = await done;
  assert.equal(outcome.exitReason, "conversation_moved");
  assert.match(outcome.finalText ?? "", /process 1 on elsewhere.*nothing more was saved/s);
  assert.deepEqual(await rows(), ["user: first"]);
});

test("work between turns stops when the conversation was taken over", async (t) => {
  const { another, elsewhere, letLeaseExpire } = await open(t);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ann = await another({ gate: new ScriptedGate() });
  const stopped = ann.exclusively(async (signal) => {
    letLeaseExpire();
    await elsewhere();
    t.mock.timers.tick(20_000);
    for (let looks = 0; looks < 500 && !signal.aborted; looks++) await systemClock.sleep(10);
    return signal.reason;
  });
  assert.ok((await stopped) instanceof StoreError);
});

test("when a turn or work between turns is over, however it ended, the conversation is free", async (t) => {
  const { store, another, elsewhere } = await open(t);
  const isFree = async () => store.releaseLane(await elsewhere());
  const refuse = () => Promise.reject(new StoreError("full", "the disk is full"));
  let full = false;
  const ann = await another({ gate: new ScriptedGate({ text: "one" }) }, (own) => ({
    append: (...args) => (full ? refuse() : own.append(...args)),
    rewind: (...args) => (full ? refuse() : own.rewind(...args)),
    async releaseLane(...args) {
      await systemClock.sleep(20);
      await own.releaseLane(...args);
    },
  }));
  await play(ann, "first");
  await isFree();
  full = true;
  assert.equal((await play(ann, "second")).outcome.error, "the disk is full");
  await isFree();
  await assert.rejects(ann.undo(), { message: "the disk is full" });
  await isFree();
  full = false;
  assert.deepEqual(
    (await ann.undo()).map(({ text }) => text),
    ["first"],
  );
  await isFree();
});

test("a turn that cannot learn who has the conversation, or what was written there, fails with the reason and holds nobody up", async (t) => {
  const { store, another, elsewhere } = await open(t);
  const broken = new Set<string>();
  const unlessBroken = <R>(name: string, work: () => Promise<R>) =>
    broken.has(name) ? Promise.reject(new StoreError("busy", `no ${name}`)) : work();
  const gate = new ScriptedGate({ text: "one" }, { text: "two" });
  const ann = await another({ gate }, (own) => ({
    takeLane: (...args) => unlessBroken("lane", () => own.takeLane(...args)),
    tip: (...args) => unlessBroken("tip", () => own.tip(...args)),
  }));
  await play(ann, "first");
  broken.add("lane");
  const { outcome } = await play(ann, "second");
  assert.equal(outcome.failed, true);
  assert.equal(outcome.finalText, "no lane");
  broken.delete("lane");
  const write = (lease: LaneToken) => store.append("session-1", [{ role: "user", content: "theirs" }], { lease });
  await store.releaseLane(await elsewhere(write));
  broken.add("tip");
  assert.equal((await play(ann, "third")).outcome.finalText, "no tip");
  await store.releaseLane(await elsewhere());
  broken.delete("tip");
  await play(ann, "fourth");
  assert.match(String(gate.requests.at(-1)?.messages.at(-1)?.content), /^theirs\s+fourth$/);
});

test("a turn has written everything when it gives the conversation back", async (t) => {
  const { another } = await open(t);
  const done: string[] = [];
  const ann = await another({ gate: new ScriptedGate({ text: "one" }) }, (own) => ({
    async setValue(...args) {
      await systemClock.sleep(20);
      await own.setValue(...args);
      done.push("counters");
    },
    async releaseLane(...args) {
      await own.releaseLane(...args);
      done.push("release");
    },
  }));
  await play(ann, "first");
  assert.deepEqual(done, ["counters", "release"]);
});

test("a conversation goes on where another process compressed it, or took the compression back", async (t) => {
  const { store, another, elsewhere } = await open(t);
  const there = async (work: (lease: LaneToken) => Promise<unknown>) => store.releaseLane(await elsewhere(work));
  const summary = [{ role: "user", content: "summary" } as const, { role: "assistant", content: "short" } as const];
  const bob = await another({ gate: new ScriptedGate({ text: "early" }, { text: "late" }) });
  await play(bob, "first");
  let tip = "";
  const compress = async (lease: LaneToken) => {
    tip = await store.continueAfterCompression("session-1", summary, { lease });
  };
  await there(compress);
  await bob.exclusively(async () => undefined);
  assert.equal(bob.sessionId, tip);
  await there(async (lease) => assert.equal(await store.undoCompression(tip, { lease }), "session-1"));
  assert.equal((await play(bob, "second")).outcome.finalText, "late");
  assert.equal(bob.sessionId, "session-1");
  await there(async (lease) => {
    await compress(lease);
    await store.append(tip, [{ role: "user", content: "theirs" }], { lease });
  });
  assert.deepEqual(
    (await bob.undo()).map(({ text }) => text),
    ["theirs"],
  );
  assert.equal((await store.load(tip)).length, 2);
});

test("a conversation whose first part was deleted goes on with the rest", async (t) => {
  const { store, another } = await open(t);
  const bob = await another({ gate: new ScriptedGate({ text: "early" }, { text: "late" }) });
  await play(bob, "first");
  const tip = await store.continueAfterCompression("session-1", [{ role: "user", content: "summary" }]);
  assert.equal((await play(bob, "second")).outcome.sessionId, tip);
  await store.delete("session-1");
  const { outcome } = await play(bob, "third");
  assert.equal(outcome.failed || outcome.interrupted, false, outcome.finalText ?? "");
  assert.equal(outcome.sessionId, tip);
});

test("a history that its client keeps is not taken from the store, whoever wrote there", async (t) => {
  const { another } = await open(t);
  const history = [
    { role: "user", content: "before" },
    { role: "assistant", content: "then" },
  ] as const;
  const gate = new ScriptedGate({ text: "one" }, { text: "two" });
  const ann = await another({ gate, session: { history } });
  await play(ann, "first");
  await play(await another({ gate: new ScriptedGate({ text: "aside" }) }), "between");
  await play(ann, "second");
  assert.deepEqual(
    gate.requests.at(-1)?.messages.map((message) => message.content),
    ["You are a test.", "before", "then", "first", "one", "second"],
  );
});
