import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEFAULT_TOOLS, promptInputs as inputs, someSkills } from "../../test/support/prompt-inputs.ts";
import { DEFAULT_IDENTITY } from "../home/paths.ts";
import { buildSystemPromptParts } from "./build.ts";
import { WORKSPACE_HEADER } from "./coding.ts";
import type { PromptInputs } from "./contract.ts";

const idsOf = (change: Partial<PromptInputs> = {}) =>
  buildSystemPromptParts({ ...inputs, ...change }).blocks.map((block) => block.id);

const everything: Partial<PromptInputs> = {
  model: "gemini-gpt",
  provider: "alibaba",
  toolNames: [...DEFAULT_TOOLS, "computer_use", "kanban_show"],
  skills: someSkills(3),
  coding: { active: true, focus: false, workspace: `${WORKSPACE_HEADER}\n- Root: /w`, instructions: "be kind" },
  pythonLine: "Python toolchain: python3=missing.",
  systemMessage: "a task",
  contextFiles: { text: "# Project Context", reports: [], warnings: [], hashes: [] },
  memoryText: "notes",
  userText: "a user",
  externalMemory: "recalled",
};

test("all blocks in their order and layer", () => {
  const build = buildSystemPromptParts({ ...inputs, ...everything });
  assert.deepEqual(
    build.blocks.map(({ id, layer }) => `${layer} ${id}`),
    [
      "stable identity",
      "stable product_help",
      "stable task_completion",
      "stable parallel_tools",
      "stable tool_guidance",
      "stable steer_channel",
      "stable computer_use",
      "stable tool_enforcement",
      "stable model_google",
      "stable model_openai",
      "stable skills_index",
      "stable alibaba_model",
      "stable env_hints",
      "stable coding_brief",
      "stable operator_instructions",
      "stable python_probe",
      "stable profile",
      "stable platform_hint",
      "context workspace_snapshot",
      "context cwd",
      "context system_message",
      "context context_files",
      "volatile memory",
      "volatile user_profile",
      "volatile external_memory",
      "volatile session_line",
    ],
  );
});

const conditions: readonly (readonly [block: string, change: Partial<PromptInputs>, present: boolean])[] = [
  ["task_completion", { toolNames: [] }, false],
  ["task_completion", { taskCompletionGuidance: false }, false],
  ["parallel_tools", { toolNames: [] }, false],
  ["parallel_tools", { parallelToolGuidance: false }, false],
  ["tool_guidance", { toolNames: ["terminal"] }, false],
  ["tool_guidance", { toolNames: ["memory"] }, true],
  ["tool_guidance", { toolNames: ["session_search"] }, true],
  ["tool_guidance", { toolNames: ["skill_manage"] }, true],
  ["tool_guidance", { toolNames: ["terminal"], kanbanGuidance: "work on it" }, true],
  ["tool_guidance", { toolNames: ["kanban_show"] }, true],
  ["tool_guidance", { toolNames: ["kanban_show"], kanbanGuidance: "" }, false],
  ["steer_channel", { toolNames: [] }, false],
  ["steer_channel", { toolNames: ["todo"] }, true],
  ["computer_use", {}, false],
  ["computer_use", { toolNames: ["computer_use"] }, true],
  ["tool_enforcement", { model: "gpt-5" }, true],
  ["tool_enforcement", { model: "gpt-5", toolNames: [] }, false],
  ["tool_enforcement", { toolUseEnforcement: true }, true],
  ["model_openai", { model: "gpt-5" }, true],
  ["model_openai", { model: "x/grok-4" }, true],
  ["model_openai", { model: "gpt-5", toolUseEnforcement: false }, false],
  ["model_openai", { model: "qwen3" }, false],
  ["model_google", { model: "Gemma-3" }, true],
  ["model_google", { model: "gemini-3", toolUseEnforcement: ["gpt"] }, false],
  ["skills_index", { skills: someSkills(2) }, false],
  ["skills_index", { skills: someSkills(2), toolNames: ["skills_list"] }, true],
  ["skills_index", { skills: someSkills(2), toolNames: ["skill_view"] }, true],
  ["skills_index", { skills: someSkills(2), toolNames: ["skill_manage"] }, true],
  ["skills_index", { skills: [], toolNames: ["skill_view"] }, false],
  ["alibaba_model", { provider: "alibaba" }, true],
  ["alibaba_model", { provider: "alibaba-cloud" }, false],
  ["env_hints", { toolNames: [] }, true],
  ["coding_brief", {}, false],
  ["coding_brief", { coding: { active: true, focus: false, workspace: null, instructions: "" } }, true],
  ["coding_brief", { toolNames: [], coding: { active: true, focus: false, workspace: null, instructions: "" } }, false],
  ["coding_brief", { coding: { active: false, focus: true, workspace: "w", instructions: "i" } }, false],
  ["operator_instructions", { coding: { active: true, focus: false, workspace: null, instructions: " " } }, false],
  [
    "operator_instructions",
    { coding: { active: true, focus: false, workspace: null, instructions: ["a", "b"] } },
    true,
  ],
  ["python_probe", { pythonLine: null }, false],
  ["python_probe", { pythonLine: "Python toolchain: x." }, true],
  ["python_probe", { pythonLine: "x", backend: { type: "remote", name: "ssh", facts: null } }, false],
  ["profile", { toolNames: [] }, true],
  ["platform_hint", { platform: "unheard-of" }, false],
  ["platform_hint", { platform: "unheard-of", pluginHint: "You are on a pager." }, true],
  ["workspace_snapshot", { coding: { active: true, focus: false, workspace: null, instructions: "" } }, false],
  ["cwd", {}, true],
  ["cwd", { cwd: null }, false],
  ["cwd", { backend: { type: "remote", name: "docker", facts: null } }, false],
  ["cwd", { backend: { type: "sandbox", writable: "/w", network: "on" } }, true],
  ["system_message", { systemMessage: "" }, false],
  ["system_message", { systemMessage: "  \n " }, false],
  ["system_message", { systemMessage: "do it" }, true],
  ["context_files", { contextFiles: { text: "", reports: [], warnings: [], hashes: [] } }, false],
  ["memory", { memoryText: "  " }, false],
  ["user_profile", { userText: "u" }, true],
  ["external_memory", { externalMemory: "" }, false],
  ["session_line", { toolNames: [] }, true],
];
for (const [block, change, present] of conditions) {
  test(`${block} is ${present ? "there" : "left out"} with ${JSON.stringify(change).slice(0, 90)}`, () => {
    assert.equal(idsOf(change).includes(block), present);
  });
}

