// Plugins and shell hooks through the program: several processes, one home.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { promisify } from "node:util";
import { tinyServer } from "../support/mcp/hub-rig.ts";
import { ModelServer } from "../support/model-server/server.ts";
import { type RunResult, runHermes } from "../support/run-hermes.ts";
import { oneOf } from "../support/sample.ts";
import { modelConfig, type TempHome, tempHome } from "../support/temp-home.ts";
import { TerminalScreen, tmuxMissing } from "../support/terminal-screen.ts";

const manifest = (name: string, version = "1.0.0", more = "") => `name: ${name}\nversion: ${version}\n${more}`;
/** A plugin that writes down each time any of its code runs. */
const plugin = (name: string, register: string, more = "") => ({
  [`plugins/${name}/plugin.yaml`]: manifest(name, "1.0.0", more),
  [`plugins/${name}/index.mjs`]: telltale(register),
});
const telltale = (register: string) => `import { appendFileSync } from "node:fs";
import { join } from "node:path";
appendFileSync(join(process.env.HERMES_HOME, "loads.txt"), "loaded\\n");
export default (ctx) => { ${register} };
`;
const ECHO = `ctx.registerTool({ name: "t_echo", description: "Says it again",
  parameters: { type: "object", properties: { text: { type: "string" } } }, handler: ({ text }) => "echo " + text });`;
const enabled = (...names: string[]) => `plugins:\n  enabled: [${names.join(", ")}]\n`;

