// chat_completions: what comes back, from chunks or whole.

import { asList, asRecord, asText, isRecord, type Json } from "../../../kit/moved-json.ts";
import { FreshCallIds } from "../../call-ids.ts";
import type { FinishReason, Message, ToolCall } from "../../messages.ts";
import { normalizeUsage, type Usage } from "../../usage.ts";
import type { ModelError, ModelEvent } from "../../wire.ts";
import { cutOff } from "../cut-off.ts";
import type { Assembler } from "../drive.ts";
import { failureFrom, WireFailure } from "../failure.ts";
import { closingEvents, type FinishedCalls } from "../incoming.ts";
import type { ServerEvent } from "../transport.ts";
import { mergeReasoningDetails } from "./reasoning-details.ts";
import { ToolSlots } from "./tool-slots.ts";

export interface AssembledChat {
  readonly content: string | null;
  readonly finishReason: FinishReason;
  readonly toolCalls: readonly ToolCall[];
  readonly reasoning: string | null;
  readonly usage: Usage | null;
}

export interface ChatCallbacks {
  onText?(delta: string): void;
  onToolGen?(name: string): void;
  onReasoning?(delta: string): void;
}

/** Reads a whole chunk stream. A stream that ends without `finish_reason` was cut: `length`. */
export async function assembleChatStream(
  chunks: AsyncIterable<unknown>,
  callbacks: ChatCallbacks = {},
): Promise<AssembledChat> {
  const assembler = new ChatAssembler({ provider: "" });
  for await (const data of chunks) {
    for (const event of assembler.push({ data })) {
      if (event.type === "text") callbacks.onText?.(event.delta);
      if (event.type === "tool_pending") callbacks.onToolGen?.(event.name);
      if (event.type === "thinking") callbacks.onReasoning?.(event.delta);
    }
  }
  return assembler.result();
}

export class ChatAssembler implements Assembler {
  finished = false;
  readonly #provider: string;
  readonly #ids: FreshCallIds;
  readonly #tools = new ToolSlots();
  #text = "";
  #refusal = "";
  #reasoning = "";
  #echo: string | null = null;
  #details: Json[] = [];
  #finish: FinishReason | null = null;
  #usage: Usage | null = null;

  constructor({ provider, history }: { readonly provider: string; readonly history?: readonly Message[] }) {
    this.#provider = provider;
    this.#ids = new FreshCallIds(history);
  }

  push({ data }: ServerEvent): readonly ModelEvent[] {
    const chunk = asRecord(data);
    if (chunk.error) throw failureFrom(chunk, { fallback: "The server reported an error inside the stream." });
    if (isRecord(chunk.usage)) {
      this.#usage = normalizeUsage(chunk.usage, { provider: this.#provider, apiMode: "chat_completions" });
      // Behind the finish reason the count is the last thing to come: not every server sends an end marker or closes.
      this.finished = this.answered;
    }
    const choice = asRecord(asList(chunk.choices)[0]);
    const events = this.#take(asRecord(choice.delta ?? choice.message));
    this.#finish = finishReason(choice.finish_reason) ?? this.#finish;
    return events;
  }

  whole(body: unknown): readonly ModelEvent[] {
    const answer = asRecord(body);
    if (!answer.error && asList(answer.choices).length === 0)
      throw failureFrom(body, { code: "bad_answer", fallback: "The server's answer has no choices." });
    const events = this.push({ data: body });
    // Without a stream there is no way to lose the end of it.
    this.#finish ??= "stop";
    return events;
  }

  end(): readonly ModelEvent[] {
    if (this.#finish === null) throw cutOff(this.#sawAnything);
    const finished = this.#finishCalls();
    const said = {
      content: this.#text,
      ...(this.#reasoning !== "" && { reasoning: this.#reasoning }),
      ...(this.#echo !== null && { reasoning_content: this.#echo }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
    };
    return closingEvents(finished, this.#finishReason(finished), said, this.usageSoFar());
  }

  result(): AssembledChat {
    const finished = this.#finishCalls();
    return {
      content: this.#text || (finished.calls.length > 0 ? null : ""),
      finishReason: this.#finishReason(finished),
      toolCalls: finished.calls,
      reasoning: this.#reasoning || null,
      usage: this.#usage,
    };
  }

  usageSoFar(): readonly ModelEvent[] {
    return this.#usage ? [{ type: "usage", usage: this.#usage }] : [];
  }

  get answered(): boolean {
    return this.#finish !== null;
  }

  partial(): ModelError["partial"] | undefined {
    return this.#sawAnything ? { text: this.#text, pendingTools: this.#tools.names } : undefined;
  }

  get #sawAnything(): boolean {
    return this.#text !== "" || this.#reasoning !== "" || this.#tools.count > 0;
  }

  #take(delta: Json): readonly ModelEvent[] {
    const events: ModelEvent[] = [];
    const reasoning = flatten(delta.reasoning_content) || flatten(delta.reasoning);
    if (typeof delta.reasoning_content === "string") this.#echo = (this.#echo ?? "") + delta.reasoning_content;
    if (reasoning !== "") {
      this.#reasoning += reasoning;
      events.push({ type: "thinking", delta: reasoning });
    }
    this.#details = mergeReasoningDetails(this.#details, asList(delta.reasoning_details));
    const text = flatten(delta.content);
    const refusal = flatten(delta.refusal);
    this.#text += text + refusal;
    this.#refusal += refusal;
    // Text after the first call belongs to the message, but is no longer shown as it comes.
    if (text + refusal !== "" && this.#tools.count === 0) events.push({ type: "text", delta: text + refusal });
    const legacy = isRecord(delta.function_call) ? [{ index: 0, function: delta.function_call }] : [];
    for (const piece of [...asList(delta.tool_calls), ...legacy]) {
      const name = this.#tools.add(asRecord(piece));
      if (name !== null) events.push({ type: "tool_pending", name });
    }
    return events;
  }

  #finishCalls(): FinishedCalls {
    return this.#tools.finish(this.#ids, { truncated: this.#finish === null || this.#finish === "length" });
  }

  #finishReason({ calls, cut }: FinishedCalls): FinishReason {
    if (this.#finish === null || cut) return "length";
    if (this.#refusal !== "") return "content_filter";
    // Some servers say "stop" although they call tools, or announce calls that never come.
    if (calls.length > 0 && this.#finish === "stop") return "tool_calls";
    return calls.length === 0 && this.#finish === "tool_calls" ? "stop" : this.#finish;
  }
}

function finishReason(raw: unknown): FinishReason | null {
  const word = asText(raw);
  switch (word) {
    case "":
      return null;
    case "tool_calls":
    case "function_call":
      return "tool_calls";
    case "length":
    case "max_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    case "error":
      throw new WireFailure({
        message: "The provider stopped the answer because of an error.",
        code: "provider_error",
      });
    default:
      return "stop";
  }
}

/** Text, whether it came as a string, as a list of parts or as one part. */
function flatten(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(flatten).join("");
  const part = asRecord(content);
  return asText(part.text) || asText(part.content);
}
