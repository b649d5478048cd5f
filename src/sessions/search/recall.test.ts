import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { temporaryStore } from "../../../test/support/session-store.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { RecallOptions } from "../store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const assistant = (content: string): HistoryMessage => ({ role: "assistant", content });
const DAY = 86_400_000;

async function past(t: TestContext, talks: Readonly<Record<string, readonly (string | HistoryMessage)[]>>) {
  const rig = await temporaryStore(t);
  for (const [id, messages] of Object.entries(talks)) {
    await rig.store.create({ id });
    await rig.store.append(
      id,
      messages.map((one) => (typeof one === "string" ? user(one) : one)),
    );
    rig.clock.ms += 10 * DAY;
  }
  const found = async (question: string, options: RecallOptions = {}) =>
    (await rig.store.recall(question, options)).conversations.map(({ root }) => root);
  return { ...rig, found };
}

const TALKS = {
  dentist: ["I made an appointment with the dentist", assistant("Tuesday at nine, then.")],
  paint: ["Caroline painted the old lighthouse last weekend", assistant("What a lovely motif!")],
  牙医: ["我约了牙医，周三上午去", assistant("好的，记下了。")],
  docker: ["用docker运行postgres，端口改成5433", assistant("没问题。")],
  again: ["the dentist called, the filling has to be done again"],
};

test("a question as people ask it finds the conversation, whatever the form of its words", async (t) => {
  const { found } = await past(t, TALKS);
  const cases: readonly (readonly [question: string, first: string])[] = [
    ["What was Caroline painting?", "paint"],
    ["did we ever speak about lighthouses", "paint"],
    ["when did I last mention the dentist?", "again"],
    ["what was the first thing I said about the dentist?", "dentist"],
    ["我上次提到牙医是什么时候？", "牙医"],
    ["我什麼時候看牙醫？", "牙医"],
    ["postgres的端口是多少？", "docker"],
    ["which docker port did we choose", "docker"],
  ];
  for (const [question, first] of cases) assert.equal((await found(question))[0], first, question);
});

test("what somebody asked before does not stand before what was told", async (t) => {
  const { found } = await past(t, {
    ...TALKS,
    asked: ["when did I last mention the dentist?", assistant("I cannot tell.")],
    问过: ["我上次提到牙医是什么时候？"],
  });
  assert.equal((await found("when did I last mention the dentist?", { roleFilter: ["assistant"] })).length, 0);
  assert.equal((await found("when have I mentioned the dentist last?"))[0], "again");
  assert.equal((await found("when did I last mention the dentist?"))[0], "again", "in the very same words");
  assert.equal((await found("我上次提到牙医是什么时候？"))[0], "牙医");
  assert.equal((await found("上次说到牙医是哪天"))[0], "牙医");
});

test("a result says which words matched and which did not, and shows the passage", async (t) => {
  const { store } = await past(t, TALKS);
  const { conversations } = await store.recall("Which lighthouse did Caroline sketch?");
  const [best] = conversations;
  assert.deepEqual([best?.relaxed, best?.matched, best?.missing], [true, ["lighthouse", "Caroline"], ["sketch"]]);
  assert.equal(best?.hits[0]?.snippet, ">>>Caroline<<< painted the old >>>lighthouse<<< last weekend");
});

test("exact matches come first, and what has only some of the words follows as such", async (t) => {
  const { store } = await past(t, {
    some: ["the walrus is a fine animal, a walrus, the walrus"],
    all: ["a penguin, and far away a walrus"],
  });
  const { conversations } = await store.recall("walrus penguin");
  assert.deepEqual(
    conversations.map(({ root, relaxed }) => [root, relaxed]),
    [
      ["all", false],
      ["some", true],
    ],
  );
});

test("operators command: such a query finds what it says and nothing else", async (t) => {
  const { store, found } = await past(t, TALKS);
  const cases: readonly (readonly [query: string, expected: readonly string[]])[] = [
    ['"dentist painting"', []],
    ['"the dentist"', ["again", "dentist"]],
    ["dentist NOT filling", ["dentist"]],
    ["filling OR lighthouse", ["again", "paint"]],
    ["light*", ["paint"]],
    ["dentist AND walrus", []],
  ];
  for (const [query, expected] of cases) {
    assert.deepEqual((await found(query)).sort(), expected, query);
    const strict = new Set((await store.search(query, { limit: 100 })).hits.map(({ sessionId }) => sessionId));
    assert.deepEqual([...strict].sort(), expected, query);
  }
});

test("nothing that matches is an honest nothing", async (t) => {
  const { found } = await past(t, TALKS);
  for (const question of ["narwhal", "quantum chromodynamics", "火星移民", "what is it?", "", "???"])
    assert.deepEqual(await found(question), [], question);
});

