import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentEventBody } from "../../agent/events.ts";
import { makeTheme } from "../terminal-text.ts";
import { ToolBlock } from "./tool-block.ts";
import { LiveTail, TodoPanel } from "./work-view.ts";

const theme = makeTheme(false);
const call = (name: string, id = "c") => ({ id, name, args: {}, preview: "" });
const at = (event: AgentEventBody) => ({ ...event, sessionId: "s", turn: 1, seq: 1 });
const list = (...todos: [string, string][]) =>
  JSON.stringify({ todos: todos.map(([content, status], id) => ({ id: `${id}`, content, status })) });
const ended = (name: string, result: string, id?: string) =>
  at({ type: "tool_end", call: call(name, id), result, ms: 1, failed: false });
const output = (text: string, id = "c") =>
  at({ type: "tool_progress", call: call("terminal", id), seconds: 1, output: text });

test("the task list stands there while something in it is open", () => {
  const panel = new TodoPanel(theme);
  assert.deepEqual(panel.render(40), []);
  panel.follow(ended("todo", list(["read", "completed"], ["write 测试", "in_progress"], ["run", "pending"])));
  assert.deepEqual(panel.render(40), ["", "Tasks 1/3", "✓ read", "▸ write 测试", "○ run"]);
  panel.follow(ended("terminal", list(["other", "pending"])));
  assert.equal(panel.render(40).length, 5, "only the list's own tool changes it");
  assert.match(panel.toggle(), /hidden/);
  assert.deepEqual(panel.render(40), []);
  panel.toggle();
  panel.follow(ended("todo", list(["read", "completed"], ["run", "cancelled"])));
  assert.deepEqual(panel.render(40), []);
});

test("of a long list the part around the work is shown, the rest counted", () => {
  const panel = new TodoPanel(theme);
  const items = Array.from({ length: 20 }, (_, i): [string, string] => [
    `task ${i}`,
    i < 10 ? "completed" : i === 10 ? "in_progress" : "pending",
  ]);
  panel.follow(ended("todo", list(...items)));
  assert.deepEqual(panel.render(40).slice(1, 5), ["Tasks 10/20 · 14 more", "✓ task 9", "▸ task 10", "○ task 11"]);
  assert.equal(panel.render(40).length, 8);
});

test("a resumed conversation brings its list, another one none", () => {
  const panel = new TodoPanel(theme);
  panel.begin([{ role: "tool", name: "todo", tool_call_id: "c", content: list(["run", "pending"]) }]);
  assert.deepEqual(panel.render(40), ["", "Tasks 0/1", "○ run"]);
  panel.begin([]);
  assert.deepEqual(panel.render(40), []);
});

test("the last lines of a running command are shown until it ends", () => {
  const tail = new LiveTail(theme);
  tail.follow(output("1\n2\n3\n4\n5\n10%\r20%\n"));
  assert.deepEqual(tail.render(40), ["  │ 2", "  │ 3", "  │ 4", "  │ 5", "  │ 20%"]);
  tail.follow(ended("terminal", "{}", "other"));
  assert.equal(tail.render(40).length, 5);
  tail.follow(ended("terminal", "{}"));
  assert.deepEqual(tail.render(40), []);
});

test("an open call shows the beginning and the end of a long output, and counts what is between", () => {
  const output = Array.from({ length: 100 }, (_, i) => `line ${i}`).join("\n");
  const result = JSON.stringify({ output, exit_code: 0 });
  const look = { theme, detailChars: 40, open: true };
  const rows = new ToolBlock({ call: call("terminal"), result, ms: 1 }, look).render(60).map((row) => row.trim());
  const between = rows.findIndex((row) => row.includes("more lines; Ctrl+O shows them"));
  assert.match(rows[between - 1] ?? "", /line \d+$/);
  assert.equal(rows.at(-1), "│ line 99");
  assert.match(rows[between + 1] ?? "", /line 8\d$/);
  assert.ok(rows.length < 40);
});
