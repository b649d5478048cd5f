// A Responses stream is built from its finished items and text deltas. The output inside the last event may be null; it counts when
// nothing else came.

import { asList, asRecord, asText, isRecord, type Json } from "../../../kit/json.ts";
import { FreshCallIds } from "../../call-ids.ts";
import type { Message } from "../../messages.ts";
import { normalizeUsage } from "../../usage.ts";
import type { ModelError, ModelEvent } from "../../wire.ts";
import type { Assembler } from "../drive.ts";
import { closingEvents, cutOff, finishCalls } from "../incoming.ts";
import { failureFrom, type ServerEvent, WireFailure } from "../transport.ts";
import { fromResponsesOutput, isCall, isCommentary, responseFailure, textOfItem } from "./items.ts";

export class ResponsesAssembler implements Assembler {
  finished = false;
  readonly #issuer: string | undefined;
  readonly #ids: FreshCallIds;
  readonly #open = new Map<number, Json>();
  readonly #done = new Map<number, Json>();
  readonly #thoughts = new Set<string>();
  readonly #spoken = new Set<string>();
  #text = "";
  #terminal: Json | null = null;

  constructor({ issuer, history }: { readonly issuer?: string; readonly history?: readonly Message[] }) {
    this.#issuer = issuer;
    this.#ids = new FreshCallIds(history);
  }

  push({ data }: ServerEvent): readonly ModelEvent[] {
    const event = asRecord(data);
    switch (event.type) {
      case "response.output_item.added":
        return this.#added(Number(event.output_index), asRecord(event.item));
      case "response.output_item.done":
        return this.#finishedItem(event.output_index, asRecord(event.item));
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#spoke(Number(event.output_index), asText(event.item_id), asText(event.delta));
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#thought(event);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.finished = true;
        this.#terminal = { status: event.type.slice("response.".length), ...asRecord(event.response) };
        if (event.type === "response.completed" && this.#isEmpty) return this.#takeOutput(this.#terminal);
        if (event.type === "response.failed") throw responseFailure({ ...asRecord(event.response), status: "failed" });
        return [];
      case "error":
        throw failureFrom(event, { fallback: "The server reported an error inside the stream." });
      default:
        if (event.type === undefined && event.error)
          throw failureFrom(event, { fallback: "The server reported an error." });
        return [];
    }
  }

  whole(body: unknown): readonly ModelEvent[] {
    const response = asRecord(body);
    if (isRecord(response.error) && response.status === undefined)
      throw failureFrom(body, { fallback: "The server reported an error." });
    if (!Array.isArray(response.output) && response.status !== "failed")
      throw failureFrom(body, { code: "bad_answer", fallback: "The server's answer has no output." });
    this.#terminal = { status: "completed", ...response };
    return this.#takeOutput(response);
  }

  get #isEmpty(): boolean {
    return this.#text === "" && this.#open.size === 0 && this.#done.size === 0;
  }

  #takeOutput({ output }: Json): readonly ModelEvent[] {
    return asList(output)
      .map(asRecord)
      .flatMap((item, index) => [
        ...this.#added(index, item),
        ...(item.type === "reasoning" ? thoughtsOf(item) : []),
        ...(item.type === "message" ? this.#spoke(index, asText(item.id), textOfItem(item)) : []),
        ...this.#finishedItem(index, item),
      ]);
  }

