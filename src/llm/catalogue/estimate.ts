// Rough token counts, for deciding before a request. Real numbers from the provider win as soon as they are known.
import { type Message, userContentToSend } from "../messages.ts";
import type { ToolDefinition } from "../wire.ts";

// Code points of these blocks are about one token each; everything else about four to a token.
const WIDE = /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g;
const IMAGE_TOKENS = 1500;

export function estimateTokens(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return wide + Math.ceil((codePoints(text) - wide) / 4);
}

/** System text, messages with their calls and echoed reasoning, and tool schemas. */
export function estimateRequest(messages: readonly Message[], tools: readonly ToolDefinition[]): number {
  const tooling = tools.length > 0 ? estimateTokens(JSON.stringify(tools)) : 0;
  return messages.reduce((sum, message) => sum + estimateMessage(message), tooling);
}

function estimateMessage(message: Message): number {
  let tokens = 0;
  const content =
    message.role === "user"
      ? userContentToSend(message)
      : ("api_content" in message && message.api_content) || message.content;
  if (typeof content === "string") tokens += estimateTokens(content);
  else for (const part of content ?? []) tokens += part.type === "text" ? estimateTokens(part.text) : IMAGE_TOKENS;
  if (message.role !== "assistant") return tokens;
  if (message.tool_calls) tokens += estimateTokens(JSON.stringify(message.tool_calls));
  return tokens + estimateTokens(message.reasoning_content ?? "");
}

function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--;
      index++;
    }
  }
  return count;
}
