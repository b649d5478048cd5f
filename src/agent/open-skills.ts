// The skills of one conversation, and what they may use of it.
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import { type AgentSkills, openSkills } from "../skills/open.ts";

export function openAgentSkills(home: OpenHome, clock: Clock): AgentSkills {
  return openSkills({
    home,
    clock,
    async inlineShell(command, options) {
      const { bashSnippets } = await import("../skills/preprocess.ts");
      const { childEnvironment } = await import("../sandbox/child-env.ts");
      return bashSnippets(childEnvironment(home.environment()))(command, options);
    },
  });
}
