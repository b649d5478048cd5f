// `/kanban`: the words of `hermes kanban` where people talk to the agent. Typed like a shell line, and never run by a shell.
import { lazy } from "../kit/lazy.ts";
import { splitWords } from "../kit/shell-words.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";
import type { KanbanWorld } from "./kanban.ts";

const LOOKS = [
  ...["list", "ls", "show", "runs", "stats", "assignees", "context", "log", "tail", "watch"],
  ...["attachments", "notify-list", "diagnostics", "help"],
];
const CHANGES = [
  ...["create", "assign", "reassign", "link", "unlink", "comment", "complete", "block", "unblock", "schedule"],
  ...["promote", "archive", "specify", "decompose", "swarm", "notify-subscribe", "notify-unsubscribe", "boards"],
];
/** They take files of this machine, or go on for ever. */
const NOT_IN_CHATS: ReadonlySet<string> = new Set(["attach", "daemon"]);
const TAIL_MS = 200;
const MOST_CHARS = 8000;

/** The command and what is typed behind it, without the options that come before. */
function verbOf(words: readonly string[]): readonly string[] {
  const [first = "", ...rest] = words;
  if (first === "--board") return verbOf(rest.slice(1));
  return first.startsWith("--board=") ? verbOf(rest) : words;
}

function onlyLooks(args: string): boolean {
  const [verb = "list", next = "list"] = verbOf(splitWords(args) ?? ["?"]);
  return verb === "boards" ? next === "list" || next === "show" : LOOKS.includes(verb);
}

const kanban: CommandDefinition = {
  name: "kanban",
  description: "show and change the cards of a board",
  category: "Tools & Skills",
  argsHint: "[list|show|create|comment|unblock|...] [...]",
  subcommands: [...LOOKS, ...CHANGES],
  busyPolicy: "dispatch",
  keepsText: true,
  editor: true,
  permission: "admin",
  onlyLooks,
  async run(args, ctx) {
    const words = splitWords(args);
    if (words === null)
      return ctx.warn('A quote is not closed. Type it like this: /kanban comment t_1234abcd "all of it"');
    const [verb = "list"] = verbOf(words);
    if (ctx.chat && NOT_IN_CHATS.has(verb))
      return ctx.warn(`${ctx.chat.word("kanban")} ${verb} works on the command line only: hermes kanban ${verb}`);
    const [{ Command, CommanderError }, { defineKanban }] = await Promise.all([
      import("commander"),
      import("./kanban.ts"),
    ]);
    const said: string[] = [];
    const command = new Command("kanban").exitOverride().configureOutput({
      writeOut: (text) => void said.push(text),
      writeErr: (text) => void said.push(text.replace(/^error: /, "")),
    });
    defineKanban(command, worldOf(ctx, said, verb));
    try {
      await command.parseAsync(words, { from: "user" });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
    }
    const text = said.join("").trimEnd();
    if (text !== "") ctx.say(text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}\n… [cut]` : text);
  },
};

function worldOf(ctx: CommandContext, said: string[], verb: string): KanbanWorld {
  const { home, clock, store, chat, conversation } = ctx;
  const { sessionId } = conversation.agent;
  return {
    ...{ home, clock },
    out: (text) => void said.push(text),
    err: (text) => void said.push(text),
    failed: () => undefined,
    store: lazy(async () => store),
    // What happened so far is the answer; nobody waits for more.
    ...(verb === "tail" && { lasts: (work) => work(AbortSignal.timeout(TAIL_MS)) }),
    conversation: {
      sessionId,
      auxiliary: conversation.agent.auxiliary,
      ...(chat && {
        chat: {
          platform: chat.place.platform,
          chatId: chat.place.chat_id,
          threadId: chat.place.thread_id,
          chatType: chat.person.chatType,
          userId: chat.person.id,
          profile: home.paths.profile,
        },
        author: `${chat.person.name ?? chat.person.id ?? "someone"} (${chat.place.platform})`,
      }),
    },
  };
}

export const KANBAN_COMMANDS: readonly CommandDefinition[] = [kanban];
