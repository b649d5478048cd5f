// How two neighbours of one role become one message.
import { type AssistantMessage, type ContentPart, type UserMessage, userTextToSend } from "../../llm/messages.ts";

/** Strings are joined by a blank line, a blank side is dropped; if either side is a list, both become parts. */
export function mergeUsers(first: UserMessage, second: UserMessage): UserMessage {
  const merged = { role: "user", content: joinContents(first.content, second.content) } as const;
  if (first.api_content === undefined && second.api_content === undefined) return merged;
  const sent = joinTexts(userTextToSend(first), userTextToSend(second));
  return sent === merged.content ? merged : { ...merged, api_content: sent };
}

function joinContents(
  first: string | readonly ContentPart[],
  second: string | readonly ContentPart[],
): string | readonly ContentPart[] {
  if (typeof first === "string" && typeof second === "string") return joinTexts(first, second);
  return [...partsOf(first), ...partsOf(second)];
}

function joinTexts(first: string, second: string): string {
  if (first.trim() === "") return second;
  if (second.trim() === "") return first;
  return `${first}\n\n${second}`;
}

function partsOf(content: string | readonly ContentPart[]): readonly ContentPart[] {
  if (typeof content !== "string") return content;
  return content.trim() === "" ? [] : [{ type: "text", text: content }];
}

/** Calls in order, texts on lines of their own, the first reasoning that is there. */
export function mergeAssistants(first: AssistantMessage, second: AssistantMessage): AssistantMessage {
  const texts = [first.content, second.content].flatMap((text) => text?.trim() || []);
  const calls = [...(first.tool_calls ?? []), ...(second.tool_calls ?? [])];
  const reasoning = first.reasoning ?? second.reasoning;
  const echo = first.reasoning_content ?? second.reasoning_content;
  const details = first.reasoning_details ?? second.reasoning_details;
  const finish = second.finish_reason ?? first.finish_reason;
  // `anthropic_content_blocks` describes one answer; of two it would be a lie.
  return {
    role: "assistant",
    content: texts.length > 0 ? texts.join("\n") : calls.length > 0 ? null : "",
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(echo === undefined ? {} : { reasoning_content: echo }),
    ...(details === undefined ? {} : { reasoning_details: details }),
    ...(finish === undefined ? {} : { finish_reason: finish }),
  };
}

/** The Responses wire replays several items as several messages: they stay apart. */
export function staysApart(message: AssistantMessage): boolean {
  return (
    message.codex_reasoning_items !== undefined ||
    message.codex_message_items !== undefined ||
    message.finish_reason === "incomplete"
  );
}
