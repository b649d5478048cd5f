// Skills as commands: `/name text` for every skill whose name is free, `/skill name text` for all of them.
import { plural } from "../kit/formats.ts";
import type { Expansion } from "../skills/expand.ts";
import type { CommandContext, CommandDefinition } from "./context.ts";
import type { CommandRegistry } from "./registry.ts";

/** A line that begins with skills or a bundle: what was typed is stored, the model gets the skills' text with it. False = it is neither. */
export async function invokeSkills(text: string, ctx: CommandContext, commands: CommandRegistry): Promise<boolean> {
  const { skills, agent } = ctx.conversation;
  if (!skills) return false;
  const { expandTyped } = await import("../skills/expand.ts");
  const { inlineShell, variables } = skills;
  const shown = { platform: ctx.platform, sessionId: agent.sessionId, inlineShell, variables };
  const options = { ...shown, taken: takenNames(commands) };
  const expansion = await expandTyped(text, skills.context, options);
  if (expansion === null) return false;
  say(expansion, ctx);
  return true;
}

/** The commands, then every skill and bundle: an abbreviation may mean any of them. */
export async function withSkillCommands(ctx: CommandContext, commands: CommandRegistry): Promise<CommandRegistry> {
  const offered = await menuSkills(ctx, commands);
  const asCommand = ({ name, description }: (typeof offered)[number]): CommandDefinition => ({
    name,
    description,
    category: "Tools & Skills",
    busyPolicy: "dispatch",
    run: async (args) => void (await invokeSkills(`/${name} ${args}`.trim(), ctx, commands)),
  });
  return commands.with(offered.map(asCommand));
}

function say(expansion: Expansion, ctx: CommandContext): void {
  if (expansion.type === "failed") return ctx.warn(expansion.error);
  for (const reason of expansion.left) ctx.warn(reason);
  ctx.queue(expansion.apiContent, { shownAs: expansion.display });
}

const skill: CommandDefinition = {
  name: "skill",
  description: "run a skill, even if a command has the same name",
  category: "Tools & Skills",
  argsHint: "<name> [text]",
  async values(typed, { skillCommands }) {
    if (/\s/.test(typed)) return null;
    const offered = (await skillCommands()).filter(({ kind }) => kind === "skill");
    return { replaces: typed, values: offered.map(({ name, description }) => ({ value: name, about: description })) };
  },
  async run(args, ctx) {
    const { skills, agent } = ctx.conversation;
    if (!skills) return ctx.warn("Skills are disabled in this conversation.");
    const [, name = "", text = ""] = /^(\S*)\s*([\s\S]*)$/.exec(args) ?? [];
    if (name === "") return ctx.warn("/skill needs a name: /skill <name> [text]. hermes skills list shows them.");
    const { expandSkillCommand } = await import("../skills/expand.ts");
    const { inlineShell, variables } = skills;
    const options = { platform: ctx.platform, sessionId: agent.sessionId, inlineShell, variables };
    say(await expandSkillCommand(name, text, skills.context, options), ctx);
  },
};

export const SKILL_COMMANDS: readonly CommandDefinition[] = [skill];

// Skills and bundles in the completion menu, in help, and for abbreviated names.

export interface MenuSkill {
  /** What is typed behind the slash. */
  readonly name: string;
  readonly description: string;
  readonly kind: "skill" | "bundle";
}

/** Sorted; a bundle hides a skill of its name. Empty where skills are switched off. */
export async function menuSkills(
  ctx: Pick<CommandContext, "conversation" | "platform">,
  commands: CommandRegistry,
): Promise<readonly MenuSkill[]> {
  const { skills } = ctx.conversation;
  if (!skills) return [];
  const { skillCommands } = await import("../skills/expand.ts");
  const found = await skillCommands(skills.context, { platform: ctx.platform, taken: takenNames(commands) });
  const offered = new Map<string, MenuSkill>();
  for (const [name, { description, summary }] of found.skills)
    offered.set(name, { name, description: description || summary, kind: "skill" });
  for (const [name, bundle] of found.bundles)
    offered.set(name, { name, description: bundle.description || bundle.skills.join(", "), kind: "bundle" });
  return [...offered.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Names and aliases that commands have. */
function takenNames(commands: CommandRegistry): ReadonlySet<string> {
  return new Set(commands.all().flatMap((command) => [command.name, ...(command.aliases ?? [])]));
}

/** The block below the commands in `/help`; empty when there are none. */
export function skillHelp(skills: readonly MenuSkill[]): string {
  if (skills.length === 0) return "";
  return `${plural(skills.length, "skill command")}\n  ${skills.map(({ name }) => `/${name}`).join(" ")}`;
}
