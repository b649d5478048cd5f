import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { planMigration } from "./config/migrate.ts";
import { NEW_CONFIG } from "./config/schema.ts";
import { changeTree } from "./config/yaml-edit.ts";
import type { Tree } from "./config/yaml-text.ts";
import { openHome } from "./open.ts";

const base = mkdtempSync(join(tmpdir(), "hermes-migrate-"));
after(() => rmSync(base, { recursive: true, force: true }));

const migrated = (tree: Tree, env: Record<string, string> = {}, plugins: string[] = []): Tree => {
  const { changes } = planMigration(tree, { env: (name) => env[name], plugins });
  return changes.reduce(changeTree, tree);
};

const cases: readonly [name: string, before: Tree, after: Tree, env?: Record<string, string>, plugins?: string[]][] = [
  [
    "tool progress off",
    { _config_version: 3, timezone: "x" },
    { timezone: "x", display: { tool_progress: "off", interim_assistant_messages: true } },
    { HERMES_TOOL_PROGRESS: "0" },
  ],
  [
    "tool progress mode",
    { _config_version: 3, timezone: "x" },
    { timezone: "x", display: { tool_progress: "new", interim_assistant_messages: true } },
    { HERMES_TOOL_PROGRESS_MODE: "new" },
  ],
  [
    "time zone from the environment",
    { _config_version: 4, display: { interim_assistant_messages: false } },
    { display: { interim_assistant_messages: false }, timezone: "Asia/Tokyo" },
    { HERMES_TIMEZONE: "Asia/Tokyo" },
  ],
  [
    "custom providers that are no list",
    {
      _config_version: 14,
      custom_providers: 1,
    },
    { custom_providers: 1, display: { interim_assistant_messages: true } },
  ],
  [
    "custom providers become providers",
    {
      _config_version: 11,
      display: { interim_assistant_messages: true },
      providers: { mine: { api: "kept" } },
      custom_providers: [
        { name: "My Local  LLM!", base_url: "http://a/v1", api_key: "sk-1", model: "m", api_mode: "chat_completions" },
        { base_url: "http://api.some.host:80/v1", api_key: "no-key-required" },
        { name: "mine", base_url: "http://b" },
        { name: "no address" },
      ],
    },
    {
      display: { interim_assistant_messages: true },
      providers: {
        mine: { api: "kept" },
        "my-local-llm": {
          api: "http://a/v1",
          name: "My Local  LLM!",
          api_key: "sk-1",
          default_model: "m",
          transport: "chat_completions",
        },
        "api-some-host": { api: "http://api.some.host:80/v1" },
      },
    },
  ],
  [
    "local speech model",
    { _config_version: 13, stt: { model: "small.en" }, display: { interim_assistant_messages: 1 } },
    { stt: { local: { model: "small.en" } }, display: { interim_assistant_messages: 1 } },
  ],
  [
    "local speech model that is none",
    { _config_version: 13, stt: { model: "whisper-1", x: 1 }, display: { interim_assistant_messages: 1 } },
    { stt: { x: 1 }, display: { interim_assistant_messages: 1 } },
  ],
  [
    "speech model of a provider",
    {
      _config_version: 13,
      stt: { model: "whisper-1", provider: "openai" },
      display: { interim_assistant_messages: 1 },
    },
    { stt: { provider: "openai", openai: { model: "whisper-1" } }, display: { interim_assistant_messages: 1 } },
  ],
  [
    "tool progress per platform",
    {
      _config_version: 15,
      display: {
        tool_progress_overrides: { telegram: "off", slack: "all" },
        platforms: { slack: { tool_progress: "new" } },
      },
    },
    {
      display: {
        tool_progress_overrides: { telegram: "off", slack: "all" },
        platforms: { slack: { tool_progress: "new" }, telegram: { tool_progress: "off" } },
      },
    },
  ],
  [
    "summary model",
    { _config_version: 16, compression: { summary_model: "m", summary_provider: "auto", threshold: 0.4 } },
    { compression: { threshold: 0.4 }, auxiliary: { compression: { model: "m" } } },
  ],
  [
    "plugins",
    { _config_version: 20, plugins: { disabled: ["b"] } },
    { plugins: { disabled: ["b"], enabled: ["a", "c"] } },
    {},
    ["a", "b", "c"],
  ],
  [
    "plugins already chosen",
    { _config_version: 20, plugins: { enabled: [] } },
    { plugins: { enabled: [] } },
    {},
    ["a"],
  ],
];
for (const [name, before, wanted, env, plugins] of cases) {
  test(`migration of ${name}`, () => {
    const result = migrated(before, env, plugins);
    assert.deepEqual(result, { ...wanted, _config_version: 24 });
    assert.deepEqual(
      migrated({ ...result, _config_version: before._config_version }, env, plugins),
      result,
      "running it twice changes nothing",
    );
  });
}

function home(config: string | null, env = "") {
  const osHome = mkdtempSync(join(base, "u"));
  mkdirSync(join(osHome, ".hermes"));
  if (config !== null) writeFileSync(join(osHome, ".hermes", "config.yaml"), config);
  if (env) writeFileSync(join(osHome, ".hermes", ".env"), env);
  const dir = join(osHome, ".hermes");
  const open = () => openHome({ argv: [], env: {}, osHome, cwd: osHome });
  return {
    dir,
    open,
    read: (name: string) => readFileSync(join(dir, name), "utf8"),
    copies: () => readdirSync(dir).filter((name) => name.includes(".bak.")),
  };
}

test("comments survive, a copy is made first, and obsolete variables leave .env", async () => {
  const text =
    "# mine\n_config_version: 16 # old\ncompression:\n  summary_model: m # cheap\n  threshold: 0.4 # early\n";
  const me = home(text);
  const opened = await me.open();
  const result = await opened.migrate();
  assert.deepEqual(
    [result.from, result.to, result.changed],
    [16, 24, ["compression.summary_model moved to auxiliary.compression.model"]],
  );
  assert.equal(
    me.read("config.yaml"),
    "# mine\n_config_version: 24 # old\ncompression:\n  threshold: 0.4 # early\nauxiliary:\n  compression:\n    model: m\n",
  );
  assert.equal(me.copies().length, 1);
  assert.equal(me.read(me.copies()[0]!), text);
  assert.equal(opened.config().auxiliary.compression.model, "m");
  assert.deepEqual((await opened.migrate()).changed, []);
  assert.equal(me.copies().length, 1);

  const old = home("timezone: x\n", "LLM_MODEL=a\nKEEP=1\nANTHROPIC_TOKEN=b\n");
  const second = await (await old.open()).migrate();
  assert.deepEqual(second.envRemoved, ["ANTHROPIC_TOKEN", "LLM_MODEL"]);
  assert.equal(old.read(".env"), "KEEP=1\n");
  assert.ok(old.copies().some((name) => name.startsWith(".env.bak.")));
});

test("a file of a newer program, a broken file and no file are left alone", async () => {
  for (const text of ["_config_version: 33\nstt: {model: x}\n", "a: [\n", null]) {
    const me = home(text);
    const result = await (await me.open()).migrate();
    assert.deepEqual(result.changed, []);
    if (text === null) assert.equal(me.read("config.yaml"), NEW_CONFIG);
    else assert.equal(me.read("config.yaml"), text);
  }
});
