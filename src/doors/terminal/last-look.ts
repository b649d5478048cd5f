import type { Agent } from "../../agent/agent.ts";

/** Before a conversation is left, what is worth keeping is saved; the user sees why it takes a moment. */
export async function lastLook(agent: Agent, say: (line: string) => void): Promise<void> {
  if (!agent.wantsToSave) return;
  say("Looking for something worth remembering … Ctrl+C skips it.");
  for (const line of await agent.saveMemories()) say(`  ${line}`);
}
