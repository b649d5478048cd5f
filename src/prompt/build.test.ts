import assert from "node:assert/strict";
import { test } from "node:test";
import { enforcesTools } from "./blocks/tool-enforcement.ts";
import { STEER_CLOSE, STEER_OPEN } from "./blocks/tool-guidance.ts";
import { buildSystemPromptParts } from "./build.ts";
import type { PromptInputs } from "./contract.ts";

const inputs: PromptInputs = {
  soul: null,
  model: "claude-x",
  provider: "anthropic",
  platform: "cli",
  toolNames: ["terminal", "session_search"],
  toolUseEnforcement: "auto",
  taskCompletionGuidance: true,
  parallelToolGuidance: true,
  hostName: "Linux (6.1)",
  userHome: "/home/ada",
  environmentHint: "",
  profile: "default",
  rootHome: "~/.hermes",
  profileHome: "~/.hermes",
  cwd: "/home/ada/project",
  systemMessage: null,
  memoryText: null,
  userText: null,
  startedOn: { year: 2026, month: 1, day: 5 },
  rebuiltOn: null,
  sessionId: null,
};
const ids = (change: Partial<PromptInputs> = {}) =>
  buildSystemPromptParts({ ...inputs, ...change }).blocks.map((block) => block.id);

test("blocks come in their order, layers are joined by blank lines", () => {
  const build = buildSystemPromptParts(inputs);
  assert.deepEqual(ids(), [
    "identity",
    "product_help",
    "task_completion",
    "parallel_tools",
    "tool_guidance",
    "steer_channel",
    "env_hints",
    "profile",
    "platform_hint",
    "cwd",
    "session_line",
  ]);
  assert.equal(build.full, [build.stable, build.context, build.volatile].join("\n\n"));
  assert.ok(build.full.startsWith("You are Hermes Agent"));
});

test("the same inputs give the same bytes", () => {
  assert.equal(buildSystemPromptParts(inputs).full, buildSystemPromptParts(structuredClone(inputs)).full);
});

test("sessions that differ in folder, memory, date and id have equal stable layers", () => {
  const other = buildSystemPromptParts({
    ...inputs,
    cwd: "/elsewhere",
    memoryText: "notes",
    userText: "a user",
    startedOn: { year: 2027, month: 2, day: 3 },
    sessionId: "x",
  });
  assert.equal(other.stable, buildSystemPromptParts(inputs).stable);
});

test("without tools nothing is said about tools", () => {
  assert.deepEqual(ids({ toolNames: [] }), [
    "identity",
    "product_help",
    "env_hints",
    "profile",
    "platform_hint",
    "cwd",
    "session_line",
  ]);
});

test("the steering block holds both markers", () => {
  const { stable } = buildSystemPromptParts(inputs);
  assert.ok(stable.includes(STEER_OPEN) && stable.includes(STEER_CLOSE));
});

test("the session line has the day and no clock", () => {
  const { volatile } = buildSystemPromptParts({ ...inputs, sessionId: "abc" });
  assert.equal(
    volatile,
    "Conversation started: Monday, January 05, 2026\nSession ID: abc\nModel: claude-x\nProvider: anthropic\nPlatform: cli",
  );
});

const enforcement: [boolean | string | unknown[], string, boolean][] = [
  [true, "claude-x", true],
  ["Always", "claude-x", true],
  [false, "gpt-5", false],
  ["off", "gpt-5", false],
  [["CLAUDE", 3], "claude-x", true],
  [[], "gpt-5", false],
  ["auto", "openai/gpt-5", true],
  ["auto", "claude-x", false],
  ["anything", "qwen3", true],
];
for (const [setting, model, expected] of enforcement) {
  test(`enforcement ${JSON.stringify(setting)} with ${model} is ${expected}`, () => {
    assert.equal(enforcesTools(setting, model), expected);
  });
}

test("model family guidance follows only where enforcement is on", () => {
  assert.ok(ids({ model: "gpt-5" }).includes("model_openai"));
  assert.ok(ids({ model: "gemini-3" }).includes("model_google"));
  assert.ok(!ids({ model: "gpt-5", toolUseEnforcement: false }).includes("model_openai"));
});
