import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { play, type RigOptions, type RigTool, rigAgent, rigOptions } from "../../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../../test/support/agent/scripted-gate.ts";
import { emptyMemory, memoryHome } from "../../../test/support/memory.ts";
import { aTarget } from "../../../test/support/model-target.ts";
import { recordedLog, temporaryStore } from "../../../test/support/session-store.ts";
import { type Config, defaultConfig } from "../../home/config/schema.ts";
import type { ModelGate } from "../../llm/gate.ts";
import type { ModelRequest } from "../../llm/wire.ts";
import type { Agent } from "../agent.ts";
import { Conversation } from "../conversation.ts";
import type { AgentEvent, AgentEventBody } from "../events.ts";
import { BackgroundReview } from "../nudges.ts";
import { IterationBudget } from "../steer.ts";
import { playTurn } from "../turn.ts";

interface Settings {
  readonly review?: Partial<Config["auxiliary"]["background_review"]>;
  readonly every?: number;
  readonly notices?: Config["display"]["memory_notifications"];
}

/** A review after every turn, unless said otherwise. */
function configWith({ review = {}, every = 1, notices = "on" }: Settings): Config {
  const config = defaultConfig();
  return {
    ...config,
    memory: { ...config.memory, nudge_interval: every },
    display: { ...config.display, memory_notifications: notices },
    auxiliary: {
      ...config.auxiliary,
      background_review: { ...config.auxiliary.background_review, ...review },
    },
  };
}

async function rig(
  t: TestContext,
  steps: readonly ScriptedStep[],
  settings: Settings = {},
  more: Partial<RigOptions> = {},
) {
  const gate = new ScriptedGate(...steps);
  const { memory } = await memoryHome(t);
  const log = recordedLog();
  const ran: string[] = [];
  const tools: Record<string, RigTool> = {
    memory: async (args, ctx) => JSON.stringify(await memory.apply(args, ctx)),
    terminal: () => {
      ran.push("terminal");
      return "ran";
    },
    execute_code: () => {
      ran.push("execute_code");
      return "ran";
    },
    skill_manage: ({ name }) => JSON.stringify({ success: true, message: `Skill '${name}' created.` }),
  };
  const options: RigOptions = {
    gate,
    tools,
    ...more,
    session: { reviews: true, ...more.session },
    ports: { log, memory, config: () => configWith(settings), ...more.ports },
  };
  const agent = rigAgent(options);
  const heard = listen(agent);
  return { gate, agent, memory, log, ran, options, heard };
}

function listen(agent: Agent): AgentEvent[] {
  const heard: AgentEvent[] = [];
  void (async () => {
    for await (const event of agent.notices) heard.push(event);
  })();
  return heard;
}

const save = (content: string, target = "memory") => ({
  calls: [{ name: "memory", args: { action: "add", target, content } }],
});
const texts = (heard: readonly AgentEvent[]) =>
  heard.flatMap((event) => (event.type === "notice" && event.kind === "review" ? [event.text] : []));
const contents = (request: ModelRequest | undefined) => (request?.messages ?? []).map((message) => message.content);
const tick = () => new Promise((resolve) => setImmediate(resolve));

test("the request of a review is the conversation as it was sent, its answer, and the question: nothing before that differs", async (t) => {
  const { gate, agent } = await rig(
    t,
    [{ text: "hi Ada" }, { text: "Nothing to save." }],
    {},
    {
      model: { reasoning: { enabled: true, effort: "high" }, overrides: { top_k: 3 } },
      prompt: { ephemeral: () => "Be brief.", prefill: [{ role: "user", content: "prefill" }] },
    },
  );
  await play(agent, "I am Ada");
  await agent.settled();
  const [turn, review] = gate.requests;
  assert.equal(gate.requests.length, 2);
  assert.deepEqual(review?.messages.slice(0, turn?.messages.length), turn?.messages);
  assert.equal(review?.messages.length, (turn?.messages.length ?? 0) + 2);
  assert.equal(review?.messages.at(-2)?.content, "hi Ada");
  assert.match(String(contents(review).at(-1)), /^Review the conversation above/);
  assert.equal(review?.tools, turn?.tools, "the same list of tools");
  const { messages: _, limits, ...same } = review ?? {};
  const { messages: __, limits: ___, ...asBefore } = turn ?? {};
  assert.deepEqual(same, asBefore);
  assert.equal(limits?.totalMs, 120_000);
  assert.deepEqual(gate.purposes[1], { task: "background_review", sessionId: "session-1", turn: 1 });
});