const linesOf = async (home: TempHome, name: string) =>
  (await readFile(home.at(name), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
const loads = async (home: TempHome) => (await linesOf(home, "loads.txt")).length;

// biome-ignore lint/suspicious/noExplicitAny: a request body
const toolNames = (body: any): string[] => body.tools.map((tool: { function: { name: string } }) => tool.function.name);

async function script(home: TempHome, name: string, text: string): Promise<void> {
  const path = join(home.osHome, name);
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
}

describe("plugins", () => {
  const skip = tmuxMissing();
  let server: ModelServer;
  before(async () => {
    server = await ModelServer.start();
  });
  beforeEach(() => void server.clear());
  after(() => server.close());

  const homeWith = (config: string, files: Readonly<Record<string, string>> = {}) =>
    tempHome({ "config.yaml": `${modelConfig(server)}${config}`, ...files });
  const ask = async (home: TempHome) => {
    const run = await runHermes(["-z", "go"], { home });
    assert.equal(run.code, 0, run.stderr);
    return run;
  };
  const says = (run: RunResult, code: number, pattern: RegExp) => {
    assert.equal(run.code, code, run.stdout + run.stderr);
    assert.match(run.stdout + run.stderr, pattern);
  };

  test("a second process offers a plugin's tool without running any of its code; the first call runs it", async () => {
    await using home = await homeWith(enabled("t_one"), plugin("t_one", ECHO));
    server.script({ text: "one" }, { text: "two" });
    await ask(home);
    assert.equal(await loads(home), 1, "nobody knew yet what it offers");
    await ask(home);
    assert.ok(toolNames(server.last.body).includes("t_echo"));
    assert.equal(await loads(home), 1);
    server.script({ toolCalls: [{ name: "t_echo", arguments: { text: "hi" } }] }, { text: "three" });
    await ask(home);
    assert.equal(server.last.body.messages.at(-1).content, "echo hi");
    assert.equal(await loads(home), 2);
  });

  test("safe mode runs no plugin's code, of no kind, and offers nothing of them", async () => {
    await using home = await homeWith(
      `${enabled("t_one", "t-pack")}memory: { provider: t_mem }\ncontext: { engine: t_eng }\n`,
      {
        ...plugin("t_one", `${ECHO} ctx.registerCliCommand({ name: "t-say", description: "x", run: () => 0 });`),
        "node_modules/t-pack/package.json": JSON.stringify({
          ...{ name: "t-pack", version: "2.0.0", keywords: ["hermes-agent-plugin"] },
        }),
        "node_modules/t-pack/index.mjs": telltale(ECHO.replace("t_echo", "t_packed")),
        "plugins/memory/t_mem/index.mjs": telltale(""),
        "plugins/context_engine/t_eng/index.mjs": telltale(""),
      },
    );
    server.script({ text: "safe" });
    const safe = await runHermes(["chat", "-q", "go"], { home, env: { HERMES_SAFE_MODE: "1" } });
    assert.match(safe.stdout + safe.stderr, /"t_mem" is not used: .*safe mode runs no plugins/);
    assert.ok(!toolNames(server.last.body).some((name) => name.startsWith("t_")));
    assert.notEqual((await runHermes(["t-say"], { home, env: { HERMES_SAFE_MODE: "1" } })).code, 0);
    assert.equal(await loads(home), 0);
    server.script({ text: "as usual" });
    await ask(home);
    assert.ok((await loads(home)) >= 4, "without safe mode each of them runs");
  });

  test("a promise and a timer that a plugin let go of and that fail end nothing", async () => {
    const stray = `Promise.reject(new Error("let go")); Promise.reject("plain"); setTimeout(() => { throw new Error("late"); });`;
    await using home = await homeWith(
      enabled("t_stray"),
      plugin("t_stray", `${stray} ctx.registerHook("pre_tool_call", () => { ${stray} });`),
    );
    server.script({ toolCalls: [{ name: "terminal", arguments: { command: "sleep 0.2" } }] }, { text: "done" });
    const run = await ask(home);
    assert.equal(run.stdout, "done\n");
    const log = await readFile(home.at("logs", "agent.log"), "utf8");
    assert.match(log, /plugin "t_stray" failed and is ignored: let go/);
    assert.match(log, /is ignored: late/);
  });

  test("a timer that a plugin leaves running keeps no finished run from ending", async () => {
    await using home = await homeWith(enabled("ticker"), plugin("ticker", `setInterval(() => {}, 1000); ${ECHO}`));
    server.script({ toolCalls: [{ name: "t_echo", arguments: { text: "hi" } }] }, { text: "done" });
    assert.match((await ask(home)).stdout, /done/);
    says(await runHermes(["plugins", "enable", "ticker"], { home }), 0, /t_echo/);
    assert.ok((await loads(home)) > 0, "its code ran");
  });

  test("commands of ours keep their names, and whoever switches such a plugin on is told", async () => {
    const command = (name: string) => `{ name: "${name}", description: "mine", run: () => "stolen" }`;
    const register = `ctx.registerCommand(${command("help")}); ctx.registerCommand(${command("q")}); ctx.registerCommand(${command("t-own")});
      ctx.registerCliCommand(${command("mcp")}); ctx.registerCliCommand(${command("t-cli")});`;
    await using home = await homeWith("", plugin("t_names", register));
    const run = await runHermes(["plugins", "enable", "t_names"], { home });
    const lines = run.stderr.split("\n").filter((line) => /rejected/.test(line));
    assert.deepEqual(lines, [
      "⚠ t_names: the command /help was rejected: Hermes already has a command with that name",
      "⚠ t_names: the command /q was rejected: Hermes already has a command with that name",
      "⚠ t_names: the command hermes mcp was rejected: Hermes already has a command with that name",
    ]);
    says(await runHermes(["mcp"], { home }), 0, /No MCP servers/);
  });

  test("a command of a plugin: its words, its exit code, and its failure in one line", async () => {
    const register = `ctx.registerCliCommand({ name: "t-say", description: "says", run(args, io) {
      if (args[0] === "fail") throw new Error("no voice");
      io.out(args.join("+") + "\\n");
      return args.length;
    } });`;
    await using home = await homeWith(enabled("t_cli"), plugin("t_cli", register));
    const run = await runHermes(["t-say", "a", "--b", "c d"], { home });
    assert.deepEqual([run.code, run.stdout], [3, "a+--b+c d\n"], run.stderr);
    const failed = await runHermes(["t-say", "fail"], { home });
    says(failed, 1, /no voice/);
    assert.doesNotMatch(failed.stderr, /\n\s+at /, "no stack");
  });

  test("a memory and a context engine that a plugin registers are used when a setting names them", async () => {
    const register = `
      ctx.registerMemoryProvider("t_mem", () => ({ name: "t_mem", isAvailable: () => true, initialize() {},
        prefetch: () => "the pilot is Ada",
        syncTurn(user, answer) { appendFileSync(join(ctx.hermesHome, "synced.txt"), user + "|" + answer + "\\n"); } }));
      ctx.registerContextEngine("t_eng", (model) => ({ name: "t_eng", lastPromptTokens: 0, lastCompletionTokens: 0, lastTotalTokens: 0,
        thresholdTokens: 1e9, contextLength: model.contextLength, compressionCount: 0, protectFirstN: 1, protectLastN: 1,
        updateFromResponse({ promptTokens }) { appendFileSync(join(ctx.hermesHome, "counted.txt"), typeof promptTokens + "\\n"); },
        shouldCompress: () => false, compress: async (messages) => messages }));`;
    const settings = "memory: { provider: t_mem }\ncontext: { engine: t_eng }\n";
    const declared = "provides_memory: [t_mem]\nprovides_context_engine: [t_eng]\n";
    const packaged = {
      "node_modules/@me/both/package.json": JSON.stringify({
        name: "@me/both",
        version: "1.0.0",
        exports: { ".": { import: "./lib/main.mjs" } },
        "hermes-agent-plugin": { provides_memory: ["t_mem"], provides_context_engine: ["t_eng"] },
      }),
      "node_modules/@me/both/lib/main.mjs": telltale(register),
    };
    const ways = [
      [enabled("t_both") + settings, plugin("t_both", register)],
      [settings, plugin("t_both", register, declared)],
      [settings, packaged],
    ] as const;
    for (const [config, files] of oneOf(ways, "how a memory and an engine come")) {
      await using home = await homeWith(config, files);
      server.clear();
      server.script({ text: "Ada" });
      await ask(home);
      assert.match(server.last.body.messages.at(-1).content, /<memory-context>[\s\S]*the pilot is Ada/);
      assert.deepEqual(await linesOf(home, "synced.txt"), ["go|Ada"]);
      assert.deepEqual(await linesOf(home, "counted.txt"), ["number"]);
    }
    await using unnamed = await homeWith(enabled("t_both"), plugin("t_both", register));
    server.clear();
    server.script({ text: "who?" });
    await ask(unnamed);
    assert.equal(server.last.body.messages.at(-1).content, "go");
    assert.deepEqual(await linesOf(unnamed, "counted.txt"), []);
  });

  test("the doctor looks at MCP servers, plugins and hooks, and says what to do", async () => {
    const servers = {
      tiny: tinyServer(),
      gone: { command: "no-such-program" },
      off: { ...tinyServer(), enabled: false },
      none: {},
    };
    await using home = await homeWith(
      `${enabled("t_fine", "t_bad", "t_nowhere")}mcp_servers: ${JSON.stringify(servers)}
hooks: { pre_tool_call: [{ command: ~/check.sh }, { command: ~/nowhere.sh }], no_such_event: [{ command: x }] }\n`,
      {
        ...plugin("t_fine", ECHO, "requires_env: [T_KEY]\n"),
        ...plugin("t_bad", `throw new Error("broken");`),
      },
    );
    await script(home, "check.sh", "exit 0");
    server.otherwise({ text: "ok" });
    await ask(home);
    const run = await runHermes(["doctor", "--json"], { home });
    const { sections } = JSON.parse(run.stdout) as {
      sections: { title: string; findings: { level: string; text: string; fix?: string }[] }[];
    };
    const lines = (title: string) =>
      sections.find((one) => one.title === title)?.findings.map(({ level, text }) => `${level} ${text}`) ?? [];
    assert.deepEqual(lines("MCP servers"), [
      'warn MCP server "none": it has no command or url. Set one: hermes config set mcp_servers.none.url URL',
      "ok tiny: 8 tools",
      `warn MCP server "tiny": tool "a.b" is skipped: its name mcp_tiny_a_b is already used by "a-b".`,
      'warn MCP server "gone": the command "no-such-program" was not found. Install it, or correct mcp_servers.gone.command in config.yaml.',
      "ok off: off",
    ]);
    assert.deepEqual(lines("Plugins and hooks"), [
      "ok 1 of 2 plugins on, 3 shell hooks",
      "warn t_bad could not be loaded: broken",
      "warn t_fine needs T_KEY",
      'warn plugins.enabled names "t_nowhere", which is not installed',
      "warn hooks.no_such_event: there is no such event; it never runs",
      "warn pre_tool_call: ~/check.sh: not approved yet; the next interactive conversation will ask",
      "warn pre_tool_call: ~/nowhere.sh: not approved yet; the next interactive conversation will ask",
      "warn pre_tool_call: ~/nowhere.sh: ~/nowhere.sh does not exist",
      "warn no_such_event: x: not approved yet; the next interactive conversation will ask",
    ]);
  });

  test("installed from a bare repository, brought up to date from it, switched off", async () => {
    await using home = await homeWith("");
    const work = join(home.osHome, "work");
    const bare = join(home.osHome, "t_git.git");
    const env = { PATH: process.env.PATH ?? "", HOME: home.osHome, GIT_CONFIG_NOSYSTEM: "1" };
    const git = (...args: string[]) =>
      promisify(execFile)("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { cwd: work, env });
    await mkdir(work);
    await git("init", "-q", "-b", "main");
    const release = async (version: string) => {
      await writeFile(join(work, "plugin.yaml"), manifest("t_git", version));
      await writeFile(join(work, "index.mjs"), telltale(ECHO));
      await git("add", "-A");
      await git("commit", "-q", "-m", version);
      await git("push", "-q", bare, "main");
    };
    await promisify(execFile)("git", ["init", "-q", "--bare", "-b", "main", bare], { env });
    await release("1.0.0");
    const hermes = (...args: string[]) => runHermes(["plugins", ...args], { home });
    says(await hermes("install", bare), 0, /Installed t_git 1\.0\.0 in/);
    assert.equal(await loads(home), 0, "nothing of it has run");
    says(await hermes("install", bare), 1, /is already installed.*hermes plugins update t_git/);
    says(await hermes("enable", "t_git"), 0, /t_git enabled\. It provides tools: t_echo/);
    await release("1.1.0");
    says(await hermes("update"), 0, /t_git: 1\.0\.0 -> 1\.1\.0 from /);
    server.script({ text: "on" }, { text: "off" });
    await ask(home);
    assert.ok(toolNames(server.last.body).includes("t_echo"));
    says(await hermes("disable", "t_git"), 0, /t_git disabled/);
    const before = await loads(home);
    await ask(home);
    assert.ok(!toolNames(server.last.body).includes("t_echo"));
    assert.equal(await loads(home), before);
    says(await hermes("disable", "t_gti"), 1, /no plugin "t_gti"\. Did you mean "t_git"/);
    says(await hermes("install", join(home.osHome, "nowhere.git")), 1, /is not a folder or a git URL/);
  });

  test("shell hooks: tried out, consent given and taken back, and what will not run is named", { skip }, async () => {
    await using home = await homeWith(
      "hooks:\n  pre_tool_call:\n    - command: ~/block.sh\n      matcher: todo\n    - command: ~/gone.sh\n",
    );
    await script(home, "block.sh", `echo '{"decision":"block","reason":"hands off"}'`);
    const hooks = (args: readonly string[]) => runHermes(["hooks", ...args], { home });
    says(await hooks(["doctor"]), 1, /block\.sh: not approved yet[\s\S]*gone\.sh: ~\/gone\.sh does not exist/);
    says(await hooks(["test", "pre_tool_call"]), 1, /skipped for terminal: its matcher is tools todo/);
    says(
      await hooks(["test", "pre_tool_call", "--tool", "todo"]),
      1,
      /block\.sh[\s\S]*not run: you have not approved it/,
    );
    {
      await using screen = await TerminalScreen.start(["hooks", "test", "pre_tool_call", "--tool", "todo"], { home });
      await screen.waitFor("Run it?");
      await screen.say("a");
      await screen.waitFor("the call would be blocked: hands off");
      await screen.waitFor(/gone\.sh[\s\S]*Run it\?/);
      await screen.say("n");
      assert.equal(await screen.exitCode(), 1);
    }
    says(await hooks(["list"]), 0, /✓ pre_tool_call {2}~\/block\.sh .*approved by you/);
    const call = { toolCalls: [{ name: "todo", arguments: { todos: [] } }] };
    server.script(call, { text: "one" });
    await ask(home);
    assert.match(server.last.body.messages.at(-1).content, /hands off/);
    says(await hooks(["revoke", "~/blok.sh"]), 1, /no approval on record.*Did you mean "~\/block\.sh"/);
    says(await hooks(["revoke", "~/block.sh"]), 0, /Revoked 1 approval/);
    server.script(call, { text: "two" });
    await ask(home);
    assert.doesNotMatch(server.last.body.messages.at(-1).content, /hands off/);
    says(await hooks(["test", "pre_tool_cal"]), 2, /Did you mean pre_tool_call/);
  });

  test("a shell hook that the command policy refuses never runs, whatever was accepted", async () => {
    await using home = await homeWith(
      'hooks_auto_accept: true\napprovals: { deny: ["*refused.sh*"] }\nhooks:\n  pre_llm_call:\n    - command: ~/refused.sh\n    - command: ~/fine.sh\n',
    );
    await script(home, "refused.sh", `echo ran >> "$HERMES_HOME/refused.txt"`);
    await script(home, "fine.sh", `echo ran >> "$HERMES_HOME/fine.txt"`);
    server.script({ text: "ok" });
    const run = await runHermes(["chat", "-q", "go", "--accept-hooks"], { home, env: { HERMES_ACCEPT_HOOKS: "1" } });
    assert.match(run.stdout + run.stderr, /refused\.sh \(pre_llm_call\) is skipped: the command policy refuses it/);
    const tried = await runHermes(["hooks", "test", "pre_llm_call", "--accept-hooks"], { home });
    says(tried, 1, /not run: refused by the command policy/);
    assert.deepEqual(await linesOf(home, "refused.txt"), []);
    assert.deepEqual(await linesOf(home, "fine.txt"), ["ran", "ran"]);
  });

  test("a slash command of a plugin answers at the prompt line and is no message to the model", {
    skip: tmuxMissing(),
  }, async () => {
    const register = `ctx.registerCommand({ name: "t-count", description: "counts words", argsHint: "TEXT",
      run: (args, surface) => { surface.say("on " + surface.platform); return args.split(" ").length + " words"; } });`;
    await using home = await homeWith(enabled("t_slash"), plugin("t_slash", register));
    await using screen = await TerminalScreen.start([], { home });
    await screen.waitFor("fake-model");
    await screen.say("/t-count one two three");
    assert.match(await screen.waitFor("3 words"), /on cli/);
    assert.equal(server.requests.length, 0);
    await screen.say("/quit");
    assert.equal(await screen.exitCode(), 0);
  });
});
