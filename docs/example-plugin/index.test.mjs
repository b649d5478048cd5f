// node --test docs/example-plugin/index.test.mjs
import assert from "node:assert/strict";
import { test } from "node:test";
import register from "./index.mjs";

function registered() {
  const taken = { tools: [], hooks: [], commands: [] };
  register({
    registerTool: (tool) => taken.tools.push(tool),
    registerHook: (event, call) => taken.hooks.push({ event, call }),
    registerCommand: (command) => taken.commands.push(command),
  });
  return taken;
}

test("the tool counts words", () => {
  const [tool] = registered().tools;
  assert.equal(tool.handler({ text: "one two  three" }), '{"words":3}');
});

test("the hook blocks what lies in private, and nothing else", () => {
  const [{ call }] = registered().hooks;
  assert.equal(call({ tool_name: "read_file", args: { path: "notes/private/a.md" } }).action, "block");
  assert.equal(call({ tool_name: "read_file", args: { path: "privateers.md" } }), undefined);
  assert.equal(call({ tool_name: "terminal", args: { command: "ls" } }), undefined);
});
