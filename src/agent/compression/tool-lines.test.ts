import assert from "node:assert/strict";
import { test } from "node:test";
import { summarizeToolResult, truncateToolCallArgsJson } from "./prune.ts";

const long = "x".repeat(1234);
const CASES: readonly (readonly [name: string, args: unknown, content: string, line: string])[] = [
  [
    "terminal",
    { command: "npm test" },
    '{"output":"a\\nb\\nc","exit_code":1}',
    "[terminal] ran `npm test` -> exit 1, 3 lines output",
  ],
  [
    "terminal",
    { command: "c".repeat(81) },
    "plain\nlines",
    `[terminal] ran \`${"c".repeat(77)}...\` -> exit ?, 2 lines output`,
  ],
  ["terminal", {}, "", "[terminal] ran `?` -> exit ?, 0 lines output"],
  ["read_file", { path: "/a/b.ts" }, long, "[read_file] read /a/b.ts from line 1 (1,234 chars)"],
  ["read_file", { path: "b", offset: 40 }, "abc", "[read_file] read b from line 40 (3 chars)"],
  ["write_file", { path: "n.txt", content: "one\ntwo" }, "ok", "[write_file] wrote to n.txt (2 lines)"],
  ["write_file", {}, "ok", "[write_file] wrote to ? (? lines)"],
  ["patch", { path: "p.ts" }, "abcd", "[patch] replace in p.ts (4 chars result)"],
  ["patch", { mode: "patch" }, "abcd", "[patch] patch in ? (4 chars result)"],
  [
    "search_files",
    { pattern: "TODO" },
    '{"total_count": 12}',
    "[search_files] content search for 'TODO' in . -> 12 matches",
  ],
  [
    "search_files",
    { pattern: "*.ts", target: "files", path: "src" },
    "{}",
    "[search_files] files search for '*.ts' in src -> ? matches",
  ],
  ["web_search", { query: "weather" }, long, "[web_search] query='weather' (1,234 chars result)"],
  ["web_extract", { urls: ["https://a.b"] }, "abc", "[web_extract] https://a.b (3 chars)"],
  ["web_extract", { urls: ["https://a.b", "c", "d"] }, "abc", "[web_extract] https://a.b (+2 more) (3 chars)"],
  ["browser_navigate", { url: "https://a.b" }, "abc", "[browser_navigate] https://a.b (3 chars)"],
  ["browser_click", { ref: "@e5" }, "abc", "[browser_click] ref=@e5 (3 chars)"],
  ["browser_snapshot", {}, "abc", "[browser_snapshot] (3 chars)"],
  ["delegate_task", { goal: "g".repeat(61) }, "abc", `[delegate_task] '${"g".repeat(57)}...' (3 chars result)`],
  ["execute_code", { code: "a = 1\nb = 2" }, '{"output":"1\\n2"}', "[execute_code] `a = 1 b = 2` (2 lines output)"],
  ["execute_code", { code: "y".repeat(61) }, "", `[execute_code] \`${"y".repeat(60)}...\` (0 lines output)`],
  ["skill_view", { name: "deploy" }, "abc", "[skill_view] name=deploy (3 chars)"],
  ["vision_analyze", { question: "q".repeat(60) }, "abc", `[vision_analyze] '${"q".repeat(50)}' (3 chars)`],
  ["memory", { action: "add", target: "user" }, "", "[memory] add on user"],
  ["process", { action: "poll", session_id: "p1" }, "", "[process] poll session=p1"],
  ["cronjob", { action: "list" }, "", "[cronjob] list"],
  ["todo", {}, "", "[todo] updated task list"],
  ["clarify", {}, "", "[clarify] asked user a question"],
  ["my_tool", { a: "v".repeat(50), b: 2, c: 3 }, "abc", `[my_tool] a=${"v".repeat(40)} b=2 (3 chars result)`],
  ["my_tool", {}, "abc", "[my_tool] (3 chars result)"],
  ["constructor", {}, "abc", "[constructor] (3 chars result)"],
];

for (const [name, args, content, line] of CASES) {
  test(`${line.slice(0, 70)} stands for a result`, () =>
    assert.equal(summarizeToolResult(name, JSON.stringify(args), content), line));
}

test("arguments that are no JSON give a line with question marks", () => {
  assert.equal(summarizeToolResult("read_file", '{"path": "a', "abc"), "[read_file] read ? from line 1 (3 chars)");
});

test("a line stays one line and cuts no character in half", () => {
  const line = summarizeToolResult("terminal", JSON.stringify({ command: `a\n${"😀".repeat(90)}` }), "x");
  assert.ok(!line.includes("\n"));
  assert.ok(line.isWellFormed());
});

test("long texts in arguments are cut, wherever they stand, and the rest stays JSON of the same shape", () => {
  const cut = JSON.parse(truncateToolCallArgsJson(JSON.stringify({ path: "a", lines: [{ text: long }, 3], ok: true })));
  assert.deepEqual(cut, { path: "a", lines: [{ text: `${"x".repeat(200)}...[truncated]` }, 3], ok: true });
});

test("arguments with nothing long in them, or that cannot be read, come back as they are", () => {
  for (const args of ['{ "a" : "short" }', '{"a": "cut of', "", JSON.stringify("x".repeat(200))]) {
    assert.equal(truncateToolCallArgsJson(args), args);
  }
});
