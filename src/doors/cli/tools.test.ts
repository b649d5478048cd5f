import assert from "node:assert/strict";
import { test } from "node:test";
import { Command } from "commander";
import { pressKeys } from "../../../test/support/press-keys.ts";
import { recordingLog } from "../../../test/support/tool-context.ts";
import { configSchema } from "../../home/config/schema.ts";
import { systemClock } from "../../kit/clock.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { define } from "./tools.ts";

type Tree = Record<string, unknown>;

/** A home whose config.yaml is an object in memory; only what this sub-command uses of its context. */
function open(config: Tree = {}, keys?: string[]) {
  let out = "";
  const home = {
    config: () => configSchema.parse(structuredClone(config)),
    env: () => undefined,
    paths: { at: () => "/nowhere/at/all", cacheDir: "/nowhere" },
    log: recordingLog(),
    async setConfigKey(path: string, value: unknown) {
      const keys = path.split(".");
      const last = keys.pop() ?? "";
      let node = config;
      for (const key of keys) {
        node[key] ??= {};
        node = node[key] as Tree;
      }
      node[last] = value;
    },
  };
  const write = (text: string) => {
    out += text;
  };
  const terminal = keys !== undefined;
  const choose: CliContext["io"]["choose"] = async (question) => pressKeys(question, keys ?? [], write);
  const io = { out: write, err: write, stdinIsTerminal: terminal, stdoutIsTerminal: terminal, choose };
  const tools = async (...args: string[]) => {
    out = "";
    const command = new Command("tools").exitOverride();
    define(command, { home, io, clock: systemClock } as unknown as CliContext);
    await command.parseAsync(args, { from: "user" });
    return out;
  };
  return { config, tools };
}
const enabled = (json: string) =>
  JSON.parse(json).toolsets.flatMap((row: { name: string; enabled: boolean }) => (row.enabled ? [row.name] : []));

test("the list shows what is on, per platform", async () => {
  const { tools } = open();
  assert.match(await tools("list"), /✓ terminal +terminal, process\n|✓ terminal +process, terminal\n/);
  assert.match(await tools("list"), /✓ clarify +clarify\n/);
  assert.match(await tools("list"), /✓ cronjob +cronjob\n.*✓ messaging +send_message \(not available here\)\n/s);
  assert.match(await tools("list", "--platform", "telegram"), /✓ messaging +send_message\n/);
  assert.equal(await tools(), await tools("list"));
  assert.ok(enabled(await tools("list", "--json")).includes("clarify"));
  assert.ok(!enabled(await tools("list", "--json", "--platform", "api_server")).includes("clarify"));
  assert.match(await tools("--summary"), /^telegram +\d+ tools {2}.*terminal/m);
});

test("disabling and enabling touches one platform and is seen at once", async () => {
  const { tools, config } = open();
  assert.match(await tools("disable", "terminal", "--platform", "telegram"), /Disabled on telegram: terminal/);
  assert.ok(!enabled(await tools("list", "--json", "--platform", "telegram")).includes("terminal"));
  assert.ok(enabled(await tools("list", "--json")).includes("terminal"));
  const list = (config.platform_toolsets as { telegram: string[] }).telegram;
  assert.ok(list.includes("web") && !list.includes("terminal") && !list.includes("moa"));
  await tools("disable", "todo", "--platform", "telegram");
  await tools("enable", "terminal,todo", "--platform", "telegram");
  const now = enabled(await tools("list", "--json", "--platform", "telegram"));
  assert.ok(now.includes("terminal") && now.includes("todo"));
  assert.match(await tools("enable", "terminal", "--platform", "telegram"), /Nothing to change/);
});

test("one unknown name and nothing is changed", async () => {
  const { tools, config } = open();
  await assert.rejects(
    tools("disable", "terminal", "nobody"),
    (error: unknown) =>
      error instanceof ExitError && error.exitCode === 1 && /nobody.*Valid names: .*terminal/s.test(error.message),
  );
  assert.deepEqual(config, {});
  await assert.rejects(tools("list", "--platform", "carrier-pigeon"), /Unknown platform/);
});

test("a toolset without tools is not offered; settings that name one keep it until it is switched off", async () => {
  const absent = ["moa", "homeassistant", "computer_use", "discord", "video", "video_gen", "x_search", "spotify"];
  const { tools, config } = open({ platform_toolsets: { cli: ["todo", "moa"] } });
  const before = structuredClone(config);
  for (const name of absent) {
    const refused = await tools("enable", name).catch((error: unknown) => error);
    assert.ok(refused instanceof ExitError && refused.exitCode === 1, name);
    const valid = /Valid names: (.*)/.exec(refused.message)?.[1]?.split(", ") ?? [];
    assert.ok(valid.includes("terminal") && !absent.some((one) => valid.includes(one)), refused.message);
  }
  await assert.rejects(tools("disable", "spotify"), /Unknown toolset: spotify/);
  assert.deepEqual(config, before);
  await tools("enable", "file");
  assert.deepEqual((config.platform_toolsets as Tree).cli, ["file", "moa", "todo"]);
  await tools("disable", "moa");
  assert.deepEqual((config.platform_toolsets as Tree).cli, ["file", "todo"]);
});

