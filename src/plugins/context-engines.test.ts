// Who writes the summary, and which engine is in charge.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { play } from "../../test/support/agent/agent-rig.ts";
import { eventsOf, longTalkRig, talkOf, tasks } from "../../test/support/agent/long-talk.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { recordedLog, temporaryFolder } from "../../test/support/session-store.ts";
import { ContextCompressor } from "../agent/compression/compressor.ts";
import { SUMMARY_MARKER } from "../agent/compression/summary-text.ts";
import { defaultConfig } from "../home/config/schema.ts";
import { systemClock } from "../kit/clock.ts";
import { textOf } from "../llm/messages.ts";
import { openContextEngine } from "./context-engines.ts";

describe("a small summary model", () => {
  const small = aTarget("chat_completions", { model: "small", contextLength: 8000 });
  const withModel = () => {
    const defaults = defaultConfig();
    return {
      ...defaults,
      auxiliary: {
        ...defaults.auxiliary,
        compression: { ...defaults.auxiliary.compression, provider: "custom", model: "small" },
      },
    };
  };

  test("that is the main model reads the conversation in pieces; the result is of the same shape", async (t) => {
    const { gate, agent } = await longTalkRig(t, talkOf(7000), {
      model: { target: small },
      steps: Array.from({ length: 12 }, (_, i) => ({ text: `NOTES ${i}` })),
    });
    const { outcome } = await play(agent, "hi");
    const asked = gate.requests.filter((_, i) => gate.purposes[i]?.task === "compression");
    assert.ok(asked.length > 1);
    for (const [i, request] of asked.entries()) {
      assert.equal(
        textOf(request.messages[0]?.content ?? "").includes(`NOTES ${i - 1}`),
        i > 0,
        "each piece goes on from the notes before",
      );
    }
    assert.equal(outcome.messages.filter((one) => textOf(one.content).includes(SUMMARY_MARKER)).length, 1);
    assert.match(JSON.stringify(outcome.messages), new RegExp(`NOTES ${asked.length - 1}`));
  });

  test("is passed over for a main model with more room, with a warning", async (t) => {
    const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps: [{ text: "NOTES" }, { text: "ok" }],
      ports: { config: withModel, resolveSpec: async () => small },
    });
    const { events } = await play(agent, "hi");
    assert.deepEqual(
      gate.requests.map((request) => request.target.model),
      ["fake-model", "fake-model"],
    );
    assert.ok(
      eventsOf(events, "status").some((event) => event.kind === "warn" && /small.*8000 tokens/.test(event.message)),
    );
  });

  test("that fails is replaced by the main model once, with a warning", async (t) => {
    const own = aTarget("chat_completions", { model: "own", contextLength: 100_000 });
    const { gate, agent } = await longTalkRig(t, talkOf(16_000), {
      steps: [{ error: { status: 500, message: "down" } }, { text: "NOTES" }, { text: "ok" }],
      ports: { config: withModel, resolveSpec: async () => own },
    });
    const { events } = await play(agent, "hi");
    assert.deepEqual(
      gate.requests.map((request) => request.target.model),
      ["own", "fake-model", "fake-model"],
    );
    assert.equal(eventsOf(events, "status").filter((event) => /own failed/.test(event.message)).length, 1);
  });
});

