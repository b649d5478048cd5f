// Where a request may have ended, or will: the places worth a marker, because the next request looks for them again.
import { contentToSend, type OutgoingMessage } from "../cache-control.ts";

/**
 * Indexes, ascending: the last result of every finished run of calls, answers in words, and the newest user message. An answer that
 * calls tools is none: what it began ends with its results.
 */
export function transactionEnds(messages: readonly OutgoingMessage[]): readonly number[] {
  const newestUser = messages.findLastIndex((message) => message.role === "user");
  return messages.flatMap((message, index) => {
    switch (message.role) {
      case "tool":
        return messages[index + 1]?.role === "tool" || !isFinished(messages, index) ? [] : [index];
      case "assistant":
        return (message.tool_calls?.length ?? 0) === 0 && hasText(message) ? [index] : [];
      case "user":
        return index === newestUser ? [index] : [];
      default:
        return [];
    }
  });
}

/** As many results as the answer before them has calls. */
function isFinished(messages: readonly OutgoingMessage[], last: number): boolean {
  const opener = messages.findLastIndex((message, index) => index < last && message.role !== "tool");
  const message = messages[opener];
  return message?.role === "assistant" && (message.tool_calls?.length ?? 0) <= last - opener;
}

function hasText(message: OutgoingMessage): boolean {
  const content = contentToSend(message);
  if (typeof content === "string") return content.trim() !== "";
  return (content ?? []).some((part) => part.type !== "text" || part.text.trim() !== "");
}
