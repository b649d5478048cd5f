// Commands about what the agent can do.

import { t } from "../home/language/words.ts";
import type { OpenHome } from "../home/open.ts";
import { OutOfTime, within } from "../kit/clock.ts";
import { plural } from "../kit/formats.ts";
import { pluginHosts } from "../plugins/shared.ts";
import { type CommandContext, type CommandDefinition, typedWords } from "./context.ts";

const tools: CommandDefinition = {
  name: "tools",
  description: "list tools, enable or disable toolsets",
  category: "Tools & Skills",
  editor: true,
  availability: "cli",
  argsHint: "[list|switch|disable|enable] [names]",
  subcommands: ["list", "switch", "disable", "enable"],
  async values(typed, ctx) {
    const { words, last } = typedWords(typed);
    const [verb, ...named] = words;
    if (verb === undefined) return null;
    if (verb !== "enable" && verb !== "disable") return { replaces: last, values: [] };
    const rows = (await toolsetRows(ctx)).filter(({ name, on }) => on !== (verb === "enable") && !named.includes(name));
    return { replaces: last, values: rows.map(({ name, about }) => ({ value: name, about })) };
  },
  async run(args, ctx) {
    const [verb = "list", ...names] = args.split(/[\s,]+/).filter((word) => word !== "");
    if (verb === "list") return listTools(ctx);
    if (verb === "switch") return pickToolsets(ctx);
    if (verb !== "enable" && verb !== "disable")
      return ctx.warn(`/tools takes list, switch, enable or disable, not "${verb}".`);
    if (names.length === 0) return ctx.warn(`/tools ${verb} needs the name of a toolset; /toolsets lists them.`);
    await switchToolsets(verb === "enable", names, ctx);
  },
};

async function listTools(ctx: CommandContext): Promise<void> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { toolNames, definitions } = ctx.conversation;
  const sent = new Set(definitions.map((tool) => tool.function.name));
  const [direct, deferred] = [toolNames.filter((name) => sent.has(name)), toolNames.filter((name) => !sent.has(name))];
  const sets = (names: readonly string[]) => {
    const bySet = Map.groupBy(names, (name) => registry.get(name)?.toolset ?? "other");
    const width = Math.max(...[...bySet.keys()].map((name) => name.length));
    return [...bySet].map(([set, own]) => `  ${set.padEnd(width)}  ${own.join(", ")}`);
  };
  const more = deferred.length === 0 ? [] : ["", `${deferred.length} more on demand`, ...sets(deferred)];
  ctx.say([`${plural(direct.length, "tool")} in this conversation`, ...sets(direct), ...more].join("\n"));
}

/** A list to go through: Enter switches a toolset, Esc ends it. */
async function pickToolsets(ctx: CommandContext): Promise<void> {
  const switched = new Map<string, boolean>();
  for (let selected = 0; ; ) {
    const rows = await toolsetRows(ctx);
    const picked = await ctx.pick(
      "Toolsets: Enter toggles, Esc closes",
      rows.map(({ name, on, about }) => ({ label: `${on ? "✓" : "✗"} ${name}`, hint: [about], value: name })),
      { selected },
    );
    const row = rows.find(({ name }) => name === picked);
    if (!row) break;
    selected = rows.indexOf(row);
    if (await writeToolsets(!row.on, [row.name], ctx)) switched.set(row.name, !row.on);
  }
  if (switched.size === 0) return;
  const changes = [...switched].map(([name, on]) => `${name} ${on ? "on" : "off"}`);
  ctx.say(`${changes.join(", ")}. ${FROM_THE_NEXT}`);
}

async function toolsetRows(ctx: Pick<CommandContext, "home" | "platform">) {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { CONFIGURABLE, chooseToolsets, switchableToolsets } = await import("../tools/toolset/toolsets.ts");
  const question = { platform: ctx.platform, config: ctx.home.config(), env: (name: string) => ctx.home.env(name) };
  const chosen = new Set(chooseToolsets(question, registry).toolsets);
  const servers = registry.toolsets().filter((name) => name.startsWith("mcp-"));
  const present = [...switchableToolsets(registry), ...servers];
  return present.map((name) => ({ name, on: chosen.has(name), about: CONFIGURABLE[name]?.description ?? "" }));
}

const FROM_THE_NEXT = "A conversation keeps the tools it started with. Start a new one to use the change: /new";

async function switchToolsets(enable: boolean, names: readonly string[], ctx: CommandContext): Promise<void> {
  const changed = await writeToolsets(enable, names, ctx);
  const done = enable ? "enabled" : "disabled";
  if (changed) ctx.say(`${names.join(", ")} ${done}. ${FROM_THE_NEXT}`);
  if (changed === false)
    ctx.say(`Nothing to change: ${names.join(", ")} ${names.length > 1 ? "are" : "is"} already ${done}.`);
}

