// The items of an answer of /v1/responses: put together at its end, or told one by one while it comes.
import { randomBytes } from "node:crypto";
import type { AgentEvent, ToolCallView } from "../../agent/events.ts";
import { isRecord, parseJson } from "../../kit/json.ts";
import { type HistoryMessage, textOf } from "../../llm/messages.ts";
import { isHidden } from "./answer.ts";
import type { EventStream } from "./sse.ts";

export type Item = Readonly<Record<string, unknown>>;

const JOIN_MS = 50;
const LONG_ARGUMENT = 500;
const LONG_OUTPUT = 1000;
const SHORT_OUTPUT = 500;
const SHORTENED = ["content", "query", "pattern", "old_string", "new_string"];

const newId = (kind: "fc" | "fco" | "msg") => `${kind}_${randomBytes(12).toString("hex")}`;

export const messageItem = (text: string, id = newId("msg")): Item => ({
  ...{ id, type: "message", status: "completed", role: "assistant" },
  content: [{ type: "output_text", text, annotations: [] }],
});

/** Calls and results of the last turn, from the conversation behind it. */
export function outputOf(messages: readonly HistoryMessage[]): readonly Item[] {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  const hidden = new Set<string>();
  return turn.flatMap((message): Item[] => {
    if (message.role === "tool") {
      const { tool_call_id: id, content } = message;
      return hidden.has(id) ? [] : [{ ...outputItem(id, textOf(content)), output: textOf(content) }];
    }
    if (message.role !== "assistant") return [];
    return (message.tool_calls ?? []).flatMap(({ id, call_id, function: called }) => {
      if (!isHidden(called)) return [callItem({ id: call_id ?? id, name: called.name, args: called.arguments })];
      hidden.add(id);
      return [];
    });
  });
}

const callItem = ({ id, name, args }: { readonly id: string; readonly name: string; readonly args: string }): Item => ({
  ...{ id: newId("fc"), type: "function_call", status: "completed", name, arguments: args, call_id: id },
});

const outputItem = (callId: string, text: string): Item => ({
  ...{ id: newId("fco"), type: "function_call_output", call_id: callId },
  ...{ output: [{ type: "input_text", text }], status: "completed" },
});

/**
 * Tells a turn as it goes.
 *
 * - Events are numbered from 0. Pieces of text that come close together are told as one.
 * - `output` has every item that was told of, with long arguments and results cut: whoever read the stream has them whole.
 */
export class ResponseStream {
  readonly #out: EventStream;
  readonly #items: Item[] = [];
  readonly #calls = new Map<string, { readonly at: number; readonly item: Item }>();
  #next = 0;
  #message: { readonly at: number; readonly id: string; text: string } | null = null;
  #unsent = "";
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(out: EventStream) {
    this.#out = out;
  }

  get output(): readonly Item[] {
    return this.#items.map(shortened);
  }

  event(type: string, fields: object): Promise<void> {
    this.#writing = this.#writing.then(() => this.#out.named(type, { type, sequence_number: this.#next++, ...fields }));
    return this.#writing;
  }

  /** A piece of the answer, to be shown now. */
  text(piece: string): void {
    this.#unsent += piece;
    this.#timer ??= setTimeout(() => this.#sendText(), JOIN_MS);
  }

  /** What else happens; text is told before it. Resolves when the connection takes more. */
  async take(event: AgentEvent): Promise<void> {
    switch (event.type) {
      case "text_end":
        return this.#endMessage();
      case "tool_start":
        await this.#endMessage();
        if (!isHidden(event.call)) await this.#begin(event.call);
        return;
      case "tool_end":
        await this.#end(event.call.id, event.result);
        return;
      default:
        await this.#writing;
    }
  }

  /** Everything that is open is closed. */
  async finish(): Promise<void> {
    await this.#endMessage();
    for (const [id] of [...this.#calls]) await this.#end(id, "");
  }

  async #begin({ id: callId, name, args }: ToolCallView): Promise<void> {
    const item = callItem({ id: callId, name, args: JSON.stringify(args) });
    const at = this.#items.push(item) - 1;
    this.#calls.set(callId, { at, item });
    await this.event("response.output_item.added", { output_index: at, item: { ...item, status: "in_progress" } });
  }

  async #end(callId: string, result: string): Promise<void> {
    const call = this.#calls.get(callId);
    if (!call) return;
    this.#calls.delete(callId);
    await this.event("response.output_item.done", { output_index: call.at, item: call.item });
    const item = outputItem(callId, result);
    const at = this.#items.push(item) - 1;
    await this.event("response.output_item.added", { output_index: at, item });
    await this.event("response.output_item.done", { output_index: at, item });
  }

  #sendText(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // What parts two texts stands between them, and each is an item of its own here.
    const delta = this.#message === null ? this.#unsent.replace(/^\n\n/, "") : this.#unsent;
    this.#unsent = "";
    if (delta === "") return;
    if (this.#message === null) {
      const id = newId("msg");
      const at = this.#items.push(messageItem("", id)) - 1;
      this.#message = { at, id, text: "" };
      const item = { id, type: "message", status: "in_progress", role: "assistant", content: [] };
      void this.event("response.output_item.added", { output_index: at, item });
      const part = { type: "output_text", text: "", annotations: [] };
      void this.event("response.content_part.added", { item_id: id, output_index: at, content_index: 0, part });
    }
    this.#message.text += delta;
    const { id: item_id, at: output_index } = this.#message;
    void this.event("response.output_text.delta", { item_id, output_index, content_index: 0, delta, logprobs: [] });
  }

  async #endMessage(): Promise<void> {
    this.#sendText();
    const message = this.#message;
    if (message === null) return;
    this.#message = null;
    const { at, id, text } = message;
    const item = messageItem(text, id);
    this.#items[at] = item;
    const place = { item_id: id, output_index: at, content_index: 0 };
    void this.event("response.output_text.done", { ...place, text, logprobs: [] });
    void this.event("response.content_part.done", { ...place, part: { type: "output_text", text, annotations: [] } });
    await this.event("response.output_item.done", { output_index: at, item });
  }
}

function shortened(item: Item): Item {
  if (item.type === "function_call") return { ...item, arguments: shortArguments(String(item.arguments)) };
  const [first] = Array.isArray(item.output) ? item.output : [];
  if (!isRecord(first) || typeof first.text !== "string" || first.text.length <= LONG_OUTPUT) return item;
  return { ...item, output: [{ ...first, text: `${first.text.slice(0, SHORT_OUTPUT)}…` }] };
}

function shortArguments(text: string): string {
  const args = parseJson(text);
  if (!isRecord(args)) return text;
  const short = Object.entries(args).map(([name, value]) => {
    const isLong = SHORTENED.includes(name) && typeof value === "string" && value.length > LONG_ARGUMENT;
    return [name, isLong ? `${value.slice(0, LONG_ARGUMENT)}…` : value];
  });
  return JSON.stringify(Object.fromEntries(short));
}
