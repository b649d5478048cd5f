import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { providerContext, SESSION } from "../../../test/support/memory-provider.ts";
import { tempHome } from "../../../test/support/temp-home.ts";
import { unicodeText } from "../../../test/support/unicode-text.ts";
import { countCodePoints } from "../../kit/code-points.ts";
import type { MemoryProvider } from "./contract.ts";
import { localProvider } from "./local.ts";

async function openLocal(t: TestContext) {
  const home = await tempHome();
  const made: MemoryProvider[] = [];
  t.after(async () => {
    for (const provider of made) await provider.shutdown?.();
    await home[Symbol.asyncDispose]();
  });
  const context = providerContext(home.dir);
  const open = async (sessionId: string, change: object = {}) => {
    const provider = localProvider(context);
    made.push(provider);
    await provider.initialize(sessionId, { ...SESSION, ...change });
    return provider;
  };
  return { home, context, open };
}

const about = (sessionId: string) => ({ sessionId, messages: [], signal: new AbortController().signal });
const say = (provider: MemoryProvider, sessionId: string, user: string, answer = "Noted.") =>
  provider.syncTurn?.(user, answer, about(sessionId));
const recall = async (provider: MemoryProvider, query: string) =>
  String(await provider.prefetch?.(query, about("now")));
const call = (provider: MemoryProvider, name: string, args: Record<string, unknown>) =>
  provider.handleToolCall?.(name, args) as Record<string, never>;

test("what was said in one session comes back in another, with its day", async (t) => {
  const { open } = await openLocal(t);
  const old = await open("old");
  await say(old, "old", "The harbour pilot is called Ada Lovelace", "I will remember Ada.");
  await say(old, "old", "Pizza for lunch again");
  const next = await open("new");
  const text = await recall(next, "who is the pilot of the harbour?");
  assert.match(text, /^\[2027-01-15\] User: The harbour pilot is called Ada Lovelace You: I will remember Ada\.$/);
});

test("what was said in this very session is not recalled, nor after it went on under another id", async (t) => {
  const { open } = await openLocal(t);
  const provider = await open("one");
  await say(provider, "one", "The harbour pilot is Ada");
  assert.equal(await recall(provider, "the harbour pilot"), "");
  await provider.onSessionSwitch?.("two", { parentSessionId: "one" });
  assert.equal(await recall(provider, "the harbour pilot"), "");
  await provider.onSessionSwitch?.("three", { parentSessionId: "two", reset: true });
  assert.match(await recall(provider, "the harbour pilot"), /Ada/);
});

for (const [said, question] of [
  ["数据库的密码放在保险柜里", "密码在哪里？"],
  ["修改youer服务端的配置", "youer 怎么配置"],
  ["サーバーは大阪にあります", "大阪のサーバーはどこ"],
  ["서버는 부산에 있습니다", "부산 서버 위치"],
  ["Die Brücke über den Fluß ist gesperrt", "Ist die Brücke offen?"],
] as const) {
  test(`${question} finds ${said}`, async (t) => {
    const { open } = await openLocal(t);
    await say(await open("old"), "old", said);
    await say(await open("old"), "old", "something else entirely, about cooking");
    assert.ok((await recall(await open("new"), question)).includes(said));
  });
}

test("a question that shares one common word with everything recalls nothing", async (t) => {
  const { open } = await openLocal(t);
  await say(await open("old"), "old", "the meeting about budget, staff, rent and travel");
  assert.equal(await recall(await open("new"), "what did the meeting with the zebra vendor in Lisbon cost us"), "");
});

test("a recall has at most five passages of 400 characters, 2,000 in all, whatever was said", async (t) => {
  const { open } = await openLocal(t);
  const old = await open("old");
  for (let n = 0; n < 9; n++) await say(old, "old", `harbour ${"ship ".repeat(300)} ${n}`, "港口".repeat(500));
  const text = await recall(await open("new"), "harbour 港口");
  const passages = text.split("\n\n");
  assert.equal(passages.length, 5);
  assert.ok(passages.every((passage) => countCodePoints(passage) <= 400));
  assert.ok(countCodePoints(text) <= 2000);
});

test("entries of the built-in memory are mirrored, followed when they change, and kept out of recalls", async (t) => {
  const { open } = await openLocal(t);
  const provider = await open("old");
  const meta = {
    ...{ write_origin: "foreground", execution_context: "primary", session_id: "old" },
    ...{ parent_session_id: null, platform: "cli", tool_name: "memory" },
  };
  await provider.onMemoryWrite?.("add", "user", "Drinks coffee at noon", meta);
  assert.equal(call(provider, "recall_search", { query: "coffee" }).count, 1);
  await provider.onMemoryWrite?.("replace", "user", "Drinks tea at noon", { ...meta, old_text: "coffee" });
  assert.equal(call(provider, "recall_search", { query: "coffee" }).count, 0);
  assert.equal(call(provider, "recall_search", { query: "tea" }).count, 1);
  assert.equal(await recall(await open("new"), "tea at noon"), "");
  await provider.onMemoryWrite?.("remove", "user", "", { ...meta, old_text: "tea" });
  assert.equal(call(provider, "recall_search", { query: "noon" }).count, 0);
});

test("a run that is not the user's own writes nothing", async (t) => {
  const { open } = await openLocal(t);
  const provider = await open("job", { agentContext: "cron" });
  await say(provider, "job", "The harbour is closed");
  assert.equal(call(provider, "recall_search", { query: "harbour" }).count, 0);
});

