import assert from "node:assert/strict";
import { test } from "node:test";
import { eachField, findEntry } from "./field.ts";
import { configSchema, decodeConfig, defaultConfig } from "./schema.ts";
import type { Tree } from "./yaml-text.ts";

const at = (tree: unknown, path: string) =>
  path.split(".").reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], tree);
const treeWith = (path: string, value: unknown) =>
  path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>;

test("the numbers everybody relies on are the defaults", () => {
  const config = defaultConfig();
  assert.equal(config.agent.max_turns, 90);
  assert.equal(config.agent.tool_use_enforcement, "auto");
  assert.equal(config.terminal.timeout, 180);
  assert.equal(config.delegation.max_iterations, 50);
  assert.equal(config.display.streaming, true);
  assert.equal(config.context.engine, "compressor");
  assert.equal(config.memory.memory_char_limit, 2200);
  assert.equal(config.memory.user_char_limit, 1375);
  assert.equal(config.memory.nudge_interval, 10);
  assert.equal(config.memory.flush_min_turns, 6);
  assert.equal(config.skills.creation_nudge_interval, 10);
  assert.equal(config.skills.guard_agent_created, false);
  assert.equal(config.approvals.destructive_slash_confirm, true);
  assert.equal(config.plugins.enabled, undefined);
  assert.deepEqual(config.model, {});
});

const gates: readonly (readonly [unknown, boolean])[] = [
  [undefined, false],
  ...["on", "true", "Yes", "1", "approve", "enabled", true, 1].map((word) => [word, true] as const),
  ...["off", "false", "no", "0", "disabled", false, 0].map((word) => [word, false] as const),
  // Somebody wanted something to be asked; what exactly, nobody knows.
  ...["maybe", 7, [], {}].map((word) => [word, true] as const),
];
for (const [value, expected] of gates) {
  test(`write_approval written as ${JSON.stringify(value)} means ${expected}`, () => {
    for (const path of ["memory.write_approval", "skills.write_approval"])
      assert.equal(at(decodeConfig(treeWith(path, value)).config, path), expected);
  });
}

test("a limit of memory below one is refused", () => {
  const { config, problems } = decodeConfig({ memory: { memory_char_limit: -5, user_char_limit: 0 } });
  assert.deepEqual([config.memory.memory_char_limit, config.memory.user_char_limit, problems.length], [2200, 1375, 2]);
});

test("two copies of the defaults share nothing", () => {
  const first = defaultConfig();
  first.toolsets.push("x");
  first.providers.x = 1;
  assert.deepEqual(defaultConfig().toolsets, ["hermes-cli"]);
  assert.deepEqual(defaultConfig().providers, {});
});

const accepted: readonly [path: string, raw: unknown, value: unknown][] = [
  ["approvals.mode", false, "off"],
  ["approvals.mode", true, "manual"],
  ["approvals.mode", "Smart", "smart"],
  ["display.tool_progress", true, "all"],
  ["display.tool_progress", false, "off"],
  ["display.tool_progress", "off", "off"],
  ["display.memory_notifications", true, "on"],
  ["prompt_caching.cache_ttl", false, "off"],
  ["prompt_caching.cache_ttl", null, "off"],
  ["prompt_caching.cache_ttl", "Disabled", "off"],
  ["prompt_caching.cache_ttl", "none", "off"],
  ["tools.tool_search.enabled", true, "on"],
  ["agent.coding_context", false, "off"],
  ["agent.coding_context", "always", "on"],
  ["agent.coding_context", "Lean", "focus"],
  ["agent.coding_context", "strict", "focus"],
  ["agent.coding_context", "never", "off"],
  ["context_file_max_chars", 90.7, 90.7],
  ["terminal.sandbox", true, "on"],
  ["terminal.sandbox_network", false, "off"],
  ["logging.level", "debug", "DEBUG"],
  ["agent.max_turns", "50", 50],
  ["toolsets", "web", ["web"]],
  ["approvals.deny", "rm *", ["rm *"]],
  ["platform_toolsets", { cli: "web", telegram: ["todo"], slack: null }, { cli: ["web"], telegram: ["todo"] }],
  ["security.website_blocklist.enabled", "yes", true],
  ["terminal.backend", null, "local"],
  ["agent.reasoning_effort", "Max", "xhigh"],
  ["agent.reasoning_effort", "", ""],
  ["delegation.reasoning_effort", "high", "high"],
  ["compression.threshold", 1, 1],
  ["display.streaming", "off", false],
  ["timezone", 5, "5"],
  ["toolsets", ["a", 7], ["a", "7"]],
  ["toolsets", null, ["hermes-cli"]],
  ["agent.tool_use_enforcement", ["gpt"], ["gpt"]],
  ["agent.tool_use_enforcement", false, false],
  ["cron.max_parallel_jobs", null, null],
  ["budget.day.usd", 1.5, 1.5],
  ["model.context_length", 8000, 8000],
];
for (const [path, raw, value] of accepted) {
  test(`${path}: ${JSON.stringify(raw)} is read as ${JSON.stringify(value)}`, () => {
    const { config, problems } = decodeConfig(treeWith(path, raw));
    assert.deepEqual(at(config, path), value);
    assert.deepEqual(problems, []);
  });
}

