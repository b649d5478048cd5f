import assert from "node:assert/strict";
import { test } from "node:test";
import { createToolState } from "../../tools/toolset/session-tools.ts";
import { type ActiveChild, ChildTable, childTable } from "./children.ts";

function child(id: string) {
  const gone = Promise.withResolvers<void>();
  const stopped: string[] = [];
  const active: ActiveChild = {
    ...{ id, goal: `goal of ${id}`, model: "m", sessionId: "s", startedAt: 0, gone: gone.promise },
    interrupt: () => {
      stopped.push(id);
      gone.resolve();
    },
  };
  return { active, stopped, leave: gone.resolve };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("children are listed while they run, and stopped by their id", async () => {
  const table = new ChildTable();
  const [one, two] = [child("sa-0-1"), child("sa-1-2")];
  table.add(one.active);
  table.add(two.active);
  assert.deepEqual(
    table.listActiveSubagents().map(({ id }) => id),
    ["sa-0-1", "sa-1-2"],
  );
  assert.equal(table.interruptSubagent("sa-1-2"), true);
  assert.equal(table.interruptSubagent("sa-9-9"), false);
  await settle();
  assert.deepEqual([one.stopped, two.stopped], [[], ["sa-1-2"]]);
  assert.deepEqual(
    table.listActiveSubagents().map(({ id }) => id),
    ["sa-0-1"],
  );
});

test("no more than the limit run at once; who waits is let in when one leaves, or leaves with its signal", async () => {
  const table = new ChildTable();
  const { signal } = new AbortController();
  const impatient = new AbortController();
  const leave = await table.takeSlot(1, signal);
  const entered: string[] = [];
  const next = table.takeSlot(1, signal).then((free) => {
    entered.push("next");
    return free;
  });
  const gone = table.takeSlot(1, impatient.signal);
  await settle();
  assert.deepEqual(entered, []);
  impatient.abort(new Error("no patience"));
  await assert.rejects(gone, /no patience/);
  leave();
  (await next)();
  assert.deepEqual(entered, ["next"]);
});

test("an agent that is closed stops its children and waits for them", async () => {
  const state = createToolState();
  const { active, stopped } = child("sa-0-1");
  state.of(childTable).add(active);
  await state.dispose();
  assert.deepEqual(stopped, ["sa-0-1"]);
});
