// Commands about the conversation itself.
import { relativeTime } from "../kit/relative-time.ts";
import type { SessionListItem } from "../sessions/store.ts";
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";
import { takeSkipWord } from "./registry.ts";

const LISTED = 20;

/** Destructive commands ask first, unless told not to or there is nothing to lose. True = go on. */
export async function confirmDestructive(ctx: CommandContext, what: string, skip: boolean): Promise<boolean> {
  const session = await ctx.store.get(ctx.conversation.agent.sessionId);
  const nothingToLose = (session?.messageCount ?? 0) === 0;
  if (skip || nothingToLose || !ctx.home.config().approvals.destructive_slash_confirm) return true;
  const choice = await ctx.confirm(what, "The conversation stays in the history; /resume brings it back.");
  if (choice === "always") await ctx.home.setConfigKey("approvals.destructive_slash_confirm", false);
  return choice !== "cancel";
}

const startNew: CommandDefinition = {
  name: "new",
  aliases: ["reset"],
  description: "start a new conversation",
  category: "Session",
  argsHint: "[name]",
  destructive: true,
  busyPolicy: "interrupt_then_dispatch",
  async run(typed, ctx) {
    const { args, skip } = takeSkipWord(typed);
    if (!(await confirmDestructive(ctx, "Start a new conversation?", skip))) return ctx.say("Nothing changed.");
    await ctx.startSession(args === "" ? {} : { title: args });
  },
};

const clear: CommandDefinition = {
  name: "clear",
  description: "clear the screen and start a new conversation",
  category: "Session",
  availability: "cli",
  destructive: true,
  async run(typed, ctx) {
    const { skip } = takeSkipWord(typed);
    if (!(await confirmDestructive(ctx, "Clear the screen and start a new conversation?", skip))) return;
    ctx.clearScreen();
    await ctx.startSession({});
  },
};

const title: CommandDefinition = {
  name: "title",
  description: "show or set the title of this conversation",
  category: "Session",
  argsHint: "[name]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.say((await ctx.conversation.title()) ?? "This conversation has no title yet.");
    await ctx.conversation.setTitle(args);
    ctx.say(`Title: ${args}`);
  },
};

const resume: CommandDefinition = {
  name: "resume",
  description: "go on with an earlier conversation",
  category: "Session",
  argsHint: "[name, id or number]",
  async run(args, ctx) {
    const id = args === "" ? await pickSession(ctx) : await resolveSession(args, ctx);
    if (id === null) return;
    if (id === ctx.conversation.agent.sessionId) return ctx.say("That is this conversation.");
    await ctx.resumeSession(id);
  },
};

const sessions: CommandDefinition = {
  name: "sessions",
  description: "browse earlier conversations",
  category: "Session",
  async run(_args, ctx) {
    const id = await pickSession(ctx);
    if (id !== null && id !== ctx.conversation.agent.sessionId) await ctx.resumeSession(id);
  },
};

const queue: CommandDefinition = {
  name: "queue",
  aliases: ["q"],
  description: "say this when the running turn is over",
  category: "Session",
  argsHint: "<prompt>",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/queue needs a text: /queue <prompt>");
    ctx.queue(args);
  },
};

const steer: CommandDefinition = {
  name: "steer",
  description: "tell the agent something while it works, without stopping it",
  category: "Session",
  argsHint: "<prompt>",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.warn("/steer needs a text: /steer <prompt>");
    if (!ctx.busy) return ctx.submit(args);
    ctx.conversation.agent.steer(args);
    ctx.say("It will see this with the next tool result.");
  },
};

const stop: CommandDefinition = {
  name: "stop",
  description: "stop the running turn",
  category: "Session",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    if (!ctx.busy) return ctx.say("Nothing is running.");
    ctx.conversation.agent.interrupt("stopped by the user");
  },
};

async function pickSession(ctx: CommandContext): Promise<string | null> {
  const listed = await ctx.store.list({
    limit: LISTED,
    excludeSources: ["tool", "subagent", "kanban"],
    orderByLastActive: true,
  });
  const others = listed.filter((session) => session.id !== ctx.conversation.agent.sessionId);
  ctx.lastListed = others;
  if (others.length === 0) {
    ctx.say("There is no other conversation yet.");
    return null;
  }
  return ctx.pick(
    "Go on with",
    others.map((session) => ({
      label: labelOf(session),
      hint: relativeTime(session.lastActive, ctx.now()),
      value: session.id,
    })),
  );
}

const labelOf = (session: SessionListItem) => session.title ?? (session.preview || session.id);

async function resolveSession(wish: string, ctx: CommandContext): Promise<string | null> {
  const numbered = /^\d{1,2}$/.test(wish) ? ctx.lastListed[Number(wish) - 1] : undefined;
  const id = numbered?.id ?? (await ctx.store.resolveId(wish)) ?? (await ctx.store.resolveTitle(wish));
  if (id === null) ctx.warn(`No conversation has the id or title "${wish}". /sessions lists them.`);
  return id;
}

export const SESSION_COMMANDS: readonly CommandDefinition[] = [
  startNew,
  clear,
  title,
  resume,
  sessions,
  queue,
  steer,
  stop,
];
