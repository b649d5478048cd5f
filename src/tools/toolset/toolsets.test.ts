import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { configSchema } from "../../home/config/schema.ts";
import { ToolRegistry } from "./registry.ts";
import { BUNDLES, COMPOSITE, CONFIGURABLE, chooseToolsets, PLATFORMS, resolveToolset } from "./toolsets.ts";

/** A registry in which every tool of the table exists, with one plugin and two servers. */
function fullRegistry() {
  const registry = new ToolRegistry();
  const add = (name: string, toolset: string) =>
    registry.register({ name, toolset, description: "", parameters: z.object({}), handler: () => "" });
  for (const [toolset, { tools }] of Object.entries(CONFIGURABLE)) {
    for (const name of tools ?? []) if (!registry.has(name)) add(name, toolset);
  }
  add("plugged", "my_plugin");
  for (const server of ["github", "files"]) {
    add(`mcp_${server}_x`, `mcp-${server}`);
    registry.alias(server, `mcp-${server}`);
  }
  return registry;
}

interface Given {
  readonly platform?: string;
  readonly config?: object;
  readonly toolsets?: string[];
  readonly env?: Record<string, string>;
}
function choose({ platform = "cli", config = {}, toolsets, env = {} }: Given) {
  const question = { platform, config: configSchema.parse(config), env: (name: string) => env[name] };
  return chooseToolsets(toolsets ? { ...question, toolsets } : question, fullRegistry());
}

test("every include and every bundle in the table names something that exists", () => {
  const registry = fullRegistry();
  for (const set of [...Object.values(COMPOSITE), ...Object.values(BUNDLES)]) {
    for (const name of set.includes ?? []) assert.notDeepEqual(resolveToolset(name, registry), [], name);
    for (const tool of set.tools ?? []) assert.ok(registry.has(tool), tool);
  }
});

test("resolution follows includes, sorts, and knows everything by two names", () => {
  const registry = fullRegistry();
  assert.deepEqual(resolveToolset("debugging", registry), [
    ...["patch", "process", "read_file", "search_files", "terminal", "web_extract", "web_search", "write_file"],
  ]);
  assert.deepEqual(resolveToolset("safe", registry), ["image_generate", "vision_analyze", "web_extract", "web_search"]);
  assert.deepEqual(resolveToolset("github", registry), ["mcp_github_x"]);
  assert.deepEqual(resolveToolset("file_tools", registry), resolveToolset("file", registry));
  assert.deepEqual(resolveToolset("nobody", registry), []);
  assert.deepEqual(resolveToolset("all", registry), resolveToolset("*", registry));
  assert.ok(resolveToolset("all", registry).includes("plugged"));
});

test("the command line gets the core without what waits to be asked for", () => {
  const { toolsets, tools, unknown } = choose({});
  for (const name of ["web", "terminal", "file", "memory", "todo", "clarify", "my_plugin", "mcp-github"]) {
    assert.ok(toolsets.includes(name), name);
  }
  for (const name of ["moa", "homeassistant", "discord", "x_search"]) assert.ok(!toolsets.includes(name), name);
  assert.ok(tools.includes("mcp_github_x"));
  assert.deepEqual(unknown, []);
});

test("each platform starts from its own bundle", () => {
  assert.ok(!choose({ platform: "api_server" }).tools.includes("clarify"));
  assert.ok(choose({ platform: "api_server" }).tools.includes("terminal"));
  assert.ok(!choose({ platform: "acp" }).tools.includes("cronjob"));
  const webhook = choose({
    platform: "webhook",
    config: { platform_toolsets: { webhook: ["hermes-webhook", "no_mcp"] } },
  });
  assert.deepEqual(
    webhook.tools.filter((tool) => tool !== "plugged"),
    ["clarify", "vision_analyze", "web_extract", "web_search"],
  );
  for (const platform of PLATFORMS) assert.deepEqual(choose({ platform }).unknown, [], platform);
  assert.ok(choose({ platform: "irc_of_a_plugin" }).tools.includes("terminal"), "a plugin's platform gets the core");
});

