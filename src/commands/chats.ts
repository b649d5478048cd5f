// Commands that exist in chats: answers to questions, who one is, the home channel, the gateway itself.
import { t } from "../home/language/words.ts";
import type { ChatSurface, CommandContext, CommandDefinition } from "./context.ts";

/** Every command here is offered where there is a chat. */
function chatOf({ chat }: CommandContext): ChatSurface {
  if (!chat) throw new Error("this command works in chats only");
  return chat;
}

const start: CommandDefinition = {
  name: "start",
  description: "say hello",
  category: "Session",
  availability: "gateway",
  busyPolicy: "dispatch",
  // What a platform sends by itself when a person opens the chat: nothing is answered.
  run: async () => undefined,
};

const SCOPES: ReadonlySet<string> = new Set(["once", "session", "always"]);

/** `all` counts as the first or last word only: "allow it" is a reason, not an order. */
function takeAll(args: string): { readonly words: readonly string[]; readonly all: boolean } {
  const words = args.split(/\s+/).filter((word) => word !== "");
  if (words[0]?.toLowerCase() === "all") return { words: words.slice(1), all: true };
  if (words.at(-1)?.toLowerCase() === "all") return { words: words.slice(0, -1), all: true };
  return { words, all: false };
}

const nothing = "Nothing is waiting for an approval here.";
const counted = (count: number) => (count === 1 ? "" : ` (${count})`);

const approve: CommandDefinition = {
  name: "approve",
  description: "approve what the agent asked for",
  category: "Session",
  argsHint: "[session|always] [all]",
  availability: "gateway",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { words, all } = takeAll(args.toLowerCase());
    const [scope = "once", ...more] = words;
    if (!SCOPES.has(scope) || more.length > 0)
      return ctx.warn("/approve takes session or always, and all: /approve session");
    const choice = scope as "once" | "session" | "always"; // one of SCOPES
    const count = await chatOf(ctx).answer(choice, { all });
    ctx.say(count === 0 ? nothing : `Approved${counted(count)}.`);
  },
};

const deny: CommandDefinition = {
  name: "deny",
  description: "refuse what the agent asked for, with a reason",
  category: "Session",
  argsHint: "[all] [reason]",
  availability: "gateway",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { words, all } = takeAll(args);
    const reason = words.join(" ");
    const count = await chatOf(ctx).answer("deny", { all, ...(reason === "" ? {} : { reason }) });
    ctx.say(count === 0 ? nothing : `Denied${counted(count)}.`);
  },
};

const whoami: CommandDefinition = {
  name: "whoami",
  description: "show who you are here and what you may do",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(
      ctx.chat?.whoami() ?? `You are at the terminal of profile ${ctx.home.paths.profile}: you may do everything.`,
    );
  },
};

const setHome: CommandDefinition = {
  name: "sethome",
  aliases: ["set-home"],
  description: "make this chat the home channel",
  category: "Session",
  availability: "gateway",
  permission: "admin",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(await chatOf(ctx).setHome());
  },
};

const restart: CommandDefinition = {
  name: "restart",
  description: "restart the gateway when running turns are done",
  category: "Session",
  availability: "gateway",
  permission: "admin",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(await chatOf(ctx).restart());
  },
};

const platform: CommandDefinition = {
  name: "platform",
  description: "list, pause and resume chat platforms",
  category: "Info",
  argsHint: "<list|pause|resume> [name]",
  subcommands: ["list", "pause", "resume"],
  availability: "gateway",
  permission: "admin",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const chat = chatOf(ctx);
    const [what = "list", name] = args.split(/\s+/).filter((word) => word !== "");
    if (what === "list")
      return ctx.say(
        chat.platforms
          .map(({ name: one, state, account }) => `${one}: ${state}${account ? ` (${account})` : ""}`)
          .join("\n"),
      );
    if ((what !== "pause" && what !== "resume") || name === undefined)
      return ctx.warn("/platform takes list, pause NAME or resume NAME.");
    ctx.say(await chat.setPlatform(name.toLowerCase(), what));
  },
};

const voice: CommandDefinition = {
  name: "voice",
  description: "choose which answers are read aloud in this chat",
  category: "Configuration",
  argsHint: "[on|off|tts|status]",
  availability: "gateway",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const word = args.trim().toLowerCase() || "status";
    const said = await chatOf(ctx).voice(word);
    if (said === null)
      return ctx.warn("/voice takes on (answers to voice messages), tts (every answer), off or status.");
    ctx.say(said);
  },
};

const PAGE = 20;

const commands: CommandDefinition = {
  name: "commands",
  description: "list commands and skills, page by page",
  category: "Info",
  argsHint: "[page]",
  availability: "gateway",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const lines = [
      ...chatOf(ctx)
        .allowed()
        .map((command) => chatHelpLine(command, chatOf(ctx).word)),
      ...(await ctx.skillCommands()).map(({ name, description }) => `\`/${name}\` -- ${description}`),
    ];
    const pages = Math.ceil(lines.length / PAGE);
    const page = args === "" ? 1 : Number(args);
    if (!Number.isInteger(page) || page < 1 || page > pages)
      return ctx.warn(`/commands takes a page from 1 to ${pages}.`);
    const more = page < pages ? `\n/commands ${page + 1} shows more.` : "";
    ctx.say(`Page ${page} of ${pages}\n${lines.slice((page - 1) * PAGE, page * PAGE).join("\n")}${more}`);
  },
};

/** An alias that differs by `-` and `_` alone is the same word to people. */
export function chatHelpLine(
  { name, argsHint, description, aliases = [] }: CommandDefinition,
  word: (name: string) => string = (typed) => `/${typed}`,
): string {
  const plain = (word: string) => word.replaceAll("_", "-");
  const others = aliases.filter((alias) => plain(alias) !== plain(name)).map((alias) => `\`${word(alias)}\``);
  const also = others.length > 0 ? ` ${t("(alias: {names})", { names: others.join(", ") })}` : "";
  return `\`${word(name)}${argsHint ? ` ${argsHint}` : ""}\` -- ${description}${also}`;
}

export const CHAT_COMMANDS: readonly CommandDefinition[] = [
  ...[start, approve, deny, whoami, setHome, restart, platform, voice, commands],
];
