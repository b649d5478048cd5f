// Commands that change how the screen looks.
import type { CommandContext, CommandDefinition, SkinPort } from "./context.ts";

const statusbar: CommandDefinition = {
  name: "statusbar",
  aliases: ["sb"],
  description: "show or hide the status line",
  category: "Configuration",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    if (ctx.terminal)
      ctx.say(ctx.terminal.toggleStatusLine() ? "The status line is shown." : "The status line is hidden.");
  },
};

const redraw: CommandDefinition = {
  name: "redraw",
  description: "redraw the screen",
  category: "Session",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.terminal?.redraw();
  },
};

const skin: CommandDefinition = {
  name: "skin",
  aliases: ["theme"],
  description: "list skins or switch to one",
  category: "Configuration",
  availability: "cli",
  argsHint: "[name]",
  busyPolicy: "dispatch",
  async values(typed, { skins }) {
    const all = (await skins?.all()) ?? [];
    return { replaces: typed, values: all.map(({ name, description }) => ({ value: name, about: description })) };
  },
  async run(args, ctx) {
    const skins = ctx.terminal?.skins;
    if (!skins) return ctx.warn("Skins are not available here: they belong to the full screen.");
    const name = args.trim() === "" ? await pickSkin(ctx, skins) : args.trim();
    if (name === null) return;
    const problem = await skins.wear(name);
    if (problem === null) ctx.say(`Skin: ${name}. Saved as display.skin.`);
    else ctx.warn(`${problem} Still using ${skins.present}.`);
  },
};

async function pickSkin(ctx: CommandContext, skins: SkinPort): Promise<string | null> {
  const all = await skins.all();
  return ctx.pick(
    "Skin",
    all.map(({ name, description }) => ({
      label: name,
      hint: description,
      value: name,
      current: name === skins.present,
    })),
    {
      selected: Math.max(
        0,
        all.findIndex(({ name }) => name === skins.present),
      ),
    },
  );
}

export const LOOK_COMMANDS: readonly CommandDefinition[] = [redraw, statusbar, skin];
