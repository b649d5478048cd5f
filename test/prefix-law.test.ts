// Bytes already sent are never rewritten: a state machine over everything a user, a model and a clock may do to a conversation, with the
// real program on one side and a server that writes down what it was sent on the other.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../src/kit/clock.ts";
import { createGate } from "../src/llm/gate/create-gate.ts";
import { API_MODES } from "../src/llm/wire.ts";
import { createWire } from "../src/llm/wires/drive.ts";
import { buildSystemPromptParts } from "../src/prompt/build.ts";
import { layoutOf, recordOf } from "../src/prompt/session-prompts.ts";
import { rigAgent } from "./support/agent/agent-rig.ts";
import { ModelServer } from "./support/model-server/server.ts";
import { aTarget } from "./support/model-target.ts";
import { firstBreak, systemOf } from "./support/prefix-break.ts";
import {
  anotherProcess,
  changeFiles,
  changeMood,
  changeSettings,
  changeSkills,
  changeTools,
  compress,
  failingServer,
  learnSkill,
  midnight,
  reconnectTools,
  say,
  showPicture,
  switchMode,
  switchTo,
  talkAtLength,
  undo,
  undoCompression,
  useForeignTool,
  useTools,
} from "./support/prefix-commands.ts";
import { MODELS, World } from "./support/prefix-world.ts";
import { promptInputs } from "./support/prompt-inputs.ts";
import { fewer } from "./support/sample.ts";
import { temporaryStore } from "./support/session-store.ts";

const commands = [
  fc.constantFrom("hello", "  spaced out \n", "你好 😀", "half a pair \ud83d", "").map(say),
  fc.nat(99).map(useTools),
  fc.nat(9).map(changeFiles),
  fc.nat(9).map(changeSettings),
  fc.nat(9).map(changeSkills),
  fc.nat(9).map(learnSkill),
  fc.nat(9).map(reconnectTools),
  fc.constantFrom("todo", "memory").map(changeTools),
  fc.constantFrom(...MODELS).map(switchTo),
  fc.constantFrom("Be kind.", "Be brief.").map(changeMood),
  fc.constantFrom("plan" as const, "ask" as const).map(switchMode),
  fc.constantFrom(failingServer, midnight, anotherProcess, undo, showPicture, useForeignTool),
  fc.constantFrom(anotherProcess, compress, undoCompression),
];

for (const mode of API_MODES)
  test(`${mode}: memory, skills, files, settings, tool servers, midnight, other models and other processes leave the prefix as it was`, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    await using world = await World.begin(server, mode);
    const everything = [
      reconnectTools(1),
      anotherProcess,
      useTools(1),
      learnSkill(1),
      changeSkills(1),
      reconnectTools(6),
      useForeignTool,
      changeFiles(1),
      changeSettings(7),
      say("a"),
      switchTo("claude-two"),
      useTools(2),
      changeFiles(2),
      midnight,
      switchTo("claude-one"),
      say("b"),
      reconnectTools(4),
      anotherProcess,
      useForeignTool,
      changeSkills(4),
      useTools(3),
      failingServer,
      switchMode("plan"),
      useTools(4),
      switchTo("claude-two"),
      switchMode("ask"),
      say("c"),
      midnight,
      anotherProcess,
      say("d"),
    ];
    const state = { said: false };
    for (const command of everything) await command.run(state, world);
    const calls = await world.checkBooks();
    assert.deepEqual(
      calls.filter(({ brokeOwner }) => brokeOwner !== undefined),
      [],
    );
    // Every later process knew both models already.
    assert.equal(calls.filter(({ cause }) => cause === "model").length, 1);
  });

for (const mode of API_MODES)
  test(`${mode}: request n is the beginning of request n+1, whatever happens in between`, async () => {
    const server = await ModelServer.start();
    try {
      await fc.assert(
        fc.asyncProperty(fc.commands(commands, { maxCommands: 14 }), async (given) => {
          await using world = await World.begin(server, mode);
          await fc.asyncModelRun(() => ({ model: { said: false }, real: world }), given);
          await world.checkBooks();
        }),
        { numRuns: fewer(10, 4) },
      );
    } finally {
      await server.close();
    }
  });

