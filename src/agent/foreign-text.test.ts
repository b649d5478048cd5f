import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import { ForeignText } from "./foreign-text.ts";

const PAGE = "a page of somebody else, longer than thirty-two characters";
const tools = { web_extract: () => PAGE, todo: () => "{}" };
const page = { calls: [{ name: "web_extract", args: { urls: ["https://a.example/x"] } }] };

test("a conversation is clean until a stranger's text is read, and knows it from then on, in another process too", async (t) => {
  const { store } = await temporaryStore(t);
  const agent = rigAgent({
    gate: new ScriptedGate({ calls: [{ name: "todo", args: {} }] }, { text: "ok" }, page, { text: "read" }),
    tools,
    store,
  });
  await play(agent, "plan");
  assert.equal(agent.foreignText.words, null);
  await play(agent, "read it");
  assert.equal(agent.foreignText.words, "web_extract a.example");
  const resumed = rigAgent({ gate: new ScriptedGate({ text: "hello" }), tools, store });
  await play(resumed, "again");
  assert.equal(resumed.foreignText.words, "web_extract a.example");
  const other = rigAgent({ gate: new ScriptedGate({ text: "hello" }), tools, store, session: { id: "session-2" } });
  await play(other, "new");
  assert.equal(other.foreignText.words, null);
});

test("a compression and a branch take it along", async (t) => {
  const { store } = await temporaryStore(t);
  await play(rigAgent({ gate: new ScriptedGate(page, { text: "read" }), tools, store }), "read it");
  const tip = await store.continueAfterCompression("session-1", [{ role: "user", content: "[summary]" }]);
  await store.branch(tip, "branch-1");
  for (const id of [tip, "branch-1"]) {
    const agent = rigAgent({ gate: new ScriptedGate({ text: "hello" }), tools, store, session: { id } });
    await play(agent, "go on");
    assert.equal(agent.foreignText.words, "web_extract a.example", id);
  }
});

test("an undo of the exchange that brought it takes it away, unless another one did too", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate(page, { text: "1" }, page, { text: "2" });
  const agent = rigAgent({ gate, tools, store });
  await play(agent, "one");
  await play(agent, "two");
  await agent.undo(1);
  assert.equal(agent.foreignText.words, "web_extract a.example");
  await agent.undo(1);
  assert.equal(agent.foreignText.words, null);
});

test("a record that cannot be read counts as a stranger's text", async (t) => {
  const { store } = await temporaryStore(t);
  await store.close();
  const foreign = new ForeignText({ sessionId: "session-1" }, store);
  await foreign.load([]);
  assert.match(foreign.words ?? "", /cannot be read/);
});

test("results of an older version are known by their origin", async () => {
  const foreign = new ForeignText({ sessionId: "s" }, null);
  const result = { role: "tool", content: PAGE, tool_call_id: "c", tool_name: "web_search" } as const;
  await foreign.load([{ ...result, text_origin: "local" }]);
  assert.equal(foreign.words, null);
  await foreign.load([{ ...result, text_origin: "web" }]);
  assert.equal(foreign.words, "web_search");
});

test("the newest are named, each once and in one short line; what is not listed any more still counts", async () => {
  const foreign = new ForeignText({ sessionId: "s" }, null, ["what the parent read"]);
  assert.equal(foreign.words, "what the parent read");
  await foreign.add([{ call: "a", from: `x\n\u001b[2J${"y".repeat(200)}` }]);
  assert.match(foreign.words ?? "", /^x \[2Jy+…, what the parent read$/);
  for (let n = 0; n < 150; n++) await foreign.add([{ call: `c${n}`, from: `file ${n % 7}` }]);
  assert.match(foreign.words ?? "", /^file 2, file 1, file 0 and \d+ more$/);
  const gone = Array.from({ length: 150 }, (_, n) => ({ role: "tool", content: "", tool_call_id: `c${n}` }) as const);
  await foreign.undone(gone, []);
  assert.notEqual(foreign.words, null);
});
