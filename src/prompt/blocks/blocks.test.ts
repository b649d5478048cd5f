import assert from "node:assert/strict";
import { test } from "node:test";
import { promptInputs as inputs } from "../../../test/support/prompt-inputs.ts";
import { DEFAULT_IDENTITY } from "../../home/paths.ts";
import { countCodePoints } from "../../kit/code-points.ts";
import {
  alibabaModel,
  codingBrief,
  enforcesTools,
  GOOGLE,
  HINTS,
  identity,
  KANBAN,
  longDate,
  memoryGuidance,
  OPENAI,
  operatorInstructions,
  PARALLEL_TOOLS,
  platformHint,
  productHelp,
  profileStatement,
  SESSION_SEARCH,
  SKILLS,
  STEER_CHANNEL,
  STEER_CLOSE,
  STEER_OPEN,
  sessionLine,
  TASK_COMPLETION,
  TOOL_ENFORCEMENT,
  toolGuidance,
} from "../blocks.ts";
import { SKILLS_INSTRUCTION } from "../skills-index.ts";

/** The most characters a text may take, and what it has to mention. */
const budgets: readonly (readonly [name: string, text: string, most: number, points: readonly RegExp[]])[] = [
  [
    "product_help",
    productHelp(["skill_view"]),
    500,
    [/Hermes Agent/, /documentation/, /`hermes-agent`/, /`skill_view`/],
  ],
  ["task_completion", TASK_COMPLETION, 800, [/^# /, /tool output/, /stub/, /blocked/, /Never make up/]],
  ["parallel_tools", PARALLEL_TOOLS, 620, [/^# /, /one response/, /same time/, /needs the result/]],
  [
    "memory",
    memoryGuidance({ search: true }),
    1500,
    [/preferences/, /compact/, /commit/, /within a week/, /`session_search`/, /skill/, /good ".*bad "/],
  ],
  ["session_search", SESSION_SEARCH, 220, [/`session_search`/, /before asking/]],
  [
    "skill",
    SKILLS,
    1000,
    [/5\+ tool calls/, /skill_manage\(action='patch'\)/, /liability/, /`\[SKILL_PRUNED\]`/, /`skill_view`/],
  ],
  [
    "kanban",
    KANBAN,
    5500,
    [
      /\$HERMES_KANBAN_TASK/,
      /\$HERMES_KANBAN_WORKSPACE/,
      /`kanban_show`/,
      /hour/,
      /`kanban_block`/,
      /metadata/,
      /review-required: /,
      /`kanban_create`/,
      /orchestrate/,
      /`clarify`/,
      /`delegate_task`/,
    ],
  ],
  [
    "steer_channel",
    STEER_CHANNEL,
    700,
    [/^## Mid-turn user steering\n/, /end of a tool result/, /only this exact form/],
  ],
  ["tool_enforcement", TOOL_ENFORCEMENT, 850, [/^# Tool-use enforcement\n/, /same response/, /promise/]],
  [
    "model_google",
    GOOGLE,
    900,
    [/^# Google model operational directives\n/, /absolute paths/, /manifests/, /--yes/, /together in one response/],
  ],
  [
    "model_openai",
    OPENAI,
    2700,
    [
      /^# Execution discipline\n/,
      ...["tool_persistence", "mandatory_tool_use", "act_dont_ask", "prerequisite_checks", "verification"].map(
        (tag) => new RegExp(`<${tag}>.+</${tag}>`, "s"),
      ),
      /<missing_context>[\s\S]+<\/missing_context>/,
      /arithmetic/,
      /hashes/,
      /describes the user/,
    ],
  ],
  ["coding_brief", codingBrief("claude-x"), 2700, [/pair programmer/, /`todo`/, /`path:line`/, /secrets/, /snapshot/]],
  ["skills instruction", SKILLS_INSTRUCTION, 1500, [/skill_view\(name\)/, /even partly/, /`hermes-agent`/]],
];
for (const [name, text, most, points] of budgets) {
  test(`${name} makes its points in at most ${most} characters`, () => {
    assert.ok(countCodePoints(text) <= most, `${countCodePoints(text)} characters`);
    for (const point of points) assert.match(text, point);
    assert.equal(text, text.trim());
    assert.ok(!text.includes("\r"));
  });
}

test("the steering block holds both markers on lines of their own", () => {
  assert.ok(STEER_CHANNEL.split("\n").includes(STEER_OPEN) && STEER_CHANNEL.split("\n").includes(STEER_CLOSE));
});

test("tool guidance is one block, its pieces in a fixed order with single spaces between", () => {
  const all = toolGuidance(["kanban_show", "skill_manage", "session_search", "memory"], null);
  assert.equal(all, [memoryGuidance({ search: true }), SESSION_SEARCH, SKILLS, KANBAN].join(" "));
  assert.ok(!memoryGuidance({ search: false }).includes("session_search"));
});

const kanban: readonly (readonly [guidance: string | null | undefined, tools: readonly string[], expected: string])[] =
  [
    ["do this", [], "do this"],
    ["do this", ["kanban_show"], "do this"],
    [null, ["kanban_show"], KANBAN],
    [undefined, ["kanban_show"], KANBAN],
    ["", ["kanban_show"], ""],
    [null, ["terminal"], ""],
  ];
for (const [guidance, tools, expected] of kanban) {
  test(`kanban guidance ${JSON.stringify(guidance)} with tools [${tools}] gives ${JSON.stringify(expected.slice(0, 20))}`, () => {
    assert.equal(toolGuidance(tools, guidance), expected);
  });
}

const enforcement: readonly (readonly [setting: boolean | string | unknown[], model: string, expected: boolean])[] = [
  [true, "claude-x", true],
  ["true", "claude-x", true],
  ["Always", "claude-x", true],
  ["YES", "claude-x", true],
  ["on", "claude-x", true],
  [false, "gpt-5", false],
  ["False", "gpt-5", false],
  ["never", "gpt-5", false],
  ["no", "gpt-5", false],
  ["off", "gpt-5", false],
  [["CLAUDE", 3], "claude-x", true],
  [[3, null], "gpt-5", false],
  [[], "gpt-5", false],
  ["auto", "openai/GPT-5", true],
  ["auto", "codex-mini", true],
  ["auto", "gemini-3", true],
  ["auto", "gemma-3", true],
  ["auto", "grok-4", true],
  ["auto", "glm-4.7", true],
  ["auto", "qwen3", true],
  ["auto", "deepseek-v4", true],
  ["auto", "claude-x", false],
  ["anything", "qwen3", true],
  ["anything", "claude-x", false],
];
for (const [setting, model, expected] of enforcement) {
  test(`enforcement ${JSON.stringify(setting)} with ${model} is ${expected}`, () => {
    assert.equal(enforcesTools(setting, model), expected);
  });
}

test("a customised SOUL.md is the identity as it is; a withheld one leaves the built-in identity and its marker", () => {
  const reading = { report: null, warnings: [] };
  assert.equal(identity(null), DEFAULT_IDENTITY);
  assert.equal(identity({ ...reading, text: "I am Ada.", blockedMarker: null }), "I am Ada.");
  assert.equal(identity({ ...reading, text: null, blockedMarker: null }), DEFAULT_IDENTITY);
  assert.equal(
    identity({ ...reading, text: null, blockedMarker: "[BLOCKED: x]" }),
    `${DEFAULT_IDENTITY}\n\n[BLOCKED: x]`,
  );
});

test("without the skill tool nothing points at a skill", () => {
  assert.ok(!productHelp([]).includes("skill"));
});

test("Alibaba's models are told their short name and their exact id", () => {
  const text = alibabaModel("a/b/qwen-max");
  assert.match(text, /model qwen-max .*model id: a\/b\/qwen-max\)/);
  assert.match(alibabaModel("plain"), /model plain .*: plain\)/);
});

const families: readonly (readonly [model: string, mode: string | null])[] = [
  ["openai/GPT-5", "patch"],
  ["codex-mini", "patch"],
  ["claude-x", "replace"],
  ["gpt-claude", "patch"],
  ["moonshot/kimi-k3", "replace"],
  ["NousResearch/Hermes-5", "replace"],
  ["devstral", "replace"],
  ["phi-9", null],
];
for (const [model, mode] of families) {
  test(`${model} edits with ${mode ?? "whatever it likes"}`, () => {
    const last = codingBrief(model).split("\n").at(-1) ?? "";
    assert.equal(/`mode='(\w+)'`/.exec(last)?.[1] ?? null, mode);
  });
}

test("operator instructions are a text or a list of lines", () => {
  assert.equal(operatorInstructions("a"), "Operator instructions (from config):\na");
  assert.equal(operatorInstructions(["a", "b"]), "Operator instructions (from config):\na\nb");
  assert.equal(operatorInstructions([]), null);
});

test("the profile statement names the profile and the real directories", () => {
  const own = profileStatement(inputs);
  assert.ok(own.startsWith("Active Hermes profile: default."));
  assert.match(own, /~\/\.hermes\/profiles\/<name>\//);
  const named = profileStatement({ ...inputs, profile: "work", profileHome: "~/.hermes/profiles/work" });
  assert.ok(named.startsWith("Active Hermes profile: work."));
  assert.match(named, /reads and writes ~\/\.hermes\/profiles\/work\/\./);
  assert.match(named, /`cross_profile=True`/);
  for (const text of [own, named]) {
    for (const part of ["skills/", "plugins/", "cron/", "memories/"]) assert.ok(text.includes(part));
  }
});

const hints: readonly (readonly [platform: string, points: readonly RegExp[]])[] = [
  ["cli", [/CLI agent/, /plain text/, /never write `MEDIA:`/, /absolute paths/, /`deliver`/]],
  ["tui", [/terminal/, /`deliver`/]],
  ["telegram", [/spoilers/, /tables do not/, /`MEDIA:\/absolute\/path`/, /photos/]],
  ...["discord", "slack", "mattermost", "feishu", "weixin", "qqbot"].map((name) => [name, [/`MEDIA:/]] as const),
  ["wecom", [/10 MB/, /20 MB/, /AMR/]],
  ["whatsapp", [/converted/, /no tables/, /`MEDIA:/]],
  ["signal", [/converted/, /no tables/, /`MEDIA:/]],
  ["matrix", [/HTML/, /spoilers, strikethrough or checkboxes/, /links a name/]],
  ["bluebubbles", [/iMessage/, /short/, /`MEDIA:/]],
  ["sms", [/plain text/, /1,600/, /brief/]],
  ["email", [/[Pp]lain text/, /structured/, /greeting/, /`MEDIA:/]],
  ["cron", [/nobody is present/, /no questions/, /delivered automatically/]],
  ["api_server", [/unknown/, /5 MB/, /runs endpoint/]],
  ["mcp", [/nobody can be asked/, /plain text/, /absolute paths/]],
  ["webui", [/full Markdown/, /local paths/]],
  ["desktop", [/full Markdown/, /local paths/]],
];
for (const [platform, points] of hints) {
  test(`the hint of ${platform} makes its points`, () => {
    for (const point of points) assert.match(platformHint(platform) ?? "", point);
  });
}

test("every built-in platform has a case above, and letter case does not matter", () => {
  assert.deepEqual(Object.keys(HINTS).sort(), hints.map(([name]) => name).sort());
  assert.equal(platformHint("Telegram"), platformHint("telegram"));
  assert.equal(platformHint("constructor"), null);
});

const own = platformHint("sms") ?? "";
const overrides: readonly (readonly [setting: unknown, expected: string, warned: boolean])[] = [
  [undefined, own, false],
  ["more", `${own}\n\nmore`, false],
  [{ append: "more" }, `${own}\n\nmore`, false],
  [{ replace: "other" }, "other", false],
  [{ replace: "other", append: "more" }, "other\n\nmore", false],
  [5, own, true],
  [["x"], own, true],
  [{}, own, true],
  [{ append: 3 }, own, true],
  [{ replace: "x", append: 3 }, own, true],
];
for (const [setting, expected, warned] of overrides) {
  test(`platform_hints.sms = ${JSON.stringify(setting)}`, () => {
    const warnings: string[] = [];
    const settings = { sms: setting, telegram: { replace: "nothing to do with it" } };
    assert.equal(platformHint("sms", { settings, warn: (text) => warnings.push(text) }), expected);
    assert.equal(warnings.length > 0, warned);
  });
}

test("the session line has the day and no clock", () => {
  assert.equal(
    sessionLine({ ...inputs, sessionId: "abc" }),
    "Conversation started: Monday, January 05, 2026\nSession ID: abc\nModel: claude-x\nProvider: anthropic\nPlatform: cli",
  );
  assert.equal(
    sessionLine({ ...inputs, model: "", provider: "", platform: "" }),
    "Conversation started: Monday, January 05, 2026",
  );
  const rebuilt = sessionLine({ ...inputs, rebuiltOn: { year: 2026, month: 2, day: 9 } }).split("\n")[1];
  assert.match(rebuilt ?? "", /^Today's date \(as of the last context rebuild\): Monday, February 09, 2026 .*now/);
});

const days: readonly (readonly [year: number, month: number, day: number, text: string])[] = [
  [2026, 11, 15, "Sunday, November 15, 2026"],
  [2024, 2, 29, "Thursday, February 29, 2024"],
  [1999, 12, 31, "Friday, December 31, 1999"],
];
for (const [year, month, day, text] of days) {
  test(`${text} is written out in English`, () => assert.equal(longDate({ year, month, day }), text));
}
