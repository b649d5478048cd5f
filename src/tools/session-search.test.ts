import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { formatWhen, type SessionSearchArgs, searchSessions } from "./session-search.ts";
import { registry } from "./toolset/registry.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const assistant = (content: string): HistoryMessage => ({ role: "assistant", content });

interface Entry {
  session_id: string;
  snippet: string;
  matched_role: string;
  match_message_id: number;
  title: string | null;
  messages: {
    id: number;
    content: string;
    anchor?: boolean;
    content_truncated?: boolean;
    original_content_chars?: number;
  }[];
  bookend_start: { content: string }[];
  bookend_end: { content: string }[];
  parent_session_id?: string;
  source: string;
}

async function past(t: TestContext) {
  const { store, clock, path } = await temporaryStore(t);
  const ask = async (args: SessionSearchArgs, current: string | null = null) =>
    (await searchSessions(store, args, current)) as unknown as Record<string, unknown> & {
      results: Entry[];
      messages: Entry["messages"];
      error: string;
    };
  return { store, clock, path, ask };
}

test("a query finds sessions, each once, with the hit in its surroundings and how the session began and ended", async (t) => {
  const { store, ask } = await past(t);
  await store.create({ id: "a", model: "m" });
  await store.setTitle("a", "zoo trip");
  const talk = Array.from({ length: 20 }, (_, n) => (n % 2 ? assistant(`answer ${n}`) : user(`question ${n}`)));
  talk[10] = user(`\u001b[31mthe walrus\u001b[0m ${"x".repeat(5000)}`);
  talk[1] = assistant("[CONTEXT COMPACTION — REFERENCE ONLY] old things");
  talk[12] = user("walrus again");
  const ids = await store.append("a", talk);
  const result = await ask({ query: "walrus" });
  assert.equal(result.mode, "discover");
  assert.equal(result.count, 1);
  assert.equal(result.sessions_searched, 1);
  const entry = result.results.find((one) => one.session_id === "a");
  assert.ok(entry);
  assert.equal(entry.title, "zoo trip");
  assert.match(entry.snippet, />>>walrus<<</);
  assert.equal(entry.messages.length, 11);
  assert.equal(entry.messages.find((message) => message.anchor)?.id, entry.match_message_id);
  const long = entry.messages.find((message) => message.id === ids[10]);
  assert.deepEqual([long?.content_truncated, long?.original_content_chars, long?.content.length], [true, 5011, 4001]);
  assert.doesNotMatch(long?.content ?? "", /\u001b/);
  assert.equal(
    entry.bookend_start.some((message) => message.content.includes("COMPACTION")),
    false,
  );
  assert.equal(entry.bookend_end.at(-1)?.content, "answer 19");
});

test("what is in the current context is not found; what was compacted away is", async (t) => {
  const { store, ask, path } = await past(t);
  await store.create({ id: "old" });
  await store.append("old", [user("walrus before")]);
  const current = await store.continueAfterCompression("old", [user("summary"), user("walrus now")]);
  await store.create({ id: "sub", parentSessionId: current, modelConfig: { _delegate_from: current } });
  await store.append("sub", [user("walrus in the subagent")]);
  const live = await ask({ query: "walrus" }, current);
  assert.deepEqual(
    live.results.map((entry) => [entry.session_id, entry.parent_session_id]),
    [["old", undefined]],
  );
  assert.equal((await ask({ query: "now" }, current)).count, 0);
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec("UPDATE messages SET active = 0, compacted = 1 WHERE content = 'walrus now'");
  assert.equal((await ask({ query: "now" }, current)).results[0]?.parent_session_id, "old");
});

test("scheduled sessions come after all others, hidden sources not at all, and a title comes first", async (t) => {
  const { store, ask } = await past(t);
  for (const [id, source, text] of [
    ["cron", "cron", "walrus walrus walrus"],
    ["talk", "cli", "one walrus among many other words in a longer text"],
    ["sub", "subagent", "walrus"],
    ["named", "cli", "nothing of the kind"],
  ] as const) {
    await store.create({ id, source });
    await store.append(id, [user(text)]);
  }
  await store.setTitle("named", "walrus");
  const result = await ask({ query: '"walrus"', limit: 10 });
  assert.deepEqual(
    result.results.map((entry) => [entry.session_id, entry.matched_role]),
    [
      ["named", "session_title"],
      ["talk", "user"],
      ["cron", "user"],
    ],
  );
});