test("it writes into the conversation's own memory, under its own name", async (t) => {
  const { gate, agent, memory, heard } = await rig(t, [
    { text: "noted" },
    save("Is called Ada", "user"),
    { text: "Saved." },
  ]);
  await play(agent, "I am Ada");
  await agent.settled();
  await tick();
  assert.deepEqual(texts(heard), ["💾 Self-improvement review: User profile updated"]);
  const [record] = await memory.history();
  assert.deepEqual(
    [record?.origin, record?.session_id, record?.turn, record?.after],
    ["background_review", "session-1", 1, ["Is called Ada"]],
  );
  gate.script(save("Lives in Paris", "user"), { text: "ok" }, { text: "Nothing to save." });
  const { events } = await play(agent, "I live in Paris");
  const result = events.find((event) => event.type === "tool_end");
  assert.match(result?.type === "tool_end" ? result.result : "", /"entry_count":2/);
});

test("of all tools it is offered only memory and skills run; the others answer that they do not", async (t) => {
  const { gate, agent, ran } = await rig(t, [
    { text: "ok" },
    { calls: [{ name: "terminal", args: { command: "ls" } }] },
    { calls: [{ name: "skill_manage", args: { name: "a" } }] },
    { text: "done" },
  ]);
  await play(agent, "hello");
  await agent.settled();
  assert.deepEqual(ran, []);
  const said = contents(gate.requests.at(-1)).map(String);
  assert.ok(said.some((text) => /terminal was not run.*only memory and skill tools/.test(text)));
  assert.ok(said.some((text) => /Skill 'a' created/.test(text)));
  gate.script({ calls: [{ name: "terminal", args: { command: "ls" } }] }, { text: "ok" });
  await play(agent, "run it");
  assert.deepEqual(ran, ["terminal"], "the conversation itself may");
});

test("without a memory of its own it cannot write one", async (t) => {
  const { gate, agent, options } = await rig(t, []);
  const { memory: _, ...ports } = options.ports ?? {};
  const config = configWith({ every: 0 });
  const skillsOnly = rigAgent({
    ...options,
    ports: { ...ports, config: () => ({ ...config, skills: { ...config.skills, creation_nudge_interval: 1 } }) },
  });
  gate.script({ calls: [{ name: "terminal", args: {} }] }, { text: "ok" }, save("x"), { text: "done" });
  await play(skillsOnly, "go");
  await skillsOnly.settled();
  assert.match(String(contents(gate.requests.at(-1)).at(-1)), /memory was not run/);
  await agent.close();
});

for (const name of ["memory", "execute_code"]) {
  test(`a review that calls ${name} for ever ends after eight model calls`, async (t) => {
    const { gate, agent } = await rig(t, [{ text: "ok" }]);
    gate.script(...Array.from({ length: 20 }, (_, n) => ({ calls: [{ name, args: { n, action: "add" } }] })));
    await play(agent, "hello");
    await agent.settled();
    assert.equal(gate.requests.length, 1 + 8);
  });
}

test("the setting says how many calls a review may make", async (t) => {
  const { gate, agent } = await rig(t, [{ text: "ok" }], { review: { max_iterations: 2 } });
  gate.script(save("a"), save("b"), save("c"));
  await play(agent, "hello");
  await agent.settled();
  assert.equal(gate.requests.length, 1 + 2);
});

test("it is not in anybody's way: the next turn is served while it runs, and what falls due meanwhile is looked at later, together", async (t) => {
  const { gate, agent, heard } = await rig(t, [{ text: "one" }, { hang: "thinking" }]);
  await play(agent, "first");
  while (gate.requests.length < 2) await tick();
  gate.script({ text: "two" });
  const { outcome } = await play(agent, "second");
  assert.equal(outcome.finalText, "two");
  assert.deepEqual(contents(gate.requests.at(-1)), ["You are a test.", "first", "one", "second"]);
  assert.equal(gate.purposes.filter(({ task }) => task === "background_review").length, 1, "one at a time");
  assert.deepEqual(texts(heard), []);
  await agent.close();
});

