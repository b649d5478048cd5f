import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { AgentEvent } from "./events.ts";
import { plainTitle, tidyTitle } from "./titles.ts";

const answers: readonly (readonly [string, string | null])[] = [
  ["Fixing the broken import", "Fixing the broken import"],
  ['"Fixing the broken import."', "Fixing the broken import"],
  ["Title: Fixing the import", "Fixing the import"],
  ["**Title:** Fixing the import", "Fixing the import"],
  ["标题：「修复导入错误」", "修复导入错误"],
  ["# Fixing the import\n\nI chose this because …", "Fixing the import"],
  ["<think>hm, what now</think>\nFixing the import", "Fixing the import"],
  ["- Fixing   the\timport", "Fixing the import"],
  ["  \n ", null],
  ['""', null],
  [`${"long words ".repeat(12)}`, `${"long words ".repeat(7)}`.trim().concat("…")],
];
for (const [answer, title] of answers) {
  test(`the answer ${JSON.stringify(answer.slice(0, 40))} becomes ${JSON.stringify(title)}`, () => {
    assert.equal(tidyTitle(answer), title);
    assert.ok([...(title ?? "")].length <= 80);
  });
}

test("without a model the first words of the first message are the title", () => {
  const user = (content: string) => plainTitle([{ role: "user", content }]);
  assert.equal(user("please find out why the build is red today"), "please find out why the build is");
  assert.equal(user("帮我写一个文件。"), "帮我写一个文件");
  assert.equal(user("   "), null);
});

async function rig(t: import("node:test").TestContext, steps: readonly ScriptedStep[], provider = "custom") {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate(...steps);
  const make = (id = "session-1") =>
    rigAgent({
      gate,
      store,
      session: { titles: true, id },
      model: { target: aTarget("chat_completions", { provider }) },
    });
  return { store, gate, make };
}

async function nextNotice(agent: { readonly notices: AsyncIterable<AgentEvent> }): Promise<AgentEvent> {
  for await (const event of agent.notices) return event;
  throw new Error("no notice came");
}

test("after the first exchange a title is asked for beside the conversation, stored and told", async (t) => {
  const { store, gate, make } = await rig(t, [{ text: "It is heron." }, { text: '"The Secret Word"' }]);
  const agent = make();
  const { events } = await play(agent, "what is the secret word?");
  assert.equal(events.at(-1)?.type, "done");
  const notice = await nextNotice(agent);
  assert.equal(notice.type === "session" && notice.reason, "titled");
  assert.equal((await store.get("session-1"))?.title, "The Secret Word");
  assert.equal(gate.purposes[1]?.task, "title_generation");
  const asked = JSON.stringify(gate.requests[1]?.messages);
  assert.match(asked, /what is the secret word\?/);
  assert.match(asked, /It is heron\./);
  assert.equal((await play(agent, "more")).outcome.totals.apiCalls, 3, "the title is counted");
  assert.equal(gate.purposes.filter(({ task }) => task === "title_generation").length, 1, "it has one now");
  await agent.close();
});

test("titles are unique: the second of its name gets a number", async (t) => {
  const { store, make } = await rig(t, [
    { text: "a" },
    { text: "Same name #7" },
    { text: "b" },
    { text: "Same name #7" },
  ]);
  for (const id of ["one", "two"]) {
    const agent = make(id);
    await play(agent, "hello there");
    await nextNotice(agent);
    await agent.close();
  }
  assert.deepEqual(
    [(await store.get("one"))?.title, (await store.get("two"))?.title],
    ["Same name #7", "Same name #8"],
  );
});

test("a title that the user gave stays, also when it comes while one is being found", async (t) => {
  const { store, gate, make } = await rig(t, [{ text: "a" }, { text: "b" }, { hang: "" }]);
  const first = make("first");
  await store.create({ id: "first" });
  await store.setTitle("first", "mine");
  await play(first, "hello");
  await first.close();
  assert.equal(gate.requests.length, 1);
  const second = make("second");
  const asked = Promise.withResolvers<void>();
  gate.onRequest = () => {
    if (gate.purposes.at(-1)?.task === "title_generation") asked.resolve();
  };
  await play(second, "hello");
  await asked.promise;
  await store.setTitle("second", "my own");
  await second.close();
  assert.equal((await store.get("second"))?.title, "my own");
});

test("a model that fails or hangs costs nobody anything: the first words name the conversation", async (t) => {
  const { store, make } = await rig(t, [
    { text: "a" },
    { error: { status: 500, message: "no" } },
    { text: "b" },
    { hang: "" },
  ]);
  const failing = make("failing");
  await play(failing, "look at the failing build");
  await nextNotice(failing);
  assert.equal((await store.get("failing"))?.title, "look at the failing build");
  await failing.close();
  const hanging = make("hanging");
  const { outcome } = await play(hanging, "look at the hanging build");
  assert.equal(outcome.finalText, "b");
  await hanging.close();
  assert.equal((await store.get("hanging"))?.title, "look at the hanging build");
});

test("the demo is never asked for a title", async (t) => {
  const { store, gate, make } = await rig(t, [{ text: "a" }], "demo");
  const agent = make();
  await play(agent, "help me please");
  await agent.close();
  assert.equal(gate.requests.length, 1);
  assert.equal((await store.get("session-1"))?.title, "help me please");
});

test("synthetic, failed and later turns ask for no title", async (t) => {
  const { gate, make } = await rig(t, [{ text: "a" }, { error: { status: 401, message: "no" } }]);
  const agent = make();
  await play(agent, { text: "a process ended", from: "synthetic" });
  await play(agent, "hello");
  await agent.close();
  assert.ok(!gate.purposes.some(({ task }) => task === "title_generation"));
});
