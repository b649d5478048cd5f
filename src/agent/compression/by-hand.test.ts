// Compression when the user asks for it, and taken back.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { play, rigAgent } from "../../../test/support/agent/agent-rig.ts";
import { longTalkRig, rowsOf, talkOf } from "../../../test/support/agent/long-talk.ts";
import { ScriptedGate } from "../../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../../test/support/session-store.ts";
import { textOf } from "../../llm/messages.ts";
import { SUMMARY_MARKER } from "./summary-text.ts";

describe("by hand", () => {
  test("a conversation of any size is compressed, with a focus, and reported", async (t) => {
    const { gate, agent, store } = await longTalkRig(t, talkOf(6000), { steps: [{ text: "NOTES about paint" }] });
    await agent.pins.add("never use red");
    const report = await agent.compress({ focus: "the paint" });
    assert.equal(report.type, "compressed");
    if (report.type !== "compressed") return;
    assert.match(textOf(gate.requests[0]?.messages[0]?.content ?? ""), /focus on: "the paint"/);
    assert.deepEqual(
      [report.before.messages, report.oldSessionId, report.sessionId],
      [40, "session-1", agent.sessionId],
    );
    assert.ok(report.after.messages < 40 && report.after.tokens < report.before.tokens);
    const rows = await rowsOf(store, agent.sessionId);
    assert.match(JSON.stringify(rows), /## Pinned\\n- never use red/);
    assert.deepEqual(await agent.pins.list(), ["never use red"], "pins go with the conversation");
  });

  test("a preview does nothing; too little is said to be too little", async (t) => {
    const { gate, agent, store } = await longTalkRig(t, talkOf(6000));
    const report = await agent.compress({ preview: true, here: 2 });
    assert.equal(report.type === "preview" && report.kept.messages, 3 + 4);
    assert.equal(gate.requests.length, 0);
    assert.equal(agent.sessionId, "session-1");
    await store.create({ id: "other" });
    const empty = rigAgent({ gate, store, session: { id: "other" } });
    assert.deepEqual(await empty.compress(), { type: "nothing" });
  });

  test("it can be taken back while nothing was said since; then the old prompt and the old bytes are there again", async (t) => {
    const prompts: string[] = [];
    const { gate, agent, store, make } = await longTalkRig(t, talkOf(6000), {
      steps: [{ text: "before" }, { text: "NOTES" }, { text: "after" }],
      prompt: {
        system: async ({ sessionId }) => {
          const text = `prompt of ${sessionId}`;
          prompts.push(text);
          return text;
        },
      },
    });
    await play(agent, "one");
    const child = await agent.compress();
    assert.equal(child.type, "compressed");
    const childId = agent.sessionId;
    assert.equal(prompts.at(-1), `prompt of ${childId}`);
    assert.deepEqual(await agent.undoCompression(), { kind: "summary" });
    assert.equal(agent.sessionId, "session-1");
    assert.equal(await store.get(childId), null);
    await play(agent, "two");
    const [first, last] = [gate.requests[0]?.messages ?? [], gate.requests[2]?.messages ?? []];
    assert.deepEqual(last.slice(0, first.length), first);
    assert.equal(await make().undoCompression(), null, "something was said since");
  });

  test("what was said before a compression is not taken back by an undo of turns; a summary above it stays", async (t) => {
    const { store } = await temporaryStore(t);
    await store.create({ id: "s" });
    await store.append("s", [
      {
        role: "user",
        content: `${SUMMARY_MARKER} p\n\nNOTES\n\n--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---\n\nthe wish`,
      },
      { role: "assistant", content: "done" },
    ]);
    const gate = new ScriptedGate({ text: "again" });
    const resumed = rigAgent({ gate, store, session: { id: "s" } });
    assert.deepEqual(
      (await resumed.undo(1)).map(({ text }) => text),
      ["the wish"],
    );
    assert.deepEqual(await resumed.undo(1), []);
    await play(resumed, "another wish");
    const sent = textOf(gate.requests[0]?.messages[1]?.content ?? "");
    assert.ok(sent.startsWith(SUMMARY_MARKER) && sent.endsWith("another wish") && !sent.includes("the wish\n"));
  });

  test("a turn begun meanwhile waits for it; an interrupt stops it", async (t) => {
    const { gate, agent } = await longTalkRig(t, talkOf(6000), { steps: [{ hang: "" }, { text: "hello" }] });
    const asked = Promise.withResolvers<void>();
    gate.onRequest = () => asked.resolve();
    const report = agent.compress();
    await asked.promise;
    const turn = play(agent, "hi");
    await assert.rejects(agent.compress(), /while a turn is running/);
    agent.interrupt();
    assert.deepEqual(await report, { type: "interrupted" });
    assert.equal((await turn).outcome.finalText, "hello");
    assert.equal(agent.sessionId, "session-1");
  });

  test("it ignores the pause after a failed summary", async (t) => {
    const { agent } = await longTalkRig(t, talkOf(6000), {
      steps: [{ error: { status: 500, message: "boom" } }, { text: "NOTES" }],
    });
    const first = await agent.compress();
    assert.equal(first.type === "failed" && /boom/.test(first.why), true);
    assert.equal((await agent.compress()).type, "compressed");
  });
});
