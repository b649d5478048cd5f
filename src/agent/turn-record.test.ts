// Turns of a door whose messages wait in the store: begun, asked and ended in its steps, and gone on with after a crash.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { assertLegalHistory } from "../../test/support/agent/legal.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { SessionStore } from "../sessions/store.ts";
import type { WorkStore } from "../sessions/work.ts";
import { type TurnRecord, WithdrawnError } from "./turn-kit.ts";

const target = { chat: "1" };

/** As a chat does it: the answer, the done mark and the promise are one step. */
function recordOf(work: WorkStore, id: number, steps: string[] = []): TurnRecord {
  return {
    async begin(sessionId, messages, lease) {
      steps.push("begin");
      const stored = await work.begin(lease, { sessionId, ids: [id], messages });
      if (stored === null) throw new WithdrawnError("gone");
      return stored;
    },
    async asked(lease) {
      steps.push("asked");
      await work.asked(lease, [id]);
    },
    async finish(sessionId, append, { kind, finalText }, lease) {
      steps.push(`finish ${kind}`);
      const outcome = kind === "failed" ? "failed" : kind === "interrupted" ? "stopped" : "answered";
      const part = { cause: `inbox:${id}`, part: 0, platform: "p", account: "b", target, payload: finalText };
      await work.finish(lease, { sessionId, append, done: [{ id, outcome }], outbox: [part] });
      return append.map(() => 0);
    },
  };
}

async function open(t: TestContext, ...script: ScriptedStep[]) {
  const { store, path } = await temporaryStore(t);
  const work = await store.work();
  const gate = new ScriptedGate(...script);
  const calls: string[] = [];
  const tools = {
    look: () => {
      calls.push("look");
      return "seen";
    },
  };
  const agent = () => rigAgent({ gate, store, tools });
  const db = new DatabaseSync(path, { timeout: 5000 });
  t.after(() => db.close());
  const rows = async () => (await store.load("session-1")).map(({ role, content }) => `${role}: ${content}`);
  return { store, work, gate, agent, calls, db, rows };
}

async function receive(work: WorkStore, text: string): Promise<number> {
  const event = {
    sessionKey: "chat",
    platform: "p",
    account: "b",
    updateId: text,
    kind: "user",
    event: { text },
  } as const;
  const [id] = await work.accept([event]);
  return id ?? assert.fail("a duplicate");
}

const promised = async (work: WorkStore) => (await work.due("p", "b")).map(({ payload }) => payload);
const waiting = async (work: WorkStore) => [...(await work.waiting()).values()].flat();

test("a turn is begun, asked and ended in the steps of its door", async (t) => {
  const { work, agent, rows } = await open(t, { calls: [{ name: "look", args: {} }] }, { text: "a bird" });
  const id = await receive(work, "what is it?");
  const steps: string[] = [];
  const { outcome } = await play(agent(), "what is it?", { record: recordOf(work, id, steps) });
  assert.equal(outcome.finalText, "a bird");
  assert.deepEqual(steps, ["begin", "asked", "finish answered"]);
  assert.deepEqual(await rows(), ["user: what is it?", "assistant: null", "tool: seen", "assistant: a bird"]);
  assert.deepEqual(await promised(work), ["a bird"]);
  assert.deepEqual(await waiting(work), []);
});

test("a failed turn ends in the same step, with its sentence as the answer", async (t) => {
  const { work, agent, rows } = await open(t, { error: { kind: "http", status: 401, message: "bad key" } as never });
  const id = await receive(work, "hello");
  const { outcome } = await play(agent(), "hello", { record: recordOf(work, id) });
  assert.equal(outcome.failed, true);
  assert.deepEqual(await promised(work), [outcome.finalText]);
  assert.deepEqual(await waiting(work), []);
  assert.deepEqual(await rows(), ["user: hello"]);
});

