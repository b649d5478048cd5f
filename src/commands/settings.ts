// Commands that change how the agent works and what is shown of it.

import { said, t } from "../home/language/words.ts";
import type { CommandDefinition } from "./context.ts";

const yolo: CommandDefinition = {
  name: "yolo",
  description: "run dangerous commands without asking, in this conversation",
  permission: "admin",
  category: "Configuration",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.conversation.yolo = !ctx.conversation.yolo;
    ctx.say(
      ctx.conversation.yolo
        ? "⚠ YOLO is on: dangerous commands run without asking (the hardline list still applies). /yolo turns it off."
        : "YOLO is off: Hermes asks before dangerous commands.",
    );
  },
};

const APPROVAL_MODES = {
  manual: "Hermes asks you before dangerous commands.",
  smart: "a model judges dangerous commands first and asks you when in doubt.",
  off: "⚠ dangerous commands run without asking (the hardline list still applies).",
} as const;
const isApprovalMode = (word: string): word is keyof typeof APPROVAL_MODES => word in APPROVAL_MODES;

const approvals: CommandDefinition = {
  name: "approvals",
  description: "set who approves dangerous commands, from now on",
  category: "Configuration",
  argsHint: "[manual|smart|off]",
  permission: "admin",
  async run(args, ctx) {
    const word = args.trim().toLowerCase();
    if (word !== "" && !isApprovalMode(word)) return ctx.warn(`/approvals takes manual, smart or off, not "${args}".`);
    if (word !== "") await ctx.home.setConfigKey("approvals.mode", word);
    const { mode } = ctx.home.config().approvals;
    ctx.say(
      t("Approvals: {mode}: {what}", { mode, what: said(APPROVAL_MODES[mode]) }) +
        (word === "" ? "" : ` ${t("Saved as approvals.mode.")}`),
    );
  },
};

const LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh"];
const SHOW: Readonly<Record<string, boolean>> = { show: true, on: true, hide: false, off: false };

const reasoning: CommandDefinition = {
  name: "reasoning",
  description: "set reasoning effort, show or hide thinking",
  category: "Configuration",
  argsHint: "[level|show|hide]",
  subcommands: [...LEVELS, "show", "hide"],
  async run(args, ctx) {
    const word = args.toLowerCase();
    const shown = SHOW[word];
    if (shown !== undefined) {
      await ctx.home.setConfigKey("display.show_reasoning", shown);
      return ctx.say(shown ? "Thinking is now shown." : "Thinking is now hidden.");
    }
    if (LEVELS.includes(word)) {
      await ctx.conversation.setReasoning(word);
      return ctx.say(
        `Reasoning: ${word}, in this conversation. agent.reasoning_effort in config.yaml sets the default.`,
      );
    }
    const now = ctx.conversation.agent.model.reasoning;
    const level = now === undefined ? "the provider's default" : now.enabled ? (now.effort ?? "on") : "none";
    if (word !== "") ctx.warn(`"${args}" is not a level. Choose from ${LEVELS.join(" ")}, show or hide.`);
    else ctx.say(`Reasoning: ${level}; ${ctx.home.config().display.show_reasoning ? "shown" : "hidden"}.`);
  },
};

const FEED_MODES = ["off", "new", "all", "verbose"] as const;

const verbose: CommandDefinition = {
  name: "verbose",
  description: "set how much of the tool feed to show",
  category: "Configuration",
  availability: "cli",
  gatewayConfigGate: "display.tool_progress_command",
  argsHint: "[off|new|all|verbose]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const modes: readonly string[] = FEED_MODES;
    const present = modes.indexOf(ctx.home.config().display.tool_progress);
    const next = args === "" ? FEED_MODES[(present + 1) % FEED_MODES.length] : FEED_MODES.find((mode) => mode === args);
    if (!next) return ctx.warn(`/verbose takes ${FEED_MODES.join(", ")}, not "${args}".`);
    await ctx.home.setConfigKey("display.tool_progress", next);
    ctx.say(`Tool feed: ${next}`);
  },
};

const BUSY_MODES: Readonly<Record<string, string>> = {
  interrupt: "Enter stops the running turn and sends the new message.",
  queue: "Enter queues the message until the turn ends.",
  steer: "Enter sends the message along with the next tool result.",
};

const busy: CommandDefinition = {
  name: "busy",
  description: "set what Enter does while the agent is working",
  category: "Configuration",
  availability: "cli",
  argsHint: "[queue|steer|interrupt|status]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const word = args.toLowerCase();
    const meaning = BUSY_MODES[word];
    if (meaning) {
      await ctx.home.setConfigKey("display.busy_input_mode", word);
      return ctx.say(`${word}: ${meaning}`);
    }
    if (word !== "" && word !== "status")
      return ctx.warn(`/busy takes ${Object.keys(BUSY_MODES).join(", ")}, not "${args}".`);
    const present = ctx.home.config().display.busy_input_mode;
    ctx.say(`${present}: ${BUSY_MODES[present]}`);
  },
};

const mode: CommandDefinition = {
  name: "mode",
  description: "switch between ask, accept-edits and plan (Shift+Tab)",
  category: "Configuration",
  argsHint: "[ask|accept-edits|plan]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { MODE_WORDS, WORK_MODES } = await import("../tools/toolset/work-mode.ts");
    const present = ctx.conversation.workMode;
    if (args === "") return ctx.say(`${MODE_WORDS[present]}\n/mode ${WORK_MODES.join("|")} switches.`);
    const wanted = WORK_MODES.find(
      (name) =>
        name ===
        args
          .trim()
          .toLowerCase()
          .replace(/[\s_]+/g, "-"),
    );
    if (!wanted) return ctx.warn(`/mode takes ask, accept-edits or plan, not "${args}".`);
    ctx.conversation.workMode = wanted;
    ctx.say(MODE_WORDS[wanted]);
  },
};

const setup: CommandDefinition = {
  name: "setup",
  description: "connect a model; configure terminal and agent",
  category: "Configuration",
  availability: "cli",
  argsHint: "[model|terminal|agent]",
  async run(args, ctx) {
    if (ctx.terminal) await ctx.terminal.setup(args.trim().toLowerCase());
  },
};

export const SETTINGS_COMMANDS: readonly CommandDefinition[] = [setup, verbose, yolo, approvals, mode, reasoning, busy];
