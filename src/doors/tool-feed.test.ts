import assert from "node:assert/strict";
import { test } from "node:test";
import { feedLine, feedSuffix } from "./tool-feed.ts";

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
  ["some_plugin_tool", { query: "q" }, "┊ ⚡ some_plug q  0.3s"],
];
for (const [name, args, expected] of lines) {
  test(`a call of ${name} with ${JSON.stringify(args)} is one line`, () => {
    assert.equal(feedLine({ name, args }, 300, null), expected);
  });
}

const suffixes: [string, string, string | null][] = [
  ["terminal", '{"output":"","exit_code":0,"error":null}', null],
  ["terminal", '{"output":"","exit_code":2,"error":null}', "[exit 2]"],
  ["terminal", '{"output":"","exit_code":-1,"error":"refused"}', "[refused]"],
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