/** Whether something changed; null when a name is unknown, which was said. */
async function writeToolsets(enable: boolean, names: readonly string[], ctx: CommandContext): Promise<boolean | null> {
  const { registry } = await import("../tools/toolset/registry.ts");
  const { editToolsets } = await import("../tools/toolset/edit.ts");
  const { platform, home } = ctx;
  const question = { platform, config: home.config(), env: (name: string) => home.env(name) };
  const edit = editToolsets({ enable, names }, question, registry);
  if ("unknown" in edit) {
    const unknown = t("Unknown toolset: {name}. Nothing was changed.", { name: edit.unknown.join(", ") });
    ctx.warn(`${unknown} ${t("There are: {names}", { names: edit.valid.join(", ") })}`);
    return null;
  }
  for (const { path, value } of edit.writes) await home.setConfigKey(path, value);
  return edit.writes.length > 0;
}

const toolsets: CommandDefinition = {
  name: "toolsets",
  description: "list toolsets",
  category: "Tools & Skills",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const rows = await toolsetRows(ctx);
    const width = Math.max(...rows.map(({ name }) => name.length));
    const lines = rows.map(({ name, on, about }) => `  ${on ? "✓" : "✗"} ${name.padEnd(width)}  ${about}`.trimEnd());
    ctx.say([...lines, "", "/tools switch opens a menu; /tools enable|disable NAME changes one."].join("\n"));
  },
};

const reload: CommandDefinition = {
  name: "reload",
  description: "reload .env",
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
  description: "reconnect MCP servers",
  permission: "admin",
  category: "Tools & Skills",
  async run(args, ctx) {
    const { home, conversation } = ctx;
    const now = /^(?:now|--yes|-y)$/.test(args.trim());
    if (!now && home.config().approvals.mcp_reload_confirm) {
      const choice = await ctx.confirm(
        "Reconnect the MCP servers?",
        "If their tools changed, the prompt cache of this conversation is lost and the next request is billed in full.",
      );
      if (choice === "cancel") return ctx.say("Nothing changed.");
      if (choice === "always") await home.setConfigKey("approvals.mcp_reload_confirm", false);
    }
    ctx.say("Connecting to the MCP servers ...");
    ctx.say((await conversation.reloadMcp()).join("\n"));
  },
};

const mcp: CommandDefinition = {
  name: "mcp",
  description: "list MCP servers and their tools",
  category: "Tools & Skills",
  argsHint: "[list|reload]",
  async values(typed) {
    const { words, last } = typedWords(typed);
    return words.length === 0 ? null : { replaces: last, values: [] };
  },
  async run(args, ctx) {
    const [verb = "list", ...rest] = args.toLowerCase().split(/\s+/).filter(Boolean);
    if (verb === "reload") return reloadMcp.run(rest.join(" "), ctx);
    if (verb !== "list")
      return ctx.warn(`/mcp takes list or reload, not "${verb}". hermes mcp --help shows how to add one.`);
    const { registry } = await import("../tools/toolset/registry.ts");
    const servers = Object.keys(ctx.home.config().mcp_servers).sort();
    if (servers.length === 0) return ctx.say("No MCP servers configured. Add one from the shell: hermes mcp add NAME");
    const offered = new Set(ctx.conversation.toolNames);
    const width = Math.max(...servers.map((name) => name.length));
    const lines = servers.map((name) => {
      const tools = registry.toolsOf(`mcp-${name}`).filter((tool) => offered.has(tool));
      const about =
        tools.length > 0 ? `${plural(tools.length, "tool")}: ${tools.join(", ")}` : "no tools in this conversation";
      return `  ${tools.length > 0 ? "✓" : "✗"} ${name.padEnd(width)}  ${about}`;
    });
    ctx.say([...lines, "", "/mcp reload reconnects them. hermes mcp test NAME diagnoses one."].join("\n"));
  },
};

export const MCP_COMMANDS: readonly CommandDefinition[] = [mcp, reloadMcp];

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
    home.log.warn(`plugin "${plugin}": the command /${name} was rejected: the name is already in use`);
  }
  return offered.map(({ name, description, argsHint, plugin, run }) => ({
    name,
    description: description === "" ? t("(plugin {name})", { name: plugin }) : description,
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
  description: "list plugins and what they provide",
  category: "Tools & Skills",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { inspectPlugins, describePlugin } = await import("../plugins/inspect.ts");
    const rows = await inspectPlugins(ctx);
    if (rows.length === 0) return ctx.say("No plugins installed. Install one: hermes plugins install FOLDER");
    ctx.say(
      [...rows.map(describePlugin), "", "hermes plugins enable|disable NAME takes effect in new conversations."].join(
        "\n",
      ),
    );
  },
};

export const PLUGIN_COMMANDS: readonly CommandDefinition[] = [plugins];