test("each cause is named in the call's row, and what did not change is told to be common", async () => {
  const server = await ModelServer.start();
  try {
    await using world = await World.begin(server, "anthropic_messages");
    await world.say("one");
    await world.say("two");
    world.expect("rewind");
    await world.agent.agent.undo();
    await world.say("three");
    world.expect("ephemeral");
    await world.configure({ system_prompt: "Be kind." });
    await world.say("four");
    await world.agent.switchModel({ model: MODELS[1] });
    await world.say("five");
    await world.agent.switchModel({ model: MODELS[0] });
    await world.say("six");
    const calls = await world.checkBooks();
    const told = calls.map(({ model, brokeOwner, cause }) => [model, brokeOwner, cause]);
    assert.deepEqual(told, [
      [MODELS[0], undefined, undefined],
      [MODELS[0], undefined, undefined],
      [MODELS[0], "message 2 (user)", "rewind"],
      [MODELS[0], "ephemeral", "ephemeral"],
      [MODELS[1], undefined, "model"],
      [MODELS[0], undefined, undefined],
    ]);
    for (const [index, call] of calls.entries()) {
      assert.ok((call.commonBytes ?? 0) <= (call.bytes ?? 0));
      if (call.cause === undefined && index > 0) assert.ok((call.commonBytes ?? 0) > 0.9 * (call.bytes ?? 0));
    }
  } finally {
    await server.close();
  }
});

for (const mode of API_MODES)
  test(`${mode}: a compression begins a new prefix once, the next process goes on with it, and taking it back is a cause too`, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    await using world = await World.begin(server, mode);
    await talkAtLength(world);
    assert.ok(await world.compress(), "there was something to shorten");
    await world.undoCompression();
    await world.say("four");
    assert.ok(await world.compress());
    await world.writeHome("memories/MEMORY.md", "Written between two processes.\n");
    await world.say("five");
    await world.restart();
    await world.say("six");
    const main = (await world.checkBooks()).filter(({ task }) => task === "main");
    assert.deepEqual(
      main.map(({ cause }) => cause),
      [undefined, undefined, undefined, undefined, "compression", undefined],
    );
    assert.equal(new Set(main.map(({ sessionId }) => sessionId)).size, 2);
    assert.ok((main.at(-1)?.commonBytes ?? 0) > 0.9 * (main.at(-1)?.bytes ?? 0), "nothing was paid twice");
  });

test("what changes a conversation behind its back, between two processes, is found and named", async () => {
  const server = await ModelServer.start();
  try {
    await using world = await World.begin(server, "chat_completions");
    await world.say("one");
    await world.say("two");
    await world.close();
    world.tamper("UPDATE messages SET content = 'zwei' WHERE content = 'two'");
    await world.open();
    await assert.rejects(world.say("three"), /message 2 .* was rewritten/);
    await assert.rejects(world.checkBooks(), /message 2 \(user\) broke/);
  } finally {
    await server.close();
  }
});

for (const mode of API_MODES)
  test(`${mode}: a clock in the prompt is found by both checks, and the program names the block it stands in`, async (t) => {
    const server = await ModelServer.start();
    t.after(() => server.close());
    const { store } = await temporaryStore(t);
    const defects: string[] = [];
    const none = { usd: null, tokens: null };
    const gate = createGate({
      ledger: store,
      caps: () => ({ call: none, session: none, job: none, day: none }),
      priceOf: () => ({ type: "unknown" }),
      wireFor: (target) => createWire(target.apiMode, { fetch, clock: systemClock }),
      clock: systemClock,
      onDefect: (what) => defects.push(what),
    });
    let ticks = 0;
    const baseUrl = mode === "anthropic_messages" ? server.origin : server.url;
    for (const said of ["one", "two"]) {
      const build = buildSystemPromptParts({ ...promptInputs, environmentHint: `It is 12:00:0${ticks++} sharp.` });
      const prompt = { system: async () => ({ text: build.full, layout: layoutOf(recordOf(build)) }) };
      await rigAgent({ gate, store, prompt, model: { target: aTarget(mode, { baseUrl }) } }).chat(said);
    }
    const [first, second] = server.requests;
    assert.ok(first && second);
    assert.match(firstBreak(first, second) ?? "", /^the system text .* 12:00:01 sharp/);
    assert.equal(defects.length, 1);
    assert.match(defects[0] ?? "", /env_hints differs at byte \d+ /);
    const [, row] = await store.calls("session-1");
    assert.deepEqual([row?.brokeOwner, row?.cause], ["env_hints", undefined]);
    const same = Buffer.from(systemOf(first)).subarray(0, row?.brokeOffset).toString();
    assert.ok(same.endsWith("It is 12:00:0"));
  });
