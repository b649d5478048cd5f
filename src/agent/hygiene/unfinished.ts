// A turn that was cut off between a call and its answer.
import type { HistoryMessage, ToolCall, ToolMessage } from "../../llm/messages.ts";

/** A history that ends in a tool result gets an answer, so that the next user message finds a closed turn. */
export function closeInterruptedToolSequence(
  messages: readonly HistoryMessage[],
  finalText?: string | null,
): readonly HistoryMessage[] {
  if (messages.at(-1)?.role !== "tool") return messages;
  return [...messages, { role: "assistant", content: finalText?.trim() || "Operation interrupted." }];
}

/** The calls of the newest assistant message that nobody answered. */
export function unansweredCalls(messages: readonly HistoryMessage[]): readonly ToolCall[] {
  const answered = new Set<string>();
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role === "tool") answered.add(message.tool_call_id);
    if (message?.role === "user") return [];
    if (message?.role !== "assistant") continue;
    return (message.tool_calls ?? []).filter(
      (call) => !answered.has(call.id) && !answered.has(call.call_id ?? call.id),
    );
  }
  return [];
}

/** A result that the runtime gives in place of the tool. */
export function stubResult(call: ToolCall, content: string): ToolMessage {
  const name = call.function.name;
  return { role: "tool", name, tool_name: name, content, tool_call_id: call.id };
}