test("a typing error is forgiven and told", async (t) => {
  const { store } = await past(t, TALKS);
  for (const typed of ["dentsit", "dentst", "ddentist", "edntist", "lighthuose"]) {
    const result = await store.recall(`the ${typed}?`);
    assert.match(result.conversations[0]?.root ?? "", /dentist|again|paint/, typed);
    assert.equal(result.readAs?.[0]?.typed, typed);
  }
  assert.equal((await store.recall("dentist")).readAs, undefined);
  const far = await past(t, { ...TALKS, trip: ["we climbed Kilimanjaro"] });
  const two = await far.store.recall("the kilmanjarro?"); // two errors, in a word that is long enough for them
  assert.deepEqual([two.conversations[0]?.root, two.readAs?.[0]?.typed], ["trip", "kilmanjarro"]);
  assert.deepEqual((await far.store.recall("the dnetsit?")).conversations, []);
});

test("time is part of a question: what was said then comes first, and nothing but a time finds all of it", async (t) => {
  const { store, clock, found } = await past(t, {
    january: ["the walrus swam in circles, a walrus, the walrus"],
    later: ["we saw a walrus on the ice"],
    empty: ["nothing of interest"],
  });
  clock.ms = Date.UTC(2026, 0, 14, 12);
  const { time, conversations } = await store.recall("where was the walrus this week?");
  assert.equal(time?.phrase, "this week");
  assert.equal(conversations[0]?.root, "later");
  assert.deepEqual(await found("what did we talk about 2 weeks ago?"), ["january"]);
  assert.deepEqual(await found("这周聊了什么？"), ["later"]);
});

test("a named time is not outvoted by saying the word more often, nor by having its words", async (t) => {
  const { store, clock, found } = await past(t, {
    often: ["the walrus, a walrus, the walrus", "walrus and walrus", assistant("A walrus indeed.")],
    literal: ["last week we saw a walrus"],
    titled: ["we spoke about the walrus at length"],
    meant: ["a walrus slept on the ice while we waited for the boat in the long grey morning"],
    now: ["nothing of interest"],
  });
  await store.setTitle("titled", "Walrus");
  clock.ms = Date.UTC(2026, 1, 8, 12);
  assert.equal((await found("what did I say about the walrus last week?"))[0], "meant");
  assert.equal((await found("walrus last week"))[0], "meant");
  assert.equal((await found("上周说的walrus"))[0], "meant");
  const { time } = await store.recall("the walrus last week");
  assert.equal(time?.empty, false);
});

test("in a long conversation only what was said in the named time is of that time", async (t) => {
  const { store, clock, found } = await past(t, {
    long: ["walrus, walrus, walrus", "walrus, walrus, walrus", "walrus, walrus, walrus"],
    short: ["a walrus came by while we waited for the boat in the long grey morning"],
  });
  await store.append("long", [user("other things altogether")]);
  clock.ms += DAY;
  const week = new Date(clock.ms - 11 * DAY);
  const day = `${week.getFullYear()}-${week.getMonth() + 1}-${week.getDate()}`;
  assert.equal((await found(`what about the walrus on ${day}?`))[0], "short");
});

test("a named time weighs more than one more word, less than all of them; a title is of the time of its conversation", async (t) => {
  const { store, clock, found } = await past(t, {
    full: ["Okafor returned the wrench and the crate"],
    more: ["the grey heron by the lake is loud"],
    titled: ["hello there"],
    part: ["return the books", "a grey heron by the lake"],
    now: ["nothing of interest"],
  });
  await store.setTitle("titled", "Ibis");
  clock.ms = Date.UTC(2026, 1, 8, 12);
  assert.equal((await found("did Okafor return the wrench last week?"))[0], "full");
  assert.equal((await found("was the grey heron by the lake loud last week?"))[0], "part");
  await store.create({ id: "ibis" });
  await store.append("ibis", [user("an ibis, the ibis, ibises")]);
  assert.equal((await found("an ibis"))[0], "ibis");
  assert.equal((await found("the ibis in January"))[0], "titled");
});

test("the passage shown is the one with the words in one sentence", async (t) => {
  const filler = "Then it rained. We drank tea. Nobody complained about anything at all.";
  const { store } = await past(t, {
    s: [
      "Okafor, Okafor!",
      "The wrench!",
      assistant("Fine."),
      user("Good."),
      `${filler} I lent Okafor the wrench. ${filler}`,
    ],
    t: ["Okafor is well"],
    u: ["a wrench", "another thing"],
  });
  const { conversations } = await store.recall("who has the wrench of Okafor?");
  assert.match(conversations[0]?.hits[0]?.snippet ?? "", /I lent/);
});

