// `hermes tools`: which toolsets each platform offers, and switching them on and off.
import type { Command } from "commander";
import { AvailabilityCache, availableTools } from "../../tools/toolset/availability.ts";
import { loadTools } from "../../tools/toolset/discover.ts";
import { editToolsets } from "../../tools/toolset/edit.ts";
import type { ToolRegistry } from "../../tools/toolset/registry.ts";
import { registry } from "../../tools/toolset/registry.ts";
import type { ToolsetQuestion } from "../../tools/toolset/toolsets.ts";
import {
  CONFIGURABLE,
  chooseToolsets,
  PLATFORMS,
  portsOn,
  resolveToolset,
  switchableToolsets,
} from "../../tools/toolset/toolsets.ts";
import { type CliContext, ExitError } from "../cli-context.ts";
import { printJson, tick } from "./present.ts";

interface Flags {
  readonly platform: string;
  readonly json?: true;
  readonly summary?: true;
}

export function define(command: Command, ctx: CliContext): void {
  command
    .description("show, enable and disable toolsets per platform")
    .option("--summary", "show one line per platform")
    .action((flags: Flags) => (flags.summary ? summarize(ctx) : choose(ctx)));
  command
    .command("list", { isDefault: false })
    .description("list toolsets of a platform and which are enabled")
    .option("--platform <P>", "platform, e.g. cli, telegram, api_server", "cli")
    .option("--json", "machine-readable")
    .action((flags: Flags) => list(flags, ctx));
  for (const verb of ["enable", "disable"] as const) {
    command
      .command(verb)
      .description(`${verb} toolsets, MCP servers, or single MCP tools as server:tool`)
      .argument("<names...>")
      .option("--platform <P>", "platform, e.g. cli, telegram, api_server", "cli")
      .action((names: string[], flags: Flags) => edit(verb, names, flags, ctx));
  }
}

/** Without a terminal, only the list. */
async function choose(ctx: CliContext): Promise<void> {
  if (!ctx.io.stdinIsTerminal || !ctx.io.stdoutIsTerminal) return list({ platform: "cli" }, ctx);
  const platforms = [...new Set([...PLATFORMS, ...Object.keys(ctx.home.config().platform_toolsets)])];
  for (let selected = platforms.indexOf("cli"); ; ) {
    const [platform] =
      (await ctx.io.choose({
        title: "Toolsets of which platform?",
        hint: "↑↓ move · Enter choose · q quit",
        choices: platforms.map((name) => ({ label: name, value: name })),
        selected,
      })) ?? [];
    if (platform === undefined) return;
    selected = platforms.indexOf(platform);
    await tickToolsets(platform, ctx);
  }
}

/** What became of the list. */
type Ticked = "changed" | "unchanged" | "left";

export async function tickToolsets(
  platform: string,
  ctx: CliContext,
  { onInterrupt }: { onInterrupt?(): void } = {},
): Promise<Ticked> {
  const { registry, question } = await load(platform, ctx);
  const switches = await switchesOf(registry, question);
  const width = Math.max(...switches.map(({ name }) => name.length));
  const checked = new Set(switches.filter(({ on }) => on).map(({ name }) => name));
  const ticked = await tick(ctx, {
    title: `Toolsets on ${platform}`,
    otherwise: "hermes tools enable|disable NAME",
    checked,
    ...(onInterrupt ? { onInterrupt } : {}),
    choices: switches.map(({ name, description }) => ({ label: name.padEnd(width), hint: description, value: name })),
  });
  if (ticked === null) return "left";
  const enable = ticked.filter((name) => !checked.has(name));
  const disable = [...checked].filter((name) => !ticked.includes(name));
  if (enable.length > 0) await edit("enable", enable, { platform }, ctx);
  if (disable.length > 0) await edit("disable", disable, { platform }, ctx);
  return enable.length + disable.length > 0 ? "changed" : "unchanged";
}

