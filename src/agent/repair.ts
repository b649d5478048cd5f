// The API copy is made acceptable to every server here; the stored history is not touched.

import { repairToolCallArguments } from "../llm/json-repair.ts";
import {
  type AssistantMessage,
  type ContentPart,
  type HistoryMessage,
  type Message,
  type ToolCall,
  type ToolMessage,
  type UserMessage,
  userTextToSend,
} from "../llm/messages.ts";

const ROLES = new Set(["system", "user", "assistant", "tool", "function", "developer"]);
const INTERRUPTED = "[response interrupted]";
const NO_RESULT = "[Result unavailable — see context summary above]";
const NO_NAME = "invalid_tool_call";

/** Pure; messages that need nothing come back as the same objects. */
export function sanitizeApiMessages(messages: readonly Message[]): readonly Message[] {
  const known = messages.filter((message) => ROLES.has(message.role));
  const filled = known.map((message, index) => (index === known.length - 1 ? message : fillEmpty(message)));
  return pairCalls(filled.map(cleanCalls));
}

function fillEmpty(message: Message): Message {
  if ((message.role !== "user" && message.role !== "assistant") || hasPayload(message)) return message;
  return { ...message, content: INTERRUPTED };
}

/** There is something in it that a server can be sent. */
export function hasPayload(message: Message): boolean {
  if (hasContent(message.content)) return true;
  if (message.role === "user") return (message.api_content ?? "").trim() !== "";
  if (message.role !== "assistant") return false;
  return (
    (Array.isArray(message.tool_calls) && message.tool_calls.length > 0) ||
    hasReasoning(message) ||
    (message.codex_reasoning_items ?? []).length > 0 ||
    (message.codex_message_items ?? []).length > 0
  );
}

function hasContent(content: Message["content"]): boolean {
  if (content === null || content === undefined) return false;
  if (typeof content === "string") return content.trim() !== "";
  return content.some((part) => part.type !== "text" || part.text.trim() !== "");
}

export function hasReasoning(message: AssistantMessage): boolean {
  return (
    (message.reasoning ?? "").trim() !== "" ||
    (message.reasoning_content ?? "").trim() !== "" ||
    (message.reasoning_details ?? []).length > 0
  );
}

function cleanCalls(message: Message): Message {
  if (message.role !== "assistant" || message.tool_calls === undefined) return message;
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) {
    const { tool_calls: _, ...rest } = message;
    return rest;
  }
  if (message.tool_calls.every((call) => call.function.name.trim() !== "")) return message;
  const named = message.tool_calls.map((call) =>
    call.function.name.trim() === "" ? { ...call, function: { ...call.function, name: NO_NAME } } : call,
  );
  return { ...message, tool_calls: named };
}

/** Each call gets exactly one result behind its assistant message; ids are unique in the whole request. */
function pairCalls(messages: readonly Message[]): readonly Message[] {
  const paired: Message[] = [];
  const used = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index] as Message; // inside the array
    if (message.role === "tool") continue;
    if (message.role !== "assistant" || !message.tool_calls) {
      paired.push(message);
      continue;
    }
    const results: ToolMessage[] = [];
    for (let next = messages[index + 1]; next?.role === "tool"; next = messages[index + 1]) {
      results.push(next);
      index++;
    }
    if (isPaired(message.tool_calls, results, used)) paired.push(message, ...results);
    else paired.push(...pairRun(message, message.tool_calls, results, used));
  }
  return paired.length === messages.length && paired.every((message, at) => message === messages[at])
    ? messages
    : paired;
}

/** The usual case, recognised cheaply: each call with its own result, in order, under a new id. Takes the ids when it is so. */
function isPaired(calls: readonly ToolCall[], results: readonly ToolMessage[], used: Set<string>): boolean {
  if (calls.length !== results.length) return false;
  const fits = calls.every((call, index) => idOf(call) === results[index]?.tool_call_id && !used.has(idOf(call)));
  if (!fits) return false;
  const before = used.size;
  for (const call of calls) used.add(idOf(call));
  if (used.size === before + calls.length) return true;
  for (const call of calls) used.delete(idOf(call));
  return false;
}

