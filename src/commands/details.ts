// Commands about how much of the work is shown.
import type { CommandContext, CommandDefinition } from "./context.ts";

const MODES = ["hidden", "collapsed", "expanded"] as const;
const SECTIONS = ["tools", "thinking"] as const;
const WORDS = {
  hidden: "not shown",
  collapsed: "shown as one line each",
  expanded: "shown with their text",
  auto: "as set by display.details_mode",
} as const;

const details: CommandDefinition = {
  name: "details",
  description: "set how much of tool calls and thinking to show",
  category: "Configuration",
  availability: "cli",
  argsHint: "[hidden|collapsed|expanded|cycle] or <tools|thinking> <mode|reset>",
  subcommands: [...MODES, "cycle", ...SECTIONS],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const [first = "", second = ""] = args.toLowerCase().split(/\s+/);
    const { details_mode, sections } = ctx.home.config().display;
    if (first === "") return ctx.say(described(ctx));
    const section = SECTIONS.find((name) => name === first);
    if (section) {
      const mode = second === "reset" ? "auto" : MODES.find((name) => name === second);
      if (!mode) return ctx.warn(`/details ${section} takes ${MODES.join(", ")} or reset. Now: ${sections[section]}.`);
      await ctx.home.setConfigKey(`display.sections.${section}`, mode);
      return ctx.say(`${section === "tools" ? "Tool calls" : "Thinking"}: ${WORDS[mode]}.`);
    }
    const current = details_mode === "auto" ? "collapsed" : details_mode;
    const next =
      first === "cycle" ? MODES[(MODES.indexOf(current) + 1) % MODES.length] : MODES.find((name) => name === first);
    if (!next) return ctx.warn(`/details takes ${MODES.join(", ")}, cycle, or tools or thinking with one of them.`);
    await ctx.home.setConfigKey("display.details_mode", next);
    ctx.say(`Tool calls and thinking: ${WORDS[next]}.`);
  },
};

function described(ctx: CommandContext): string {
  const { details_mode, sections } = ctx.home.config().display;
  return [
    `details   ${details_mode}`,
    ...SECTIONS.map((name) => `${name.padEnd(9)} ${sections[name]}`),
    "",
    "/details hidden|collapsed|expanded|cycle changes both, /details tools expanded one of them.",
    "Ctrl+O shows the output of recent calls, Ctrl+T the thinking.",
  ].join("\n");
}

const todo: CommandDefinition = {
  name: "todo",
  aliases: ["todos"],
  description: "show or hide the task list above the input",
  category: "Configuration",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const told = ctx.terminal?.toggleTodos();
    if (told !== undefined) ctx.say(told);
  },
};

export const DETAIL_COMMANDS: readonly CommandDefinition[] = [details, todo];
