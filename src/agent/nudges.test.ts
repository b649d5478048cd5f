import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { play, type RigOptions, type RigTool, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate, type ScriptedStep } from "../../test/support/agent/scripted-gate.ts";
import { emptyMemory } from "../../test/support/memory.ts";
import { aTarget } from "../../test/support/model-target.ts";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { Config } from "../home/config/schema.ts";
import { defaultConfig } from "../home/config/schema.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import type { ModelRequest } from "../llm/wire.ts";

const saved = JSON.stringify({ success: true, message: "Entry added." });
const refused = JSON.stringify({ success: false, code: "over_limit", error: "full" });
const tools: Record<string, RigTool> = {
  memory: ({ content }) => (content === "too much" ? refused : saved),
  skill_manage: ({ name }) =>
    name === "no" ? JSON.stringify({ success: false, error: "no" }) : JSON.stringify({ success: true, message: "ok" }),
  echo: () => "echo",
};

function configWith(change: { memory?: number; skills?: number; enabled?: boolean } = {}): Config {
  const config = defaultConfig();
  return {
    ...config,
    memory: { ...config.memory, nudge_interval: change.memory ?? 10 },
    skills: { ...config.skills, creation_nudge_interval: change.skills ?? 10 },
    auxiliary: {
      ...config.auxiliary,
      background_review: { ...config.auxiliary.background_review, enabled: change.enabled ?? true },
    },
  };
}

const isReview = ({ messages }: ModelRequest) =>
  /^Review the conversation above/.test(String(messages.at(-1)?.content));
const aboutMemory = ({ messages }: ModelRequest) => /with your memory in mind/.test(String(messages.at(-1)?.content));
const aboutSkills = ({ messages }: ModelRequest) => /with your skills in mind/.test(String(messages.at(-1)?.content));

const memory = await emptyMemory();

type Rig = Partial<RigOptions> & { readonly config?: Config; readonly memoryStore?: false };

function rig({ config = configWith(), memoryStore, ...more }: Rig = {}) {
  const gate = new ScriptedGate();
  const agent = rigAgent({
    gate,
    tools,
    ...more,
    session: { reviews: true, ...more.session },
    ports: { config: () => config, ...(memoryStore === false ? {} : { memory }), ...more.ports },
  });
  /** One turn, and whatever follows it. */
  const say = async (...steps: ScriptedStep[]) => {
    const before = gate.requests.length;
    gate.script(...(steps.length > 0 ? steps : [{ text: "ok" }]));
    const { outcome } = await play(agent, "hello");
    await agent.settled();
    const reviews = gate.requests.slice(before).filter(isReview);
    return { outcome, reviews };
  };
  /** How many reviews each of so many plain turns was followed by. */
  const talk = async (turns: number) => {
    const reviews: number[] = [];
    for (let n = 0; n < turns; n++) reviews.push((await say()).reviews.length);
    return reviews;
  };
  return { gate, agent, say, talk };
}

const rounds = (count: number, name = "echo"): ScriptedStep[] =>
  Array.from({ length: count }, (_, n) => ({ calls: [{ name, args: { n } }] }));

const zeros = (count: number) => Array.from({ length: count }, () => 0);

describe("the memory counter", () => {
  test("a review follows every tenth turn of the user, and none of the others", async () => {
    const { talk, gate } = rig();
    assert.deepEqual(await talk(20), [...zeros(9), 1, ...zeros(9), 1]);
    assert.ok(gate.requests.filter(isReview).every((request) => aboutMemory(request) && !aboutSkills(request)));
  });

  const still: Record<string, Rig> = {
    "with an interval of 0": { config: configWith({ memory: 0 }) },
    "with reviews switched off": { config: configWith({ memory: 2, enabled: false }) },
    "without the memory tool": { tools: { echo: () => "echo" }, config: configWith({ memory: 2 }) },
    "without a store": { config: configWith({ memory: 2 }), memoryStore: false },
    "in a subagent": { config: configWith({ memory: 2 }), session: { origin: "subagent" } },
    "in a scheduled run": { config: configWith({ memory: 2 }), session: { origin: "cron" } },
    "with the demo model": {
      config: configWith({ memory: 2 }),
      model: { target: aTarget("chat_completions", { provider: "demo" }) },
    },
  };
  for (const [where, options] of Object.entries(still)) {
    test(`nothing is reviewed ${where}`, async () => {
      assert.deepEqual(await rig(options).talk(5), zeros(5));
    });
  }
  test("what nobody typed is no turn of the user", async () => {
    const { agent, gate, talk } = rig({ config: configWith({ memory: 2 }) });
    for (let n = 0; n < 4; n++) await play(agent, { text: "a process ended", from: "synthetic" });
    await agent.settled();
    assert.equal(gate.requests.filter(isReview).length, 0);
    assert.deepEqual(await talk(2), [0, 1]);
  });

  test("a memory the model saved by itself takes the place of the review, in the same turn and before", async () => {
    const save = { calls: [{ name: "memory", args: { action: "add", content: "x" } }] };
    const early = rig({ config: configWith({ memory: 3 }) });
    await early.talk(1);
    await early.say(save, { text: "saved" });
    assert.deepEqual(await early.talk(3), [0, 0, 1]);
    const same = rig({ config: configWith({ memory: 2 }) });
    await same.talk(1);
    assert.equal((await same.say(save, { text: "saved" })).reviews.length, 0, "it was due, and is dropped");
    assert.deepEqual(await same.talk(2), [0, 1]);
  });

  test("a write that was refused takes nothing's place", async () => {
    const { talk, say } = rig({ config: configWith({ memory: 2 }) });
    await talk(1);
    const fail = { calls: [{ name: "memory", args: { action: "add", content: "too much" } }] };
    assert.equal((await say(fail, { text: "full" }, { text: "Nothing to save." })).reviews.length, 1);
  });

  test("a turn without an answer starts no review; it stays armed for the next one that has an answer", async () => {
    const { talk, say, agent, gate } = rig({ config: configWith({ memory: 2 }), limits: { apiMaxRetries: 1 } });
    await talk(1);
    gate.script({ hang: "hm" });
    await play(agent, "stop", { onEvent: (event) => event.type === "text" && agent.interrupt() });
    await agent.settled();
    assert.equal(gate.requests.filter(isReview).length, 0, "interrupted");
    const { outcome, reviews } = await say({ error: { status: 401, message: "no" } });
    assert.equal(outcome.failed, true);
    assert.equal(reviews.length, 0, "failed");
    assert.equal((await say()).reviews.length, 1);
    assert.deepEqual(await talk(2), [0, 1], "and counts anew from there");
  });
});

