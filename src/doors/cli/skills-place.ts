import type { SkillsPlace } from "../../skills/roots.ts";
import type { CliContext } from "./context.ts";

/** The skills of the home this command was called for. */
export async function placeOf(ctx: CliContext): Promise<SkillsPlace> {
  const { skillsPlace } = await import("../../skills/open.ts");
  return skillsPlace({ home: ctx.home, clock: ctx.clock });
}