function pairRun(
  message: AssistantMessage,
  calls: readonly ToolCall[],
  results: readonly ToolMessage[],
  used: Set<string>,
): readonly Message[] {
  const first = new Map<string, ToolCall>();
  for (const call of calls) if (!first.has(idOf(call))) first.set(idOf(call), call);
  const answered = new Map<ToolCall, ToolMessage>();
  for (const result of results) {
    const call = [...first.values()].find((one) => one.id === result.tool_call_id || idOf(one) === result.tool_call_id);
    if (call && !answered.has(call)) answered.set(call, result);
  }
  // Some servers number their calls anew in every answer; strict ones refuse a request in which an id stands twice.
  const sent = new Map([...first.values()].map((call) => [call, rename(call, used)]));
  const changed = sent.size !== calls.length || [...sent].some(([call, renamed]) => call !== renamed);
  const missing = [...sent].flatMap(([call, renamed]) => (answered.has(call) ? [] : [unavailable(renamed)]));
  const kept = [...answered].map(([call, result]) => {
    const id = idOf(sent.get(call) ?? call);
    return result.tool_call_id === id ? result : { ...result, tool_call_id: id };
  });
  return [changed ? { ...message, tool_calls: [...sent.values()] } : message, ...missing, ...kept];
}

function idOf(call: ToolCall): string {
  return call.call_id ?? call.id;
}

function rename(call: ToolCall, used: Set<string>): ToolCall {
  const id = idOf(call);
  let fresh = id;
  for (let number = 2; used.has(fresh); number++) fresh = `${id}_d${number}`;
  used.add(fresh);
  if (fresh === id) return call;
  return { ...call, id: fresh, ...(call.call_id === undefined ? {} : { call_id: fresh }) };
}

function unavailable(call: ToolCall): ToolMessage {
  return { role: "tool", name: call.function.name, content: NO_RESULT, tool_call_id: idOf(call) };
}