test("recall_search knows AND, OR, NOT, phrases, prefixes and short terms; recall_forget removes for good", async (t) => {
  const { open } = await openLocal(t);
  const provider = await open("old");
  await say(provider, "old", "red ship in berth four");
  await say(provider, "old", "blue ship in berth five");
  await say(provider, "old", "港口 is closed");
  const texts = (query: string) =>
    (call(provider, "recall_search", { query }).results as unknown as { text: string }[]).map(({ text }) => text);
  assert.equal(texts("ship berth").length, 2);
  assert.equal(texts("red OR blue").length, 2);
  assert.equal(texts("ship NOT red").length, 1);
  assert.equal(texts('"red ship"').length, 1);
  assert.equal(texts("ber*").length, 2);
  assert.equal(texts("港口").length, 1);
  assert.equal(texts("港").length, 1);
  const [{ id }] = call(provider, "recall_search", { query: "red" }).results as unknown as [{ id: number }];
  assert.equal(call(provider, "recall_forget", { id }).success, true);
  assert.equal(texts("red").length, 0);
  assert.equal(call(provider, "recall_forget", { id }).success, false);
  assert.equal(call(provider, "recall_forget", { id: "x" }).success, false);
  assert.equal(call(provider, "recall_search", { query: " " }).success, false);
});

test("no question, however odd, breaks a recall or a search", async (t) => {
  const { open } = await openLocal(t);
  const provider = await open("old");
  await say(provider, "old", 'anything 港口 \u0000 "quoted" AND (odd)');
  const other = await open("new");
  await fc.assert(
    fc.asyncProperty(unicodeText({ maxLength: 60 }), async (text) => {
      await recall(other, text);
      call(other, "recall_search", { query: text || "x" });
    }),
    { numRuns: 200 },
  );
});

test("a new file has a write-ahead log; one that is there keeps the journal it has", async (t) => {
  const { home, open } = await openLocal(t);
  const journal = (set = "") => {
    const db = new DatabaseSync(home.at("memory-local.db"), { timeout: 10_000 });
    try {
      return Object.values(db.prepare(`PRAGMA journal_mode${set}`).get() ?? {})[0];
    } finally {
      db.close();
    }
  };
  await (await open("one")).shutdown?.();
  assert.equal(journal(), "wal");
  assert.equal(journal("=DELETE"), "delete");
  const provider = await open("two");
  await say(provider, "two", "The harbour pilot is Ada");
  await provider.shutdown?.();
  assert.equal(journal(), "delete");
});

test("the status tells the file, its size and how much is in it", async (t) => {
  const { home, open } = await openLocal(t);
  const provider = await open("old");
  await say(provider, "old", "one");
  const [line = ""] = (await provider.status?.()) ?? [];
  assert.match(line, /memory-local\.db: \d+ KB, 1 turn, 0 memory entries/);
  assert.ok((await stat(home.at("memory-local.db"))).size > 0);
  assert.deepEqual(provider.backupPaths?.(), [home.at("memory-local.db")]);
});

test("a plain question ranks as in past sessions: forms of words, typing errors, traditional characters", async (t) => {
  const { open, home } = await openLocal(t);
  const old = await open("old");
  await say(old, "old", "Caroline painted the old lighthouse");
  await say(old, "old", "我约了牙医，周三上午去");
  const next = await open("new");
  for (const [question, expected] of [
    ["what is Caroline painting?", /lighthouse/],
    ["which lighthuose was it", /lighthouse/],
    ["什麼時候看牙醫", /周三上午/],
  ] as const) {
    assert.match(await recall(next, question), expected, question);
    assert.match(JSON.stringify(call(next, "recall_search", { query: question })), expected, question);
  }
  assert.equal((call(next, "recall_search", { query: '"painting lighthouses"' }) as Record<string, unknown>).count, 0);
  const { results } = call(next, "recall_search", { query: "lighthouses" }) as unknown as { results: { id: number }[] };
  call(next, "recall_forget", { id: results[0]?.id });
  assert.equal(await recall(next, "what is Caroline painting?"), "");
  const file = new DatabaseSync(`${home.dir}/memory-local.db`, { readOnly: true, timeout: 10_000 });
  t.after(() => file.close());
  assert.deepEqual(file.prepare("SELECT term FROM postings WHERE term LIKE 'lighthous%'").all(), []);
});

test("of passages with the same words, the one that says them in one sentence comes first", async (t) => {
  const { open } = await openLocal(t);
  const old = await open("old");
  const filler = "Then it rained. We drank tea. Nobody complained about anything at all.";
  await say(old, "old", `${filler} Okafor has the wrench now. ${filler} Another crate came.`);
  await say(old, "old", `${filler} Okafor took the crate home. ${filler} The wrench lay about.`);
  const next = await open("new");
  for (const [question, first] of [
    ["did I lend the wrench to Okafor?", /has the wrench/],
    ["where is the crate of Okafor?", /took the crate/],
  ] as const)
    assert.match(String(await recall(next, question)).split("\n\n")[0] ?? "", first, question);
});

test("passages that an earlier version kept are ranked too", async (t) => {
  const { open, home } = await openLocal(t);
  const old = await open("old");
  await say(old, "old", "Caroline painted the old lighthouse");
  await old.shutdown?.();
  const db = new DatabaseSync(`${home.dir}/memory-local.db`);
  db.exec(
    "DROP TABLE IF EXISTS postings; DROP TABLE IF EXISTS segments; DROP TABLE IF EXISTS groups; DROP TABLE IF EXISTS meta",
  );
  db.close();
  assert.match(await recall(await open("new"), "paintings of lighthouses"), /lighthouse/);
});