test("limit is held between 1 and 10; roles are those asked for", async (t) => {
  const { store, ask } = await past(t);
  for (let n = 0; n < 12; n++) {
    await store.create({ id: `s${n}` });
    await store.append(`s${n}`, [
      user("walrus"),
      { role: "tool", content: "penguin", tool_call_id: "c", tool_name: "x" },
    ]);
  }
  assert.equal((await ask({ query: "walrus" })).count, 3);
  assert.equal((await ask({ query: "walrus", limit: 99 })).count, 10);
  assert.equal((await ask({ query: "walrus", limit: 0 })).count, 1);
  assert.equal((await ask({ query: "penguin" })).count, 0);
  assert.equal((await ask({ query: "penguin", role_filter: "tool" })).count, 3);
  assert.equal(typeof (await ask({ query: "narwhal" })).message, "string");
});

test("scrolling shows the messages around an anchor, also when it lies elsewhere in the conversation", async (t) => {
  const { store, ask } = await past(t);
  await store.create({ id: "old", model: "m" });
  const ids = await store.append(
    "old",
    Array.from({ length: 9 }, (_, n) => user(`n${n}`)),
  );
  const next = await store.continueAfterCompression("old", [user("summary")]);
  const anchor = ids[4] ?? 0;
  const result = await ask({ session_id: "old", around_message_id: anchor, window: 2 });
  assert.deepEqual(
    result.messages.map((message) => message.content),
    ["n2", "n3", "n4", "n5", "n6"],
  );
  assert.deepEqual([result.messages_before, result.messages_after, result.warning], [2, 2, undefined]);
  const rebound = await ask({ session_id: next, around_message_id: anchor });
  assert.equal(rebound.session_id, "old");
  assert.match(String(rebound.warning), /belongs to old/);
});

test("one session is read whole, or its beginning and end", async (t) => {
  const { store, ask } = await past(t);
  await store.create({ id: "short" });
  await store.append("short", [user("one"), assistant("two")]);
  const short = await ask({ session_id: "short" });
  assert.deepEqual([short.mode, short.message_count, short.truncated, short.messages.length], ["read", 2, false, 2]);
  await store.create({ id: "long" });
  await store.append(
    "long",
    Array.from({ length: 40 }, (_, n) => user(`n${n}`)),
  );
  const long = await ask({ session_id: "long" });
  assert.deepEqual([long.truncated, long.messages.length, long.messages.at(-1)?.content], [true, 30, "n39"]);
});

test("without arguments recent sessions are listed, without the current conversation", async (t) => {
  const { store, ask, clock } = await past(t);
  for (const id of ["a", "b", "c", "d"]) {
    clock.ms += 1000;
    await store.create({ id });
    await store.append(id, [user(`hello ${id}`)]);
  }
  const result = await ask({}, "d");
  assert.deepEqual(
    result.results.map((entry) => entry.session_id),
    ["c", "b", "a"],
  );
});

test("every failure says what is wrong", async (t) => {
  const { store, ask } = await past(t);
  await store.create({ id: "a" });
  await store.create({ id: "b" });
  const [own = 0] = await store.append("a", [user("x")]);
  const [foreign = 0] = await store.append("b", [user("y")]);
  const cases: readonly (readonly [SessionSearchArgs, string | null, RegExp])[] = [
    [{ session_id: "nobody" }, null, /unknown session_id/],
    [{ session_id: "nobody", around_message_id: 1 }, null, /unknown session_id/],
    [{ session_id: "a", around_message_id: foreign }, null, /is not in session a/],
    [{ session_id: "a", around_message_id: 999 }, null, /is not in session a/],
    [{ session_id: "a", around_message_id: own }, "a", /current conversation/],
    [{ around_message_id: own }, null, /needs session_id/],
  ];
  for (const [args, current, error] of cases) {
    const result = await ask(args, current);
    assert.equal(result.success, false);
    assert.match(result.error, error);
  }
  await store.close();
  assert.match((await ask({ query: "x" })).error, /search failed: .*closed/);
});

test("the tool is registered, short, and refuses an anchor that is no whole number in its own shape", () => {
  const entry = registry.get("session_search");
  assert.ok(entry);
  assert.ok(entry.spec.description.length <= 900);
  assert.equal(JSON.parse(String(entry.spec.onInvalid?.("around_message_id: not a whole number"))).success, false);
});

test("that nothing was said in the named time is told, and not when something was", async (t) => {
  const { store, clock, ask } = await past(t);
  await store.create({ id: "a" });
  await store.append("a", [user("the walrus is ill")]);
  assert.equal((await ask({ query: "is the walrus ill today?" })).message, undefined);
  clock.ms += 60 * 86_400_000;
  const found = await ask({ query: "was the walrus ill last week?" });
  assert.deepEqual(
    [found.count, found.message],
    [1, "nothing that matches was said in that time; these are from other times"],
  );
});

test("times are told in words, local", () => {
  assert.equal(formatWhen(new Date(2026, 0, 1).getTime() / 1000), "January 01, 2026 at 12:00 AM");
  assert.equal(formatWhen(new Date(2026, 11, 31, 13, 5).getTime() / 1000), "December 31, 2026 at 01:05 PM");
});
