import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { temporaryStore } from "../../../test/support/session-store.ts";
import type { HistoryMessage } from "../../llm/messages.ts";
import type { SearchOptions, SessionStore } from "../store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const tool = (content: string): HistoryMessage => ({ role: "tool", content, tool_call_id: "c", tool_name: "terminal" });

async function contents(store: SessionStore, query: string, options: SearchOptions = {}): Promise<string[]> {
  const all = new Map((await store.load("s")).map((message) => [message.id, String(message.content)]));
  const { hits } = await store.search(query, { limit: 1000, ...options });
  return hits.map((hit) => all.get(hit.id) ?? "?").sort();
}

test("text that needs quoting finds its rows", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s" });
  const rows = [
    "at 100% load",
    "mail user@example.com now",
    "see path/to/file.py",
    "TODO: fix the build",
    "修改youer服务端",
    "C# and C",
    "lift-off 👩‍🚀",
  ];
  await store.append("s", rows.map(user));
  const cases: readonly (readonly [query: string, expected: readonly string[]])[] = [
    ["100%", ["at 100% load"]],
    ["user@example.com", ["mail user@example.com now"]],
    ["path/to/file.py", ["see path/to/file.py"]],
    ["TODO: fix", ["TODO: fix the build"]],
    ["youer", ["修改youer服务端"]],
    ["fi*", ["TODO: fix the build", "see path/to/file.py"].sort()],
    ['"fix the"', ["TODO: fix the build"]],
    ["load OR mail", ["at 100% load", "mail user@example.com now"].sort()],
    ["修改", ["修改youer服务端"]],
    ["youer服务端", ["修改youer服务端"]],
    ["服务端 NOT youer", []],
    ["改 NOT 部署", ["修改youer服务端"]],
    ["部署 OR 修改", ["修改youer服务端"]],
    ["部署 修改", []],
    ["👩‍🚀", ["lift-off 👩‍🚀"]],
    ["🚀 lift", ["lift-off 👩‍🚀"]],
    ["a AND AND b", []],
    ["***", []],
  ];
  for (const [query, expected] of cases) assert.deepEqual(await contents(store, query), expected, query);
});

test("a search is no hit of itself, whichever way rows are found; what was said about it is", async (t) => {
  const { store } = await temporaryStore(t);
  const call = (name: string, args: object) => ({
    ...{ id: "c", type: "function" as const },
    function: { name, arguments: JSON.stringify(args) },
  });
  const bridged = (name: string, args: object) => call("tool_call", { name, arguments: args });
  // Of these the index of parts of words knows no results of tools.
  const cases: readonly (readonly [words: string, expected: readonly number[]])[] = [
    ["walrus", [0, 4, 5, 6, 9, 10]],
    ["海象服务", [0, 4, 5, 9]],
    ["海", [0, 4, 5, 6, 9, 10]],
  ];
  for (const [words, expected] of cases) {
    await store.create({ id: words });
    await store.append(words, [
      user(`said: ${words}`),
      { role: "assistant", content: null, tool_calls: [call("session_search", { query: words })] },
      { role: "tool", content: `${words} ${words} ${words}`, tool_call_id: "c", tool_name: "session_search" },
      { role: "assistant", content: "", tool_calls: [call("session_search", { query: words })] },
      {
        ...{ role: "assistant", content: null },
        tool_calls: [call("session_search", { query: "x" }), call("read_file", { path: words })],
      },
      { role: "assistant", content: `I look for ${words}`, tool_calls: [call("session_search", { query: words })] },
      { role: "tool", content: `file: ${words}`, tool_call_id: "c", tool_name: "read_file" },
      { role: "assistant", content: null, tool_calls: [bridged("session_search", { query: words })] },
      { role: "tool", content: `${words} ${words}`, tool_call_id: "c", tool_name: "tool_call" },
      { role: "assistant", content: null, tool_calls: [bridged("vision_analyze", { question: words })] },
      { role: "tool", content: `seen: ${words}`, tool_call_id: "c", tool_name: "tool_call" },
    ]);
    const ids = (await store.load(words)).map(({ id }) => id);
    for (const sort of [null, "oldest"] as const) {
      const { hits } = await store.search(words, { sort });
      const places = hits.filter((hit) => hit.sessionId === words).map((hit) => ids.indexOf(hit.id));
      assert.deepEqual(
        places.sort((a, b) => a - b),
        expected,
        `${words} ${sort}`,
      );
    }
  }
});

