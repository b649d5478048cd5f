import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import { defaultConfig } from "../home/config/schema.ts";

const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
const defaults = defaultConfig();
const inWords = { ...defaults, agent: { ...defaults.agent, image_input_mode: "text" as const } };

test("with image_input_mode text a picture is described beside the conversation, and the model reads the words", async (t) => {
  const { store } = await temporaryStore(t);
  const seen = "A heron stands in a pond at dawn, looking left.";
  const gate = new ScriptedGate({ text: seen }, { text: "It is a heron." }, { text: "At dawn." });
  const agent = rigAgent({ gate, store, ports: { config: () => inWords } });
  const { outcome } = await play(agent, { text: "which bird?", parts: [image] });
  const [look, turn] = gate.requests;
  assert.match(JSON.stringify(look?.messages), /Question: which bird\?.*data:image\/png/);
  const sent = String(turn?.messages.at(-1)?.content);
  assert.match(
    sent,
    /^which bird\?\n\n\[The user attached a picture\. .*\]\n<untrusted_tool_result source="vision_analyze" id="\w+">/,
  );
  assert.ok(sent.includes(seen));
  assert.ok(!JSON.stringify(turn?.messages).includes("image_url"));
  assert.equal(outcome.finalText, "It is a heron.");
  await play(agent, "when?");
  assert.deepEqual(gate.requests[2]?.messages[1], turn?.messages[1], "described once");
  assert.equal((await store.load("session-1"))[0]?.content, "which bird?\n[screenshot]");
});

test("a picture that nobody can look at is named to the user and to the model", async () => {
  const target = aTarget("chat_completions", { profile: { images: false } });
  const gate = new ScriptedGate({ text: "I cannot see it." });
  const { events, outcome } = await play(rigAgent({ gate, model: { target } }), { text: "look", parts: [image] });
  assert.equal(gate.requests.length, 1);
  assert.match(
    String(gate.requests[0]?.messages.at(-1)?.content),
    /^look\n\n\[The user attached a picture\. You do not see/,
  );
  const warned = events.flatMap((event) => (event.type === "status" && event.kind === "warn" ? [event.message] : []));
  assert.match(warned.join("\n"), /The picture could not be described: .*auxiliary\.vision/);
  assert.equal(outcome.finalText, "I cannot see it.");
});

test("a model that sees gets the picture itself", async () => {
  const gate = new ScriptedGate({ text: "a dot" });
  await play(rigAgent({ gate }), { text: "look", parts: [image] });
  assert.equal(gate.requests.length, 1);
  assert.deepEqual(gate.requests[0]?.messages.at(-1)?.content, [{ type: "text", text: "look" }, image]);
});

const refusal = { error: { message: "This model does not support image input", status: 400 } };

test("a model that turns out not to see is asked again with the words of one that does", async () => {
  const resolveSpec = async () => aTarget("chat_completions", { model: "seer" });
  const gate = new ScriptedGate(refusal, { text: "A heron." }, { text: "It is a heron." });
  const agent = rigAgent({ gate, ports: { resolveSpec } });
  const { outcome } = await play(agent, { text: "which bird?", parts: [image] });
  assert.equal(outcome.finalText, "It is a heron.");
  const [, look, again] = gate.requests;
  assert.equal(look?.target.model, "seer");
  assert.match(JSON.stringify(look?.messages), /Question: which bird\?.*data:image\/png/);
  assert.match(
    String(again?.messages.at(-1)?.content),
    /^which bird\?\n\n\[The user attached a picture\.[\s\S]*A heron\./,
  );
});
