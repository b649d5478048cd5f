import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { SessionStore, StoreError } from "./store.ts";

async function exported(store: SessionStore): Promise<string[]> {
  const lines: string[] = [];
  for await (const session of store.export()) lines.push(JSON.stringify(session));
  return lines;
}

async function* lines(texts: readonly string[]) {
  yield* texts;
}

async function fill(store: SessionStore) {
  await store.create({ id: "a", modelConfig: { k: 1 } });
  await store.setTitle("a", "talk");
  await store.setPrompt("a", { prompt: "P", stableChars: 1, fingerprint: { v: 1 } });
  await store.append("a", [
    { role: "user", content: [{ type: "text", text: "看" }] },
    {
      role: "assistant",
      content: "x\u0000y",
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", content: "r", tool_call_id: "c", tool_name: "f" },
  ]);
  await store.end("a", "cli_close");
  await store.create({ id: "b", parentSessionId: "a", modelConfig: { _branched_from: "a" } });
}

test("an export has every column, decoded, and an import of it elsewhere exports the same", async (t) => {
  const { store } = await temporaryStore(t);
  await fill(store);
  const out = await exported(store);
  const first = JSON.parse(out[0] ?? "{}");
  assert.equal(first.system_prompt, "P");
  assert.deepEqual(first.model_config, { k: 1 });
  assert.deepEqual(first.messages[0].content, [{ type: "text", text: "看" }]);
  assert.equal(first.messages[1].content, "x\u0000y");
  assert.deepEqual(first.messages[1].tool_calls[0].id, "c");
  const { store: other } = await temporaryStore(t);
  assert.deepEqual(await other.import(lines(out)), { imported: ["a", "b"], skipped: [], renamed: [], detached: [] });
  assert.deepEqual(await exported(other), out);
  assert.deepEqual(await other.load("a"), await store.load("a"));
  assert.equal((await other.search("看")).hits.length, 1);
});

test("existing ids are skipped, taken titles numbered, impossible parents left out", async (t) => {
  const { store } = await temporaryStore(t);
  await fill(store);
  const session = (id: string, more: Record<string, unknown> = {}) =>
    JSON.stringify({ id, source: "cli", started_at: 1, messages: [], ...more });
  const report = await store.import(
    lines([
      session("a"),
      session("c", { title: "talk", parent_session_id: "nobody" }),
      session("x", { parent_session_id: "y" }),
      session("y", { parent_session_id: "x" }),
      session("z", { parent_session_id: "y" }),
    ]),
  );
  assert.deepEqual(report.skipped, ["a"]);
  assert.deepEqual(report.renamed, [{ id: "c", from: "talk", to: "talk #2" }]);
  assert.equal(report.detached.includes("c"), true);
  const parents = await Promise.all(["x", "y", "z"].map(async (id) => (await store.get(id))?.parentSessionId));
  assert.equal(parents.filter((parent) => parent !== null).length, 2, "one edge of the circle is cut");
});

const bad: readonly (readonly [string, readonly string[]])[] = [
  ["a line that is no JSON", ["{broken"]],
  ["a session without an id", ['{"source":"cli"}']],
  ["a message without a role", ['{"id":"n1","messages":[{"content":"x"}]}']],
  ["a role that is no word", ['{"id":"n1","messages":[{"role":"User: ","content":"x"}]}']],
  ["an id that drives a terminal", [JSON.stringify({ id: "\u001b[31mid" })]],
  ["an id that is a path", ['{"id":"../../etc/id"}']],
  ["a time that no calendar has", ['{"id":"n1","started_at":1e300}']],
  ["a time before all others", ['{"id":"n1","messages":[{"role":"user","timestamp":-5}]}']],
  ["the same session twice", ['{"id":"n1"}', '{"id":"n1"}']],
  ["more than 500 sessions", Array.from({ length: 501 }, (_, n) => `{"id":"n${n}"}`)],
  ["a session over 5 MB", [JSON.stringify({ id: "n1", messages: [{ role: "user", content: "x".repeat(5_000_001) }] })]],
];
for (const [what, texts] of bad) {
  test(`${what} imports nothing`, async (t) => {
    const { store } = await temporaryStore(t);
    await assert.rejects(
      store.import(lines(['{"id":"good"}', ...texts])),
      (error: StoreError) => error.code === "invalid" && /line \d+/.test(error.message),
    );
    assert.equal((await store.stats()).sessions, 0);
  });
}