describe("the skill counter", () => {
  const only = { config: configWith({ memory: 0 }) };

  test("a review follows the turn in which the tenth round of tool calls happened", async () => {
    const { say, gate } = rig(only);
    assert.equal((await say(...rounds(9), { text: "done" })).reviews.length, 0);
    assert.equal((await say(...rounds(1), { text: "done" })).reviews.length, 1);
    assert.ok(gate.requests.filter(isReview).every((request) => aboutSkills(request) && !aboutMemory(request)));
    assert.equal((await say(...rounds(9), { text: "done" })).reviews.length, 0, "counts anew");
  });

  test("several calls of one answer are one round", async () => {
    const { say } = rig(only);
    const many = Array.from({ length: 12 }, (_, n) => ({ name: "echo", args: { n } }));
    assert.equal((await say({ calls: many }, { text: "done" })).reviews.length, 0);
  });

  test("a skill the model wrote by itself sets it back, one that was refused does not", async () => {
    const { say } = rig(only);
    await say(...rounds(8), { calls: [{ name: "skill_manage", args: { name: "yes" } }] }, { text: "done" });
    assert.equal((await say(...rounds(8), { text: "done" })).reviews.length, 0);
    const no = { calls: [{ name: "skill_manage", args: { name: "no" } }] };
    assert.equal((await say(...rounds(1), no, { text: "done" }, { text: "Nothing to save." })).reviews.length, 1);
  });

  test("without skill_manage or with an interval of 0 it does not run", async () => {
    const without = rig({ config: configWith({ memory: 0 }), tools: { echo: () => "echo" } });
    assert.equal((await without.say(...rounds(12), { text: "done" })).reviews.length, 0);
    const off = rig({ config: configWith({ memory: 0, skills: 0 }) });
    assert.equal((await off.say(...rounds(12), { text: "done" })).reviews.length, 0);
  });
});

test("both due at once are one review that asks for both", async () => {
  const { say, talk } = rig({ config: configWith({ memory: 2, skills: 2 }) });
  await talk(1);
  const { reviews } = await say(...rounds(2), { text: "done" }, { text: "Nothing to save." });
  assert.equal(reviews.length, 1);
  assert.ok(reviews.every((request) => aboutMemory(request) && /with your skills in mind/.test(lastText(request))));
});

const lastText = ({ messages }: ModelRequest) => String(messages.at(-1)?.content);

