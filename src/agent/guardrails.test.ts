import assert from "node:assert/strict";
import { test } from "node:test";
import { play, rigAgent } from "../../test/support/agent/agent-rig.ts";
import { ScriptedGate } from "../../test/support/agent/scripted-gate.ts";
import { defaultConfig } from "../home/config/schema.ts";
import { ToolLoopGuard } from "./guardrails.ts";

const codes = (count: number, next: () => { code: string; count: number }) =>
  Array.from({ length: count }, () => {
    const { code, count: n } = next();
    return `${code} ${n}`;
  });

test("the same call failing again is warned about from the second time on", () => {
  const guard = new ToolLoopGuard();
  const args = [{ path: "a", n: 1 }, { n: 1, path: "a" }, '{"n":1,"path":"a"}'];
  let turn = 0;
  assert.deepEqual(
    codes(3, () => guard.after("write_file", args[turn++], "Error: no", true)),
    ["allow 1", "repeated_exact_failure_warning 2", "repeated_exact_failure_warning 3"],
  );
  assert.equal(guard.before("write_file", args[0]).action, "allow");
});

test("a tool that fails with ever other arguments is warned about from the third time on; a success begins anew", () => {
  const guard = new ToolLoopGuard();
  let n = 0;
  const fail = () => guard.after("terminal", { command: `c${n++}` }, "", true);
  assert.deepEqual(codes(3, fail), ["allow 1", "allow 1", "same_tool_failure_warning 3"]);
  assert.deepEqual(guard.after("terminal", { command: "ok" }, "", false), { action: "allow", code: "allow", count: 0 });
  assert.deepEqual(codes(3, fail), ["allow 1", "allow 1", "same_tool_failure_warning 3"]);
});

test("a question that gives the same answer again is warned about; JSON is compared by value", () => {
  const guard = new ToolLoopGuard();
  const answers = ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }', '{"a":1,"b":3}', '{"a":1,"b":3}'];
  let n = 0;
  assert.deepEqual(
    codes(4, () => guard.after("read_file", { path: "x" }, answers[n++] ?? "", false)),
    ["allow 1", "idempotent_no_progress_warning 2", "allow 1", "idempotent_no_progress_warning 2"],
  );
  assert.equal(guard.after("terminal", {}, "same", false).count, 0);
  assert.equal(guard.after("mcp_filesystem_read_file", {}, "same", false).count, 1);
});

test("with hard stops the fifth failure of a call is the last one that runs", () => {
  const guard = new ToolLoopGuard({ hard_stop_enabled: true });
  for (let i = 0; i < 5; i++) {
    assert.equal(guard.before("patch", { p: 1 }).action, "allow");
    guard.after("patch", { p: 1 }, "", true);
  }
  assert.deepEqual(guard.before("patch", { p: 1 }), {
    action: "block",
    code: "repeated_exact_failure_block",
    count: 5,
  });
  assert.equal(guard.before("patch", { p: 2 }).action, "allow");
});

test("with hard stops a question answered the same five times is not asked again", () => {
  const guard = new ToolLoopGuard({ hard_stop_enabled: true });
  for (let i = 0; i < 5; i++) guard.after("web_extract", { urls: ["u"] }, "page", false);
  assert.deepEqual(guard.before("web_extract", { urls: ["u"] }), {
    action: "block",
    code: "idempotent_no_progress_block",
    count: 5,
  });
});

test("with hard stops the eighth failure of a tool in a row ends the turn; the halt comes before every warning", () => {
  const guard = new ToolLoopGuard({ hard_stop_enabled: true });
  for (let i = 0; i < 7; i++) guard.after("terminal", { i }, "", true);
  const halted = () => guard.halt;
  assert.equal(halted(), null);
  assert.deepEqual(guard.after("terminal", { i: 6 }, "", true), {
    action: "halt",
    code: "same_tool_failure_halt",
    count: 8,
  });
  assert.equal(halted()?.tool, "terminal");
});

test("warnings can be switched off and moved", () => {
  const off = new ToolLoopGuard({ warnings_enabled: false });
  for (let i = 0; i < 4; i++)
    assert.deepEqual(off.after("f", {}, "", true), { action: "allow", code: "allow", count: i + 1 });
  const late = new ToolLoopGuard({ warn_after: { exact_failure: 4 } });
  assert.deepEqual(
    codes(4, () => late.after("f", {}, "", true)),
    ["allow 1", "allow 2", "same_tool_failure_warning 3", "repeated_exact_failure_warning 4"],
  );
});

test("a turn searches the web fifty times and starts fifty sub-agents, no more", () => {
  const guard = new ToolLoopGuard();
  for (let i = 0; i < 50; i++) assert.equal(guard.before("web_search", { query: `${i}` }).action, "allow");
  assert.deepEqual(guard.before("web_search", { query: "x" }), { action: "block", code: "web_search_cap", count: 51 });
  assert.equal(guard.before("delegate_task", { tasks: Array.from({ length: 50 }, () => ({})) }).action, "allow");
  assert.equal(guard.before("delegate_task", { goal: "g" }).code, "subagent_cap");
});

const failing = { fail: () => '{"error":"no such thing"}' };
const call = { calls: [{ name: "fail", args: { a: 1 } }] };

test("in a turn the warning stands behind the result", async () => {
  const gate = new ScriptedGate(call, call, { text: "I give up" });
  const { outcome } = await play(rigAgent({ gate, tools: failing }), "go");
  const results = outcome.messages.filter((message) => message.role === "tool").map((message) => message.content);
  assert.deepEqual(results, [
    '{"error":"no such thing"}',
    '{"error":"no such thing"}\n\n[Tool loop warning: repeated_exact_failure_warning; count=2; this very call failed before; change its arguments or take another way]',
  ]);
});

test("in a turn with hard stops a blocked call is not run, and a halt ends the turn with a sentence", async () => {
  let runs = 0;
  const tools = {
    fail: () => {
      runs++;
      return '{"error":"no"}';
    },
  };
  const defaults = defaultConfig();
  const config = { ...defaults, tool_loop_guardrails: { ...defaults.tool_loop_guardrails, hard_stop_enabled: true } };
  const gate = new ScriptedGate(...Array.from({ length: 6 }, () => call), { text: "well" });
  await play(rigAgent({ gate, tools, ports: { config: () => config } }), "go");
  assert.equal(runs, 5);
  assert.match(JSON.stringify(gate.requests.at(-1)?.messages.at(-1)), /repeated_exact_failure_block/);

  const other = new ScriptedGate(...Array.from({ length: 9 }, (_, a) => ({ calls: [{ name: "fail", args: { a } }] })));
  const { outcome } = await play(rigAgent({ gate: other, tools, ports: { config: () => config } }), "go");
  assert.equal(outcome.exitReason, "guardrail_halt");
  assert.match(outcome.finalText ?? "", /fail.*8 times/);
  assert.equal(other.requests.length, 8);
  assert.deepEqual(outcome.messages.at(-1), { role: "assistant", content: outcome.finalText });
});
