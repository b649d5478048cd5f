// Skills and bundles as they are offered beside the commands: in the completion menu, in help, and to whoever types half a name.
import type { CommandContext } from "./context.ts";
import type { CommandRegistry } from "./registry.ts";

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
  const { skillCommands } = await import("../skills/slash.ts");
  const found = await skillCommands(skills.place, { platform: ctx.platform, taken: takenNames(commands) });
  const offered = new Map<string, MenuSkill>();
  for (const [name, { description, summary }] of found.skills)
    offered.set(name, { name, description: description || summary, kind: "skill" });
  for (const [name, bundle] of found.bundles)
    offered.set(name, { name, description: bundle.description || bundle.skills.join(", "), kind: "bundle" });
  return [...offered.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Names and aliases that commands have. */
export function takenNames(commands: CommandRegistry): ReadonlySet<string> {
  return new Set(commands.all().flatMap((command) => [command.name, ...(command.aliases ?? [])]));
}

/** The block below the commands in `/help`; empty when there are none. */
export function skillHelp(skills: readonly MenuSkill[]): string {
  if (skills.length === 0) return "";
  return `${skills.length} skill command${skills.length === 1 ? "" : "s"}\n  ${skills.map(({ name }) => `/${name}`).join(" ")}`;
}
