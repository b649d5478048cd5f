import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { play, type RigOptions, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { memoryHome } from "../../test/support/memory.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { recordedLog, temporaryStore } from "../../test/support/session-store.ts";
import { type Config, defaultConfig } from "../home/config/schema.ts";
import type { Agent } from "./agent.ts";

interface Settings {
  readonly least?: number;
  readonly every?: number;
}

function configWith({ least = 6, every = 0 }: Settings): Config {
  const config = defaultConfig();
  return {
    ...config,
    memory: { ...config.memory, nudge_interval: every, flush_min_turns: least },
    skills: { ...config.skills, creation_nudge_interval: 0 },
  };
}

async function rig(t: TestContext, settings: Settings = {}, more: Partial<RigOptions> = {}) {
  const { memory } = await memoryHome(t);
  const gate = new ScriptedGate();
  const log = recordedLog();
  const options: RigOptions = {
    gate,
    tools: { memory: async (args, ctx) => JSON.stringify(await memory.apply(args, ctx)), terminal: () => "ran" },
    ...more,
    session: { reviews: true, ...more.session },
    ports: { log, memory, config: () => configWith(settings), ...more.ports },
  };
  const agent = rigAgent(options);
  return { agent, gate, memory, log, options };
}

async function talk(agent: Agent, gate: ScriptedGate, turns: number): Promise<void> {
  for (let n = 1; n <= turns; n++) {
    gate.script({ text: `answer ${n}` });
    await play(agent, `turn ${n}`);
  }
}

const save = (content: string): ScriptedStep => ({
  calls: [{ name: "memory", args: { action: "add", target: "memory", content } }],
});
const flushes = (gate: ScriptedGate) => gate.purposes.filter(({ task }) => task === "flush_memories").length;

for (const [turns, asked] of [
  [5, 0],
  [6, 1],
] as const) {
  test(`after ${turns} turns the last look is ${asked ? "" : "not "}taken`, async (t) => {
    const { agent, gate } = await rig(t);
    await talk(agent, gate, turns);
    assert.equal(agent.wantsToSave, asked === 1);
    await agent.saveMemories();
    assert.equal(flushes(gate), asked);
  });
}

test("it asks once, on the conversation's own prefix, and runs memory calls alone; the conversation never hears of it", async (t) => {
  const { store } = await temporaryStore(t);
  const { agent, gate, memory } = await rig(
    t,
    { least: 2 },
    { store, prompt: { ephemeral: () => "Be brief." }, model: { reasoning: { enabled: true, effort: "low" } } },
  );
  await talk(agent, gate, 2);
  const turn = gate.requests.at(-1);
  gate.script({
    text: "saving",
    calls: [
      { name: "terminal", args: { command: "ls" } },
      { name: "memory", args: { action: "add", target: "user", content: "Is called Ada" } },
      { name: "memory", args: { action: "add", target: "memory", content: "Uses fish" } },
    ],
  });
  assert.deepEqual(await agent.saveMemories(), ["💾 User profile ➕ Is called Ada", "💾 Memory ➕ Uses fish"]);
  const flush = gate.requests.at(-1);
  assert.equal(gate.requests.length, 3);
  assert.deepEqual(flush?.messages.slice(0, turn?.messages.length), turn?.messages);
  assert.match(String(flush?.messages.at(-1)?.content), /^\[System: This conversation is about to be closed/);
  assert.equal(flush?.tools, turn?.tools);
  assert.deepEqual(flush?.reasoning, turn?.reasoning);
  assert.deepEqual([flush?.maxTokens, flush?.temperature, flush?.limits], [5120, 0.3, { totalMs: 30_000 }]);
  assert.deepEqual(
    (await memory.history()).map(({ origin }) => origin),
    ["flush", "flush"],
  );
  assert.equal((await store.load("session-1")).length, 4);
  gate.script({ text: "answer 3" });
  await play(agent, "turn 3");
  assert.equal(gate.requests.at(-1)?.messages.length, 1 + 4 + 1);
});

test("turns of earlier days count, but a conversation that was only looked at is left as it is", async (t) => {
  const { store } = await temporaryStore(t);
  const first = await rig(t, {}, { store });
  await talk(first.agent, first.gate, 5);
  const later = await rig(t, {}, { store });
  assert.equal(later.agent.wantsToSave, false, "nothing was said since it was opened");
  await talk(later.agent, later.gate, 1);
  assert.equal(later.agent.wantsToSave, true);
});

const never: Record<string, [Settings, Partial<RigOptions>]> = {
  "the setting is 0": [{ least: 0 }, {}],
  "there is no memory tool": [{ least: 1 }, { tools: {} }],
  "it is a scheduled run": [{ least: 1 }, { session: { origin: "cron" } }],
};
for (const [why, [settings, more]] of Object.entries(never)) {
  test(`no last look, at the end or before a compression, when ${why}`, async (t) => {
    const { agent, gate } = await rig(t, settings, more);
    await talk(agent, gate, 3);
    assert.deepEqual(await agent.saveMemories(), []);
    await agent.flushMemories("compression", new AbortController().signal);
    assert.equal(flushes(gate), 0);
  });
}

test("the demo is not asked", async (t) => {
  const target = aTarget("chat_completions", { provider: "demo" });
  const { agent, gate } = await rig(t, { least: 1 }, { model: { target } });
  await talk(agent, gate, 3);
  assert.deepEqual(await agent.saveMemories(), []);
  assert.equal(flushes(gate), 0);
});

test("a review since the last message is last look enough, and so is one that runs", async (t) => {
  const { agent, gate } = await rig(t, { least: 1, every: 3 });
  await talk(agent, gate, 2);
  assert.equal(agent.wantsToSave, true);
  gate.script({ text: "answer 3" }, { hang: "thinking" });
  await play(agent, "turn 3");
  assert.equal(agent.wantsToSave, false, "one runs");
  await agent.close();

  const done = await rig(t, { least: 1, every: 3 });
  await talk(done.agent, done.gate, 3);
  await done.agent.settled();
  assert.equal(done.agent.wantsToSave, false, "one has run");
  await talk(done.agent, done.gate, 1);
  assert.equal(done.agent.wantsToSave, true, "something new was said");
});

test("an interrupt skips it; it is made up for by a review when the conversation goes on", async (t) => {
  const { store } = await temporaryStore(t);
  const { agent, gate, memory, options } = await rig(t, { least: 1, every: 10 }, { store });
  await talk(agent, gate, 2);
  gate.script({ hang: "hm" });
  gate.onRequest = () => setTimeout(() => agent.interrupt(), 5);
  assert.deepEqual(await agent.saveMemories(), []);
  assert.deepEqual(await memory.history(), []);
  await agent.close();
  gate.onRequest = () => undefined;
  const later = rigAgent(options);
  gate.script({ text: "answer 3" }, save("Lives in Paris"), { text: "done" });
  await play(later, "turn 3");
  await later.settled();
  assert.deepEqual((await memory.history())[0]?.after, ["Lives in Paris"]);
});

test("what fails is silent", async (t) => {
  const { agent, gate, log } = await rig(t, { least: 1 });
  await talk(agent, gate, 2);
  gate.script({ error: { status: 500, message: "down" } });
  assert.deepEqual(await agent.saveMemories(), []);
  assert.ok(log.lines.some((line) => /could not be saved/.test(line)));
});

test("before a compression there is no minimum of turns", async (t) => {
  const { agent, gate, memory } = await rig(t);
  await talk(agent, gate, 2);
  gate.script(save("Lives in Paris"));
  await agent.flushMemories("compression", new AbortController().signal);
  assert.match(String(gate.requests.at(-1)?.messages.at(-1)?.content), /about to be compressed/);
  assert.deepEqual((await memory.history())[0]?.after, ["Lives in Paris"]);
});
