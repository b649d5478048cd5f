import { asList, asRecord, asText, isRecord, type Json } from "../../../kit/json.ts";
import { FreshCallIds } from "../../call-ids.ts";
import type { FinishReason, Message, ToolCall } from "../../messages.ts";
import { normalizeUsage } from "../../usage.ts";
import type { ModelError, ModelEvent } from "../../wire.ts";
import type { Assembler } from "../drive.ts";
import { closingEvents, cutOff, finishCalls, type RawCall } from "../incoming.ts";
import { failureFrom, type ServerEvent, WireFailure } from "../transport.ts";

const ERROR_STATUS: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

type GrowingBlock = Record<string, unknown> & { type?: unknown };

export class AnthropicAssembler implements Assembler {
  finished = false;
  readonly #ids: FreshCallIds;
  readonly #blocks = new Map<number, GrowingBlock>();
  #stop: string | null = null;
  #usage: Record<string, unknown> = {};

  constructor(history: readonly Message[] = []) {
    this.#ids = new FreshCallIds(history);
  }

  push({ data }: ServerEvent): readonly ModelEvent[] {
    const event = asRecord(data);
    switch (event.type) {
      case "message_start":
        this.#addUsage(asRecord(event.message).usage);
        return [];
      case "content_block_start":
        return this.#open(Number(event.index), asRecord(event.content_block));
      case "content_block_delta":
        return this.#grow(Number(event.index), asRecord(event.delta));
      case "message_delta":
        this.#addUsage(event.usage);
        this.#stop = asText(asRecord(event.delta).stop_reason) || this.#stop;
        return [];
      case "message_stop":
        this.finished = true;
        return [];
      case "error":
        throw errorOf(event);
      default:
        return [];
    }
  }

  whole(body: unknown): readonly ModelEvent[] {
    const answer = asRecord(body);
    if (answer.type === "error" || answer.error) throw errorOf(answer);
    if (!Array.isArray(answer.content))
      throw failureFrom(body, { code: "bad_answer", fallback: "The server's answer has no content." });
    this.#addUsage(answer.usage);
    this.#stop = asText(answer.stop_reason) || "end_turn";
    return answer.content.map(asRecord).flatMap((block, index) => {
      const isCall = block.type === "tool_use";
      return this.#open(index, isCall ? { ...block, input: JSON.stringify(block.input ?? {}) } : block);
    });
  }

  end(): readonly ModelEvent[] {
    if (this.#stop === null) throw cutOff(this.#blocks.size > 0);
    const answer = fromAnthropicResponse({ content: this.#content(), stop_reason: this.#stop });
    if (!answer.valid)
      throw new WireFailure({
        message: `The model answered with nothing (stop reason ${this.#stop}).`,
        code: "invalid_response",
      });
    return this.#finish(answer);
  }

  usageSoFar(): readonly ModelEvent[] {
    if (Object.keys(this.#usage).length === 0) return [];
    return [{ type: "usage", usage: normalizeUsage(this.#usage, { apiMode: "anthropic_messages" }) }];
  }

  get answered(): boolean {
    return this.finished;
  }

  partial(): ModelError["partial"] | undefined {
    if (this.#blocks.size === 0) return undefined;
    const { content, toolCalls } = fromAnthropicResponse({ content: this.#content() });
    return { text: content ?? "", pendingTools: toolCalls.map((call) => call.name) };
  }

  #open(index: number, start: Json): readonly ModelEvent[] {
    const block: GrowingBlock = { ...start };
    const type = asText(block.type);
    const before = [...this.#blocks.values()].some((other) => other.type === type && asText(other[type]) !== "");
    if (type === "tool_use" && typeof block.input !== "string") block.input = "";
    this.#blocks.set(index, block);
    if (type === "tool_use") return [{ type: "tool_pending", name: asText(block.name) }];
    if (type !== "text" && type !== "thinking") return [];
    // Blocks of one kind are joined in the message; what is shown as it comes is joined the same way.
    const joint = before ? (type === "text" ? "\n" : "\n\n") : "";
    const first = asText(block[type]);
    return joint + first === "" ? [] : [{ type, delta: joint + first }];
  }

  #grow(index: number, delta: Json): readonly ModelEvent[] {
    const block = this.#blocks.get(index);
    if (!block) return [];
    switch (delta.type) {
      case "text_delta":
        block.text = asText(block.text) + asText(delta.text);
        return [{ type: "text", delta: asText(delta.text) }];
      case "thinking_delta":
        block.thinking = asText(block.thinking) + asText(delta.thinking);
        return [{ type: "thinking", delta: asText(delta.thinking) }];
      case "signature_delta":
        block.signature = asText(block.signature) + asText(delta.signature);
        return [];
      case "input_json_delta":
        block.input = asText(block.input) + asText(delta.partial_json);
        return [];
      default:
        return [];
    }
  }

  #content(): readonly GrowingBlock[] {
    return [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => block);
  }

  #finish(answer: AnthropicAnswer): readonly ModelEvent[] {
    const finished = finishCalls(answer.toolCalls, this.#ids, { truncated: answer.finishReason === "length" });
    const said = {
      content: answer.content,
      ...(answer.reasoning !== null && { reasoning: answer.reasoning }),
      ...(answer.reasoningDetails && { reasoning_details: answer.reasoningDetails }),
      ...(answer.orderedBlocks && { anthropic_content_blocks: recordOrder(answer.orderedBlocks, finished.calls) }),
    };
    const finishReason = finished.cut ? "length" : answer.finishReason;
    return closingEvents(finished, finishReason, said, this.usageSoFar());
  }

  #addUsage(usage: unknown): void {
    for (const [key, value] of Object.entries(asRecord(usage))) if (value !== null) this.#usage[key] = value;
  }
}

/** Inputs are not recorded twice: the stored calls hold them, with secrets masked. */
function recordOrder(blocks: readonly Json[], calls: readonly ToolCall[]): readonly Json[] {
  let next = 0;
  return blocks.map((block) => {
    if (block.type !== "tool_use") return block;
    const call = calls[next++];
    return { type: "tool_use", id: call?.id ?? block.id, name: block.name, input: {} };
  });
}

function errorOf(event: Json): WireFailure {
  const status = ERROR_STATUS[asText(asRecord(event.error).type)];
  return failureFrom(event, { fallback: "The server reported an error inside the stream.", status });
}

// anthropic_messages: what comes back, whole or as a stream.

interface AnthropicAnswer {
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