test("what falls due while one runs is one review afterwards, for all of it", async (t) => {
  const inner = new ScriptedGate();
  const held = Promise.withResolvers<void>();
  const gate: ModelGate = {
    expectNewPrefix: () => undefined,
    pay: inner.pay,
    async *stream(request, purpose, signal) {
      const reviews = inner.purposes.filter(({ task }) => task === "background_review").length;
      if (purpose.task === "background_review" && reviews === 0) {
        inner.purposes.push(purpose);
        await held.promise;
        yield { type: "done", finishReason: "stop", message: { role: "assistant", content: "Nothing to save." } };
        return;
      }
      yield* inner.stream(request, purpose, signal);
    },
  };
  const config = configWith({ every: 1 });
  const both = { ...config, skills: { ...config.skills, creation_nudge_interval: 2 } };
  const { agent } = await rig(t, [], {}, { gate, ports: { config: () => both } });
  const call = { calls: [{ name: "terminal", args: {} }] };
  inner.script({ text: "one" }, call, call, { text: "two" }, { text: "three" });
  for (const text of ["first", "second", "third"]) await play(agent, text);
  held.resolve();
  await agent.settled();
  const reviews = () => inner.requests.filter((_, at) => /^Review/.test(String(contents(inner.requests[at]).at(-1))));
  assert.equal(reviews().length, 0);
  inner.script({ text: "four" }, { text: "Nothing to save." });
  await play(agent, "fourth");
  await agent.settled();
  assert.equal(reviews().length, 1);
  assert.match(String(contents(reviews()[0]).at(-1)), /with your memory in mind[\s\S]*with your skills in mind/);
});

test("the line comes after the answer, never in the middle of a turn, and is no part of the conversation", async (t) => {
  const { store } = await temporaryStore(t);
  const { gate, agent, heard } = await rig(
    t,
    [{ text: "one" }, save("Ada"), { text: "Saved." }],
    { every: 1, notices: "verbose" },
    { store },
  );
  await play(agent, "first");
  await agent.settled();
  await tick();
  assert.deepEqual(texts(heard), ["💾 Self-improvement review: Memory ➕ Ada"]);
  const rows = await store.load("session-1");
  assert.deepEqual(
    rows.map(({ content }) => content),
    ["first", "one"],
  );
  gate.script({ text: "two" });
  await play(agent, "second");
  assert.deepEqual(contents(gate.requests[3]), ["You are a test.", "first", "one", "second"]);
});

test("a review that fails says nothing but a line in the log, and everything stays as it was", async (t) => {
  const { agent, heard, log, memory } = await rig(
    t,
    [{ text: "one" }, { error: { status: 401, message: "wrong key" } }],
    {},
    { limits: { apiMaxRetries: 1 } },
  );
  const { outcome } = await play(agent, "first");
  await agent.settled();
  await tick();
  assert.equal(outcome.completed, true);
  assert.deepEqual(heard, []);
  assert.equal(log.lines.filter((line) => /^WARNING the review came to nothing/.test(line)).length, 1);
  assert.deepEqual(await memory.history(), []);
});

test("closing stops it, and it is due again when the session is taken up", async (t) => {
  const { store } = await temporaryStore(t);
  const { gate, agent, options } = await rig(t, [{ text: "one" }, { hang: "thinking" }], { every: 1 }, { store });
  await play(agent, "first");
  while (gate.requests.length < 2) await tick();
  const armed = async () => Object((await store.getValue("session-1", "nudge")) ?? {}).armed;
  assert.deepEqual(await armed(), ["memory"], "on disk it stays due until it is done: a crash loses nothing");
  const signal = gate.signals[1] ?? assert.fail("the review was not asked");
  await agent.close();
  assert.equal(signal.aborted, true, "its request was not waited for");
  assert.deepEqual(await armed(), ["memory"]);
  gate.script({ text: "two" }, { text: "Nothing to save." });
  const later = rigAgent(options);
  await play(later, "second");
  await later.settled();
  assert.equal(gate.purposes.filter(({ task }) => task === "background_review").length, 2);
  assert.deepEqual(await armed(), []);
});

test("a conversation that is left for another may have its review finished; a second close stops it", async (t) => {
  const { gate, agent, heard } = await rig(t, [{ text: "one" }, save("Ada"), { text: "Saved." }]);
  await play(agent, "first");
  await agent.close({ finishReview: true });
  await agent.settled();
  await tick();
  assert.deepEqual(texts(heard), ["💾 Self-improvement review: Memory updated"]);
  assert.equal(gate.requests.length, 3);

  const hung = await rig(t, [{ text: "one" }, { hang: "thinking" }]);
  await play(hung.agent, "first");
  while (hung.gate.requests.length < 2) await tick();
  await hung.agent.close({ finishReview: true });
  await hung.agent.close();
  await hung.agent.settled();
});