test("another engine can be named: it decides, and its tools are offered", async (t) => {
  const { registerContextEngine } = await import("./context-engines.ts");
  const seen: string[] = [];
  t.after(
    registerContextEngine("tail-only", (model) => ({
      name: "tail-only",
      lastPromptTokens: 0,
      lastCompletionTokens: 0,
      lastTotalTokens: 0,
      thresholdTokens: 1000,
      contextLength: model.contextLength,
      compressionCount: 0,
      protectFirstN: 0,
      protectLastN: 0,
      updateFromResponse: () => undefined,
      shouldCompress: () => true,
      compress: async (messages) => messages.slice(-1),
      onSessionStart: (id, meta) => void seen.push(`start ${id} ${meta.boundaryReason} ${meta.oldSessionId}`),
      onSessionEnd: (id, messages) => {
        seen.push(`end ${id} ${messages.length}`);
        throw new Error("an engine that fails at the end fails alone");
      },
      getToolSchemas: () => [{ type: "function", function: { name: "recall_more", description: "d", parameters: {} } }],
      handleToolCall: async (name) => `answer of ${name}`,
    })),
  );
  const defaults = defaultConfig();
  const named = () => ({ ...defaults, context: { ...defaults.context, engine: "tail-only" } });
  const { gate, agent } = await longTalkRig(t, talkOf(6000), {
    steps: [{ calls: [{ name: "recall_more", args: {} }] }, { text: "ok" }],
    ports: { config: named, clock: systemClock },
  });
  const { outcome } = await play(agent, "hi");
  assert.deepEqual(
    gate.requests[0]?.messages.map((one) => textOf(one.content)),
    ["You are a test.", "hi"],
  );
  assert.equal(gate.requests[0]?.tools.at(-1)?.function.name, "recall_more");
  assert.match(JSON.stringify(gate.requests[1]?.messages), /answer of recall_more/);
  assert.equal(outcome.finalText, "ok");
  await agent.close();
  const child = outcome.sessionId;
  assert.deepEqual(seen, [
    "start session-1 undefined undefined",
    `start ${child} compression session-1`,
    `end ${child} ${outcome.messages.length}`,
  ]);
});

test("an engine nobody knows is named in the log, and the default one serves", async (t) => {
  const defaults = defaultConfig();
  const named = () => ({ ...defaults, context: { ...defaults.context, engine: "nowhere" } });
  const { gate, agent, log } = await longTalkRig(t, talkOf(16_000), {
    steps: [{ text: "NOTES" }, { text: "ok" }],
    ports: { config: named, clock: systemClock },
  });
  await play(agent, "hi");
  assert.deepEqual(tasks(gate), ["compression", "main"]);
  assert.ok(log.lines.some((line) => line.includes('no context engine "nowhere"')));
});