async function list({ platform, json }: Flags, ctx: CliContext): Promise<void> {
  const { registry, question } = await load(platform, ctx);

  const chosen = chooseToolsets(question, registry);
  const source = {
    registry,
    availability: new AvailabilityCache(ctx.clock),
    facts: { ...question, ports: portsOn(platform) },
    log: ctx.home.log,
  };
  const available = new Set((await availableTools(registry.names(), source)).map((entry) => entry.name));
  const servers = registry.toolsets().filter((name) => name.startsWith("mcp-"));
  const rows = [...switchableToolsets(registry), ...servers].map((name) => {
    const tools = resolveToolset(name, registry).filter((tool) => registry.has(tool));
    const enabled = chosen.toolsets.includes(name);
    const description = CONFIGURABLE[name]?.description ?? "";
    return { name, description, enabled, tools: tools.map((tool) => toolLine(tool, enabled)) };
  });
  function toolLine(name: string, enabled: boolean) {
    const requires = registry.get(name)?.traits.requiresEnv ?? [];
    const missing = requires.filter((variable) => !ctx.home.env(variable));
    return {
      name,
      enabled: enabled && chosen.tools.includes(name),
      available: available.has(name),
      missing_env: missing,
    };
  }
  for (const server of chosen.servers) {
    const name = `mcp-${server}`;
    const description = `not connected yet: hermes mcp test ${server}`;
    if (!rows.some((row) => row.name === name)) rows.push({ name, description, enabled: true, tools: [] });
  }
  if (json) return printJson(ctx, { platform, toolsets: rows, unknown: chosen.unknown });
  const width = Math.max(...rows.map((row) => row.name.length));
  ctx.io.out(`Toolsets on ${platform}\n\n`);
  for (const row of rows) {
    ctx.io.out(
      `  ${row.enabled ? "✓" : "✗"} ${row.name.padEnd(width)}  ${row.tools.map(describeTool).join(", ") || row.description}\n`,
    );
  }
  ctx.io.out(`\nhermes tools enable|disable NAME --platform ${platform} changes one.\n`);
  for (const name of chosen.unknown) ctx.io.err(`Unknown toolset in the configuration of ${platform}: ${name}\n`);
}

function describeTool(tool: { name: string; available: boolean; missing_env: readonly string[] }): string {
  if (tool.available) return tool.name;
  return `${tool.name} (${tool.missing_env.length > 0 ? `needs ${tool.missing_env.join(", ")}` : "not available here"})`;
}

async function summarize(ctx: CliContext): Promise<void> {
  const configured = Object.keys(ctx.home.config().platform_toolsets);
  for (const platform of [...new Set([...PLATFORMS, ...configured])]) {
    const { registry, question } = await load(platform, ctx);
    const { toolsets, tools } = chooseToolsets(question, registry);
    const used = toolsets.filter((name) => registry.toolsOf(name).length > 0);
    ctx.io.out(`${platform.padEnd(14)} ${String(tools.length).padStart(3)} tools  ${used.join(", ")}\n`);
  }
}

async function edit(verb: "enable" | "disable", given: string[], { platform }: Flags, ctx: CliContext): Promise<void> {
  const { registry, question } = await load(platform, ctx);
  const names = given.flatMap((name) => name.split(",")).filter((name) => name !== "");
  const result = editToolsets({ enable: verb === "enable", names }, question, registry);
  if ("unknown" in result) {
    throw new ExitError(
      1,
      `Unknown toolset: ${result.unknown.join(", ")}. Nothing was changed. Valid names: ${result.valid.join(", ")}`,
    );
  }
  if (result.writes.length === 0) {
    ctx.io.out(
      `Nothing to change: ${names.join(", ")} ${names.length > 1 ? "are" : "is"} already ${verb}d on ${platform}.\n`,
    );
    return;
  }
  for (const { path, value } of result.writes) await ctx.home.setConfigKey(path.join("."), value);
  ctx.io.out(`${verb === "enable" ? "Enabled" : "Disabled"} on ${platform}: ${names.join(", ")}\n`);
  for (const name of result.freed) ctx.io.out(`${name} was removed from agent.disabled_toolsets.\n`);
  ctx.io.out("The change applies to new conversations.\n");
}

async function load(platform: string, ctx: CliContext) {
  const { home } = ctx;
  const config = home.config();
  if (!PLATFORMS.includes(platform) && !(platform in config.platform_toolsets)) {
    throw new ExitError(1, `Unknown platform: ${platform}. Known: ${PLATFORMS.join(", ")}`);
  }
  await loadTools(home.log);
  if (Object.keys(config.mcp_servers).length > 0) {
    await (await import("../../mcp/shared.ts")).registerKnownTools(home);
  }
  await (await import("../../plugins/shared.ts")).registerPluginTools(ctx);
  return { registry, question: { platform, config, env: (name: string) => home.env(name) } };
}

/** Those of the command line. */
export async function enabledToolsets(ctx: CliContext): Promise<readonly string[]> {
  const { registry, question } = await load("cli", ctx);
  return (await switchesOf(registry, question)).filter(({ on }) => on).map(({ name }) => name);
}

interface Switch {
  readonly name: string;
  readonly description: string;
  readonly on: boolean;
}

async function switchesOf(registry: ToolRegistry, question: ToolsetQuestion): Promise<readonly Switch[]> {
  const chosen = chooseToolsets(question, registry);
  return [
    ...switchableToolsets(registry).map((name) => ({
      name,
      description: CONFIGURABLE[name]?.description ?? "from a plugin",
      on: chosen.toolsets.includes(name),
    })),
    ...Object.keys(question.config.mcp_servers).map((name) => ({
      name,
      description: "MCP server",
      on: chosen.servers.includes(name),
    })),
  ];
}