test("every hit shows its own text, in every order", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s" });
  await store.append("s", ["walrus one", "walrus two", "walrus three"].map(user));
  for (const sort of [undefined, "newest", "oldest"] as const) {
    const { hits } = await store.search("walrus", sort ? { sort } : {});
    const all = new Map((await store.load("s")).map((message) => [message.id, message.content]));
    for (const hit of hits) assert.equal(hit.snippet, String(all.get(hit.id)).replace("walrus", ">>>walrus<<<"));
    assert.equal(hits.length, 3);
  }
});

test("a hit names its session and shows its neighbours, with the found words marked", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "s", model: "m1", source: "telegram" });
  await store.append("s", [user("first"), { role: "assistant", content: "the walrus sings" }, user("x".repeat(300))]);
  const { hits } = await store.search("walrus");
  assert.equal(hits.length, 1);
  const [hit] = hits;
  assert.equal(hit?.sessionId, "s");
  assert.equal(hit?.snippet, "the >>>walrus<<< sings");
  assert.equal(hit?.source, "telegram");
  assert.equal(hit?.model, "m1");
  assert.equal(hit?.sessionStarted, clock.now() / 1000);
  assert.deepEqual(
    hit?.context.map((message) => message.content),
    ["first", "the walrus sings", "x".repeat(200)],
  );
});

test("filters by source and role, order and pages are honoured on every route", async (t) => {
  const { store, clock } = await temporaryStore(t);
  for (const source of ["cli", "cron"]) await store.create({ id: source, source });
  for (let n = 0; n < 4; n++) {
    clock.ms += 1000;
    await store.append(n % 2 ? "cron" : "cli", [user(`deploy 数据库 v${n} 部署`), tool(`deploy 数据库 out${n} 部署`)]);
  }
  for (const query of ["deploy", "数据库", "部署"]) {
    const ids = async (options: SearchOptions) => (await store.search(query, options)).hits.map((hit) => hit.id);
    assert.deepEqual(await ids({ roleFilter: ["user"], sort: "newest" }), [7, 5, 3, 1], query);
    assert.deepEqual(await ids({ roleFilter: ["user"], sort: "oldest" }), [1, 3, 5, 7], query);
    assert.deepEqual(await ids({ roleFilter: ["user"], sort: "newest", sourceFilter: ["cron"] }), [7, 3], query);
    assert.deepEqual(await ids({ roleFilter: ["user"], sort: "newest", excludeSources: ["cron"] }), [5, 1], query);
    assert.deepEqual(await ids({ roleFilter: ["user"], sort: "newest", limit: 2, offset: 1 }), [5, 3], query);
    assert.deepEqual((await ids({ roleFilter: ["tool"], sort: "oldest" })).length, 4, query);
  }
});

test("text behind a NUL byte and in parts is found on every route", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s" });
  await store.append("s", [
    { role: "user", content: [{ type: "text", text: "look at the walrus 修改服务端" }] },
    tool("before\u0000after 部署 Penguin"),
  ]);
  for (const query of ["walrus", "修改服务端", "修改", "walrus 修改"]) {
    const { hits } = await store.search(query);
    assert.equal(hits[0]?.id, 1, query);
    assert.match(hits[0]?.snippet ?? "", />>>/, query);
    assert.doesNotMatch(hits[0]?.snippet ?? "", /json:/, query);
  }
  for (const query of ["penguin", "部署", "部署 penguin"])
    assert.equal((await store.search(query)).hits[0]?.id, 2, query);
});