test("an engine is found in the plugins of the home; one that is broken is named, and the default one serves", async (t) => {
  const folder = await temporaryFolder(t);
  const write = async (name: string, source: string) => {
    await mkdir(join(folder, "context_engine", name), { recursive: true });
    await writeFile(join(folder, "context_engine", name, "index.mjs"), source);
  };
  await write(
    "good",
    'export default ({ model }) => ({ name: "good for " + model, compress: async (m) => m, shouldCompress: () => false, updateFromResponse() {} });',
  );
  await write("half", "export default () => ({ name: 'half' });");
  await write("broken", "throw new Error('no luck');");
  await write("empty", "export const engine = 1;");
  const log = recordedLog();
  const standard = new ContextCompressor({ contextLength: 1000, summarize: async () => null });
  const model = { model: "m", contextLength: 1000, baseUrl: "", provider: "p", apiMode: "chat_completions" };
  const open = (name: string) =>
    openContextEngine({
      name,
      model,
      pluginFolders: ["/nowhere", folder],
      standard: () => standard,
      log,
      clock: systemClock,
    });
  assert.equal((await open("good")).engine.name, "good for m");
  const complaints: string[] = [];
  for (const name of ["half", "broken", "empty", "absent", "../good"]) {
    const { engine, complaint } = await open(name);
    assert.equal(engine, standard);
    complaints.push(complaint ?? "");
  }
  assert.equal(log.lines.length, 5);
  assert.match(
    complaints[0] ?? "",
    /"half" could not be loaded \(the engine "half" lacks compress.*default one.*context\.engine/,
  );
  assert.match(complaints[1] ?? "", /"broken" could not be loaded \(no luck\)/);
  assert.match(complaints[3] ?? "", /^There is no context engine "absent"; using the default one/);
  assert.deepEqual(await open("compressor"), { engine: standard, complaint: null });
  assert.equal(log.lines.length, 5);
});

test("an engine that throws whenever it is asked costs a line in the log and no turn", async (t) => {
  const { registerContextEngine } = await import("./context-engines.ts");
  class Moody {
    readonly name = "moody";
    readonly thresholdTokens = 10;
    readonly #why = new Error("not today");
    updateFromResponse = () => this.#throw();
    shouldCompressPreflight = () => this.#throw();
    hasContentToCompress = () => this.#throw();
    getToolSchemas = () => this.#throw();
    getStatus = () => this.#throw();
    shouldCompress(): never {
      return this.#throw();
    }
    compress = () => Promise.reject(this.#why);
    #throw(): never {
      throw this.#why;
    }
  }
  t.after(registerContextEngine("moody", () => new Moody() as never)); // less than the contract, as plugins may be
  const defaults = defaultConfig();
  const named = () => ({ ...defaults, context: { ...defaults.context, engine: "moody" } });
  const { agent, log } = await longTalkRig(t, talkOf(2000), {
    steps: [{ text: "ok" }],
    ports: { config: named, clock: systemClock },
  });
  const { outcome } = await play(agent, "hi");
  assert.equal(outcome.finalText, "ok");
  assert.deepEqual(agent.engineStatus, { name: "moody", facts: {} });
  assert.deepEqual((await agent.compress()).type, "failed");
  for (const member of ["updateFromResponse", "shouldCompress", "getToolSchemas"])
    assert.ok(
      log.lines.some((line) => line.includes(`"moody": ${member} failed`)),
      member,
    );
});

test("a promise where an answer is due is no answer, and its failure ends nothing", async () => {
  const { guardEngine } = await import("./context-engines.ts");
  const log = recordedLog();
  const late = {
    name: "late",
    shouldCompress: async () => true,
    updateFromResponse: () => Promise.reject(new Error("later")),
  };
  const engine = guardEngine(late as never, log); // what JavaScript lets pass
  assert.equal(engine.shouldCompress(1), false);
  assert.equal(engine.updateFromResponse({ promptTokens: 1, completionTokens: 1, totalTokens: 2 }), undefined);
  await new Promise((resolve) => setImmediate(resolve));
  assert.match(log.lines.join(), /"late": updateFromResponse failed/);
});

test("a compression stands though the engine fails at the bound; an engine of the package is found", async (t) => {
  const folder = await temporaryFolder(t);
  const place = join(folder, "context_engine", "ours");
  await mkdir(place, { recursive: true });
  await writeFile(
    join(place, "index.mjs"),
    `export default () => ({ name: "ours", thresholdTokens: 10, updateFromResponse() {}, shouldCompress: () => true, compress: async (m) => m.slice(-1),
      onSessionStart(id, meta) { if (meta.boundaryReason) throw new Error("lost"); } });`,
  );
  const defaults = defaultConfig();
  const named = () => ({ ...defaults, context: { ...defaults.context, engine: "ours" } });
  const { agent, log } = await longTalkRig(t, talkOf(3000), {
    ports: { config: named, clock: systemClock, compression: { packagePlugins: folder } },
  });
  assert.equal((await agent.compress()).type, "compressed");
  assert.notEqual(agent.sessionId, "session-1");
  assert.ok(log.lines.some((line) => line.includes("failed at a boundary")));
});

test("an engine that never comes back costs its deadline at the start, and a stop leaves its compression behind", async (t) => {
  const { registerContextEngine } = await import("./context-engines.ts");
  const never = () => new Promise<never>(() => undefined);
  const hangs = { name: "slow", thresholdTokens: 10, updateFromResponse: () => undefined, shouldCompress: () => true };
  t.after(registerContextEngine("no-start", never));
  t.after(registerContextEngine("slow", () => ({ ...hangs, compress: never, onSessionEnd: never }) as never)); // less than the contract
  const defaults = defaultConfig();
  const named = (engine: string) => () => ({ ...defaults, context: { ...defaults.context, engine } });
  const late = await longTalkRig(t, [], { ports: { config: named("no-start") } });
  assert.match(
    (await late.agent.prepareEngine()) ?? "",
    /"no-start" could not be loaded \(no response within 10 seconds\)/,
  );
  const clock = {
    ...systemClock,
    sleep: async (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 100, signal),
  };
  const { agent } = await longTalkRig(t, talkOf(2000), { ports: { config: named("slow"), clock } });
  const report = agent.compress();
  setTimeout(() => agent.interrupt(), 20);
  assert.equal((await report).type, "interrupted");
  await agent.close();
});
