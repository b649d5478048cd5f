import { asList, asRecord, asText, isRecord, type Json } from "../../kit/json.ts";
import { contentToSend, type OutgoingMessage } from "../cache-control.ts";
import { CallIdsOnWire, FreshCallIds } from "../call-ids.ts";
import type { AssistantMessage, FinishReason, Message, ToolCall } from "../messages.ts";
import { hostOf, isHost, joinUrl } from "../providers/hosts.ts";
import { normalizeUsage, type Usage } from "../usage.ts";
import type { ModelError, ModelEvent, ModelRequest, RenderedRequest, Target } from "../wire.ts";
import type { Assembler, Protocol } from "./drive.ts";
import { closingEvents, cutOff, type FinishedCalls, finishCalls } from "./incoming.ts";
import {
  answerFormat,
  boundedCacheKey,
  lowerCased,
  partsOf,
  prepare,
  promptCacheKey,
  reasoningFields,
  tierFields,
} from "./outgoing.ts";
import { failureFrom, type ServerEvent, WireFailure } from "./transport.ts";

export const chatProtocol: Protocol = {
  render: renderChatRequest,
  begin: ({ target, messages }) => new ChatAssembler({ provider: target.provider, history: messages }),
};

// chat_completions: what goes out. Most of the world speaks this; the differences are in the target's profile.

export function renderChatRequest(request: ModelRequest): RenderedRequest {
  const { target, tools, toolChoice, temperature } = request;
  const { profile } = target;
  const maxTokens = request.maxTokens ?? profile.defaultMaxTokens;
  const stream = request.stream !== false;
  const format = answerFormat(request);
  const body = withCacheKey(
    {
      model: target.model,
      messages: renderChatMessages(prepare(request).messages, target),
      ...(tools.length > 0 && { tools, ...(toolChoice && { tool_choice: toolChoice }) }),
      ...(maxTokens !== undefined && { [profile.maxTokensField]: maxTokens }),
      ...(temperature !== undefined && profile.reasoningStyle !== "kimi" && { temperature }),
      ...reasoningFields(request),
      // OpenRouter keeps a conversation with the provider that has its cache.
      ...(request.sessionId && isHost(target.baseUrl, "openrouter.ai") && { session_id: request.sessionId }),
      ...(format && { response_format: { type: "json_schema", json_schema: format } }),
      ...tierFields(request),
      stream,
      ...(stream && profile.streamUsage && { stream_options: { include_usage: true } }),
      ...target.extraBody,
      ...request.overrides,
    },
    request,
  );
  return { url: joinUrl(target.baseUrl, "/chat/completions"), headers: chatHeaders(target, stream), body };
}

function withCacheKey(body: Json, { target, messages, tools }: ModelRequest): Json {
  const given = asText(body.prompt_cache_key);
  if (given !== "") return { ...body, prompt_cache_key: boundedCacheKey(given) };
  const takesKey = target.profile.supportsPromptCacheKey ?? hostOf(target.baseUrl) === "api.openai.com";
  if ("prompt_cache_key" in body || !takesKey) return body;
  return { ...body, prompt_cache_key: promptCacheKey(messages, tools) };
}

function renderChatMessages(messages: readonly OutgoingMessage[], target: Target): readonly Json[] {
  const ids = new CallIdsOnWire();
  return messages.map((message) => renderMessage(message, target, idsOf(message, ids)));
}

/** The ids that the calls of a message go by on the wire, or the one that a result answers. */
function idsOf(message: OutgoingMessage, ids: CallIdsOnWire): readonly string[] {
  if (message.role === "tool") return [ids.answered(message.tool_call_id) ?? message.tool_call_id];
  if (message.role !== "assistant") return [];
  return (message.tool_calls ?? []).map((call, index) => ids.open(call, index));
}

/** What a message became for the last target it was sent to: the next request carries the same object, which is written once. */
const rendered = new WeakMap<
  OutgoingMessage,
  { readonly target: Target; readonly ids: readonly string[]; json: Json }
>();

function renderMessage(message: OutgoingMessage, target: Target, ids: readonly string[]): Json {
  const before = rendered.get(message);
  if (before?.target === target && before.ids.every((id, index) => id === ids[index])) return before.json;
  const json = asJson(message, target, ids);
  rendered.set(message, { target, ids, json });
  return json;
}

function asJson(message: OutgoingMessage, target: Target, ids: readonly string[]): Json {
  const content = renderContent(message, target);
  switch (message.role) {
    case "system":
      return { role: target.profile.developerRole ? "developer" : "system", content };
    case "user":
      return { role: "user", content };
    case "tool":
      return {
        role: "tool",
        tool_call_id: ids[0] ?? message.tool_call_id,
        ...(message.name && { name: message.name }),
        content,
      };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map((call, index) => renderCall(call, ids[index] ?? call.id));
      return {
        role: "assistant",
        content: content || (calls.length > 0 ? null : ""),
        ...(target.profile.echoReasoning && { reasoning_content: message.reasoning_content || " " }),
        ...(target.profile.reasoningStyle === "openrouter" && routedDetails(message)),
        ...(calls.length > 0 && { tool_calls: calls }),
      };
    }
  }
}

