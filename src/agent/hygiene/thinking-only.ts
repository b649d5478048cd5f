import type { AssistantMessage, Message } from "../../llm/messages.ts";
import { stripThinkBlocks } from "../../llm/scrub.ts";
import { hasReasoning } from "../repair.ts";
import { joinUsers } from "./repair-sequence.ts";

/** An answer that was thought but never said is not sent again; users that become neighbours are merged. */
export function dropThinkingOnlyAndMergeUsers(messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter((message) => message.role !== "assistant" || !isThinkingOnly(message));
  return joinUsers(kept.length === messages.length ? messages : kept);
}

function isThinkingOnly(message: AssistantMessage): boolean {
  if ((message.tool_calls ?? []).length > 0) return false;
  if ((message.codex_reasoning_items ?? message.codex_message_items ?? []).length > 0) return false;
  return stripThinkBlocks(message.content ?? "").trim() === "" && hasReasoning(message);
}
