// Commands about the program and the folder.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { said, t } from "../home/language/words.ts";
import { versionLine } from "../home/paths.ts";
import { type HistoryMessage, textOf } from "../llm/messages.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";
import { runLine } from "./dispatch.ts";

const help: CommandDefinition = {
  name: "help",
  description: "list commands and keys",
  category: "Info",
  editor: true,
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { skillHelp } = await import("./skills.ts");
    const skills = skillHelp(await ctx.skillCommands());
    const keys = ctx.terminal ? `${said("Keys")}\n\n${ctx.terminal.keys()}` : "";
    ctx.say([ctx.commands(), skills, keys].filter((part) => part !== "").join("\n\n"));
  },
};

const keys: CommandDefinition = {
  name: "keys",
  aliases: ["hotkeys", "shortcuts"],
  description: "list keyboard shortcuts",
  category: "Info",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(ctx.terminal?.keys() ?? "");
  },
};

const profile: CommandDefinition = {
  name: "profile",
  description: "show the active profile and home",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(`Profile ${ctx.home.paths.profile}, home ${ctx.home.display(ctx.home.paths.dir)}`);
  },
};

const version: CommandDefinition = {
  name: "version",
  aliases: ["v"],
  description: "show the version",
  category: "Info",
  editor: true,
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(versionLine());
  },
};

const diff: CommandDefinition = {
  name: "diff",
  description: "show uncommitted changes in this folder",
  category: "Info",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const git = (args: string) => runLine(`git --no-pager ${args}`, ctx);
    const changes = await git("diff --no-color --no-ext-diff HEAD");
    if (changes.code !== 0) return ctx.warn(changes.errors.split("\n")[0] || "git could not be run.");
    const fresh = (await git("ls-files --others --exclude-standard")).output;
    const parts = [changes.output.trimEnd(), fresh.trim() === "" ? "" : `New files:\n${fresh.trimEnd()}`];
    ctx.say(parts.filter((part) => part !== "").join("\n\n") || "Nothing changed.");
  },
};

export const INFO_COMMANDS: readonly CommandDefinition[] = [help, keys, profile, version, diff];

// Commands that show, keep and copy what was said.

const SHOWN_CHARS = 400;

const messagesOf = (ctx: CommandContext) => ctx.store.load(ctx.conversation.agent.sessionId);

const history: CommandDefinition = {
  name: "history",
  description: "show the full conversation",
  category: "Session",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const lines = transcriptLines(await messagesOf(ctx));
    ctx.say(lines.length > 0 ? lines.join("\n") : "No messages yet.");
  },
};

/** Numbered messages; results of tools and calls in a few words. */
function transcriptLines(messages: readonly HistoryMessage[]): string[] {
  let number = 0;
  return messages.flatMap((message) => {
    const text = shorten(textOf(message.content));
    if (message.role === "user") return [t("{number}. You: {text}", { number: ++number, text })];
    if (message.role === "tool") return [`     ${message.name ?? message.tool_name ?? "tool"}: ${firstLine(text)}`];
    const calls = (message.tool_calls ?? []).map((call) => call.function.name);
    return [
      ...(text === "" ? [] : [t("{number}. Hermes: {text}", { number: ++number, text })]),
      ...(calls.length > 0 ? [`     [${calls.join(", ")}]`] : []),
    ];
  });
}

const save: CommandDefinition = {
  name: "save",
  description: "save this conversation as a JSON file",
  category: "Session",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { sessionId } = ctx.conversation.agent;
    const session = await ctx.store.get(sessionId);
    if (!session || session.messageCount === 0) return ctx.say("No messages yet.");
    const folder = join(ctx.home.paths.sessionsDir, "saved");
    const path = join(folder, `${sessionId}_${Math.floor(ctx.now())}.json`);
    const content = {
      model: ctx.conversation.target.model,
      session_id: sessionId,
      session_start: new Date(session.startedAt * 1000).toISOString(),
      messages: (await messagesOf(ctx)).map(({ id: _, ...message }) => message),
    };
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    ctx.say(`Saved to ${ctx.home.display(path)}`);
  },
};

const copy: CommandDefinition = {
  name: "copy",
  description: "copy the last answer; 2 copies the one before",
  category: "Info",
  availability: "cli",
  argsHint: "[N]",
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const back = args === "" ? 1 : Number(args);
    if (!Number.isInteger(back) || back < 1) return ctx.warn(`/copy takes a number, not "${args}".`);
    const answers = (await messagesOf(ctx)).filter((one) => one.role === "assistant" && textOf(one.content).trim());
    const text = textOf(answers.at(-back)?.content ?? null);
    if (text === "")
      return ctx.say(back === 1 ? "No answer to copy yet." : `There are only ${answers.length} answers.`);
    const how = await ctx.terminal?.copy(text);
    ctx.say(`Copied ${[...text].length} characters ${how ?? ""}.`);
  },
};

const shorten = (text: string) =>
  [...text].length > SHOWN_CHARS ? `${[...text].slice(0, SHOWN_CHARS).join("")}...` : text;
const firstLine = (text: string) => [...(text.split("\n")[0] ?? "")].slice(0, 100).join("");

export const TRANSCRIPT_COMMANDS: readonly CommandDefinition[] = [history, save, copy];
