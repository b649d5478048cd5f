// A message with pictures: what rides on it as it is sent, what is kept of it, what a restart makes of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import { type UserMessage, userContentToSend } from "../llm/messages.ts";

const bytes = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
const linked = { type: "image_url", image_url: { url: "https://example.com/a.png" } } as const;
const text = (words: string) => ({ type: "text", text: words }) as const;
const notes = { recall: async () => ["NOTE 1", "NOTE 2"] };

test("what is added to a message with pictures is a text part of its own at the end, and never kept in its text", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "a cat" }, { text: "yes" });
  const agent = rigAgent({ gate, store, prompt: notes });
  const { outcome } = await play(agent, { text: "look", parts: [bytes] });
  assert.deepEqual(gate.requests[0]?.messages.at(-1)?.content, [text("look"), bytes, text("NOTE 1\n\nNOTE 2")]);
  assert.deepEqual(outcome.messages[0]?.content, [text("look"), bytes]);
  await play(agent, "sure?");
  assert.deepEqual(gate.requests[1]?.messages[1], gate.requests[0]?.messages[1], "the bytes stay the same");

  const [row] = await store.load("session-1");
  assert.equal(row?.content, "look\n[screenshot]");
  const later = new ScriptedGate({ text: "ok" });
  await play(rigAgent({ gate: later, store }), "again");
  assert.equal(later.requests[0]?.messages[1]?.content, "look\n[screenshot]\n\nNOTE 1\n\nNOTE 2");
});

test("a message that is nothing but a picture carries what is added too", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "a cat" });
  await play(rigAgent({ gate, store, prompt: notes }), { text: "", parts: [bytes] });
  assert.deepEqual(gate.requests[0]?.messages.at(-1)?.content, [bytes, text("NOTE 1\n\nNOTE 2")]);
  assert.equal((await store.load("session-1"))[0]?.content, "[screenshot]");
});

test("pictures by address are sent after a restart as they were before it, notes included", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "a cat" });
  await play(rigAgent({ gate, store, prompt: notes }), { text: "look", parts: [linked] });
  const later = new ScriptedGate({ text: "ok" });
  await play(rigAgent({ gate: later, store }), "again");
  assert.deepEqual(later.requests[0]?.messages[1], gate.requests[0]?.messages[1]);
});

test("a door's notes reach the model beside a picture, and the history keeps what the user typed", async (t) => {
  const { store } = await temporaryStore(t);
  const gate = new ScriptedGate({ text: "ok" });
  const input = { text: "[Ann] what is it?", persistText: "what is it?", parts: [bytes] };
  const { outcome } = await play(rigAgent({ gate, store, session: { opening: "OPENING" } }), input);
  assert.deepEqual(gate.requests[0]?.messages.at(-1)?.content, [text("OPENING\n\n[Ann] what is it?"), bytes]);
  assert.deepEqual(outcome.messages[0]?.content, [text("what is it?"), bytes]);
  assert.equal((await store.load("session-1"))[0]?.content, "what is it?\n[screenshot]");
});

test("a message that was never answered keeps its notes when one with a picture joins it", async () => {
  const gate = new ScriptedGate({ error: { message: "bad key", status: 401 } }, { text: "ok" });
  const agent = rigAgent({ gate, prompt: { recall: async (said) => [`(about ${said})`] } });
  await play(agent, "one");
  await play(agent, { text: "two", parts: [bytes] });
  assert.deepEqual(gate.requests[1]?.messages.at(-1)?.content, [
    text("one\n\n(about one)\n\ntwo\n\n(about two)"),
    bytes,
  ]);
});

test("a server without eyes still reads what rode on a picture", async () => {
  const refusal = { message: "This model does not support image input", status: 400 };
  const gate = new ScriptedGate({ error: refusal }, { text: "ok" });
  await play(rigAgent({ gate, prompt: notes }), { text: "", parts: [bytes] });
  assert.equal(gate.requests.length, 2, "whoever refused is not asked about the picture again");
  assert.match(
    String(gate.requests[1]?.messages.at(-1)?.content),
    /^NOTE 1\n\nNOTE 2\n\n\[The user attached a picture\. You do not see pictures/,
  );
});

const sent: readonly [name: string, message: UserMessage, sent: UserMessage["content"]][] = [
  ["a text alone", { role: "user", content: "a" }, "a"],
  ["another text in its place", { role: "user", content: "a", api_content: "b" }, "b"],
  ["a list alone", { role: "user", content: [text("a"), bytes] }, [text("a"), bytes]],
  [
    "more text behind a list",
    { role: "user", content: [bytes, text("a")], api_content: "a\n\nb" },
    [bytes, text("a"), text("b")],
  ],
  ["other text in a list", { role: "user", content: [text("a"), bytes], api_content: "b" }, [text("b"), bytes]],
  ["the same text beside a list", { role: "user", content: [text("a"), bytes], api_content: "a" }, [text("a"), bytes]],
];
for (const [name, message, content] of sent) {
  test(`what is sent of a user's message: ${name}`, () => assert.deepEqual(userContentToSend(message), content));
}

test("a message that is taken back brings its pictures along, as long as the process has them", async (t) => {
  const { store } = await temporaryStore(t);
  const agent = rigAgent({ gate: new ScriptedGate({ text: "a cat" }, { text: "two" }), store });
  await play(agent, { text: "look", parts: [bytes] });
  await play(agent, "words alone");
  assert.deepEqual(await agent.undo(2), [
    { text: "look", parts: [bytes], picturesLost: false },
    { text: "words alone", parts: [], picturesLost: false },
  ]);
  await play(rigAgent({ gate: new ScriptedGate({ text: "a cat" }), store }), { text: "", parts: [bytes] });
  const resumed = rigAgent({ gate: new ScriptedGate(), store });
  assert.deepEqual(await resumed.undo(), [{ text: "", parts: [], picturesLost: true }]);
});

test("a picture the server cannot read is left out, and the conversation goes on without it", async (t) => {
  const { store } = await temporaryStore(t);
  const refusal = { error: { message: "messages.0.content.1: Could not process image", status: 400 } };
  const gate = new ScriptedGate(refusal, { text: "I cannot see it." }, { text: "fine" });
  const agent = rigAgent({ gate, store });
  const { events, outcome } = await play(agent, { text: "look", parts: [bytes] });
  assert.equal(outcome.finalText, "I cannot see it.");
  const warned = events.flatMap((event) => (event.type === "status" && event.kind === "warn" ? [event.message] : []));
  assert.match(warned.join(), /The server could not read a picture; it is left out\. Send a copy in another format/);
  const [, again] = gate.requests;
  const leftOut = text("[picture left out: the server could not read it]");
  assert.deepEqual(again?.messages.at(-1)?.content, [text("look"), leftOut]);
  await play(agent, "and now?");
  assert.deepEqual(gate.requests[2]?.messages[1], again?.messages[1], "the bytes stay the same");
});
