import assert from "node:assert/strict";
import { test } from "node:test";
import { dispatch } from "../../test/support/dispatch.ts";
import { toolContext } from "../../test/support/tool-context.ts";
import { renderActiveTodos } from "./todo.ts";
import type { ToolContext } from "./toolset/context.ts";

import { registry } from "./toolset/registry.ts";
import { createToolState } from "./toolset/session-tools.ts";

const todo = async (args: Record<string, unknown>, ctx: ToolContext) =>
  JSON.parse((await dispatch(registry, "todo", args, ctx)) as string);
const item = (id: unknown, content?: string, status?: string) => ({ id, content, status });

test("a list is written, read, and counted", async () => {
  const ctx = toolContext();
  const todos = [item("1", "plan", "completed"), item("2", "build", "in_progress"), item("3", "test", "pending")];
  const expected = {
    todos,
    summary: { total: 3, pending: 1, in_progress: 1, completed: 1, cancelled: 0 },
  };
  assert.deepEqual(await todo({ todos }, ctx), expected);
  assert.deepEqual(await todo({}, ctx), expected);
});

test("what is missing or odd is filled in, never refused", async () => {
  const todos = [
    { id: "a", content: "x", status: "started" },
    { content: "no id" },
    { id: 7 },
    { content: "no id too" },
  ];
  assert.deepEqual((await todo({ todos }, toolContext())).todos, [
    { id: "a", content: "x", status: "pending" },
    { id: "?", content: "no id", status: "pending" },
    { id: "7", content: "(no description)", status: "pending" },
    { id: "?", content: "no id too", status: "pending" },
  ]);
});

test("a merge changes the given fields by id and appends the rest", async () => {
  const ctx = toolContext();
  await todo({ todos: [item("1", "one", "in_progress"), item("2", "two", "pending")] }, ctx);
  const { todos } = await todo({ merge: true, todos: [{ id: "1", status: "completed" }, item("3", "three")] }, ctx);
  assert.deepEqual(todos, [
    { id: "1", content: "one", status: "completed" },
    { id: "2", content: "two", status: "pending" },
    { id: "3", content: "three", status: "pending" },
  ]);
});

test("of two items with one id the last wins, and the list has bounds", async () => {
  const ctx = toolContext();
  assert.deepEqual((await todo({ todos: [item("1", "old"), item("1", "new")] }, ctx)).todos.length, 1);
  const many = Array.from({ length: 300 }, (_, index) => item(String(index), "x".repeat(5000)));
  const { todos } = await todo({ todos: many }, ctx);
  assert.equal(todos.length, 256);
  assert.equal(todos[0].content.length, 4000);
});

test("two agents have two lists", async () => {
  const [one, other] = [toolContext(), toolContext()];
  await todo({ todos: [item("1", "mine")] }, one);
  assert.deepEqual((await todo({}, other)).todos, []);
});

test("after a compression only open tasks are told, and none is told as nothing", async () => {
  const ctx = toolContext();
  assert.equal(renderActiveTodos(ctx.state), null);
  await todo({ todos: [item("1", "done", "completed"), item("2", "now", "in_progress"), item("3", "next")] }, ctx);
  assert.equal(
    renderActiveTodos(ctx.state),
    "[Your active task list was preserved across context compression]\n- [>] 2. now (in_progress)\n- [ ] 3. next (pending)",
  );
});

test("a resumed conversation brings its newest list back", async () => {
  const ctx = toolContext();
  const result = (content: string) => ({ role: "tool", tool_call_id: "c", content }) as const;
  const first = await dispatch(registry, "todo", { todos: [item("1", "old")] }, ctx);
  const second = await dispatch(registry, "todo", { todos: [item("2", "new", "in_progress")] }, ctx);
  const state = createToolState();
  registry
    .get("todo")
    ?.spec.hydrate?.(state, [result(first as string), result(second as string), result('{"output":"x"}')]);
  assert.match(renderActiveTodos(state) ?? "", /2\. new \(in_progress\)$/);
});
