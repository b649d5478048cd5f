import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { findLatest } from "./session-id.ts";
import type { ListOptions } from "./store.ts";

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
