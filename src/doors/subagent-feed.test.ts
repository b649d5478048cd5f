import assert from "node:assert/strict";
import { test } from "node:test";
import type { SubagentEvent } from "../agent/events.ts";
import { subagentActivity, subagentLine } from "./feed.ts";

const event = (more: Partial<SubagentEvent>): SubagentEvent => ({
  ...{ type: "subagent", phase: "start", id: "sa-0-1", parentId: null, depth: 1, taskIndex: 0, taskCount: 1 },
  ...{ goal: "find the\ntests", model: "m" },
  ...more,
});
const call = { id: "c", name: "read_file", args: { path: "a.ts" }, preview: "a.ts" };

const lines: readonly (readonly [Partial<SubagentEvent>, string | null])[] = [
  [{ phase: "spawn_requested" }, null],
  [{ phase: "start" }, "┊ 🔀 find the tests"],
  [{ phase: "start", taskIndex: 1, taskCount: 3 }, "┊ 🔀 [2/3] find the tests"],
  [{ phase: "start", depth: 2 }, "┊   🔀 find the tests"],
  [{ phase: "thinking" }, null],
  [{ phase: "tool", call }, null],
  [{ phase: "progress", text: "5 tool calls: a, b" }, "┊ ·  5 tool calls: a, b"],
  [{ phase: "complete", status: "completed", ms: 1234 }, "┊ ✓  find the tests  1.2s"],
  [
    { phase: "complete", status: "timeout", ms: 600_000, text: "too long" },
    "┊ ✗  find the tests: timeout, too long  600.0s",
  ],
];
for (const [more, line] of lines) {
  test(`${JSON.stringify(more)} is shown as ${JSON.stringify(line)}`, () => {
    assert.equal(subagentLine(event(more)), line);
  });
}

test("every call is a line where the user wants to see all, and the moving line has it anyway", () => {
  assert.equal(subagentLine(event({ phase: "tool", call }), { everyCall: true }), "┊ ·  📖 read a.ts");
  assert.equal(subagentActivity(event({ phase: "tool", call, taskCount: 2 })), "🔀 [1/2] 📖 read a.ts");
  assert.equal(subagentActivity(event({ phase: "complete" })), null);
});

test("a line is never wider than the screen", () => {
  const line = subagentLine(event({ goal: "很长的任务".repeat(20), phase: "complete", status: "completed", ms: 1 }), {
    width: 40,
  });
  assert.match(line ?? "", /^┊ ✓ {2}很长.*\.\.\. {2}0\.0s$/);
});