test("blocks are stripped, layers and blocks are joined by one blank line", () => {
  const build = buildSystemPromptParts({ ...inputs, systemMessage: "\n\n task \n", memoryText: "m\n" });
  assert.equal(build.context, "Current working directory: /home/ada/project\n\ntask");
  assert.ok(build.volatile.startsWith("m\n\nConversation started: "));
  assert.equal(build.full, [build.stable, build.context, build.volatile].join("\n\n"));
  assert.doesNotMatch(build.full, /\n\n\n/);
});

test("an empty layer leaves no gap", () => {
  const build = buildSystemPromptParts({ ...inputs, cwd: null });
  assert.equal(build.context, "");
  assert.equal(build.full, `${build.stable}\n\n${build.volatile}`);
});

test("sessions that differ in folder, memory, date and id have equal stable layers", () => {
  const text = fc.string({ maxLength: 40 });
  const own = fc.record({
    cwd: text,
    memoryText: fc.option(text),
    userText: fc.option(text),
    externalMemory: fc.option(text),
    systemMessage: fc.option(text),
    startedOn: fc.record({
      year: fc.integer({ min: 2000, max: 2100 }),
      month: fc.integer({ min: 1, max: 12 }),
      day: fc.integer({ min: 1, max: 28 }),
    }),
    sessionId: fc.option(text),
  });
  const stable = buildSystemPromptParts(inputs).stable;
  fc.assert(fc.property(own, (change) => buildSystemPromptParts({ ...inputs, ...change }).stable === stable));
});

test("the same inputs give the same bytes, whatever order sets and listings come in", () => {
  const skills = someSkills(24);
  const reference = buildSystemPromptParts({ ...inputs, ...everything, skills });
  const shuffled = fc.record({
    toolNames: fc.shuffledSubarray([...(everything.toolNames ?? [])], { minLength: everything.toolNames?.length ?? 0 }),
    skills: fc
      .shuffledSubarray([...skills], { minLength: skills.length })
      .map((all) => all.map((category) => ({ ...category, skills: [...category.skills].reverse() }))),
  });
  fc.assert(
    fc.property(shuffled, (change) => {
      const build = buildSystemPromptParts({ ...inputs, ...structuredClone(everything), ...change });
      assert.equal(build.full, reference.full);
      assert.deepEqual(build.fingerprint, reference.fingerprint);
    }),
    { numRuns: 30 },
  );
});

test("a piece that fails is left out with a note, and the rest is built", () => {
  const broken = { ...inputs, soul: { text: null, blockedMarker: null, report: null, warnings: [] } };
  Object.defineProperty(broken, "memoryText", {
    get() {
      throw new Error("the notes are on fire");
    },
  });
  const build = buildSystemPromptParts(broken);
  assert.ok(build.full.startsWith(DEFAULT_IDENTITY));
  assert.deepEqual(build.warnings, ['The prompt goes without its part "memory": the notes are on fire']);
});

test("what readers found is passed on: reports first of SOUL.md, warnings once each", () => {
  const report = { kind: "agents", status: "loaded", chars: 1, keptChars: 1, tokens: 1, findings: [] } as const;
  const build = buildSystemPromptParts({
    ...inputs,
    soul: {
      text: "I am I.",
      blockedMarker: null,
      report: { ...report, path: "/h/SOUL.md", kind: "soul" },
      warnings: ["a"],
    },
    contextFiles: { text: "x", reports: [{ ...report, path: "/p/AGENTS.md" }], warnings: ["b", "a"], hashes: [] },
    notes: ["c"],
  });
  assert.deepEqual(
    build.contextFiles.map(({ path }) => path),
    ["/h/SOUL.md", "/p/AGENTS.md"],
  );
  assert.deepEqual(build.warnings, ["a", "b", "c"]);
  assert.equal(build.blocks[0]?.source, "/h/SOUL.md");
});
