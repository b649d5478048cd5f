// The end of a conversation on the screen: stored, closed, and told how to come back to it.
import type { OpenAgent } from "../../agent/opened.ts";
import { exitSummary } from "./exit-summary.ts";

export interface FarewellFacts {
  readonly profile: string;
  readonly seconds: number;
  /** It was held in memory only. */
  readonly lost: boolean;
}

/** Closes the conversation and returns what is left on the terminal. */
export async function farewell(conversation: OpenAgent, facts: FarewellFacts): Promise<string> {
  const { store, agent } = conversation;
  const session = await store.get(agent.sessionId);
  await conversation.close("cli_close");
  if (!session || session.messageCount === 0) return "Goodbye.\n";
  const messages = await store.load(session.id);
  const summary = exitSummary({
    ...facts,
    sessionId: session.id,
    title: session.title,
    messages: messages.length,
    userMessages: messages.filter((message) => message.role === "user").length,
    toolCalls: session.toolCallCount,
  });
  return `\n${summary}\n`;
}