/** The same arguments always give the same text (keys sorted, compact), so that a request repeats the bytes of the one before it. */
export function canonicalArguments(text: string): string {
  return canonicalJson(parse(text) ?? parse(repairToolCallArguments(text)));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

// Written out by hand: an object rebuilt key by key would lose `__proto__`.
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join(",")}}`;
}

// A stored history may be broken: a process died between two rows, another program wrote it. Replay needs it in order.

interface RepairedSequence {
  readonly messages: readonly HistoryMessage[];
  readonly repairs: number;
}

/** Neighbours of one role become one, results without a call of their run go. Calls without results are left for the API copy. */
export function repairMessageSequence(messages: readonly HistoryMessage[]): RepairedSequence {
  let repairs = 0;
  const pass = (change: (list: readonly HistoryMessage[]) => readonly HistoryMessage[]) => {
    const before = current.length;
    current = change(current);
    repairs += before - current.length;
  };
  let current = messages;
  pass((list) => joinAssistants(list));
  pass(dropStrayResults);
  // A dropped result may have stood between two assistants.
  pass((list) => joinAssistants(list));
  pass(joinUsers);
  return { messages: current, repairs };
}

/** Consecutive answers become one, except those that the Responses wire replays item by item; `all`: those too, for the other wires. */
export function joinAssistants<M extends Message>(
  messages: readonly M[],
  { all = false }: { readonly all?: boolean } = {},
): readonly M[] {
  return fold(messages, (last, next) =>
    last.role === "assistant" && next.role === "assistant" && (all || !(staysApart(last) || staysApart(next)))
      ? (mergeAssistants(last, next) as M) // two assistants make one
      : null,
  );
}

export function joinUsers<M extends Message>(messages: readonly M[]): readonly M[] {
  return fold(
    messages,
    (last, next) => (last.role === "user" && next.role === "user" ? (mergeUsers(last, next) as M) : null), // two users make one
  );
}

function fold<M>(messages: readonly M[], merge: (last: M, next: M) => M | null): readonly M[] {
  const kept: M[] = [];
  for (const message of messages) {
    const last = kept.at(-1);
    const merged = last === undefined ? null : merge(last, message);
    if (merged === null) kept.push(message);
    else kept[kept.length - 1] = merged;
  }
  return kept.length === messages.length ? messages : kept;
}

function dropStrayResults(messages: readonly HistoryMessage[]): readonly HistoryMessage[] {
  const open: OpenRun = { calls: [] };
  const kept = messages.filter((message) => {
    if (message.role === "user") open.calls = [];
    if (message.role === "assistant") open.calls = message.tool_calls ?? [];
    return message.role !== "tool" || takeCall(open, message.tool_call_id);
  });
  return kept.length === messages.length ? messages : kept;
}

interface OpenRun {
  calls: readonly ToolCall[];
}

/** Finds the call a result answers, by `id` or `call_id`, and takes it out: each id is answered once, however many calls bear it. */
function takeCall(open: OpenRun, id: string): boolean {
  const others = open.calls.filter((call) => call.id !== id && call.call_id !== id);
  const found = others.length < open.calls.length;
  open.calls = others;
  return found;
}

const MARKER =
  "[hermes-agent: tool call arguments were corrupted in the stored history and replaced by {}; what the tool really got is not known]";

/** Arguments that no server would take back: empty ones and unparseable ones become `{}`, and the latter's result says so. */
export function repairCorruptArguments(messages: readonly HistoryMessage[]): RepairedSequence {
  let repairs = 0;
  const repaired: HistoryMessage[] = [];
  let corrupt = new Set<string>();
  // Results stand right behind their call; whoever has none by the end of the run gets one that holds the marker alone.
  const closeRun = () => {
    for (const id of corrupt) repaired.push({ role: "tool", tool_call_id: id, content: MARKER });
    corrupt = new Set();
  };
  for (const message of messages) {
    if (message.role === "tool" && corrupt.delete(message.tool_call_id)) {
      repaired.push(mark(message));
      continue;
    }
    if (message.role === "tool") {
      repaired.push(message);
      continue;
    }
    closeRun();
    if (message.role === "user" || !message.tool_calls) {
      repaired.push(message);
      continue;
    }
    const fixed = message.tool_calls.map(fixArguments);
    const changed = fixed.filter((fix) => fix.state !== "fine");
    repairs += changed.length;
    for (const fix of changed) if (fix.state === "corrupt") corrupt.add(fix.call.id);
    repaired.push(changed.length === 0 ? message : withCalls(message, fixed));
  }
  closeRun();
  return repairs === 0 ? { messages, repairs } : { messages: repaired, repairs };
}

interface FixedCall {
  readonly call: ToolCall;
  readonly state: "fine" | "mended" | "corrupt";
}

function fixArguments(call: ToolCall): FixedCall {
  const raw: unknown = call.function.arguments;
  const put = (text: string): ToolCall => ({ ...call, function: { ...call.function, arguments: text } });
  if (typeof raw === "object" && raw !== null) return { call: put(JSON.stringify(raw)), state: "mended" };
  if (typeof raw !== "string" || raw.trim() === "") return { call: put("{}"), state: "mended" };
  try {
    JSON.parse(raw);
    return { call, state: "fine" };
  } catch {
    return { call: put("{}"), state: "corrupt" };
  }
}

function withCalls(message: AssistantMessage, fixed: readonly FixedCall[]): AssistantMessage {
  return { ...message, tool_calls: fixed.map((fix) => fix.call) };
}

function mark(message: ToolMessage): ToolMessage {
  const { api_content: _, ...rest } = message;
  const content =
    typeof message.content === "string"
      ? `${MARKER}\n${message.content}`
      : [{ type: "text", text: MARKER } as const, ...message.content];
  return { ...rest, content };
}

// How two neighbours of one role become one message.

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
function mergeAssistants(first: AssistantMessage, second: AssistantMessage): AssistantMessage {
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

// A turn that was cut off between a call and its answer.

/** A history that ends in a tool result gets an answer, so that the next user message finds a closed turn. */
export function closeInterruptedToolSequence(
  messages: readonly HistoryMessage[],
  finalText?: string | null,
): readonly HistoryMessage[] {
  if (messages.at(-1)?.role !== "tool") return messages;
  return [...messages, { role: "assistant", content: finalText?.trim() || "Operation interrupted." }];
}

/** The calls of the newest assistant message that nobody answered. */
export function unansweredCalls(messages: readonly HistoryMessage[]): readonly ToolCall[] {
  const answered = new Set<string>();
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role === "tool") answered.add(message.tool_call_id);
    if (message?.role === "user") return [];
    if (message?.role !== "assistant") continue;
    return (message.tool_calls ?? []).filter(
      (call) => !answered.has(call.id) && !answered.has(call.call_id ?? call.id),
    );
  }
  return [];
}

/** A result that the runtime gives in place of the tool. */
export function stubResult(call: ToolCall, content: string): ToolMessage {
  const name = call.function.name;
  return { role: "tool", name, tool_name: name, content, tool_call_id: call.id };
}
