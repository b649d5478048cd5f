// Commands that make a conversation shorter, and say what must not be lost.

import type { CompressReport } from "../agent/compression/shortener.ts";
import { t } from "../home/language/words.ts";
import { tokenCount } from "../kit/formats.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";

const DEFAULT_TURNS = 2;
const MAX_SHOWN = 50;

const compress: CommandDefinition = {
  name: "compress",
  aliases: ["compact"],
  description: "replace the older part of this conversation with a summary",
  category: "Session",
  editor: true,
  argsHint: "[focus] | here [N] | --preview",
  keepsText: true,
  subcommands: ["here", "--preview"],
  async run(args, ctx) {
    const request = parseOptions(args);
    if (typeof request === "string") return ctx.warn(request);
    if (!request.preview) ctx.say("Compressing the conversation ...");
    const report = await ctx.conversation.agent.compress(request);
    sayReport(report, ctx);
  },
};

interface CompressOptions {
  readonly focus?: string;
  readonly here?: number;
  readonly preview?: boolean;
}

/** A string is an error message. */
function parseOptions(args: string): CompressOptions | string {
  const words = args.split(/\s+/).filter((word) => word !== "");
  const preview = words.includes("--preview");
  const rest = words.filter((word) => word !== "--preview");
  const shared = preview ? { preview } : {};
  if (rest[0] !== "here") return rest.length > 0 ? { ...shared, focus: rest.join(" ") } : shared;
  const here = rest.length === 1 ? DEFAULT_TURNS : Number(rest[1]);
  if (!Number.isInteger(here) || here < 1 || rest.length > 2)
    return `/compress here takes a number of messages to keep, not "${rest.slice(1).join(" ")}".`;
  return { ...shared, here };
}

function sayReport(report: CompressReport, ctx: CommandContext): void {
  switch (report.type) {
    case "nothing":
      return ctx.say("There is too little to compress yet.");
    case "failed":
      return ctx.warn(`Not compressed: ${report.why}. The conversation is unchanged.`);
    case "interrupted":
      return ctx.say("Stopped; the conversation is unchanged.");
    case "adopted":
      return ctx.say("Another process has compressed this conversation; continuing from there.");
    case "preview": {
      const rest = report.before.tokens - report.kept.tokens - report.dropped.tokens;
      return ctx.say(
        [
          t("Now:      {size}", { size: size(report.before) }) +
            (rest > 0 ? t(", {count} of them for prompt and tools", { count: tokenCount(rest) }) : ""),
          t("Kept:     {size}", { size: size(report.kept) }),
          t("Dropped:  {size}, for a summary of at most {count} tokens", {
            size: size(report.dropped),
            count: tokenCount(report.summaryTokens),
          }),
          "Nothing was changed.",
        ].join("\n"),
      );
    }
    case "compressed":
      ctx.say(
        `🗜️ ${size(report.before)} → ${size(report.after)}, ${(report.ms / 1000).toFixed(1)} s. /undo reverts it until you send another message.`,
      );
      if (report.missing.length > 0) ctx.say(missingLines(report.missing));
  }
}

const size = ({ messages, tokens }: { messages: number; tokens: number }) =>
  t("{count} messages, about {tokens} tokens", { count: messages, tokens: tokenCount(tokens) });

function missingLines(missing: readonly string[]): string {
  const shown = missing.slice(0, MAX_SHOWN).map((fact) => `  ${fact}`);
  return ["Not in the summary (to keep a line: /pin <text>, /undo, then /compress again):", ...shown].join("\n");
}

const pin: CommandDefinition = {
  name: "pin",
  description: "pin lines that compression must keep verbatim",
  category: "Session",
  argsHint: "[text | remove N]",
  keepsText: true,
  subcommands: ["remove"],
  busyPolicy: "dispatch",
  async run(args, ctx) {
    const { pins } = ctx.conversation.agent;
    if (args === "remove") return ctx.warn("/pin remove needs the number of a line: /pin remove N. /pin lists them.");
    const number = /^remove\s+(\S+)$/.exec(args)?.[1];
    if (number !== undefined) {
      const removed = await pins.remove(Number(number));
      return removed === null
        ? ctx.warn(`There is no pinned line ${number}. /pin lists them.`)
        : ctx.say(`No longer pinned: ${removed}`);
    }
    const lines = args === "" ? await pins.list() : await pins.add(args);
    if (lines.length === 0)
      return ctx.say("Nothing pinned. /pin <text> keeps a line verbatim when the conversation is compressed.");
    ctx.say(lines.map((line, index) => `${index + 1}. ${line}`).join("\n"));
  },
};

/** A compression that nothing followed yet is taken back first; false when there is none. */
export async function undoCompression(ctx: CommandContext): Promise<boolean> {
  const undone = await ctx.conversation.agent.undoCompression();
  if (undone?.kind === "summary") ctx.say("↶ Compression undone; the full conversation is back.");
  if (undone?.kind === "prune") ctx.say("↶ Shortened tool results are sent in full again.");
  return undone !== null;
}

export const COMPRESSION_COMMANDS: readonly CommandDefinition[] = [compress, pin];