  /** What was said, in its order; throws when there is nothing at all. */
  #output(): readonly Json[] {
    const output = [...this.#done].sort(([a], [b]) => a - b).map(([, item]) => item);
    const hasText = output.some((item) => item.type === "message" && !isCommentary(item));
    if (!hasText && this.#text !== "") output.push(synthesised(this.#text));
    output.push(...this.#pendingCalls);
    if (!this.#terminal && output.length === 0)
      throw new WireFailure({ message: "The stream ended with no terminal response.", code: "empty_stream" });
    return output;
  }

  /** Calls that were begun and never finished, although the answer is over. */
  get #pendingCalls(): readonly Json[] {
    return [...this.#open.values()].filter(isCall).map((item) => ({ ...item, status: "incomplete" }));
  }

  end(): readonly ModelEvent[] {
    // Without the last event, an item that was begun and not finished is a lost connection.
    if (!this.#terminal && this.#open.size > 0) throw cutOff(true);
    const answer = fromResponsesOutput({ ...this.#terminal, output: this.#output() }, { issuer: this.#issuer });
    const raw = answer.toolCalls.map((call) => ({
      id: call.callId,
      name: call.name,
      arguments: call.arguments,
      hasCallId: true,
      extra: call.itemId ? { response_item_id: call.itemId } : undefined,
    }));
    const finished = finishCalls(raw, this.#ids, { truncated: false });
    const said = {
      content: answer.content,
      ...(answer.reasoning !== null && { reasoning: answer.reasoning }),
      ...(answer.reasoningItems.length > 0 && { codex_reasoning_items: answer.reasoningItems }),
      ...(answer.messageItems.length > 0 && { codex_message_items: answer.messageItems }),
    };
    const finishReason = finished.cut ? "length" : answer.finishReason;
    return closingEvents(finished, finishReason, said, this.usageSoFar());
  }

  usageSoFar(): readonly ModelEvent[] {
    const usage = this.#terminal?.usage;
    return isRecord(usage) ? [{ type: "usage", usage: normalizeUsage(usage, { apiMode: "codex_responses" }) }] : [];
  }

  get answered(): boolean {
    return this.finished;
  }

  partial(): ModelError["partial"] | undefined {
    const items = [...this.#open.values(), ...this.#done.values()];
    if (items.length === 0 && this.#text === "") return undefined;
    return { text: this.#text, pendingTools: items.filter(isCall).map((item) => asText(item.name)) };
  }

  #added(index: number, item: Json): readonly ModelEvent[] {
    this.#open.set(index, item);
    return isCall(item) ? [{ type: "tool_pending", name: asText(item.name) }] : [];
  }

  #finishedItem(index: unknown, item: Json): readonly ModelEvent[] {
    this.#open.delete(Number(index));
    this.#done.set(this.#placeOf(index, item), item);
    const remark = item.type === "message" && isCommentary(item) ? textOfItem(item) : "";
    return remark.trim() === "" ? [] : [{ type: "remark", text: remark }];
  }

  /** Some servers number every item 0, or none: another item at a used position is one more, the same one again is the same. */
  #placeOf(index: unknown, item: Json): number {
    const next = Math.max(-1, ...this.#done.keys()) + 1;
    if (typeof index !== "number") return next;
    const known = this.#done.get(index);
    const isSame = known === undefined || (known.id === item.id && known.call_id === item.call_id);
    return isSame ? index : next;
  }

  #spoke(index: number, id: string, delta: string): readonly ModelEvent[] {
    if (delta === "") return [];
    const item = this.#open.get(index) ?? {};
    if (isCommentary(item)) return [{ type: "thinking", delta }];
    const key = id || String(index);
    // Messages are joined by a newline in the answer, so they are joined the same way on the screen.
    const shown = this.#spoken.size > 0 && !this.#spoken.has(key) ? `\n${delta}` : delta;
    this.#spoken.add(key);
    this.#text += shown;
    return [{ type: "text", delta: shown }];
  }

  #thought(event: Json): readonly ModelEvent[] {
    const key = `${event.output_index}/${event.summary_index ?? event.content_index}`;
    const joint = this.#thoughts.size > 0 && !this.#thoughts.has(key) ? "\n\n" : "";
    this.#thoughts.add(key);
    return [{ type: "thinking", delta: joint + asText(event.delta) }];
  }
}

function thoughtsOf(item: Json): readonly ModelEvent[] {
  const text = asList(item.summary)
    .map((part) => asText(asRecord(part).text))
    .join("\n\n");
  return text === "" ? [] : [{ type: "thinking", delta: text }];
}

/** Some servers stream text without ever finishing the message it belongs to. */
function synthesised(text: string): Json {
  return {
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  };
}