test("a review has a limit of time for itself", async () => {
  const gate = new ScriptedGate({ text: "one" }, { hang: "thinking" });
  const conversation = new Conversation(
    rigOptions({
      gate,
      tools: { memory: () => "{}" },
      session: { reviews: true },
      ports: { memory: await emptyMemory(), config: () => configWith({}) },
    }),
  );
  const published: AgentEventBody[] = [];
  const review = new BackgroundReview(conversation, (event) => void published.push(event), { maxMs: 30 });
  const outcome = await playTurn(
    conversation,
    { text: "hello" },
    {
      signal: new AbortController().signal,
      interactive: true,
      budget: new IterationBudget(5),
      emit: () => undefined,
      notify: () => undefined,
      interruptMessage: () => undefined,
    },
  );
  review.turnEnded(outcome);
  assert.equal(review.isFresh, true);
  await review.idle();
  assert.equal(gate.requests.length, 2);
  assert.deepEqual(published, []);
  assert.deepEqual(conversation.nudges.due, [], "it had its chance");
});

test("where writes need the user's leave a review stages them, and says so", async (t) => {
  const { memory } = await memoryHome(t, { memory: { write_approval: true } });
  const gate = new ScriptedGate({ text: "one" }, save("Ada"), { text: "Saved." });
  const agent = rigAgent({
    gate,
    tools: { memory: async (args, ctx) => JSON.stringify(await memory.apply(args, ctx)) },
    session: { reviews: true },
    ports: { memory, config: () => configWith({}) },
  });
  const heard = listen(agent);
  const { events } = await play(agent, "first");
  await agent.settled();
  await tick();
  assert.ok(!events.some((event) => event.type === "ask"), "nobody is asked");
  assert.deepEqual(texts(heard), ["💾 Self-improvement review: 1 change staged for approval"]);
  assert.deepEqual(
    (await memory.pending()).map(({ origin }) => origin),
    ["background_review"],
  );
  assert.deepEqual(await memory.history(), []);
});

test("what it costs is part of what the session costs", async (t) => {
  const { agent } = await rig(t, [{ text: "one", usage: { inputTokens: 10 } }, { text: "Nothing to save." }]);
  await play(agent, "first");
  const before = agent.totals.inputTokens;
  await agent.settled();
  assert.equal(agent.totals.inputTokens, before + 10);
});

const other = aTarget("chat_completions", { model: "cheap", baseUrl: "https://cheap.example/v1", provider: "zai" });
const route = { provider: "zai", model: "cheap" };

test("a model of its own gets a digest and a prompt of its own", async (t) => {
  const { gate, agent } = await rig(t, [], { every: 14, review: route }, { ports: { resolveSpec: async () => other } });
  for (let n = 0; n < 14; n++) {
    gate.script({ text: `answer ${n}` });
    if (n === 13) gate.script({ text: "Nothing to save." });
    await play(agent, `question ${n}`);
  }
  await agent.settled();
  const review = gate.requests.at(-1);
  assert.equal(review?.target.model, "cheap");
  assert.match(String(contents(review)[0]), /^You look back[\s\S]*You are a test\.$/);
  assert.equal(
    contents(review)[1],
    "[Earlier in this conversation]\nUSER: question 0\nASSISTANT: answer 0\nUSER: question 1\nASSISTANT: answer 1\n\nquestion 2",
  );
  assert.equal(contents(review).length, 1 + 24 + 1);
});

test("a route that cannot be asked, or leads to the same model, leaves the review with the conversation's own", async (t) => {
  const lost = await rig(
    t,
    [{ text: "one" }, { text: "Nothing to save." }],
    { review: route },
    {
      ports: { resolveSpec: () => Promise.reject(new Error("No API key for zai.")) },
    },
  );
  await play(lost.agent, "first");
  await lost.agent.settled();
  assert.equal(lost.gate.requests[1]?.target, lost.gate.requests[0]?.target);
  assert.ok(lost.log.lines.some((line) => /background_review: No API key for zai/.test(line)));
  const half = await rig(
    t,
    [{ text: "one" }, { text: "Nothing to save." }],
    { review: { model: "cheap" } },
    {
      ports: { resolveSpec: async () => other },
    },
  );
  await play(half.agent, "first");
  await half.agent.settled();
  assert.equal(half.gate.requests[1]?.target, half.gate.requests[0]?.target, "provider and model must both be named");
});
