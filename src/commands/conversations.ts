// Commands that begin, name, find and leave conversations.
import { relativeTime } from "../kit/formats.ts";
import { type CommandContext, type CommandDefinition, confirmDestructive } from "./context.ts";
import { takeSkipWord } from "./registry.ts";

/** A list without a picker; a picker can be searched and shows them all. */
const LISTED = 20;
const PICKED = 500;
/** Offered while `/resume` is typed. */
const TITLES = 100;
const STAYS = "This one is saved; /resume reopens it.";

const startNew: CommandDefinition = {
  name: "new",
  aliases: ["reset"],
  description: "start a new conversation",
  category: "Session",
  editor: true,
  argsHint: "[name]",
  keepsText: true,
  destructive: true,
  busyPolicy: "interrupt_then_dispatch",
  mayRun: (typed, ctx) =>
    confirmDestructive(ctx, {
      what: "Start a new conversation?",
      detail: ctx.keptHint ?? STAYS,
      skip: takeSkipWord(typed).skip,
    }),
  async run(typed, ctx) {
    const { args } = takeSkipWord(typed);
    await ctx.startSession(args === "" ? {} : { title: args });
  },
};

const clear: CommandDefinition = {
  name: "clear",
  description: "clear the screen and start a new conversation",
  category: "Session",
  availability: "cli",
  destructive: true,
  mayRun(typed, ctx) {
    const what = "Clear the screen and start a new conversation?";
    return confirmDestructive(ctx, { what, detail: STAYS, skip: takeSkipWord(typed).skip });
  },
  async run(_typed, ctx) {
    ctx.terminal?.clearScreen();
    await ctx.startSession({});
  },
};

const title: CommandDefinition = {
  name: "title",
  description: "show or set the title of this conversation",
  category: "Session",
  argsHint: "[name]",
  keepsText: true,
  busyPolicy: "dispatch",
  async run(args, ctx) {
    if (args === "") return ctx.say((await ctx.conversation.title()) ?? "This conversation has no title yet.");
    await ctx.conversation.setTitle(args);
    ctx.say(`Title: ${args}`);
  },
};

const resume: CommandDefinition = {
  name: "resume",
  description: "resume an earlier conversation",
  category: "Session",
  argsHint: "[name, id or number]",
  async values(typed, { store, now }) {
    const listed = await store.list({ limit: TITLES, orderByLastActive: true, minMessageCount: 1 });
    const values = listed.flatMap(({ title, lastActive }) =>
      title ? [{ value: title, about: relativeTime(lastActive, now()) }] : [],
    );
    return { replaces: typed, values };
  },
  async run(args, ctx) {
    const id = args === "" ? await pickSession(ctx) : await resolveSession(args, ctx);
    if (id === null) return;
    if (id === ctx.conversation.agent.sessionId) return ctx.say("That is the current conversation.");
    await ctx.resumeSession(id);
  },
};

const sessions: CommandDefinition = {
  name: "sessions",
  description: "browse earlier conversations",
  category: "Session",
  async run(_args, ctx) {
    const id = await pickSession(ctx);
    if (id === null) return;
    if (id === ctx.conversation.agent.sessionId) return ctx.say("That is the current conversation.");
    await ctx.resumeSession(id);
  },
};

const quit: CommandDefinition = {
  name: "quit",
  aliases: ["exit"],
  description: "quit; --delete also deletes this conversation",
  category: "Exit",
  availability: "cli",
  argsHint: "[--delete]",
  subcommands: ["--delete"],
  destructive: true,
  busyPolicy: "interrupt_then_dispatch",
  async mayRun(typed, ctx) {
    const { args, skip } = takeSkipWord(typed);
    if (args === "") return true;
    if (args === "--delete")
      return confirmDestructive(ctx, {
        what: "Delete this conversation and quit?",
        detail: "This cannot be undone.",
        skip,
      });
    ctx.warn(`/quit only takes --delete, not "${args}".`);
    return false;
  },
  async run(typed, ctx: CommandContext) {
    ctx.quit({ deleteSession: takeSkipWord(typed).args === "--delete" });
  },
};

async function pickSession(ctx: CommandContext): Promise<string | null> {
  const { asTree, HIDDEN_SOURCES, sessionPicking, sessionRow } = await import("./session-picker.ts");
  const present = ctx.conversation.agent.sessionId;
  const listed = await ctx.store.list({
    limit: ctx.terminal ? PICKED : LISTED,
    excludeSources: HIDDEN_SOURCES,
    orderByLastActive: true,
    minMessageCount: 1,
  });
  const tree = asTree(listed);
  const sessions = tree.map(({ session }) => session);
  ctx.lastListed = sessions;
  if (sessions.every(({ chain }) => chain.includes(present))) {
    ctx.say("No other conversations yet.");
    return null;
  }
  const rows = tree.map((branch) => sessionRow(branch, ctx.now(), present));
  // The one that was left last, most likely.
  const selected = Math.max(
    0,
    rows.findIndex(({ current }) => !current),
  );
  return ctx.pick("Resume", rows, { selected, ...sessionPicking(sessions, ctx.store, ctx.now()) });
}

async function resolveSession(request: string, ctx: CommandContext): Promise<string | null> {
  const numbered = /^\d{1,2}$/.test(request) ? ctx.lastListed[Number(request) - 1] : undefined;
  const id = numbered?.id ?? (await ctx.store.resolveTitle(request)) ?? (await ctx.store.resolveId(request));
  if (id === null) ctx.warn(`No conversation has the id or title "${request}". /sessions lists them.`);
  return id;
}

export const CONVERSATION_COMMANDS: readonly CommandDefinition[] = [startNew, clear, title, resume, sessions, quit];
