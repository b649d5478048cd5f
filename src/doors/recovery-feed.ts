// What went wrong and was got over, for doors that print lines.
import type { AgentEvent } from "../agent/events.ts";

/** One line for a step of recovery or a shortened conversation; null for everything else. Warnings are the door's own. */
export function recoveryLine(event: AgentEvent): string | null {
  if (event.type === "compressed") return `🗜️ context compressed: ${event.before} → ${event.after} tokens`;
  return event.type === "status" && event.kind !== "warn" && event.recovery ? `↻ ${event.message}` : null;
}
