import assert from "node:assert/strict";
import { test } from "node:test";
import { toolContext } from "../../test/support/tool-context.ts";
import type { Question } from "../safety/decision.ts";
import "./clarify.ts";
import { dispatch } from "../../test/support/dispatch.ts";
import type { ToolContext } from "./toolset/context.ts";

import { registry } from "./toolset/registry.ts";

async function clarify(args: Record<string, unknown>, answer: string | null, extra: Partial<ToolContext> = {}) {
  const asked: Question[] = [];
  const ask = (async (question: Question) => {
    asked.push(question);
    return { text: answer };
  }) as ToolContext["ask"]; // every question here is a clarify
  const output = await dispatch(registry, "clarify", args, toolContext({ ask, ...extra }));
  return { result: JSON.parse(output as string), asked };
}

test("a question reaches the user and the answer comes back", async () => {
  const { result, asked } = await clarify({ question: " Which? ", choices: ["a", "b"] }, "b");
  assert.deepEqual(asked, [{ kind: "clarify", question: "Which?", choices: ["a", "b"], multiSelect: false }]);
  assert.deepEqual(result, { question: "Which?", choices_offered: ["a", "b"], user_response: "b" });
});

const choices: readonly [name: string, given: unknown, expected: unknown][] = [
  ["blanks are dropped", ["a", " ", "", "b"], ["a", "b"]],
  ["more than four are cut", ["1", "2", "3", "4", "5"], ["1", "2", "3", "4"]],
  [
    "objects are flattened",
    [{ label: "L", text: "T" }, { description: "D" }, { title: "X" }, { other: 1 }],
    ["L", "D", "X"],
  ],
  ["a text alone becomes a list", "only", ["only"]],
  ["none is none", [], null],
  ["null is none", null, null],
];
for (const [name, given, expected] of choices) {
  test(`choices: ${name}`, async () => {
    assert.deepEqual((await clarify({ question: "q", choices: given }, "x")).result.choices_offered, expected);
  });
}

test("a blank question is refused without asking", async () => {
  const { result, asked } = await clarify({ question: "  " }, "x");
  assert.deepEqual([result, asked], [{ error: "Question text is required." }, []]);
});

test("where nobody answers and nobody can, the tool is not available", async () => {
  const { result } = await clarify({ question: "q" }, null, { interactive: false });
  assert.deepEqual(result, { error: "Clarify tool is not available in this execution context." });
});

test("an unattended run may still answer by itself", async () => {
  const { result } = await clarify({ question: "q" }, "decide yourself", { interactive: false });
  assert.equal(result.user_response, "decide yourself");
});

test("a user who does not answer leaves the decision to the agent", async () => {
  assert.match((await clarify({ question: "q" }, null)).result.user_response, /decide yourself/);
});

test("a user who ends the turn leaves the agent nothing to decide", async () => {
  const { result } = await clarify({ question: "q" }, null, { signal: AbortSignal.abort() });
  assert.deepEqual(result, { error: "The user ended the turn without an answer." });
});
