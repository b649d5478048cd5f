// Commands about what the agent can do.
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";

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
  ctx.say([`${ctx.conversation.toolNames.length} tools in this conversation`, ...lines].join("\n"));
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
    const { CONFIGURABLE } = await import("../tools/toolset-table.ts");
    const { chooseToolsets, switchableToolsets } = await import("../tools/toolset/toolsets.ts");
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