const refused: readonly [path: string, raw: unknown, problem: string][] = [
  ["approvals.mode", "maybe", 'approvals.mode: expected one of manual, smart, off, found "maybe"; using "manual"'],
  [
    "display.busy_input_mode",
    false,
    'display.busy_input_mode: expected one of interrupt, queue, steer, found false; using "interrupt"',
  ],
  ["agent.max_turns", 1.5, "agent.max_turns: expected a whole number from 1, found 1.5; using 90"],
  ["agent.max_turns", 0, "agent.max_turns: expected a whole number from 1, found 0; using 90"],
  ["compression.protect_last_n", -3, "compression.protect_last_n: expected a whole number from 0, found -3; using 20"],
  [
    "delegation.max_concurrent_children",
    0,
    "delegation.max_concurrent_children: expected a whole number from 1, found 0; using 3",
  ],
  [
    "delegation.child_timeout_seconds",
    -1,
    "delegation.child_timeout_seconds: expected a whole number from 0, found -1; using 600",
  ],
  ["auxiliary.vision.timeout", -1, "auxiliary.vision.timeout: expected a whole number from 0, found -1; using 120"],
  ["agent.max_turns", -5, "agent.max_turns: expected a whole number from 1, found -5; using 90"],
  ["agent.api_max_retries", -1, "agent.api_max_retries: expected a whole number from 0, found -1; using 3"],
  [
    "agent.reasoning_effort",
    "silly",
    'agent.reasoning_effort: expected one of (empty), none, minimal, low, medium, high, xhigh, found "silly"; using ""',
  ],
  ["delegation.max_iterations", 0, "delegation.max_iterations: expected a whole number from 1, found 0; using 50"],
  ["checkpoints.max_snapshots", 0, "checkpoints.max_snapshots: expected a whole number from 1, found 0; using 20"],
  [
    "tool_loop_guardrails.warn_after.exact_failure",
    -2,
    "tool_loop_guardrails.warn_after.exact_failure: expected a whole number from 1, found -2; using 2",
  ],
  ["compression.threshold", 3, "compression.threshold: expected a number from 0 to 1, found 3; using 0.5"],
  ["display", 5, "display: expected a mapping, found 5; using the defaults"],
  ["model.context_length", 0, "model.context_length: expected a whole number from 1, found 0; it is ignored"],
  ["delegation.api_key", ["x"], 'delegation.api_key: expected a text, found something else; using ""'],
];
for (const [path, raw, problem] of refused) {
  test(`${path}: ${JSON.stringify(raw)} falls back and is told`, () => {
    const { config, problems } = decodeConfig(treeWith(path, raw));
    assert.deepEqual(problems, [{ message: problem, guard: false }]);
    assert.deepEqual(at(config, path), at(defaultConfig(), path));
  });
}

const shut: readonly [path: string, raw: unknown, problem: string][] = [
  ["budget.day.usd", "ten", 'budget.day.usd: expected a number from 0 or null, found "ten"; using 0'],
  ["budget.call.tokens", -1, "budget.call.tokens: expected a number from 0 or null, found -1; using 0"],
  [
    "budget.day",
    5,
    "budget.day: expected a mapping, found 5; using the defaults, with every limit in it at its strictest",
  ],
  [
    "budget",
    "$5",
    'budget: expected a mapping, found "$5"; using the defaults, with every limit in it at its strictest',
  ],
];
for (const [path, raw, problem] of shut) {
  test(`${path}: ${JSON.stringify(raw)} cannot be read, so no money is spent`, () => {
    const { config, problems } = decodeConfig(treeWith(path, raw));
    assert.deepEqual(problems, [{ message: problem, guard: false }]);
    const [, scope = "day", kind = "usd"] = path.split(".");
    assert.equal(at(config, `budget.${scope}.${kind}`), 0);
  });
}

