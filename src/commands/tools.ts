// Commands about what the agent can do.

import type { OpenHome } from "../home/open.ts";
import { OutOfTime, within } from "../kit/clock.ts";
import { plural } from "../kit/formats.ts";
import { pluginHosts } from "../plugins/shared.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const tools: CommandDefinition = {
  name: "tools",
  description: "list the tools, or switch toolsets on and off",
  category: "Tools & Skills",
  availability: "cli",
  argsHint: "[list|disable|enable] [names]",
  subcommands: ["list", "disable", "enable"],
  async run(args, ctx) {
    const [verb = "list", ...names] = args.split(/[\s,]+/).filter((word) => word !== "");
    if (verb === "list") return listTools(ctx);
    if (verb !== "enable" && verb !== "disable")
      return ctx.warn(`/tools knows list, enable and disable, not "${verb}".`);
    if (names.length === 0) return ctx.warn(`/tools ${verb} needs the name of a toolset; /toolsets lists them.`);
    await switchToolsets(verb === "enable", names, ctx);
  },
};

async function listTools(ctx: CommandContext): Promise<void> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const bySet = Map.groupBy(ctx.conversation.toolNames, (name) => registry.get(name)?.toolset ?? "other");
  const width = Math.max(...[...bySet.keys()].map((name) => name.length));
  const lines = [...bySet].map(([set, names]) => `  ${set.padEnd(width)}  ${names.join(", ")}`);
  ctx.say([`${plural(ctx.conversation.toolNames.length, "tool")} in this conversation`, ...lines].join("\n"));
}

async function switchToolsets(enable: boolean, names: readonly string[], ctx: CommandContext): Promise<void> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { editToolsets } = await import("../tools/toolset/edit.ts");
  const { platform, home } = ctx;
  const question = { platform, config: home.config(), env: (name: string) => home.env(name) };
  const edit = editToolsets({ enable, names }, question, registry);
  if ("unknown" in edit) {
    return ctx.warn(
      `Unknown toolset: ${edit.unknown.join(", ")}. Nothing was changed. There are: ${edit.valid.join(", ")}`,
    );
  }
  for (const { path, value } of edit.writes) await home.setConfigKey(path, value);
  const done = enable ? "switched on" : "switched off";
  ctx.say(
    edit.writes.length === 0
      ? `Nothing to change: ${names.join(", ")} ${names.length > 1 ? "are" : "is"} ${done} already.`
      : `${names.join(", ")} ${done}. A conversation keeps the tools it began with, so this holds from the next one on: /new.`,
  );
}

const toolsets: CommandDefinition = {
  name: "toolsets",
  description: "list the toolsets",
  category: "Tools & Skills",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { registry } = await import("../tools/toolset/registry.ts");
    const { CONFIGURABLE, chooseToolsets, switchableToolsets } = await import("../tools/toolset/toolsets.ts");
    const question = { platform: ctx.platform, config: ctx.home.config(), env: (name: string) => ctx.home.env(name) };
    const chosen = new Set(chooseToolsets(question, registry).toolsets);
    const servers = registry.toolsets().filter((name) => name.startsWith("mcp-"));
    const present = [...switchableToolsets(registry), ...servers];
    const width = Math.max(...present.map((name) => name.length));
    const lines = present.map((name) =>
      `  ${chosen.has(name) ? "✓" : "✗"} ${name.padEnd(width)}  ${CONFIGURABLE[name]?.description ?? ""}`.trimEnd(),
    );
    ctx.say([...lines, "", "/tools enable NAME and /tools disable NAME switch one."].join("\n"));
  },
};

const reload: CommandDefinition = {
  name: "reload",
  description: "read .env again",
  category: "Tools & Skills",
  availability: "cli",
  async run(_args, ctx) {
    const { set, removed } = ctx.home.reloadEnv();
    ctx.say(`Read ${ctx.home.display(ctx.home.paths.envFile)}: ${set} variables set, ${removed} removed.`);
  },
};

export const TOOL_COMMANDS: readonly CommandDefinition[] = [tools, toolsets, reload];

// Commands about MCP servers.

const reloadMcp: CommandDefinition = {
  name: "reload-mcp",
  aliases: ["reload_mcp"],
  description: "connect to the MCP servers anew",
  category: "Tools & Skills",
  async run(args, ctx) {
    const { home, conversation } = ctx;
    const now = /^(?:now|--yes|-y)$/.test(args.trim());
    if (!now && home.config().approvals.mcp_reload_confirm) {
      const choice = await ctx.confirm(
        "Reload the MCP servers?",
        "If their tools changed, the provider's prompt cache of this conversation is lost: the next request is paid for in full.",
      );
      if (choice === "cancel") return ctx.say("Nothing changed.");
      if (choice === "always") await home.setConfigKey("approvals.mcp_reload_confirm", false);
    }
    ctx.say("Connecting to the MCP servers ...");
    ctx.say((await conversation.reloadMcp()).join("\n"));
  },
};

export const MCP_COMMANDS: readonly CommandDefinition[] = [reloadMcp];

// Plugins at the prompt line: /plugins, and the commands provided by plugins.

/** Time limit of a plugin's command. */
const LIMIT_MS = 60_000;

const refused = new WeakMap<OpenHome, Set<string>>();

/** Commands of the plugins that run for this home. A name that is taken already keeps its meaning; the log says so, once. */
export function pluginCommands(home: OpenHome, taken: (name: string) => boolean): CommandDefinition[] {
  const offered = pluginHosts.get(home)?.commands() ?? [];
  const reported = refused.get(home) ?? new Set();
  refused.set(home, reported);
  for (const { name, plugin } of offered) {
    if (!taken(name) || reported.has(name)) continue;
    reported.add(name);
    home.log.warn(`plugin "${plugin}": the command /${name} was refused, its name is taken`);
  }
  return offered.map(({ name, description, argsHint, plugin, run }) => ({
    name,
    description: description === "" ? `(plugin ${plugin})` : description,
    category: "Tools & Skills",
    argsHint,
    run: async (args, ctx) => {
      const surface = {
        sessionId: ctx.conversation.agent.sessionId,
        platform: ctx.platform,
        cwd: ctx.cwd,
        say: (text: string) => ctx.say(text),
        warn: (text: string) => ctx.warn(text),
        submit: (text: string) => ctx.submit(text),
      };
      try {
        const said = await within(async () => run(args, surface), LIMIT_MS, ctx.clock);
        if (typeof said === "string" && said !== "") ctx.say(said);
      } catch (error) {
        if (!(error instanceof OutOfTime)) throw error;
        throw new Error(`plugin "${plugin}": ${error.message}; it is not waited for`);
      }
    },
  }));
}

const plugins: CommandDefinition = {
  name: "plugins",
  description: "what plugins run here, and what they offer",
  category: "Tools & Skills",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { inspectPlugins, describePlugin } = await import("../plugins/inspect.ts");
    const rows = await inspectPlugins(ctx);
    if (rows.length === 0)
      return ctx.say("No plugins are installed. hermes plugins install FOLDER puts one into the home.");
    ctx.say(
      [
        ...rows.map(describePlugin),
        "",
        "hermes plugins enable|disable NAME switches one, from the next conversation on.",
      ].join("\n"),
    );
  },
};

export const PLUGIN_COMMANDS: readonly CommandDefinition[] = [plugins];
