// A compression that fails, is interrupted or was done elsewhere: the conversation stays as it was, and the turn goes on.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { play, rigAgent } from "../../../test/support/agent/agent-rig.ts";
import {
  call,
  eventsOf,
  longTalkRig,
  rowsOf,
  talk,
  talkOf,
  tasks,
  WINDOW,
  words,
} from "../../../test/support/agent/long-talk.ts";
import { ScriptedGate, type ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { storeWith } from "../../../test/support/agent/store-with.ts";
import { aTarget } from "../../../test/support/model-target.ts";
import { temporaryStore } from "../../../test/support/session-store.ts";
import type { SessionStore } from "../../sessions/store.ts";

describe("a summary that fails", () => {
  const broken: readonly (readonly [string, ScriptedStep])[] = [
    ["with an error", { error: { status: 500, message: "boom" } }],
    ["with silence", { text: "" }],
    ["cut off", { text: "half of", finish: "length" }],
    ["longer than what it replaces", { text: words(80_000) }],
  ];
  for (const [how, step] of broken) {
    test(`${how} leaves history and store untouched, says so, and the turn goes on`, async (t) => {
      const { store, gate, agent } = await longTalkRig(t, talkOf(16_000), {
        steps: [step, { text: "hello", usage: { promptTokens: 16_000 } }],
      });
      const before = await rowsOf(store, "session-1");
      const { outcome, events } = await play(agent, "hi");
      assert.equal(outcome.finalText, "hello");
      assert.equal(outcome.sessionId, "session-1");
      assert.deepEqual((await rowsOf(store, "session-1")).slice(0, -2), before);
      assert.equal((await store.get("session-1"))?.endReason, null);
      assert.equal(gate.requests.at(-1)?.messages.length, before.length + 2);
      assert.ok(
        eventsOf(events, "status").some((event) => event.kind === "warn" && /was not compressed/.test(event.message)),
      );
    });
  }

  test("is not asked for again at once, and the user is told once", async (t) => {
    const fail: ScriptedStep = { error: { status: 500, message: "boom" } };
    const full = { usage: { promptTokens: 16_000 } };
    const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps: [fail, { text: "1", ...full }, { text: "2", ...full }, { text: "3", ...full }],
    });
    const said: string[] = [];
    for (const text of ["a", "b", "c"]) {
      const { events } = await play(agent, text);
      said.push(
        ...eventsOf(events, "status")
          .filter((event) => event.kind === "warn")
          .map((event) => event.message),
      );
    }
    assert.deepEqual(tasks(gate), ["compression", "main", "main", "main"]);
    assert.equal(said.filter((line) => /next try is in/.test(line)).length, 1);
  });

  test("because the store does leaves everything as it was", async (t) => {
    const { store, gate } = await longTalkRig(t, talkOf(16_000));
    gate.script({ text: "NOTES" }, { text: "hello" });
    const failing = storeWith(store, { continueAfterCompression: () => Promise.reject(new Error("the disk is full")) });
    const agent = rigAgent({
      gate,
      store: failing,
      model: { target: aTarget("chat_completions", { contextLength: WINDOW }) },
    });
    const { outcome, events } = await play(agent, "hi");
    assert.equal(outcome.finalText, "hello");
    assert.equal(outcome.sessionId, "session-1");
    assert.ok(eventsOf(events, "status").some((event) => /disk is full/.test(event.message)));
    assert.ok(await store.leaseCompression("session-1"), "the lease was given back");
  });
});

const FAULTS: readonly (readonly [name: string, steps: readonly ScriptedStep[], store?: Partial<SessionStore>])[] = [
  ["an error", [{ error: { status: 503, message: "down" } }]],
  ["no connection", [{ error: { message: "connect ECONNREFUSED", code: "ECONNREFUSED" } }]],
  ["a refused budget", [{ error: { message: "no budget", code: "budget_exceeded" } }]],
  ["an empty answer", [{ text: " " }]],
  ["a cut answer", [{ text: "half", finish: "length" }]],
  ["a stop", [{ hang: "" }]],
  ["a store that cannot lease", [], { leaseCompression: () => Promise.reject(new Error("busy")) }],
  ["a lease that another holds", [], { leaseCompression: async () => null }],
  ["a store that cannot read pins", [], { getValue: () => Promise.reject(new Error("busy")) }],
  [
    "a store that cannot continue",
    [{ text: "NOTES" }],
    { continueAfterCompression: () => Promise.reject(new Error("full")) },
  ],
];

test("whatever the history and whatever goes wrong: a compression that fails leaves history and store untouched", async (t) => {
  const { store } = await temporaryStore(t);
  let serial = 0;
  const everything = async () => {
    const sessions: unknown[] = [];
    for await (const session of store.export()) sessions.push(session);
    return sessions;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 8, max: 24 }),
      fc.integer({ min: 400, max: 3000 }),
      fc.constantFrom(...FAULTS),
      async (turns, chars, [, steps, changed]) => {
        const id = `law-${++serial}`;
        await store.create({ id, source: "cli" });
        await store.append(id, [
          ...talk(turns, chars),
          ...call(`c${serial}`, words(chars)),
          { role: "assistant", content: "ok" },
        ]);
        const gate = new ScriptedGate(...steps);
        const agent = rigAgent({
          gate,
          store: changed ? storeWith(store, changed) : store,
          session: { id },
          model: { target: aTarget("chat_completions", { contextLength: WINDOW }) },
        });
        const before = await everything();
        if (steps.some((step) => "hang" in step)) gate.onRequest = () => agent.interrupt();
        const report = await agent.compress();
        assert.ok(report.type === "failed" || report.type === "interrupted", report.type);
        assert.equal(agent.sessionId, id);
        assert.deepEqual(await everything(), before);
        await agent.close();
      },
    ),
    { numRuns: 40 },
  );
});

test("an interrupt during the summary ends it and leaves everything as it was", async (t) => {
  const { store, gate, agent } = await longTalkRig(t, talkOf(16_000), { steps: [{ hang: "thinking about it" }] });
  const before = await rowsOf(store, "session-1");
  gate.onRequest = () => agent.interrupt();
  const { outcome, events } = await play(agent, "hi");
  assert.deepEqual(
    gate.signals.map(({ aborted }) => aborted),
    [true],
    "the summary was not waited for, and nothing was asked after it",
  );
  assert.equal(outcome.interrupted, true);
  assert.equal(outcome.sessionId, "session-1");
  assert.deepEqual((await rowsOf(store, "session-1")).slice(0, -1), before);
  assert.ok(eventsOf(events, "status").some((event) => event.message.startsWith("Compressing")));
  assert.equal(eventsOf(events, "compressed").length, 0);
});

test("what was compressed by another process meanwhile is taken over, not compressed again", async (t) => {
  const { store, gate } = await longTalkRig(t, talkOf(16_000), { steps: [{ text: "hello" }] });
  const other = storeWith(store, {
    leaseCompression: async (id, options) => {
      const lease = await store.leaseCompression(id, options);
      await store.continueAfterCompression("session-1", [
        { role: "user", content: "their summary" },
        { role: "assistant", content: "ok" },
        { role: "user", content: "hi" },
      ]);
      return lease;
    },
  });
  const late = rigAgent({
    gate,
    store: other,
    model: { target: aTarget("chat_completions", { contextLength: WINDOW }) },
  });
  const { outcome } = await play(late, "hi");
  assert.deepEqual(tasks(gate), ["main"]);
  assert.equal(outcome.sessionId, await store.tip("session-1"));
  assert.match(JSON.stringify(gate.requests[0]?.messages), /their summary/);
});