function renderContent(message: OutgoingMessage, { profile }: Target): string | readonly Json[] {
  const content = contentToSend(message);
  if (typeof content === "string" || content === null) return content ?? "";
  const parts = partsOf(message);
  // Many servers take a list from nobody but the user; a list of plain text says nothing that a string does not.
  const plain = parts.every((part) => part.type === "text" && !part.cache_control);
  if (plain && message.role !== "user" && profile.cacheLayout !== "envelope")
    return parts.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  return parts.length > 0 ? parts : "";
}

function renderCall(call: ToolCall, id: string): Json {
  return {
    id,
    type: "function",
    function: { name: call.function.name, arguments: call.function.arguments },
    ...(call.extra_content !== undefined && { extra_content: call.extra_content }),
  };
}

/** OpenRouter's own thinking records go back to it; signed blocks of other wires are none of its business. */
function routedDetails(message: Pick<AssistantMessage, "reasoning_details">): Json {
  const own = (message.reasoning_details ?? []).filter(
    (detail) => isRecord(detail) && asText(detail.type).startsWith("reasoning."),
  );
  return own.length > 0 ? { reasoning_details: own } : {};
}

function chatHeaders(target: Target, stream: boolean): Record<string, string> {
  return {
    "content-type": "application/json",
    accept: stream ? "text/event-stream" : "application/json",
    ...(target.apiKey !== "" && target.apiKey !== "no-key-required" && { authorization: `Bearer ${target.apiKey}` }),
    ...lowerCased(target.headers),
  };
}

// chat_completions: what comes back, from chunks or whole.

class ChatAssembler implements Assembler {
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
    const finished = this.#tools.finish(this.#ids, { truncated: this.#finish === "length" });
    const said = {
      content: this.#text,
      ...(this.#reasoning !== "" && { reasoning: this.#reasoning }),
      ...(this.#echo !== null && { reasoning_content: this.#echo }),
      ...(this.#details.length > 0 && { reasoning_details: this.#details }),
    };
    return closingEvents(finished, endOf(this.#finish, finished, this.#refusal), said, this.usageSoFar());
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
}

/** Some servers say "stop" although they call tools, or announce calls that never come. */
function endOf(said: FinishReason, { calls, cut }: FinishedCalls, refusal: string): FinishReason {
  if (cut) return "length";
  if (refusal !== "") return "content_filter";
  if (calls.length > 0 && said === "stop") return "tool_calls";
  return calls.length === 0 && said === "tool_calls" ? "stop" : said;
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

// Tool calls of a chat stream, collected from their pieces.

interface Slot {
  id: string;
  name: string;
  args: string;
  extra: unknown;
}

class ToolSlots {
  readonly #slots: Slot[] = [];
  readonly #byIndex = new Map<number, Slot>();

  get count(): number {
    return this.#slots.length;
  }

  get names(): readonly string[] {
    return this.#slots.map((slot) => slot.name).filter((name) => name !== "");
  }

  /** Takes one piece; answers with the name when this piece completed it. */
  add(piece: Json): string | null {
    const fn = asRecord(piece.function);
    const slot = this.#slotFor(piece.index, asText(piece.id));
    const name = asText(fn.name);
    const isNew = name !== "" && slot.name === "";
    if (name !== "") slot.name = name;
    slot.args +=
      typeof fn.arguments === "object" && fn.arguments !== null ? JSON.stringify(fn.arguments) : asText(fn.arguments);
    slot.extra = piece.extra_content ?? fn.extra_content ?? slot.extra;
    return isNew ? name : null;
  }

  finish(ids: FreshCallIds, options: { truncated: boolean }): FinishedCalls {
    const raw = this.#slots.map(({ id, name, args, extra }) => ({
      id,
      name,
      arguments: args,
      extra: extra === undefined ? undefined : { extra_content: extra },
    }));
    return finishCalls(raw, ids, options);
  }

  #slotFor(index: unknown, id: string): Slot {
    const known = typeof index === "number" ? this.#byIndex.get(index) : this.#slots.at(-1);
    // Ollama numbers every call 0: another id on a used index is another call.
    if (known && (id === "" || known.id === "" || known.id === id)) {
      known.id ||= id;
      return known;
    }
    const slot: Slot = { id, name: "", args: "", extra: undefined };
    this.#slots.push(slot);
    if (typeof index === "number") this.#byIndex.set(index, slot);
    return slot;
  }
}

const GROWING = ["text", "summary", "data"] as const;

/** Structured thinking arrives in pieces that share type and index: texts grow, everything else is replaced. */
function mergeReasoningDetails(known: readonly Json[], pieces: readonly unknown[]): Json[] {
  const merged = [...known];
  for (const piece of pieces) {
    if (!isRecord(piece)) continue;
    const at = merged.findIndex((entry) => entry.type === piece.type && entry.index === piece.index);
    const before = merged[at];
    if (!before || piece.index === undefined) {
      merged.push(piece);
      continue;
    }
    const grown = GROWING.filter((key) => typeof piece[key] === "string").map((key) => [
      key,
      asText(before[key]) + asText(piece[key]),
    ]);
    const set = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
    merged[at] = { ...before, ...Object.fromEntries(set), ...Object.fromEntries(grown) };
  }
  return merged;
}
