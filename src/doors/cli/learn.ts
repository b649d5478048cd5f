// `--learn`: a run that ends after one turn stays until what is due has been learned.
import type { OpenAgent } from "../../agent/opened.ts";

/** Waits for the review that follows the turn, and for the last look before the end. One line for each thing that was saved. */
export async function learn({ agent }: OpenAgent, say: (line: string) => unknown): Promise<void> {
  void listen(agent, say); // until the conversation is closed
  await agent.settled();
  for (const line of await agent.saveMemories()) say(line);
}

async function listen({ notices }: OpenAgent["agent"], say: (line: string) => unknown): Promise<void> {
  for await (const event of notices) if (event.type === "notice" && event.kind === "review") say(event.text);
}

/** What a signal does: it stops the turn; behind the turn it stops the learning. */
export function stopRun(conversation: OpenAgent): void {
  const { agent } = conversation;
  agent.interrupt("interrupted by a signal");
  if (agent.lastOutcome) void conversation.close("cli_close");
}
