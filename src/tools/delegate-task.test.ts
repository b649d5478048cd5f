import assert from "node:assert/strict";
import { test } from "node:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { toolContext } from "../../test/support/tool-context.ts";
import type { ChildTask } from "./toolset/context.ts";
import "./delegate-task.ts";
import { dispatch } from "../../test/support/dispatch.ts";
import { childTimeoutSeconds } from "./delegate-task.ts";

import { registry } from "./toolset/registry.ts";

async function delegate(args: Readonly<Record<string, unknown>>) {
  const asked: (readonly ChildTask[])[] = [];
  const ctx = toolContext({
    async spawnChildren(tasks) {
      asked.push(tasks);
      return { results: [], total_duration_seconds: 0 };
    },
  });
  const answer = JSON.parse(String(await dispatch(registry, "delegate_task", args, ctx)));
  return { answer, tasks: asked[0] };
}

const wrong: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
  [{}, /^goal:/],
  [{ goal: "   " }, /^goal:/],
  [{ tasks: [] }, /^tasks: .*empty/],
  [{ tasks: "no list" }, /tasks\.0: /],
  [{ goal: "a", tasks: [{ goal: "b" }] }, /not both/],
  [{ tasks: [{ goal: "a" }, { goal: " " }] }, /tasks\[1\]\.goal/],
  [{ tasks: '[{"goal":"a"},{"context":"b"}]' }, /tasks\.1\.goal/],
  [{ tasks: [{ goal: "a" }, { context: "no goal" }] }, /tasks\.1\.goal/],
  [
    { tasks: ["a", "b", "c", "d"].map((goal) => ({ goal })) },
    /4 given, at most 3.*delegation\.max_concurrent_children/,
  ],
  [{ goal: "a", role: "boss" }, /role/],
];
for (const [args, message] of wrong) {
  test(`${JSON.stringify(args)} is refused and says why`, async () => {
    const { answer, tasks } = await delegate(args);
    assert.match(answer.error, message);
    assert.equal(tasks, undefined);
  });
}

test("one goal is one task; a list of tasks may come as text", async () => {
  const one = await delegate({ goal: " look ", context: "here", toolsets: ["file"], role: "orchestrator" });
  assert.deepEqual(one.tasks, [{ goal: "look", context: "here", toolsets: ["file"], role: "orchestrator" }]);
  const several = await delegate({ tasks: '[{"goal":"a"},{"goal":"b","role":"leaf"}]' });
  assert.deepEqual(several.tasks, [{ goal: "a" }, { goal: "b", role: "leaf" }]);
});

test("a child gets at least half a minute; 0 means no limit", () => {
  assert.deepEqual([0, 1, 30, 600].map(childTimeoutSeconds), [0, 30, 30, 600]);
});

test("its definition stays short, and the model cannot set iterations", () => {
  const entry = registry.get("delegate_task");
  const { name, description } = entry?.spec ?? { name: "", description: "" };
  const text = JSON.stringify({ type: "function", function: { name, description, parameters: entry?.parameters } });
  assert.ok(countTokens(text) < 250, `${countTokens(text)} tokens`);
  assert.doesNotMatch(text, /iteration|anyOf/);
});
