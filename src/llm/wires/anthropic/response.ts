// anthropic_messages: what comes back, whole or as a stream.

import { asList, asRecord, asText, isRecord, type Json } from "../../../kit/moved-json.ts";
import type { FinishReason } from "../../messages.ts";
import type { RawCall } from "../incoming.ts";

export interface AnthropicAnswer {
  /** False: the server answered with nothing although it did not mean to stop. */
  readonly valid: boolean;
  readonly content: string | null;
  readonly reasoning: string | null;
  readonly finishReason: FinishReason;
  readonly toolCalls: readonly RawCall[];
  readonly reasoningDetails: readonly Json[] | null;
  /** Only where signed thinking and calls stand side by side: there the order must be replayed. */
  readonly orderedBlocks: readonly Json[] | null;
}

export function fromAnthropicResponse(json: unknown): AnthropicAnswer {
  const answer = asRecord(json);
  const blocks = asList(answer.content).filter(isRecord);
  const stop = asText(answer.stop_reason);
  const texts = blocks.filter((block) => block.type === "text").map((block) => asText(block.text));
  const thinking = blocks.filter((block) => block.type === "thinking" || block.type === "redacted_thinking");
  const thoughts = thinking.map((block) => asText(block.thinking)).filter((text) => text !== "");
  const uses = blocks.filter((block) => block.type === "tool_use");
  const signed = thinking.some((block) => asText(block.signature) !== "" || asText(block.data) !== "");
  return {
    valid: Array.isArray(answer.content) && (blocks.length > 0 || stop === "end_turn" || stop === "refusal"),
    content: texts.length > 0 ? texts.join("\n") : null,
    reasoning: thoughts.length > 0 ? thoughts.join("\n\n") : null,
    finishReason: finishReason(stop),
    toolCalls: uses.map((block) => ({
      id: asText(block.id),
      name: asText(block.name),
      arguments: typeof block.input === "string" ? block.input : JSON.stringify(block.input ?? {}),
    })),
    reasoningDetails: thinking.length > 0 ? thinking : null,
    orderedBlocks: signed && uses.length > 0 ? blocks : null,
  };
}

function finishReason(stop: string): FinishReason {
  switch (stop) {
    case "tool_use":
      return "tool_calls";
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}
