import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryStore } from "../../test/support/session-store.ts";
import type { HistoryMessage } from "../llm/messages.ts";
import { asTree, sessionPicking, sessionRow } from "./session-picker.ts";

const user = (content: string): HistoryMessage => ({ role: "user", content });
const assistant = (content: string): HistoryMessage => ({ role: "assistant", content });

test("branches stand below what they were made from, across compressions, the newest tree first", async (t) => {
  const { store, clock } = await temporaryStore(t);
  const tick = () => {
    clock.ms += 60_000;
  };
  await store.create({ id: "old" });
  await store.append("old", [user("about walruses")]);
  tick();
  const shorter = await store.continueAfterCompression("old", [user("a summary")]);
  tick();
  await store.create({ id: "alone" });
  await store.append("alone", [user("something else")]);
  tick();
  await store.branch("old", "from-before", { title: "before" });
  tick();
  await store.branch("from-before", "deeper", { title: "deeper" });
  const list = await store.list({ orderByLastActive: true, limit: 100 });
  const tree = asTree(list);
  assert.deepEqual(
    tree.map(({ session, depth }) => `${depth} ${session.id}`),
    [`0 ${shorter}`, "1 from-before", "2 deeper", "0 alone"],
  );
  const rows = tree.map((branch) => sessionRow(branch, clock.ms / 1000, shorter));
  assert.deepEqual(
    rows.map(({ label }) => label),
    ["a summary (1 compression)", "└ before", "  └ deeper", "something else"],
  );
  assert.deepEqual(
    rows.map(({ current }) => current),
    [true, false, false, false],
  );
  assert.deepEqual(asTree([]), []);
});

test("a conversation is found by what was said in it, and shows what was said last", async (t) => {
  const { store, clock } = await temporaryStore(t);
  await store.create({ id: "a" });
  await store.append("a", [
    user("first"),
    assistant("the narwhal\u001b[31m\nsings"),
    { role: "tool", content: "left out", tool_call_id: "c", tool_name: "t" },
    user("x".repeat(300)),
  ]);
  await store.continueAfterCompression("a", [user("what remained"), assistant("sure")]);
  const sessions = await store.list();
  const { preview, find } = sessionPicking(sessions, store, clock.ms / 1000);
  const [found, ...more] = (await find?.("narwhal")) ?? [];
  assert.deepEqual([found?.value, more], [sessions[0]?.id, []]);
  assert.match(found?.label ?? "", /^what remained \(1 compression\) · .*the narwhal sings/);
  assert.deepEqual(await find?.("giraffe"), []);
  assert.equal(await preview?.(sessions[0]?.id ?? ""), "❯ what remained\n⚕ sure");
  assert.match((await preview?.("a")) ?? "", /^❯ first\n⚕ the narwhal sings\n❯ x{200}…$/);
});
