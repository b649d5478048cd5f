import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { talk } from "../../test/support/talk.ts";
import { smallWindowNote } from "./usage-meter.ts";

const LOCAL = "http://127.0.0.1:11434/v1";
const REMOTE = "https://api.example.com/v1";

for (const [tokens, small] of [
  [63_999, true],
  [64_000, false],
  [8_192, true],
  [0, false],
] as const) {
  test(`a window of ${tokens} tokens is ${small ? "told" : "not told"} to be small`, () => {
    const note = smallWindowNote({ model: "tiny", contextLength: tokens });
    assert.equal(note !== null, small);
    if (small)
      assert.match(note ?? "", new RegExp(`^tiny .*${tokens.toLocaleString("en-US")}.*model\\.context_length`));
  });
}

for (const [baseUrl, exitReason] of [
  [LOCAL, "local_context_too_small"],
  [REMOTE, "context_overflow_exhausted"],
] as const) {
  test(`a window without room to talk is refused before anything is sent (${baseUrl})`, async () => {
    const gate = new ScriptedGate({ text: "never" });
    const system = "word ".repeat(4_840); // 6,050 tokens
    const target = aTarget("chat_completions", { baseUrl, model: "tiny", contextLength: 8_000 });
    const { outcome } = await play(
      rigAgent({ gate, model: { target }, prompt: { system: async () => system }, tools: {} }),
      "hi",
    );
    assert.equal(gate.requests.length, 0);
    assert.equal(outcome.exitReason, exitReason);
    assert.equal(outcome.failed, true);
    assert.equal(outcome.apiCalls, 0);
    assert.match(
      outcome.finalText ?? "",
      /tiny .* 8,000 tokens, and about 8,050 .*system prompt 6,050, tools 0, conversation 2,000.*model\.context_length/,
    );
  });
}

test("a window with just enough room is used", async () => {
  const gate = new ScriptedGate({ text: "hello" });
  const target = aTarget("chat_completions", { baseUrl: LOCAL, contextLength: 8_000 });
  const system = async () => "word ".repeat(4_700);
  const { outcome } = await play(rigAgent({ gate, model: { target }, prompt: { system } }), "hi");
  assert.equal(outcome.finalText, "hello");
});

test("with a small window the user is told once, and tools of plugins wait behind tool search", async (t) => {
  const home = {
    "plugins/t_small/plugin.yaml": "name: t_small\nversion: 1.0.0\ndescription: a test\n",
    "plugins/t_small/index.mjs":
      'export default (ctx) => ctx.registerTool({ name: "t_far", description: "Looks far", handler: () => "seen it" });',
  };
  const config = "plugins:\n  enabled: [t_small]\n";
  const listed = async (contextLength: number) => {
    const { conversation, server, say } = await talk(t, { config, home, contextLength });
    server.script({ toolCalls: [{ name: "tool_call", arguments: { name: "t_far", arguments: {} } }] }, { text: "ok" });
    await say("look");
    const names: string[] = server.last.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
    return {
      names,
      notes: conversation.notes.filter((note) => note.includes("small context window")),
      raw: server.last.raw,
    };
  };
  const large = await listed(128_000);
  assert.ok(large.names.includes("t_far"));
  assert.deepEqual(large.notes, []);
  const small = await listed(12_000);
  assert.ok(!small.names.includes("t_far") && small.names.includes("tool_search"));
  assert.ok(small.names.includes("terminal") && small.names.includes("read_file"), "our own tools stay");
  assert.equal(small.notes.length, 1);
  assert.match(small.raw, /seen it/, "and it can be called all the same");
});
