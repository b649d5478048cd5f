import assert from "node:assert/strict";
import { test } from "node:test";
import { fenced } from "../prompt/fence.ts";
import { feedLine, feedSuffix } from "./feed.ts";

const lines: [string, Record<string, unknown>, string][] = [
  ["terminal", { command: "ls -la\n" }, "┊ 💻 $         ls -la  0.3s"],
  ["read_file", { path: "a/b.ts" }, "┊ 📖 read      a/b.ts  0.3s"],
  ["search_files", { pattern: "x", target: "files" }, "┊ 🔎 find      x  0.3s"],
  ["search_files", { pattern: "x" }, "┊ 🔎 grep      x  0.3s"],
  ["todo", {}, "┊ 📋 plan      reading tasks  0.3s"],
  ["todo", { todos: [{ status: "completed" }, { status: "pending" }] }, "┊ 📋 plan      1/2 task(s)  0.3s"],
  ["todo", { todos: [{}], merge: true }, "┊ 📋 plan      update 1 task(s)  0.3s"],
  ["memory", { action: "add", target: "user", content: "likes tea" }, '┊ 🧠 memory    +user: "likes tea"  0.3s'],
  ["patch", { patch: "*** Begin Patch\n*** Update File: x.ts\n@@\n" }, "┊ 🔧 patch     x.ts  0.3s"],
  ["web_extract", { urls: ["https://a.test/x", "https://b.test"] }, "┊ 📄 fetch     a.test +1  0.3s"],
  ["browser_navigate", { url: "https://a.test/x" }, "┊ 🌐 navigate  a.test  0.3s"],
  ["send_message", { target: "telegram", message: "hi" }, '┊ 📨 send      telegram: "hi"  0.3s'],
  ["cronjob", { action: "list" }, "┊ ⏰ cron      list  0.3s"],
  ["delegate_task", { tasks: [{}, {}] }, "┊ 🔀 delegate  2 parallel tasks  0.3s"],
  ["some_plugin_tool", { query: "q" }, "┊ ⚡ some_plug q  0.3s"],
];
for (const [name, args, expected] of lines) {
  test(`a call of ${name} with ${JSON.stringify(args)} is one line`, () => {
    assert.equal(feedLine({ name, args }, 300, null), expected);
  });
}

test("the detail gives way to the width; of a path the end stays", () => {
  const command = { name: "terminal", args: { command: "echo 你好世界你好世界" } };
  assert.equal(feedLine(command, 300, "[exit 1]", { width: 40 }), "┊ 💻 $         echo 你...  0.3s [exit 1]");
  const path = { name: "read_file", args: { path: "some/long/way/to/file.ts" } };
  assert.equal(feedLine(path, 300, null, { detailChars: 12 }), "┊ 📖 read      ...o/file.ts  0.3s");
});

const suffixes: [string, string, string | null][] = [
  ["terminal", '{"output":"","exit_code":0,"error":null}', null],
  ["terminal", '{"output":"","exit_code":2,"error":null}', "[exit 2]"],
  ["terminal", '{"output":"","exit_code":-1,"error":"refused"}', "[refused]"],
  [
    "terminal",
    '{"exit_code":-1,"error":"The user said no. Do not try it again, do not rephrase it"}',
    "[You said no.]",
  ],
  [
    "terminal",
    '{"exit_code":-1,"error":"BLOCKED (hardline): deletes all. No mode lifts this."}',
    "[Deletes all. No mode lifts this.]",
  ],
  [
    "web_search",
    fenced("web_search", '{"success":false,"error":"Host not found: searx.example.org"}'),
    "[Host not found: searx.example.org]",
  ],
  ["memory", '{"success":false,"error":"over the limit"}', "[full]"],
  ["read_file", '{"error":"File not found: x"}', "[File not found: x]"],
  ["x", '{"success":false,"message":"no"}', "[no]"],
  ["x", "Error: broken", "[error]"],
  ["x", "fine", null],
];
for (const [name, result, expected] of suffixes) {
  test(`the result ${result} of ${name} has the suffix ${expected}`, () =>
    assert.equal(feedSuffix(name, result), expected));
}
