// The three skill tools reach the skills of the home through a port; this is the one place that asks for it.
import type { SkillAnswer, SkillsPort, StateKey, ToolContext } from "./context.ts";
import { toolError, toolResult } from "./dispatch.ts";

/** Counts of use are written now and then; the last ones when the agent goes. */
const used: StateKey<Set<SkillsPort>> = {
  name: "skills",
  create: () => new Set(),
  dispose: async (ports) => void (await Promise.all([...ports].map((port) => port.flush()))),
};

export async function withSkills(ctx: ToolContext, ask: (skills: SkillsPort) => Promise<SkillAnswer>): Promise<string> {
  const { skills } = ctx;
  if (!skills) return toolError("Skills are not available in this run.");
  ctx.state.of(used).add(skills);
  return toolResult(await ask(skills));
}