test("a message that was taken back meanwhile is not said, and the next one is", async (t) => {
  const { work, agent, rows, gate } = await open(t, { text: "to second" });
  const first = await receive(work, "first");
  const second = await receive(work, "second");
  const talk = agent();
  await work.settle([first], "withdrawn");
  const { outcome } = await play(talk, "first", { record: recordOf(work, first) });
  assert.equal(outcome.unsent, true);
  assert.equal(gate.requests.length, 0);
  await play(talk, "second", { record: recordOf(work, second) });
  assert.deepEqual(await rows(), ["user: second", "assistant: to second"]);
  assert.deepEqual(
    gate.requests[0]?.messages.map(({ content }) => content),
    ["You are a test.", "second"],
  );
});

test("a turn that lost its conversation keeps and promises nothing", async (t) => {
  const { work, agent, rows, db, store } = await open(t, { calls: [{ name: "look", args: {} }] });
  const id = await receive(work, "go");
  const record = recordOf(work, id);
  const taken = (own: SessionStore) => own.takeLane("session-1", "elsewhere:1:x");
  const { outcome } = await play(agent(), "go", {
    record: {
      ...record,
      async asked(lease) {
        await record.asked(lease);
        db.exec("UPDATE lanes SET expires = 0");
        assert.equal((await taken(store)).type, "taken");
      },
    },
  });
  assert.equal(outcome.interrupted, true);
  assert.deepEqual(await rows(), ["user: go"]);
  assert.deepEqual(await promised(work), []);
  assert.equal((await waiting(work))[0]?.attempts, 1);
});

/** A process that dies while the model answers, after so many rounds. */
async function crash(subject: Awaited<ReturnType<typeof open>>, id: number): Promise<void> {
  const { db, work } = subject;
  const record = recordOf(work, id);
  const dies = { ...record, finish: () => Promise.reject(new Error("the machine is gone")) };
  await play(subject.agent(), "what is it?", { record: dies });
  db.exec("UPDATE lanes SET expires = 0");
}

test("what was cut off before the model answered goes on with its own message", async (t) => {
  const subject = await open(t, { text: "never arrives" }, { text: "a bird" });
  const { work, agent, rows, gate } = subject;
  const id = await receive(work, "what is it?");
  await crash(subject, id);
  const [row] = await waiting(work);
  assert.ok(row?.messageId, "its message is stored");
  const { outcome } = await play(agent(), "", { record: recordOf(work, id), continues: "[cut off; go on]" });
  assert.equal(outcome.finalText, "a bird");
  assert.deepEqual(await rows(), ["user: what is it?", "assistant: a bird"], "and not stored again");
  assert.equal(gate.requests.at(-1)?.messages.at(-1)?.content, "what is it?\n\n[cut off; go on]");
  assert.deepEqual(await promised(work), ["a bird"]);
});

test("what was cut off between tools goes on behind their results", async (t) => {
  const look = { calls: [{ id: "c1", name: "look", args: {} }] };
  const subject = await open(t, look, { text: "never arrives" }, { text: "a bird" });
  const { work, agent, rows, gate, calls, store } = subject;
  const id = await receive(work, "what is it?");
  await crash(subject, id);
  await play(agent(), "", { record: recordOf(work, id), continues: "[cut off; go on]" });
  assert.deepEqual(calls, ["look"], "no tool runs again");
  assert.deepEqual(await rows(), ["user: what is it?", "assistant: null", "tool: seen", "assistant: a bird"]);
  assert.equal(gate.requests.at(-1)?.messages.at(-1)?.content, "seen\n\n[cut off; go on]");
  assertLegalHistory(await store.load("session-1"));
});

test("with nothing to go on with, nothing is asked", async (t) => {
  const { agent, gate } = await open(t);
  const { outcome } = await play(agent(), "", { continues: "[cut off; go on]" });
  assert.equal(outcome.unsent, true);
  assert.equal(gate.requests.length, 0);
});
