// Commands about agents at work beside the conversation: prompts in the background, sub-agents, processes.
import { compactDuration } from "../kit/formats.ts";
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";

const background: CommandDefinition = {
  name: "background",
  aliases: ["bg", "btw"],
  description: "run a prompt beside this conversation",
  category: "Session",
  argsHint: "<prompt>",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/background needs a prompt: /background <prompt>");
    if (!ctx.background) return ctx.warn("Prompts cannot run in the background here.");
    const { id } = ctx.background.start(args);
    ctx.say(`▶ ${id} started: ${oneLine(args)}`);
  },
};

const agents: CommandDefinition = {
  name: "agents",
  aliases: ["tasks"],
  description: "what runs: turn, sub-agents, background prompts, processes",
  category: "Session",
  argsHint: "[stop <id>|pause|resume]",
  subcommands: ["stop", "pause", "resume"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const [verb = "", id = ""] = args.split(/\s+/);
    if (verb === "") return ctx.say(listing(ctx));
    const { subagents } = ctx.conversation;
    switch (verb) {
      case "stop":
        if (id === "") return ctx.warn("/agents stop needs the id of what to stop; /agents lists them.");
        if (ctx.background?.stop(id) || subagents.interruptSubagent(id)) return ctx.say(`⏹ ${id} is being stopped.`);
        return ctx.warn(`Nothing called "${id}" runs; /agents lists what does.`);
      case "pause":
      case "resume":
        subagents.setSpawnPaused(verb === "pause");
        return ctx.say(verb === "pause" ? "No further sub-agents are started." : "Sub-agents may be started again.");
      default:
        return ctx.warn(`/agents knows stop, pause and resume, not "${verb}".`);
    }
  },
};

function listing(ctx: CommandContext): string {
  const { subagents, processes, agent } = ctx.conversation;
  const { currentTool, budgetUsed, budgetMax } = agent.activity();
  const since = (ms: number) => compactDuration(Math.max(0, ctx.now() - ms / 1000));
  const lines = [
    ...(ctx.busy
      ? [`turn         ${currentTool ?? "waiting for the model"}, ${budgetUsed} of ${budgetMax} model calls`]
      : []),
    ...subagents
      .listActiveSubagents()
      .map((child) => `sub-agent    ${child.id}  ${since(child.startedAt)}  ${child.model}  ${oneLine(child.goal)}`),
    ...(ctx.background?.running ?? []).map(
      (task) => `background   ${task.id}  ${since(task.startedAt)}  ${oneLine(task.prompt)}`,
    ),
    ...(processes.running > 0 ? [`processes    ${processes.running} started by the agent; /stop ends them`] : []),
    ...(subagents.paused ? ["Sub-agents are paused; /agents resume lets them start again."] : []),
  ];
  return lines.length === 0 ? "Nothing is running." : lines.join("\n");
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 79)}…`.toWellFormed() : line;
}

export const BACKGROUND_COMMANDS: readonly CommandDefinition[] = [background, agents];
