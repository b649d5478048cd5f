import assert from "node:assert/strict";
import { test } from "node:test";
import { hookInput, readAnswer, readHookSettings } from "./run.ts";

const ANSWERS: readonly (readonly [event: string, stdout: string, answer: object | RegExp])[] = [
  ["pre_tool_call", '{"decision":"block","reason":"no"}', { type: "block", message: "no" }],
  ["pre_tool_call", '{"decision":"block","message":"no"}', { type: "block", message: "no" }],
  ["pre_tool_call", '{"action":"block","message":"no"}', { type: "block", message: "no" }],
  ["pre_tool_call", '{"action":"block","reason":"no"}', { type: "block", message: "no" }],
  ["pre_tool_call", '{"action":"block"}', { type: "block", message: "Blocked by shell hook." }],
  ["pre_tool_call", '{"action":"block","message":"  "}', { type: "block", message: "Blocked by shell hook." }],
  ["pre_tool_call", '  {"action":"block","message":"no"}\n', { type: "block", message: "no" }],
  ["pre_tool_call", '{"context":"x"}', /only pre_llm_call may add context/],
  ["pre_tool_call", '{"decision":"allow"}', /none of the known keys/],
  ["post_tool_call", '{"decision":"block","reason":"no"}', /only pre_tool_call may block/],
  ["pre_llm_call", '{"context":"it rains"}', { type: "context", text: "it rains" }],
  ["pre_llm_call", '{"context":" "}', { type: "nothing" }],
  ["pre_llm_call", '{"action":"block"}', /only pre_tool_call may block/],
  ["pre_llm_call", '{"context":5}', /none of the known keys/],
  ["pre_llm_call", "", { type: "nothing" }],
  ["pre_llm_call", "{}", { type: "nothing" }],
  ["pre_llm_call", "done", /not JSON/],
  ["pre_llm_call", '["context"]', /not a JSON object/],
  ["pre_llm_call", "null", /not a JSON object/],
];
for (const [event, stdout, wanted] of ANSWERS) {
  test(`${event}: ${JSON.stringify(stdout)} means ${wanted instanceof RegExp ? wanted.source : JSON.stringify(wanted)}`, () => {
    const answer = readAnswer({ event }, stdout);
    if (wanted instanceof RegExp) assert.match(answer.type === "ignored" ? answer.why : answer.type, wanted);
    else assert.deepEqual(answer, wanted);
  });
}

test("a hook reads six keys; what has none of its own is in extra", () => {
  const payload = { tool_name: "terminal", args: { command: "ls" }, session_id: "s", cwd: "/w", task_id: "t", n: 1 };
  assert.deepEqual(JSON.parse(hookInput("pre_tool_call", payload)), {
    hook_event_name: "pre_tool_call",
    tool_name: "terminal",
    tool_input: { command: "ls" },
    session_id: "s",
    cwd: "/w",
    extra: { task_id: "t", n: 1 },
  });
  const bare = { hook_event_name: "on_session_end", tool_name: null, tool_input: null, session_id: "", cwd: "" };
  assert.deepEqual(JSON.parse(hookInput("on_session_end", {})), { ...bare, extra: {} });
});

const SECONDS: readonly (readonly [given: unknown, seconds: number])[] = [
  [undefined, 60],
  [null, 60],
  ["soon", 60],
  ["20", 20],
  [0, 1],
  [-5, 1],
  [1, 1],
  [300, 300],
  [301, 300],
];
for (const [given, seconds] of SECONDS) {
  test(`timeout ${JSON.stringify(given)} means ${seconds} seconds`, () => {
    const { hooks } = readHookSettings({ pre_tool_call: [{ command: "x", timeout: given }] });
    assert.equal(hooks[0]?.timeoutSeconds, seconds);
  });
}

const MATCHERS: readonly (readonly [event: string, matcher: string, tool: string, runs: boolean])[] = [
  ["pre_tool_call", "terminal", "terminal", true],
  ["pre_tool_call", "term", "terminal", false],
  ["pre_tool_call", "a|terminal", "terminal", true],
  ["pre_tool_call", "a|term", "terminal", false],
  ["pre_tool_call", "mcp_.*", "mcp_x_y", true],
  ["post_tool_call", "write_.*", "read_file", false],
  ["pre_tool_call", "*", "anything", true],
  ["pre_tool_call", "", "anything", true],
  ["pre_llm_call", "terminal", "", true],
];
for (const [event, matcher, tool, runs] of MATCHERS) {
  test(`${event} with matcher "${matcher}" ${runs ? "runs" : "does not run"} for "${tool}"`, () => {
    const { hooks, problems } = readHookSettings({ [event]: [{ command: "x", matcher }] });
    assert.deepEqual(problems, []);
    assert.equal(hooks[0]?.matcher?.test(tool) ?? true, runs);
  });
}

const WRONG: readonly (readonly [settings: Readonly<Record<string, unknown>>, problem: RegExp])[] = [
  [{ pre_tool_call: ["x"] }, /hooks\.pre_tool_call\[0\]: it needs a command/],
  [{ pre_tool_call: [{ command: " " }] }, /it needs a command/],
  [{ pre_tool_call: [{ command: "'x" }] }, /a quote in its command is not closed/],
  [{ pre_tool_call: [{ command: "''" }] }, /its command names no program/],
  [{ pre_tool_call: [{ command: "x", matcher: "(" }] }, /its matcher is not a regular expression/],
  [{ pre_tool_call: [{ command: "x", matcher: 5 }] }, /its matcher is not a text/],
  [{ pre_tool_cal: [{ command: "x" }] }, /hooks\.pre_tool_cal: there is no such event/],
];
for (const [settings, problem] of WRONG) {
  test(`${JSON.stringify(settings)} is a problem: ${problem.source}`, () => {
    const { problems } = readHookSettings({ ...settings, on_session_end: [{ command: "fine --now" }] });
    assert.match(problems.join("\n"), problem);
    assert.deepEqual(
      readHookSettings({ ...settings, on_session_end: [{ command: "fine --now" }] }).hooks.at(-1)?.argv,
      ["fine", "--now"],
    );
  });
}