test("a configured list is exact, and its bundles are expanded", () => {
  const config = { platform_toolsets: { telegram: ["todo", "moa", "no_mcp"] } };
  assert.deepEqual(choose({ platform: "telegram", config }).toolsets, ["moa", "my_plugin", "todo"]);
  const mixed = choose({ platform: "cli", config: { toolsets: ["hermes-webhook", "todo"] } }).toolsets;
  assert.deepEqual(
    mixed.filter((name) => !name.startsWith("m")),
    ["clarify", "todo", "vision", "web"],
  );
});

test("a run's own list wins over the configuration", () => {
  const config = { platform_toolsets: { cli: ["todo"] } };
  assert.deepEqual(choose({ config, toolsets: ["search", "no_mcp"] }).tools, ["web_search"]);
  assert.deepEqual(choose({ config, toolsets: ["serch"] }).unknown, ["serch"]);
});

test("a run's own list has a plugin's tools when it names them, or everything", () => {
  const tools = (...toolsets: string[]) => choose({ toolsets: [...toolsets, "no_mcp"] }).tools;
  assert.deepEqual(tools("todo"), ["todo"]);
  assert.deepEqual(tools("todo", "my_plugin"), ["plugged", "todo"]);
  assert.ok(tools("all").includes("plugged"));
  assert.ok(choose({ toolsets: [] }).tools.includes("plugged"), "an empty list is none");
});

test("a toolset whose tools are not there is unknown to a run that asks for it, and no trouble in the settings", () => {
  const question = { platform: "cli", config: configSchema.parse({ toolsets: ["todo", "moa"] }), env: () => undefined };
  const registry = new ToolRegistry();
  registry.register({ name: "todo", toolset: "todo", description: "", parameters: z.object({}), handler: () => "" });
  assert.deepEqual(chooseToolsets({ ...question, toolsets: ["todo", "moa_tools", "kanban"] }, registry).unknown, [
    ...["moa_tools", "kanban"],
  ]);
  assert.deepEqual(chooseToolsets(question, registry).unknown, []);
  const disabled = configSchema.parse({ agent: { disabled_toolsets: ["moa"] } });
  assert.deepEqual(chooseToolsets({ ...question, config: disabled, toolsets: ["todo"] }, registry).unknown, []);
});

test("keys in the environment turn their toolset on, and a chat's own tools stay in that chat", () => {
  assert.ok(choose({ env: { HASS_TOKEN: "x" } }).toolsets.includes("homeassistant"));
  assert.ok(!choose({ toolsets: ["discord"] }).toolsets.includes("discord"));
  assert.ok(choose({ platform: "discord", toolsets: ["discord"] }).toolsets.includes("discord"));
});

test("a plugin's toolset is on until the user has seen it and left it out", () => {
  const config = { platform_toolsets: { cli: ["todo"] }, known_plugin_toolsets: { cli: ["my_plugin"] } };
  assert.ok(!choose({ config }).toolsets.includes("my_plugin"));
  assert.ok(
    choose({ config: { ...config, platform_toolsets: { cli: ["todo", "my_plugin"] } } }).toolsets.includes("my_plugin"),
  );
});

test("naming a server makes a list of the allowed ones", () => {
  const mcp = (names: string[]) => choose({ toolsets: names }).toolsets.filter((name) => name.startsWith("mcp-"));
  assert.deepEqual(mcp(["todo"]), ["mcp-files", "mcp-github"]);
  assert.deepEqual(mcp(["todo", "github"]), ["mcp-github"]);
  assert.deepEqual(mcp(["todo", "no_mcp"]), []);
});

test("what is disabled is taken away last", () => {
  const config = { agent: { disabled_toolsets: ["web", "hermes-telegram"] }, tools: { disabled_functions: ["patch"] } };
  const { tools } = choose({ config });
  for (const name of ["web_search", "web_extract", "patch"]) assert.ok(!tools.includes(name), name);
  assert.ok(tools.includes("terminal"), "a bundle takes away only what goes beyond the core");
  assert.ok(!choose({ config: { platform_toolsets: { cli: ["browser", "file"] } } }).tools.includes("web_search"));
  for (const name of ["debugging", "safe", "coding"])
    assert.ok(choose({ config: { platform_toolsets: { cli: [name, "browser"] } } }).tools.includes("web_search"), name);
});

test("a kanban worker has the board's tools, its sub-agents do not", () => {
  const question = { toolsets: ["todo"], env: { HERMES_KANBAN_TASK: "t_1" } };
  assert.ok(choose(question).toolsets.includes("kanban"));
});