test("for every conversation: reviews come exactly when the counters of its history say so, wherever it is interrupted and taken up", async (t) => {
  const step = fc.oneof(
    fc.record({ rounds: fc.nat(3), saves: fc.constantFrom(null, "memory", "skill_manage"), stops: fc.boolean() }),
    fc.constantFrom("reopen" as const, "synthetic" as const),
  );
  const { store } = await temporaryStore(t);
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const session = { id: `law-${serial++}` };
      const config = configWith({ memory: 3, skills: 3 });
      let { agent, gate } = rig({ store, session, config });
      const expected = { memory: 0, skills: 0, armed: new Set<string>() };
      for (const one of steps) {
        if (one === "reopen") {
          await agent.close();
          ({ agent, gate } = rig({ store, session, config }));
          continue;
        }
        const from = one === "synthetic" ? "synthetic" : "person";
        const { rounds: count, saves, stops } = one === "synthetic" ? { rounds: 2, saves: null, stops: false } : one;
        if (from === "person" && ++expected.memory >= 3) expected.armed.add("memory");
        if (from === "person") expected.skills += count + (saves ? 1 : 0);
        if (saves === "memory") expected.armed.delete("memory");
        if (saves === "memory") expected.memory = 0;
        if (saves === "skill_manage") expected.skills = 0;
        if (saves === "skill_manage") expected.armed.delete("skills");
        if (expected.skills >= 3) expected.armed.add("skills");
        const before = gate.requests.length;
        gate.script(...rounds(count), ...(saves ? rounds(1, saves) : []), stops ? { hang: "hm" } : { text: "ok" });
        await play(
          agent,
          { text: "go", from },
          { onEvent: ({ type }) => stops && type === "text" && agent.interrupt() },
        );
        await agent.settled();
        const reviews = gate.requests.slice(before).filter(isReview);
        const due = !stops && expected.armed.size > 0;
        assert.equal(reviews.length, due ? 1 : 0);
        if (!due || !reviews[0]) continue;
        assert.equal(/memory in mind/.test(lastText(reviews[0])), expected.armed.has("memory"));
        assert.equal(/skills in mind/.test(lastText(reviews[0])), expected.armed.has("skills"));
        if (expected.armed.has("memory")) expected.memory = 0;
        if (expected.armed.has("skills")) expected.skills = 0;
        expected.armed.clear();
      }
      await agent.close();
    }),
    { numRuns: 25 },
  );
});

describe("counters and the session", () => {
  test("they go on where they stopped when the session is opened again, by another process and with another model", async (t) => {
    const { store } = await temporaryStore(t);
    await rig({ store, config: configWith({ memory: 5 }) }).talk(3);
    const stored = await store.getValue("session-1", "nudge");
    assert.deepEqual(stored, { turns_since_memory: 3, iters_since_skill: 0, user_turn_count: 3, armed: [] });
    const target = aTarget("chat_completions", { model: "another" });
    assert.deepEqual(await rig({ store, config: configWith({ memory: 5 }), model: { target } }).talk(2), [0, 1]);
  });

  test("where reviews may not run they stay armed, on disk too, until they may", async (t) => {
    const { store } = await temporaryStore(t);
    const quick = rig({ store, config: configWith({ memory: 2 }), session: { reviews: false } });
    assert.deepEqual(await quick.talk(3), zeros(3));
    assert.deepEqual(Object((await store.getValue("session-1", "nudge")) ?? {}).armed, ["memory"]);
    assert.deepEqual(await rig({ store, config: configWith({ memory: 2 }) }).talk(1), [1]);
  });

  test("a session without counters gets them from its history", async (t) => {
    const { store } = await temporaryStore(t);
    const call = (id: string, name: string): HistoryMessage[] => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name, arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: id, content: "ok" },
    ];
    await store.ensure({ id: "session-1", source: "cli" });
    await store.append("session-1", [
      { role: "user", content: "a" },
      ...call("1", "echo"),
      ...call("2", "skill_manage"),
      ...call("3", "echo"),
      { role: "assistant", content: "b" },
      ...Array.from({ length: 6 }, (_, n): HistoryMessage[] => [
        { role: "user", content: `u${n}` },
        { role: "assistant", content: `a${n}` },
      ]).flat(),
    ]);
    await rig({ store, config: configWith({ memory: 5, skills: 3 }) }).talk(1);
    assert.deepEqual(await store.getValue("session-1", "nudge"), {
      turns_since_memory: 3,
      iters_since_skill: 1,
      user_turn_count: 8,
      armed: [],
    });
  });

  test("a history full of tool calls is not due at once", async (t) => {
    const { store } = await temporaryStore(t);
    await store.ensure({ id: "session-1", source: "cli" });
    const history = Array.from({ length: 20 }, (_, n): HistoryMessage[] => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: `c${n}`, type: "function", function: { name: "echo", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: `c${n}`, content: "ok" },
    ]).flat();
    await store.append("session-1", [{ role: "user", content: "go" }, ...history, { role: "assistant", content: "a" }]);
    const { say } = rig({ store, config: configWith({ memory: 0, skills: 3 }) });
    assert.equal((await say()).reviews.length, 0);
    assert.equal((await say(...rounds(1), { text: "done" })).reviews.length, 1);
  });

  test("a value that is no counters is like none", async (t) => {
    const { store } = await temporaryStore(t);
    await rig({ store }).talk(2);
    await store.setValue("session-1", "nudge", { turns_since_memory: "many", armed: "all" });
    await rig({ store }).talk(1);
    assert.deepEqual(await store.getValue("session-1", "nudge"), {
      turns_since_memory: 1,
      iters_since_skill: 0,
      user_turn_count: 1,
      armed: [],
    });
  });
});
