// The cheap half of shortening, without a model: old tool results become one line each, repeated ones are kept once.
import { countCodePoints } from "../../kit/code-points.ts";
import { type AssistantMessage, type ContentPart, type Message, type ToolMessage, textOf } from "../../llm/messages.ts";
import { STEER_CLOSE, STEER_OPEN } from "../../prompt/blocks/steer-markers.ts";
import { messageCost, sentContent } from "./cost.ts";
import { summarizeToolResult } from "./tool-lines.ts";
import { truncateToolCallArgsJson } from "./truncate-arguments.ts";

export interface PruneOptions {
  /** Newest messages that stay as they are. */
  readonly protectTailCount: number;
  /** Tokens of newest messages that stay too. */
  readonly protectTailTokens?: number;
  /**
   * `replace`: the shortened text takes the place of the content. `beside`: the content stays and the shortened text is what is sent
   * (`api_content`); arguments of calls are left alone. Default `replace`.
   */
  readonly mode?: "replace" | "beside";
}

export interface Pruned<M extends Message = Message> {
  readonly messages: readonly M[];
  /** How many tool results were shortened. */
  readonly pruned: number;
}

const SHORT = 200;
const LONG_ARGUMENTS = 500;
const DUPLICATE = "[Duplicate tool output — same content as a more recent call]";
const SCREENSHOT = "[screenshot removed to save context]";
const PRUNED_LINE = /^(?:\[SKILL_PRUNED\] )?\[[\w.-]+\] [^\n]{0,2000}(?:\)|lines output|matches)$/;

/** Pure. Messages that need nothing come back as the same objects. */
export function pruneOldToolResults<M extends Message>(messages: readonly M[], options: PruneOptions): Pruned<M> {
  const boundary = pruneBoundary(messages, options);
  const calls = callsById(messages);
  const newest = newestResults(messages);
  let pruned = 0;
  const kept = messages.map((message, index): M => {
    if (message.role === "assistant" && index < boundary && options.mode !== "beside")
      return shortenCalls(message) as M; // same role
    if (message.role !== "tool") return message;
    const duplicate = (newest.get(resultKey(message) ?? "") ?? index) !== index;
    const facts = { duplicate, old: index < boundary, call: calls.get(message.tool_call_id) };
    const shorter = shortenResult(message, facts);
    if (shorter === null) return message;
    pruned++;
    return replaceContent(message, shorter, options.mode) as M; // still a tool message
  });
  return { messages: kept, pruned };
}

/** The first index that is protected. */
function pruneBoundary(messages: readonly Message[], { protectTailCount, protectTailTokens }: PruneOptions): number {
  const byCount = messages.length - protectTailCount;
  if (protectTailTokens === undefined) return Math.max(0, byCount);
  let left = protectTailTokens;
  let index = messages.length;
  while (index > 0) {
    left -= messageCost(messages[index - 1] as Message); // inside the list
    if (left < 0) break;
    index--;
  }
  return Math.max(0, Math.min(byCount, index));
}

interface ResultFacts {
  readonly duplicate: boolean;
  readonly old: boolean;
  readonly call: { readonly name: string; readonly arguments: string } | undefined;
}

/** The shorter form, or null when there is none to gain. */
function shortenResult(
  message: ToolMessage,
  { duplicate, old, call }: ResultFacts,
): string | readonly ContentPart[] | null {
  if (duplicate) return DUPLICATE;
  if (!old) return null;
  const content = sentContent(message) ?? "";
  const line = (text: string) => pruneLine(message, text, call);
  if (typeof content === "string") return isLong(content) && !isPruned(content) ? line(content) : null;
  const hasImage = content.some((part) => part.type === "image_url");
  const text = textOf(content);
  if (!hasImage) return isLong(text) ? line(text) : null;
  if (isLong(text)) return `${line(text)}\n${SCREENSHOT}`;
  return content.map((part) => (part.type === "text" ? part : { type: "text", text: SCREENSHOT }));
}

/** What the user said in mid-turn rides on results; it outlives them. */
function pruneLine(message: ToolMessage, text: string, call: ResultFacts["call"]): string {
  const name = call?.name ?? message.name ?? message.tool_name ?? "tool";
  const mark = name === "skill_view" ? "[SKILL_PRUNED] " : "";
  return mark + summarizeToolResult(name, call?.arguments ?? "", text) + steeringIn(text);
}

function isPruned(text: string): boolean {
  const steering = text.indexOf(STEER_OPEN);
  return PRUNED_LINE.test(steering < 0 ? text : text.slice(0, steering).trimEnd());
}

function steeringIn(text: string): string {
  const start = text.indexOf(STEER_OPEN);
  const end = text.lastIndexOf(STEER_CLOSE);
  return start < 0 || end < start ? "" : `\n\n${text.slice(start, end + STEER_CLOSE.length)}`;
}

function replaceContent(
  message: ToolMessage,
  content: string | readonly ContentPart[],
  mode: PruneOptions["mode"],
): ToolMessage {
  if (mode === "beside") return { ...message, api_content: typeof content === "string" ? content : textOf(content) };
  const { api_content: _, ...rest } = message;
  return { ...rest, content };
}

function shortenCalls(message: AssistantMessage): AssistantMessage {
  if (!message.tool_calls?.some((call) => call.function.arguments.length > LONG_ARGUMENTS)) return message;
  const calls = message.tool_calls.map((call) => {
    if (call.function.arguments.length <= LONG_ARGUMENTS) return call;
    const args = truncateToolCallArgsJson(call.function.arguments);
    return args === call.function.arguments ? call : { ...call, function: { ...call.function, arguments: args } };
  });
  return calls.every((call, index) => call === message.tool_calls?.[index])
    ? message
    : { ...message, tool_calls: calls };
}

function callsById(messages: readonly Message[]): ReadonlyMap<string, { name: string; arguments: string }> {
  const calls = new Map<string, { name: string; arguments: string }>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const call of message.tool_calls ?? []) {
      calls.set(call.id, call.function);
      if (call.call_id !== undefined) calls.set(call.call_id, call.function);
    }
  }
  return calls;
}

/** Result text -> where it stands last. */
function newestResults(messages: readonly Message[]): ReadonlyMap<string, number> {
  const newest = new Map<string, number>();
  messages.forEach((message, index) => {
    const key = message.role === "tool" ? resultKey(message) : null;
    if (key !== null) newest.set(key, index);
  });
  return newest;
}

function resultKey(message: ToolMessage): string | null {
  const content = sentContent(message);
  return typeof content === "string" && countCodePoints(content) >= SHORT ? content : null;
}

function isLong(text: string): boolean {
  return text.length > SHORT && countCodePoints(text) > SHORT;
}
