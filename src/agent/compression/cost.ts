// What a message costs in a request, roughly. Messages never change once they exist, so each is counted once.
import { estimateTokens } from "../../llm/catalogue/estimate.ts";
import { type AssistantMessage, type ContentPart, type Message, userContentToSend } from "../../llm/messages.ts";

const PER_MESSAGE = 10;
const IMAGE_TOKENS = 1600;

const counted = new WeakMap<Message, number>();

export function messageCost(message: Message): number {
  const known = counted.get(message);
  if (known !== undefined) return known;
  const cost = PER_MESSAGE + contentCost(sentContent(message)) + (message.role === "assistant" ? extrasOf(message) : 0);
  counted.set(message, cost);
  return cost;
}

export function messagesCost(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + messageCost(message), 0);
}

/** What a request carries of the message: the text it was sent with, where that differs from what is stored. */
export function sentContent(message: Message): string | readonly ContentPart[] | null {
  if (message.role === "user") return userContentToSend(message);
  return ("api_content" in message ? message.api_content : undefined) ?? message.content;
}

function contentCost(content: string | readonly ContentPart[] | null): number {
  if (content === null) return 0;
  if (typeof content === "string") return estimateTokens(content);
  return content.reduce((sum, part) => sum + (part.type === "text" ? estimateTokens(part.text) : IMAGE_TOKENS), 0);
}

/** Calls, and the state some providers want back. */
function extrasOf(message: AssistantMessage): number {
  const calls = message.tool_calls ? estimateTokens(JSON.stringify(message.tool_calls)) : 0;
  const replayed = [
    message.reasoning_content,
    message.reasoning_details,
    message.anthropic_content_blocks,
    message.codex_reasoning_items,
    message.codex_message_items,
  ];
  return replayed.reduce<number>((sum, item) => sum + (item === undefined ? 0 : estimateTokens(asText(item))), calls);
}

const asText = (item: unknown) => (typeof item === "string" ? item : JSON.stringify(item));
