// Commands that change how the agent works.

import { contextSize } from "../kit/formats.ts";
import { parseModelFlags } from "../llm/providers/model-names.ts";
import type { CommandContext } from "./context.ts";
import type { CommandDefinition } from "./definition.ts";

const model: CommandDefinition = {
  name: "model",
  aliases: ["provider"],
  description: "show or switch the model",
  category: "Configuration",
  argsHint: "[model] [--provider p] [--global]",
  async run(args, ctx) {
    const [name, provider, global] = parseModelFlags(args);
    const wish = name ? { model: name, ...(provider ? { provider } : {}) } : await pickModel(ctx);
    if (wish === null) return;
    try {
      ctx.say(await ctx.conversation.switchModel({ ...wish, global }));
    } catch (error) {
      const { target } = ctx.conversation;
      ctx.warn(`${error instanceof Error ? error.message : error} Still using ${target.model} (${target.provider}).`);
    }
  },
};

async function pickModel(ctx: CommandContext): Promise<{ model: string; provider: string } | null> {
  const { target } = ctx.conversation;
  ctx.say(`Model: ${target.model} (${target.provider}), ${contextSize(target.contextLength)} tokens`);
  const known = await ctx.conversation.knownModels();
  if (known.length === 0) return null;
  return ctx.pick(
    "Switch to",
    known.map((row) => ({ label: row.model, hint: hintOf(row), value: row })),
  );
}

function hintOf({ provider, contextLength }: { provider: string; contextLength: number | null }): string {
  return contextLength === null ? provider : `${provider} · ${contextSize(contextLength)}`;
}

const yolo: CommandDefinition = {
  name: "yolo",
  description: "run dangerous commands without asking, in this conversation only",
  category: "Configuration",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.conversation.yolo = !ctx.conversation.yolo;
    ctx.say(
      ctx.conversation.yolo
        ? "YOLO is on: dangerous commands run without a question (the hardline list still holds). /yolo turns it off."
        : "YOLO is off: dangerous commands are asked about.",
    );
  },
};

export const SETTINGS_COMMANDS: readonly CommandDefinition[] = [model, yolo];