test("enabling frees a toolset that was switched off everywhere", async () => {
  const { tools, config } = open({ agent: { disabled_toolsets: ["todo", "web"] } });
  assert.ok(!enabled(await tools("list", "--json")).includes("todo"));
  assert.match(await tools("enable", "todo"), /todo was removed from agent\.disabled_toolsets/);
  assert.deepEqual((config.agent as Tree).disabled_toolsets, ["web"]);
  assert.ok(enabled(await tools("list", "--json")).includes("todo"));
});

test("MCP servers and their single tools have switches too", async () => {
  const { tools, config } = open({ mcp_servers: { github: { command: "x" }, files: { command: "y" } } });
  await tools("disable", "github");
  assert.ok((config.platform_toolsets as { cli: string[] }).cli.includes("files"));
  await tools("disable", "files");
  assert.ok((config.platform_toolsets as { cli: string[] }).cli.includes("no_mcp"));
  await tools("enable", "github", "mcp-files");
  const { cli } = config.platform_toolsets as { cli: string[] };
  assert.ok(!cli.includes("no_mcp") && !cli.includes("files"));
  await tools("disable", "github:create_issue", "github:delete_repo");
  await tools("enable", "github:create_issue");
  assert.deepEqual((config.mcp_servers as Record<string, Tree>).github, {
    command: "x",
    tools: { exclude: ["delete_repo"] },
  });
  await assert.rejects(tools("disable", "nobody:x"), /nobody:x/);
});

test("a tool of a server with a list of wanted tools is switched in that list", async () => {
  const { tools, config } = open({
    mcp_servers: { files: { command: "y", tools: { include: ["read_file", "write_file"] } } },
  });
  const lists = () => (config.mcp_servers as Record<string, Tree>).files?.tools;
  await tools("disable", "files:write_file");
  assert.deepEqual(lists(), { include: ["read_file"] });
  await tools("enable", "files:edit_file");
  assert.deepEqual(lists(), { include: ["read_file", "edit_file"] });
  await tools("disable", "files:list_resources");
  assert.deepEqual(lists(), { include: ["read_file", "edit_file"], exclude: ["list_resources"] });
  await tools("disable", "files:read_file", "files:edit_file");
  assert.deepEqual(lists(), { include: [], exclude: ["list_resources"] });
});

test("a tool that a connected server does not have is refused", async () => {
  const { registry } = await import("../../tools/toolset/registry.ts");
  const { tools, config } = open({ mcp_servers: { my_box: { command: "x" } } });
  registry.register({
    ...{ name: "mcp_my_box_write_file", toolset: "mcp-my_box", description: "writes" },
    parameters: { type: "object", properties: {} },
    handler: () => "",
  });
  try {
    await assert.rejects(tools("disable", "my_box:writefile"), /my_box:writefile.*Nothing was changed/);
    await tools("disable", "my_box:write_file");
    assert.deepEqual((config.mcp_servers as Record<string, Tree>).my_box?.tools, { exclude: ["write_file"] });
  } finally {
    registry.deregister("mcp_my_box_write_file");
  }
});

test("on a terminal toolsets are ticked, platform by platform", async () => {
  const config: Tree = { mcp_servers: { github: { command: "x" } } };
  const lists = () => config.platform_toolsets as Record<string, string[]>;
  const [ENTER, ESC] = ["\r", "\u001b"];
  const seen = await open(config, [ENTER, "terminal", " ", ESC, ESC, "q"]).tools();
  assert.match(seen, /\[x\] terminal +Shell commands/);
  assert.match(seen, /\[ \] terminal +Shell commands/);
  assert.deepEqual(Object.keys(config), ["mcp_servers"], "leaving changes nothing");

  const [cli, telegram] = [
    ["terminal", " ", ESC, "github", " ", ENTER],
    ["browser", " ", ENTER],
  ];
  const shown = await open(config, [ENTER, ...cli, "telegram", ENTER, ...telegram, "q"]).tools();
  assert.match(shown, /Disabled on cli: terminal, github/);
  assert.match(shown, /Toolsets on telegram/);
  assert.match(shown, /Disabled on telegram: browser/);
  assert.ok(lists().cli?.includes("no_mcp") && !lists().cli?.includes("terminal") && lists().cli?.includes("browser"));
  assert.ok(lists().telegram?.includes("terminal") && !lists().telegram?.includes("browser"));

  await open(config, [ENTER, "terminal", " ", ENTER, "q"]).tools();
  assert.ok(lists().cli?.includes("terminal"));
});