const guards: readonly [path: string, raw: unknown, problem: RegExp][] = [
  ["terminal.backend", "dokcer", /^terminal\.backend \(or TERMINAL_ENV\): expected one of local, .*, found "dokcer"$/],
  ["terminal.backend", "", /found ""$/],
  ["terminal.backend", ["docker"], /found a list$/],
  ["terminal", "docker", /^terminal: expected a mapping, found "docker"$/],
  ["terminal.sandbox", "maybe", /expected one of off, auto, on, found "maybe"$/],
  [
    "terminal.sandbox_network",
    "none",
    /expected one of on, off or a list of hosts like \[example\.com\], found "none"$/,
  ],
  ["terminal.sandbox_network_unattended", [{ a: 1 }], /expected one of on, off or a list of hosts .*, found a list$/],
  ["terminal.docker_network", false, /expected a text, found false$/],
  ["terminal.docker_extra_args", "--network none", /expected a list of texts/],
  ["terminal.ssh_port", "22o2", /expected a whole number/],
  ["terminal.ssh_host", ["a"], /expected a text/],
  ["code_execution.mode", "stirct", /expected one of project, strict/],
  ["approvals.deny", { "rm *": true }, /^approvals\.deny: expected a list of texts, found a mapping$/],
  ["approvals.deny", [{ pattern: "rm *" }], /found a list$/],
  ["approvals", "manual", /^approvals: expected a mapping/],
  ["security.website_blocklist", ["a.test"], /expected a mapping/],
  ["security.website_blocklist.enabled", "maybe", /expected true or false/],
  ["security.website_blocklist.domains", { a: 1 }, /expected a list of texts/],
  ["security", "strict", /expected a mapping/],
  ["toolsets", { web: true }, /expected a list of texts/],
  ["platform_toolsets", ["web"], /expected a mapping of lists of texts, found a list$/],
  [
    "platform_toolsets.cli",
    { web: true },
    /^platform_toolsets: expected a mapping of lists of texts, found a mapping$/,
  ],
  ["tools.disabled_functions", { terminal: true }, /expected a list of texts/],
  ["agent.disabled_toolsets", true, /expected a list of texts/],
  ["agent", 5, /^agent: expected a mapping, found 5$/],
  ["plugins.disabled", { a: true }, /expected a list of texts/],
  ["hooks", "~/bin/check", /expected a mapping/],
];
for (const [path, raw, problem] of guards) {
  test(`${path}: ${JSON.stringify(raw)} cannot be read, and no default takes its place`, () => {
    const { problems } = decodeConfig(treeWith(path, raw));
    assert.equal(problems.length, 1);
    assert.equal(problems[0]?.guard, true);
    assert.match(problems[0]?.message ?? "", problem);
  });
}

const misspelt: readonly (readonly [tree: Tree, message: string])[] = [
  [{ terminal: { bakend: "docker" } }, "terminal.bakend: unknown setting; did you mean terminal.backend"],
  [{ terminl: { backend: "docker" } }, "terminl: unknown setting; did you mean terminal"],
  [{ approvals: { denny: ["curl *"] } }, "approvals.denny: unknown setting; did you mean approvals.deny"],
  [{ budget: { dya: { usd: 5 } } }, "budget.dya: unknown setting; did you mean budget.day"],
  [{ hook: { pre_tool_call: [] } }, "hook: unknown setting; did you mean hooks"],
];
for (const [tree, message] of misspelt)
  test(`${JSON.stringify(tree)} is refused as what it may mean`, () => {
    const { problems } = decodeConfig(tree);
    assert.deepEqual(problems, [{ message: `${message}, which restricts the agent?`, guard: true }]);
  });

test("names that are near to nothing, to what holds nobody back, or to what is written as well are no mistakes", () => {
  for (const tree of [
    { terminal: { colour: "red" } },
    { terminal: { time_out: 5 }, agnet: { max_turns: 5 } },
    { terminal: { backend: "docker", bakend: "local" } },
  ])
    assert.deepEqual(decodeConfig(tree).problems, []);
});

test("other switches that hold the agent back are on when they cannot be read", () => {
  for (const path of [
    "skills.guard_agent_created",
    "gateway.strict",
    "checkpoints.enabled",
    "privacy.redact_pii",
    "tool_loop_guardrails.hard_stop_enabled",
  ])
    assert.equal(at(decodeConfig(treeWith(path, "maybe")).config, path), true, path);
  for (const path of ["approvals.mode", "approvals.cron_mode", "security.redact_secrets", "security.context_scan"])
    assert.ok(
      ["manual", "deny", true, "block"].includes(at(decodeConfig(treeWith(path, "maybe")).config, path) as string),
    );
  for (const path of ["security.allow_private_urls", "hooks_auto_accept", "delegation.subagent_auto_approve"])
    assert.equal(at(decodeConfig(treeWith(path, "maybe")).config, path), false, path);
});

test("keys the schema does not know are kept", () => {
  const { config, problems } = decodeConfig({ mine: { a: [1] }, agent: { theirs: "x" } });
  assert.deepEqual(config.mine, { a: [1] });
  assert.equal(config.agent.theirs, "x");
  assert.deepEqual(problems, []);
});

test("every setting says what it means, and no two share an environment variable", () => {
  const names = new Set<string>();
  for (const { path, field } of eachField(configSchema.fields)) {
    assert.ok(field.meaning.length > 2, path);
    if (field.env === undefined) continue;
    assert.ok(!names.has(field.env), field.env);
    names.add(field.env);
  }
});

test("a path is found as a setting, a section or something inside a user's mapping", () => {
  const { fields } = configSchema;
  assert.ok("entry" in findEntry(fields, ["agent", "max_turns"])!);
  assert.ok("inside" in findEntry(fields, ["providers", "mine", "api"])!);
  assert.equal(findEntry(fields, ["agent", "max_turns", "x"]), null);
  assert.equal(findEntry(fields, ["constructor"]), null);
});

test("every whole number refuses what is below 0", () => {
  const numbers = [...eachField(configSchema.fields)].filter(({ field }) => field.kinds.includes("whole"));
  assert.ok(numbers.length > 50);
  for (const { path } of numbers) assert.equal(decodeConfig(treeWith(path, -1)).problems.length, 1, path);
});