test("rows an unfinished rebuild has not reached are found all the same, and the result says so", async (t) => {
  const { store, path } = await temporaryStore(t);
  await store.create({ id: "s" });
  await store.append("s", ["walrus one", "walrus two", "walrus three", "other"].map(user));
  const other = new DatabaseSync(path, { timeout: 10_000 });
  other.exec(`INSERT INTO messages_fts(messages_fts, rowid, content, tool_name, tool_calls) SELECT 'delete', id, content, tool_name, tool_calls FROM messages WHERE id IN (2, 3);
    INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '3'), ('fts_rebuild_progress', '1')`);
  other.close();
  const result = await store.search("walrus");
  assert.deepEqual(result.hits.map((hit) => hit.id).sort(), [1, 2, 3]);
  assert.equal(result.indexRebuild?.percent, 33);
});

test("recall: what the indexes find is what reading every row would find", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s" });
  const word = fc.oneof(
    fc.string({ unit: fc.constantFrom(..."abAB"), minLength: 1, maxLength: 4 }),
    fc.string({ unit: fc.constantFrom(..."部署数据库あ가"), minLength: 1, maxLength: 5 }),
    fc.tuple(fc.constantFrom("ab", "abb", "B"), fc.constantFrom("部署", "数据库", "数据库部署")).map(([a, b]) => a + b),
  );
  const rows = fc
    .sample(fc.array(word, { minLength: 1, maxLength: 6 }), { numRuns: 400, seed: 7 })
    .map((words) => words.join(" "));
  await store.append("s", rows.map(user));
  const lower = (text: string) => text.toLowerCase();
  const cjk = (text: string) => /[^\sa-z]/i.test(text);
  const naive = (query: string) => {
    const terms = query.split(" ");
    const inside = rows.filter((row) => terms.every((term) => lower(row).includes(lower(term))));
    if (terms.some(cjk)) return inside;
    const words = (row: string): readonly string[] => lower(row).match(/[a-z]+|[^\sa-z]+/g) ?? [];
    const whole = rows.filter((row) => terms.every((term) => words(row).includes(lower(term))));
    return whole.length > 0 || terms.some((term) => term.length < 3) ? whole : inside;
  };
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 3 }), async (terms) => {
      const query = terms.join(" ");
      assert.deepEqual(await contents(store, query), naive(query).sort(), query);
    }),
    { numRuns: 300 },
  );
});

test("OR and NOT between terms mean the same on the trigram index and row by row", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s" });
  const rows = fc
    .sample(fc.subarray(["部署了", "数据库", "服务端", "ab", "x"], { minLength: 1 }), { numRuns: 60, seed: 3 })
    .map((words) => words.join("，"));
  await store.append("s", rows.map(user));
  const term = fc.constantFrom("部署了", "数据库", "服务端");
  await fc.assert(
    fc.asyncProperty(term, fc.constantFrom("AND", "OR", "NOT"), term, async (a, operator, b) => {
      const has = (row: string, text: string) => row.includes(text);
      const wanted = rows.filter((row) =>
        operator === "AND"
          ? has(row, a) && has(row, b)
          : operator === "OR"
            ? has(row, a) || has(row, b)
            : has(row, a) && !has(row, b),
      );
      assert.deepEqual(await contents(store, `${a} ${operator} ${b}`), wanted.sort());
      const short = (text: string) => text.slice(0, 2);
      assert.deepEqual(await contents(store, `${short(a)} ${operator} ${short(b)}`), wanted.sort());
    }),
  );
});

test("a long run of one letter is found and shown without effort that grows with its square", {
  timeout: 60_000,
}, async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "s1" });
  await store.append("s1", [
    { role: "user", content: `zebra ${"a".repeat(400_000)} tail` },
    { role: "assistant", content: "牙".repeat(200_000) },
  ]);
  for (const query of ["aaa", "a".repeat(56), "牙牙牙牙", "zebra"]) {
    const { hits } = await store.search(query);
    assert.equal(hits.length, 1, query);
    assert.match(hits[0]?.snippet ?? "", />>>/);
    assert.ok((hits[0]?.snippet.length ?? 0) < 1000);
  }
});
