// Plugins at the prompt line: /plugins, and the commands that plugins bring.

import type { OpenHome } from "../home/open.ts";
import { OutOfTime, within } from "../kit/within.ts";
import { pluginHosts } from "../plugins/hosts.ts";
import type { CommandDefinition } from "./definition.ts";

/** How long a plugin's command may keep the line. */
const LIMIT_MS = 60_000;

const refused = new WeakMap<OpenHome, Set<string>>();

/** Commands of the plugins that run for this home. A name that is taken already keeps its meaning; the log says so, once. */
export function pluginCommands(home: OpenHome, taken: (name: string) => boolean): CommandDefinition[] {
  const offered = pluginHosts.get(home)?.commands() ?? [];
  const told = refused.get(home) ?? new Set();
  refused.set(home, told);
  for (const { name, plugin } of offered) {
    if (!taken(name) || told.has(name)) continue;
    told.add(name);
    home.log.warn(`plugin "${plugin}": the command /${name} was refused, its name is taken`);
  }
  return offered.map(({ name, description, argsHint, plugin, run }) => ({
    name,
    description: description === "" ? `(plugin ${plugin})` : description,
    category: "Tools & Skills",
    ...(argsHint === undefined ? {} : { argsHint }),
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
