// The API copy is made acceptable to every server here; the stored history is not touched.
import type { AssistantMessage, Message, ToolCall, ToolMessage } from "../llm/messages.ts";

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

/** The usual case, told cheaply: each call with its own result, in order, under a new id. Takes the ids when it is so. */
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
