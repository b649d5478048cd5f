import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { manualClock } from "../../test/support/session-store.ts";
import type { Activity } from "./events.ts";

test("activity tells what a turn does and how much of its limit is used; between turns nothing is", async () => {
  const clock = manualClock();
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const gate = new ScriptedGate(
    { calls: [{ name: "execute_code", args: {} }] },
    {
      calls: [
        { name: "web_search", args: { query: "a" } },
        { name: "web_extract", args: { urls: ["b"] } },
      ],
    },
    { text: "done" },
  );
  const agent = rigAgent({
    gate,
    limits: { maxIterations: 7 },
    ports: { clock },
    tools: {
      execute_code: () => "ok",
      web_search: () => first.promise.then(() => "found"),
      web_extract: () => second.promise.then(() => "read"),
    },
  });
  const idle = agent.activity();
  assert.deepEqual(
    [idle.lastActivityDesc, idle.currentTool, idle.apiCallCount, idle.maxIterations, idle.budgetUsed, idle.budgetMax],
    ["idle", null, 0, 7, 0, 7],
  );

  const seen: Activity[] = [];
  await play(agent, "go", {
    onEvent(event) {
      if (event.type === "tool_start" && event.call.name === "web_extract") {
        seen.push(agent.activity());
        second.resolve();
      }
      if (event.type === "tool_end" && event.call.name === "web_extract") {
        seen.push(agent.activity());
        first.resolve();
      }
    },
  });
  // The script was given back: two calls were made, one of the limit is used.
  assert.deepEqual(
    seen.map((at) => [at.currentTool, at.apiCallCount, at.budgetUsed, at.budgetMax]),
    [
      ["web_extract", 2, 1, 7],
      ["web_search", 2, 1, 7],
    ],
  );
  const after = agent.activity();
  assert.deepEqual([after.lastActivityDesc, after.currentTool, after.budgetUsed], ["done", null, 0]);
  assert.equal(after.secondsSinceActivity, 0);
});
