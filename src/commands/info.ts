// Commands that tell something about the program and the folder.
import { versionLine } from "../home/product.ts";
import type { CommandDefinition } from "./definition.ts";
import { runLine } from "./run-line.ts";

const help: CommandDefinition = {
  name: "help",
  description: "list the commands",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const { skillHelp } = await import("./skill-menu.ts");
    const skills = skillHelp(await ctx.skillCommands());
    ctx.say([ctx.commands(), ...(skills === "" ? [] : [skills])].join("\n\n"));
  },
};

const profile: CommandDefinition = {
  name: "profile",
  description: "which profile and home this is",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(`Profile ${ctx.home.paths.profile}, home ${ctx.home.display(ctx.home.paths.dir)}`);
  },
};

const version: CommandDefinition = {
  name: "version",
  aliases: ["v"],
  description: "version of the program",
  category: "Info",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.say(versionLine());
  },
};

const diff: CommandDefinition = {
  name: "diff",
  description: "what changed in this folder since the last commit",
  category: "Info",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    const git = (args: string) => runLine(`git --no-pager ${args}`, ctx);
    const changes = await git("diff --no-color --no-ext-diff HEAD");
    if (changes.code !== 0) return ctx.warn(changes.errors.split("\n")[0] || "git could not be run here.");
    const fresh = (await git("ls-files --others --exclude-standard")).output;
    const parts = [changes.output.trimEnd(), fresh.trim() === "" ? "" : `New files:\n${fresh.trimEnd()}`];
    ctx.say(parts.filter((part) => part !== "").join("\n\n") || "Nothing changed.");
  },
};

const redraw: CommandDefinition = {
  name: "redraw",
  description: "draw the screen again",
  category: "Session",
  availability: "cli",
  busyPolicy: "dispatch",
  async run(_args, ctx) {
    ctx.terminal?.redraw();
  },
};

export const INFO_COMMANDS: readonly CommandDefinition[] = [help, profile, version, diff, redraw];
