// The skills of one conversation, and what they may use of it.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { UserError } from "../kit/errors.ts";
import type { Environment } from "../sandbox/environment.ts";
import { type AgentSkills, openSkills, syncOnStart } from "../skills/open.ts";
import type { OpenRequest } from "./open-request.ts";

export async function openAgentSkills(
  home: OpenHome,
  clock: Clock,
  environment?: Environment,
  plugins?: ReadonlyMap<string, readonly string[]>,
): Promise<AgentSkills> {
  const skills = openSkills({
    home,
    clock,
    ...(plugins && plugins.size > 0 ? { plugins } : {}),
    async inlineShell(command, options) {
      const { inlineShell } = await import("../skills/inline-shell.ts");
      return inlineShell(home, environment)(command, options);
    },
  });
  try {
    await syncOnStart(skills.place);
  } catch (error) {
    home.log.warn("the skills that come with the program could not be copied into the home", error);
  }
  return skills;
}

/** The text of the skills a conversation begins with. Throws for one that cannot be loaded, unless the request does without. */
export async function preloadFor(
  { skills: names = [], platform, withoutMissingSkills }: OpenRequest,
  skills: AgentSkills,
  sessionId: string,
): Promise<{ readonly text: string; readonly note: string | null } | null> {
  if (names.length === 0) return null;
  const { preloadSkills } = await import("../skills/expand.ts");
  const { text, missing } = await preloadSkills(names, skills.place, {
    platform,
    sessionId,
    inlineShell: skills.inlineShell,
  });
  if (missing.length === 0) return { text, note: null };
  const note = `No such skill: ${missing.join(", ")} (unknown, switched off, or not for this system). "hermes skills list" shows the skills there are.`;
  if (!withoutMissingSkills) throw new UserError(note);
  return { text, note };
}
