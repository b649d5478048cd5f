import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { planEntries, resultContent, toolKind, toolLocations, toolStatus, toolTitle } from "./tool-view.ts";

describe("a call", () => {
  const titles: readonly (readonly [name: string, args: Record<string, unknown>, title: string])[] = [
    ["terminal", { command: "ls -la" }, "terminal: ls -la"],
    ["terminal", { command: "x".repeat(81) }, `terminal: ${"x".repeat(77)}...`],
    ["terminal", { command: "y".repeat(80) }, `terminal: ${"y".repeat(80)}`],
    ["read_file", { path: "a.ts" }, "read: a.ts"],
    ["write_file", { path: "a.ts", content: "x" }, "write: a.ts"],
    ["patch", { path: "a.ts", old_string: "1", new_string: "2" }, "patch (replace): a.ts"],
    ["patch", { mode: "patch", patch: "*** Begin Patch\n*** Update File: b.ts\n" }, "patch (patch): b.ts"],
    ["search_files", { pattern: "heron" }, "search: heron"],
    ["web_search", { query: "herons" }, "web search: herons"],
    [
      "web_extract",
      { urls: ["https://a.example", "https://b.example", "https://c.example"] },
      "extract: https://a.example (+2)",
    ],
    ["process", { action: "poll", session_id: "p1" }, "process poll: p1"],
    ["delegate_task", { goal: "g".repeat(61) }, `delegate: ${"g".repeat(57)}...`],
    ["delegate_task", { tasks: [{}, {}] }, "delegate batch (2 tasks)"],
    ["session_search", { query: "last week" }, "session search: last week"],
    ["memory", { action: "add", target: "user" }, "memory add: user"],
    ["execute_code", { code: "\nprint(1)\nprint(2)" }, "python: print(1)"],
    ["todo", { todos: [{}, {}, {}] }, "todo (3 items)"],
    ["skill_view", { name: "plan" }, "skill view (plan)"],
    ["skill_manage", { action: "patch", name: "plan" }, "skill patch: plan"],
    ["browser_navigate", { url: "https://a.example" }, "navigate: https://a.example"],
    ["mcp_x_y", { q: 1 }, "mcp_x_y"],
    ["terminal", { command: "printf '\u001b]0;x\u0007'\nls" }, "terminal: printf '' ls"],
  ];
  for (const [name, args, title] of titles)
    test(`${name} is called ${JSON.stringify(title.slice(0, 40))}`, () =>
      assert.equal(toolTitle({ name, args }), title));

  const kinds = {
    read: ["read_file", "skill_view", "skills_list", "browser_snapshot", "vision_analyze"],
    edit: ["write_file", "patch", "skill_manage"],
    search: ["search_files"],
    execute: ["terminal", "process", "execute_code", "delegate_task", "browser_click", "image_generate"],
    fetch: ["web_search", "web_extract", "browser_navigate"],
    think: ["_thinking"],
    other: ["todo", "memory", "mcp_x_y"],
  };
  for (const [kind, names] of Object.entries(kinds))
    test(`${names.join(", ")}: ${kind}`, () => assert.deepEqual([...new Set(names.map(toolKind))], [kind]));

  test("is about absolute paths; a line comes from offset or line", () => {
    assert.deepEqual(toolLocations({ name: "read_file", args: { path: "a/b.ts", offset: 12 } }, "/w"), [
      { path: "/w/a/b.ts", line: 12 },
    ]);
    assert.deepEqual(toolLocations({ name: "write_file", args: { path: "/x.ts" } }, "/w"), [{ path: "/x.ts" }]);
    assert.deepEqual(toolLocations({ name: "terminal", args: { command: "ls" } }, "/w"), []);
  });
});

describe("a result", () => {
  const results: readonly (readonly [name: string, result: string, status: "completed" | "failed"])[] = [
    ["terminal", '{"output":"ok","exit_code":0,"error":null}', "completed"],
    ["terminal", '{"output":"","exit_code":2,"error":null}', "failed"],
    ["patch", '{"success":false,"error":"no match"}', "failed"],
    ["read_file", '{"error":"File not found"}', "failed"],
    ["mcp_x_y", '{"error":"of the server"}', "completed"],
    ["mcp_x_y", '{"success":false}', "failed"],
    ["web_extract", "This page tells of an error in the matrix.", "completed"],
    ["anything", "Error executing tool anything: it broke", "failed"],
    ["read_file", '{"content":"1|error: x","total_lines":1}', "completed"],
  ];
  for (const [name, result, status] of results)
    test(`${name} ${result.slice(0, 40)} is ${status}`, () => assert.equal(toolStatus(name, result), status));

  test("is shown in words, not as JSON", () => {
    const shown = (name: string, value: unknown) => JSON.stringify(resultContent(name, JSON.stringify(value)));
    assert.match(shown("terminal", { output: "a\nb", exit_code: 1, error: null }), /a\\nb\\n\[exit 1\]/);
    assert.match(shown("read_file", { content: "1|heron", total_lines: 1 }), /"1\|heron"/);
    assert.doesNotMatch(shown("mcp_x_y", { rows: [{ name: "heron" }] }), /\{\\"/);
  });

  test("of todo is a plan: cancelled items are completed and say so, an empty one is its id", () => {
    const todos = [
      { id: "a", content: "first", status: "pending" },
      { id: "b", content: "", status: "in_progress" },
      { id: "c", content: "third", status: "cancelled" },
    ];
    assert.deepEqual(planEntries(JSON.stringify({ todos })), [
      { content: "first", priority: "medium", status: "pending" },
      { content: "b", priority: "medium", status: "in_progress" },
      { content: "[cancelled] third", priority: "medium", status: "completed" },
    ]);
  });
});
