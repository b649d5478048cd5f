import type { Conversation } from "./conversation.ts";

export type FlushReason = "compression" | "closing";

const LEAST_MESSAGES = { compression: 3, closing: 4 } as const;

/** Whether a flush would have something to do. Before a compression there is no minimum of turns, but a minimum of 0 is never. */
export function isFlushDue(conversation: Conversation, why: FlushReason): boolean {
  const { tools, ports, session } = conversation.options;
  if (!ports.memory || !tools.names.has("memory") || (session.origin ?? "foreground") !== "foreground") return false;
  if (conversation.transcript.messages.length < LEAST_MESSAGES[why]) return false;
  const least = ports.config().memory.flush_min_turns;
  if (least === 0) return false;
  const { userTurns, userTurnsHere } = conversation.nudges;
  return why === "compression" || (userTurnsHere > 0 && userTurns >= least);
}
