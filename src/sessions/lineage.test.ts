import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { SessionCompressedError, type SessionStore } from "./store.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });

async function endedChild(
  store: SessionStore,
  id: string,
  parentSessionId: string | null,
  options: { reason?: "compression" | "cli_close" } = {},
) {
  await store.create({ id, parentSessionId });
  if (options.reason) await store.end(id, options.reason);
}

test("the tip prefers a continuation that went on itself, then one still open, then the latest", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await endedChild(store, "root", null, { reason: "compression" });
  for (const [id, reason] of [
    ["closed", "cli_close"],
    ["open", undefined],
    ["later-closed", "cli_close"],
  ] as const) {
    clock.ms += 1000;
    await endedChild(store, id, "root", reason ? { reason } : {});
  }
  assert.equal(await store.tip("root"), "open");
  await endedChild(store, "went-on", "root", { reason: "compression" });
  assert.equal(await store.tip("root"), "went-on");
  await store.create({ id: "end", parentSessionId: "went-on" });
  assert.equal(await store.tip("root"), "end");
  assert.equal(await store.tip("nobody"), "nobody");
  assert.deepEqual(await store.lineage("end"), ["root", "went-on", "end"]);
});

test("branches, delegates and tool sessions are no continuation", async (t) => {
  const { store } = await temporaryStore(t);
  await endedChild(store, "p", null, { reason: "compression" });
  await store.create({ id: "b", parentSessionId: "p", modelConfig: { _branched_from: "p" } });
  await store.create({ id: "d", parentSessionId: "p", modelConfig: { _delegate_from: "p" } });
  await store.create({ id: "t", parentSessionId: "p", source: "tool" });
  assert.equal(await store.tip("p"), "p");
  assert.equal(await store.resumeTarget("p"), "p");
});

test("resuming goes to the deepest continuation that has messages", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "a" });
  for (const [id, parent] of [
    ["b", "a"],
    ["c", "b"],
    ["d", "c"],
  ] as const) {
    clock.ms += 1000;
    await store.create({ id, parentSessionId: parent });
  }
  assert.equal(await store.resumeTarget("a"), "a");
  await store.append("c", [user("x")]);
  assert.equal(await store.resumeTarget("a"), "c");
});

test("every walk ends on any graph of parents, circles included", async (t) => {
  const { store, path } = await temporaryStore(t);
  const ids = ["a", "b", "c", "d", "e"];
  for (const id of ids) await store.create({ id });
  const other = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  t.after(() => other.close());
  const link = other.prepare("UPDATE sessions SET parent_session_id = ?, end_reason = ?, ended_at = ? WHERE id = ?");
  const edge = fc.record({ parent: fc.constantFrom(...ids, null), ended: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.tuple(edge, edge, edge, edge, edge), async (edges) => {
      for (const [index, { parent, ended }] of edges.entries()) {
        link.run(parent, ended ? "compression" : null, ended ? 1 : null, ids[index] ?? "");
      }
      for (const id of ids) {
        assert.ok(ids.includes(await store.tip(id)));
        assert.ok(ids.includes(await store.resumeTarget(id)));
        const line = await store.lineage(id);
        assert.equal(line.at(-1), id);
        assert.equal(new Set(line).size, line.length);
        await store.load(id, { withAncestors: true });
        assert.equal((await store.tip(await store.tip(id))) !== "", true);
      }
      const listed = await store.list({ limit: 100 });
      assert.equal(new Set(listed.map((item) => item.lineageRootId)).size, listed.length);
      await store.spent({ session: "a" });
    }),
    { numRuns: 60 },
  );
});

test("a tip is its own tip in every chain without circles", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "r" });
  let current = "r";
  for (let n = 0; n < 12; n++) {
    clock.ms += 60_000;
    current = await store.continueAfterCompression(current, [user(`part ${n}`)]);
  }
  const line = await store.lineage(current);
  assert.equal(line.length, 13);
  for (const id of line) assert.equal(await store.tip(id), current);
});

test("writing to a session closed by compression is refused with the id of its tip", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  const child = await store.continueAfterCompression("a", [user("summary")]);
  const tip = await store.continueAfterCompression(child, [user("summary 2")]);
  for (const write of [store.append("a", [user("late")]), store.replace("a", [])]) {
    await assert.rejects(write, (error: unknown) => error instanceof SessionCompressedError && error.tipId === tip);
  }
  assert.equal((await store.load("a")).length, 0);
});

test("a session closed by compression whose child never came can be written on", async (t) => {
  const { store } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.end("a", "compression");
  assert.equal((await store.append("a", [user("still here")])).length, 1);
});
