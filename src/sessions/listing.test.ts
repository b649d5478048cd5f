import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { findLatest } from "./session-id.ts";
import type { ListOptions } from "./store.ts";

/** Numbers that look like chance, the same each time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

const user = (content: string): HistoryMessage => ({ role: "user", content });

test("a conversation is one line: shown as its tip, begun when its root began, named by its newest title", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const began = clock.now() / 1000;
  await store.create({ id: "root" });
  await store.append("root", [user("first question")]);
  await store.setTitle("root", "deal");
  clock.ms += 60_000;
  const middle = await store.continueAfterCompression("root", [user("summary")]);
  await store.setTitle(middle, null);
  clock.ms += 60_000;
  const tip = await store.continueAfterCompression(middle, [user("summary 2")]);
  const items = await store.list();
  assert.equal(items.length, 1);
  const [item] = items;
  assert.deepEqual(
    [item?.id, item?.lineageRootId, item?.startedAt, item?.title, item?.preview, item?.endedAt],
    [tip, "root", began, "deal", "summary 2", null],
  );
  assert.deepEqual(
    (await store.list({ projectTips: false })).map((one) => one.id),
    ["root"],
  );
  assert.equal((await store.list({ includeChildren: true, projectTips: false })).length, 3);
});

test("delegates are hidden unless their source is asked for, branches are lines of their own", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.create({ id: "sub", parentSessionId: "a", source: "subagent", modelConfig: { _delegate_from: "a" } });
  await store.create({ id: "marked", parentSessionId: "a", modelConfig: { _branched_from: "a" } });
  await store.end("a", "branched");
  clock.ms += 1000;
  await store.create({ id: "unmarked", parentSessionId: "a" });
  assert.deepEqual((await store.list()).map((item) => item.id).sort(), ["a", "marked", "unmarked"]);
  assert.deepEqual(
    (await store.list({ source: "subagent" })).map((item) => item.id),
    ["sub"],
  );
});

test("order, pages and filters", async (t) => {
  const { store, clock } = await temporaryStore(t);
  for (const [id, source] of [
    ["old", "cli"],
    ["mid", "telegram"],
    ["new", "tool"],
  ] as const) {
    clock.ms += 1000;
    await store.create({ id, source });
  }
  clock.ms += 1000;
  await store.append("old", [user("later")]);
  await store.setTitle("mid", "AN-94 rifle");
  const ids = async (options?: ListOptions) => (await store.list(options)).map((item) => item.id);
  assert.deepEqual(await ids(), ["new", "mid", "old"]);
  assert.deepEqual(await ids({ orderByLastActive: true }), ["old", "new", "mid"]);
  assert.deepEqual(await ids({ limit: 1, offset: 1 }), ["mid"]);
  assert.deepEqual(await ids({ source: "cli" }), ["old"]);
  assert.deepEqual(await ids({ sources: ["cli", "tool"] }), ["new", "old"]);
  assert.deepEqual(await ids({ excludeSources: ["tool"] }), ["mid", "old"]);
  assert.deepEqual(await ids({ minMessageCount: 1 }), ["old"]);
  assert.deepEqual(await ids({ search: "an94" }), ["mid"]);
  assert.deepEqual(await ids({ search: "OLD" }), ["old"]);
  await store.update("mid", { archived: true });
  assert.deepEqual(await ids(), ["new", "old"]);
  assert.deepEqual(await ids({ includeArchived: true }), ["new", "mid", "old"]);
  assert.equal(await findLatest(store), "old");
});

const previews: readonly (readonly [HistoryMessage, string])[] = [
  [user("  one\ntwo  "), "one two"],
  [user("字".repeat(61)), `${"字".repeat(60)}...`],
  [{ role: "user", content: [{ type: "text", text: "parts" }] }, "parts"],
  [user('[The user invoked the "git-flow" skill. Follow it.]\n\nmake a release'), "/git-flow make a release"],
  [user('["quoted"] list'), '["quoted"] list'],
];
for (const [message, preview] of previews) {
  test(`the preview of ${JSON.stringify(message.content).slice(0, 40)} is ${preview.slice(0, 30)}`, async (t) => {
    const { store } = await temporaryStore(t);
    await store.create({ id: "a" });
    await store.append("a", [message, user("second")]);
    assert.equal((await store.list())[0]?.preview, preview);
  });
}

test("the first lines of many sessions are those of the whole list, whoever wrote them and whatever goes on in which", async (t) => {
  const { store, path } = await temporaryStore(t);
  const other = new DatabaseSync(path, { timeout: 10_000 });
  t.after(() => other.close());
  other.exec("BEGIN");
  const insert = other.prepare(
    "INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id, last_activity_at, model_config) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const say = other.prepare("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', ?)");
  const random = seeded(3);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let n = 0; n < 1500; n++) {
    const kind = n < 10 ? 0 : below(10);
    const parent = kind >= 8 ? `s${below(n)}` : null;
    const activity = kind % 3 === 0 ? null : n * 10 + below(5000);
    const end = kind % 2 === 0 ? "compression" : null;
    const config = kind === 9 ? '{"_branched_from":"x"}' : below(20) === 0 ? '{"_delegate_from":"x"}' : null;
    insert.run(
      `s${n}`,
      ["cli", "telegram", "tool"][below(3)] ?? "",
      n * 10,
      end && n * 10 + 5,
      end,
      parent,
      activity,
      config,
    );
    // The original's: only their messages tell that they went on.
    if (kind % 3 === 0) say.run(`s${n}`, n * 10 + 3);
  }
  other.exec("COMMIT");
  const cases: readonly ListOptions[] = [
    {},
    { orderByLastActive: true },
    { orderByLastActive: true, source: "telegram" },
    { orderByLastActive: true, excludeSources: ["tool", "cli"], limit: 7, offset: 5 },
    { orderByLastActive: true, search: "s77" },
    { includeChildren: true },
    { projectTips: false, orderByLastActive: true },
  ];
  for (const options of cases) {
    const { limit = 20, offset = 0 } = options;
    const all = await store.list({ ...options, offset: 0, limit: -1 });
    const page = await store.list(options);
    assert.deepEqual(
      page.map(({ id }) => id),
      all.slice(offset, offset + limit).map(({ id }) => id),
      JSON.stringify(options),
    );
  }
});