test("it is said when nothing that matches was said in the named time", async (t) => {
  const { store, clock } = await past(t, { old: ["the walrus is ill"], new: ["nothing of interest"] });
  clock.ms += 60 * DAY;
  const { time, conversations } = await store.recall("was the walrus ill last week?");
  assert.deepEqual([time?.phrase, time?.empty, conversations[0]?.root], ["last week", true, "old"]);
  assert.equal((await store.recall("what happened last week?")).time?.empty, true);
});

test("a name and a thing in one sentence come before the same far apart, and before other names", async (t) => {
  const filler = "Then it rained. We drank tea. Nobody complained about anything at all.";
  const { found } = await past(t, {
    together: [`${filler} Okafor took the crate home. ${filler} The wrench lay about.`],
    apart: [`The wrench lay about. ${filler} ${filler} Okafor took it easy. ${filler}`],
    other: ["Brennan borrowed the crate", "Brennan borrowed the wrench", assistant("Noted."), "Okafor says hello"],
    wrench: [`${filler} Okafor has the wrench now. ${filler} Another crate came.`],
    郑: ["周婷借了投影仪", assistant("好的"), "孙浩说你好"],
    孙: ["投影仪在孙浩那里，下周还"],
  });
  assert.equal((await found("did I lend the wrench to Okafor?"))[0], "wrench");
  assert.equal((await found("where is the crate of Okafor?"))[0], "together");
  assert.equal((await found("孙浩借投影仪了吗？"))[0], "孙");
});

test("how far the first index has come is told", async (t) => {
  const { store } = await past(t, { many: Array.from({ length: 1200 }, (_, n) => `message ${n}`) });
  const told: (readonly [done: number, total: number])[] = [];
  const onIndexing = (done: number, total: number) => void told.push([done, total]);
  await store.recall("message", { onIndexing });
  assert.deepEqual(told, [
    [500, 1200],
    [1000, 1200],
    [1200, 1200],
  ]);
  await store.recall("message", { onIndexing });
  assert.equal(told.length, 3);
});

test("an event is a time too", async (t) => {
  const { store, found } = await past(t, {
    before: ["the kitchen of our flat is yellow"],
    event: ["today was the move, all boxes are in the new house"],
    after: ["the kitchen of our flat is green"],
  });
  assert.equal((await found("which kitchen did our flat have before the move?"))[0], "before");
  assert.equal((await found("which kitchen did our flat have after the move?"))[0], "after");
  assert.equal((await store.recall("which kitchen before the move?")).time?.phrase, "before the move");
});

test("a title counts, and a compressed conversation is one", async (t) => {
  const { store, found } = await past(t, {
    titled: ["hello there", "general talk"],
    mentions: ["somebody said budget once, in a long sentence about very many other things"],
    old: ["the aquarium leaks"],
  });
  await store.setTitle("titled", "Household budget");
  assert.equal((await found("how was our household budget made?"))[0], "titled");
  const next = await store.continueAfterCompression("old", [user("summary: an aquarium")]);
  await store.append(next, [user("the aquarium is sealed now")]);
  assert.deepEqual(await found("leaking aquariums"), ["old"]);
});

test("what was taken back, hidden sources and other roles are not found", async (t) => {
  const { store, found } = await past(t, { s: ["the flamingo stands", "the heron stands"], t: ["a flamingo"] });
  const rows = await store.load("s");
  assert.equal((await found("flamingos stand"))[0], "s");
  await store.rewind("s", rows[0]?.id ?? 0);
  assert.deepEqual(await found("flamingos standing"), ["t"]);
  await store.create({ id: "sub", source: "subagent" });
  await store.append("sub", [
    user("flamingo flamingo"),
    { role: "tool", content: "鹈鹕飞了", tool_call_id: "c", tool_name: "x" },
  ]);
  assert.deepEqual(await found("flamingo?", { excludeSources: ["subagent"] }), ["t"]);
  assert.deepEqual(await found("flamingo?", { sourceFilter: ["subagent"] }), ["sub"]);
  assert.deepEqual(await found("鹈鹕在哪里", { roleFilter: ["user", "assistant"] }), []);
  assert.deepEqual(await found("鹈鹕在哪里", { roleFilter: ["tool"] }), ["sub"]);
});

test("the window is around the passage that answers, not the first mention", async (t) => {
  const talk = Array.from({ length: 30 }, (_, n) => user(`line ${n} about the garden`));
  talk[22] = user("the garden gate key hangs behind the freezer");
  const { store } = await past(t, { s: talk });
  const { conversations } = await store.recall("where does the key of the garden gate hang?");
  assert.match(conversations[0]?.hits[0]?.snippet ?? "", /behind the freezer/);
});

test("jobs of the clock come after what people said", async (t) => {
  const { store, found } = await past(t, { talk: ["an ibis among many other birds in a longer sentence"] });
  await store.create({ id: "job", source: "cron" });
  await store.append("job", [user("ibis ibis ibis")]);
  assert.deepEqual(await found("any ibises?"), ["talk", "job"]);
});
