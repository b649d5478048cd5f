// Commands about work beside the conversation: background prompts, sub-agents, processes. Listed, looked into, stopped.

import { compactDuration } from "../kit/formats.ts";
import { stripAnsi } from "../kit/strip-ansi.ts";
import { textOf } from "../llm/messages.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const SHOWN_LINES = 200;
const PREVIEW_LINES = 5;

const background: CommandDefinition = {
  name: "background",
  aliases: ["bg", "btw"],
  description: "run a prompt in the background",
  category: "Session",
  argsHint: "<prompt>",
  keepsText: true,
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/background needs a prompt: /background <prompt>");
    if (!ctx.background) return ctx.warn("Background prompts are not available here.");
    const { id } = ctx.background.start(args);
    ctx.say(`▶ ${id} started: ${oneLine(args)}`);
  },
};

const agents: CommandDefinition = {
  name: "agents",
  aliases: ["tasks"],
  description: "show and stop sub-agents, background prompts and processes",
  category: "Session",
  argsHint: "[show <id>|stop <id>|pause|resume]",
  subcommands: ["show", "stop", "pause", "resume"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const [verb = "", id = ""] = args.split(/\s+/);
    if (verb === "") return browse(ctx);
    const { subagents } = ctx.conversation;
    switch (verb) {
      case "show":
      case "stop": {
        if (id === "") return ctx.warn(`/agents ${verb} needs an id; /agents lists them.`);
        const work = workOf(ctx).find((one) => one.id === id);
        if (work) return verb === "show" ? show(work, ctx) : stop(work, ctx);
        return ctx.warn(`Nothing named "${id}" is running; /agents lists what is.`);
      }
      case "pause":
      case "resume":
        subagents.setSpawnPaused(verb === "pause");
        return ctx.say(verb === "pause" ? "Sub-agents paused: no new ones will start." : "Sub-agents resumed.");
      default:
        return ctx.warn(`/agents takes show, stop, pause or resume, not "${verb}".`);
    }
  },
};

/** Something that runs, or has ended and can still be looked into. */
interface Work {
  readonly id: string;
  readonly kind: "sub-agent" | "background" | "process";
  readonly what: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** How it ended; null while it runs. */
  readonly ended: string | null;
  /** What it has said or printed so far. */
  output(): Promise<string>;
  /** False when it has already ended. */
  stop(): Promise<boolean>;
}

function workOf(ctx: CommandContext): readonly Work[] {
  const { subagents, processes } = ctx.conversation;
  const children = subagents.listActiveSubagents().map(
    (child): Work => ({
      ...{ id: child.id, kind: "sub-agent", what: child.goal, startedAt: child.startedAt, ended: null },
      output: () => said(child.sessionId, ctx),
      stop: async () => subagents.interruptSubagent(child.id),
    }),
  );
  const prompts = (ctx.background?.running ?? []).map(
    ({ id, prompt, startedAt }): Work => ({
      ...{ id, kind: "background", what: prompt, startedAt, ended: null },
      output: () => said(id, ctx),
      stop: async () => ctx.background?.stop(id) ?? false,
    }),
  );
  const started = processes.list().map(
    (process): Work => ({
      ...{ id: process.id, kind: "process", what: process.command, startedAt: process.startedAt },
      ended: process.exitCode === null ? null : `exit ${process.exitCode}`,
      output: async () => ctx.home.redact(stripAnsi(process.output)),
      stop: () => processes.stop(process.id),
    }),
  );
  return [...children, ...prompts, ...started];
}

/** A list to choose from where there is one, else lines. */
async function browse(ctx: CommandContext): Promise<void> {
  const work = workOf(ctx);
  if (!ctx.terminal || work.length === 0) return ctx.say(listing(work, ctx));
  const chosen = await ctx.pick(
    ["Running work", ...notes(ctx)].join("\n"),
    work.map((one) => ({ label: oneLine(one.what), hint: [one.kind, state(one, ctx), one.id], value: one })),
    { preview: async (one) => lastLines(await one.output(), PREVIEW_LINES) || "(nothing yet)" },
  );
  if (chosen === null) return;
  const actions = [
    { label: "Show its output", value: "show" as const },
    ...(chosen.ended === null ? [{ label: "Stop it", value: "stop" as const }] : []),
  ];
  const what = await ctx.pick<"show" | "stop">(oneLine(chosen.what), actions, { menu: true });
  if (what === "show") await show(chosen, ctx);
  if (what === "stop") await stop(chosen, ctx);
}

async function show(work: Work, ctx: CommandContext): Promise<void> {
  const output = lastLines(await work.output(), SHOWN_LINES);
  ctx.say(`${work.kind} ${work.id} · ${state(work, ctx)}\n${oneLine(work.what)}\n\n${output || "(nothing yet)"}`);
}

async function stop(work: Work, ctx: CommandContext): Promise<void> {
  if (work.ended === null && (await work.stop())) return ctx.say(`⏹ ${work.id} is stopping.`);
  ctx.say(`${work.id} has already ended.`);
}

/** The last things a conversation of its own said and did. */
async function said(sessionId: string, { store }: CommandContext): Promise<string> {
  const lines = (await store.load(sessionId)).flatMap((message) => {
    if (message.role !== "assistant") return [];
    const text = textOf(message.content ?? "").trim();
    const calls = (message.tool_calls ?? []).map(({ function: { name } }) => `┊ ${name}`);
    return [...(text === "" ? [] : [text]), ...calls];
  });
  return lines.join("\n");
}

function listing(work: readonly Work[], ctx: CommandContext): string {
  const lines = [
    ...notes(ctx),
    ...work.map((one) => `${one.kind.padEnd(11)}  ${one.id}  ${state(one, ctx)}  ${oneLine(one.what)}`),
  ];
  return lines.length === 0 ? "Nothing is running." : lines.join("\n");
}

function notes({ busy, conversation }: CommandContext): readonly string[] {
  const { currentTool, budgetUsed, budgetMax } = conversation.agent.activity();
  const turn = `turn         ${currentTool ?? "waiting for the model"}, ${budgetUsed} of ${budgetMax} model calls`;
  const paused = "Sub-agents are paused; /agents resume allows new ones.";
  return [...(busy ? [turn] : []), ...(conversation.subagents.paused ? [paused] : [])];
}

const state = ({ ended, startedAt }: Work, ctx: CommandContext) =>
  ended ?? compactDuration(Math.max(0, ctx.now() - startedAt / 1000));

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 80 ? `${line.slice(0, 79)}…`.toWellFormed() : line;
}

function lastLines(text: string, most: number): string {
  const lines = text.trimEnd().split("\n");
  return lines.length <= most ? lines.join("\n") : `…\n${lines.slice(-most).join("\n")}`;
}

export const TASK_COMMANDS: readonly CommandDefinition[] = [background, agents];
