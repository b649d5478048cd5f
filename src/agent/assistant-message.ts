// A model's answer as it enters the history.

import { sanitizeSurrogates } from "../kit/code-points.ts";
import type { AssistantMessage, FinishReason, ToolCall } from "../llm/messages.ts";
import { stripThinkBlocks } from "../llm/scrub.ts";
import { canonicalJson, hasReasoning } from "./repair.ts";

const INLINE_THINKING = /<(think|thinking|reasoning|thought|reasoning_scratchpad)>([\s\S]*?)(?:<\/\1>|$)/gi;
const THINK_TAG = /<\/?(?:think|thinking|reasoning|thought|reasoning_scratchpad)>/i;

/** What a person would read of an answer. */
export function visibleText(message: AssistantMessage): string {
  return stripThinkBlocks(message.content ?? "");
}

export function hasInlineThinking(message: AssistantMessage): boolean {
  return THINK_TAG.test(message.content ?? "");
}

export function hasOpenScratchpad(message: AssistantMessage): boolean {
  const text = (message.content ?? "").toLowerCase();
  return text.lastIndexOf("<reasoning_scratchpad>") > text.lastIndexOf("</reasoning_scratchpad>");
}

/** There was thinking in it, in a field of its own or inside the text. */
export function hasThought(message: AssistantMessage): boolean {
  return hasReasoning(message) || hasInlineThinking(message);
}

/** A thought without words, in the shape in which it can be handed back. */
export function thoughtOf(message: AssistantMessage): AssistantMessage {
  const reasoning = message.reasoning ?? inlineThinking(message.content ?? "");
  return { ...message, content: "", reasoning, reasoning_content: message.reasoning_content ?? reasoning };
}

/** An interim answer of the Responses wire and what came after it: their replay state in order. */
export function joinReplayItems(after: AssistantMessage, interim: AssistantMessage): AssistantMessage {
  const reasoning = [...(interim.codex_reasoning_items ?? []), ...(after.codex_reasoning_items ?? [])];
  const items = [...(interim.codex_message_items ?? []), ...(after.codex_message_items ?? [])];
  return {
    ...after,
    ...(reasoning.length > 0 ? { codex_reasoning_items: reasoning } : {}),
    ...(items.length > 0 ? { codex_message_items: items } : {}),
  };
}

interface Intake {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  readonly redact: (text: string) => string;
}

/** Secrets are masked before the message enters the history, so that every later request carries the same bytes. */
export function takeIn(message: AssistantMessage, { text, calls, finishReason, redact }: Intake): AssistantMessage {
  const { tool_calls: given = [], anthropic_content_blocks: blocks, ...rest } = message;
  const content = redact(sanitizeSurrogates(text).trim());
  const reasoning = message.reasoning ?? inlineThinking(message.content ?? "");
  // The verbatim blocks name calls and repeat the text; they are kept only while they still say the same.
  const verbatim = blocks && content === message.content?.trim() && sameCalls(given, calls);
  return {
    ...rest,
    content: content === "" && calls.length > 0 ? null : content,
    ...(calls.length > 0 ? { tool_calls: calls.map((call) => redactCall(call, redact)) } : {}),
    ...(reasoning ? { reasoning: redact(sanitizeSurrogates(reasoning)) } : {}),
    ...(message.reasoning_content === undefined ? {} : { reasoning_content: redact(message.reasoning_content) }),
    ...(verbatim ? { anthropic_content_blocks: blocks } : {}),
    finish_reason: finishReason,
  };
}

function inlineThinking(text: string): string {
  return [...text.matchAll(INLINE_THINKING)].flatMap((match) => match[2]?.trim() || []).join("\n\n");
}

function sameCalls(given: readonly ToolCall[], kept: readonly ToolCall[]): boolean {
  return (
    given.length === kept.length &&
    given.every((call, index) => call.id === kept[index]?.id && call.function.name === kept[index].function.name)
  );
}

function redactCall(call: ToolCall, redact: (text: string) => string): ToolCall {
  const { name, arguments: text } = call.function;
  if (redact(name) !== name) return redactCall({ ...call, function: { name: redact(name), arguments: text } }, redact);
  // Most arguments hold no secret; only those that do are taken apart, string by string, so that they stay JSON.
  if (redact(text) === text) return call;
  const masked = canonicalJson(redactStrings(JSON.parse(text), redact));
  return { ...call, function: { ...call.function, arguments: masked } };
}

function redactStrings(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((inner) => redactStrings(inner, redact));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redactField(key, inner, redact)]));
}

/** `{"password": "x"}` is only recognisable together with its key. */
function redactField(key: string, value: unknown, redact: (text: string) => string): unknown {
  if (typeof value !== "string") return redactStrings(value, redact);
  const alone = redact(value);
  if (alone !== value) return alone;
  const field = JSON.stringify({ [key]: value });
  const masked = redact(field);
  if (masked === field) return value;
  try {
    return (JSON.parse(masked) as Record<string, unknown>)[key] ?? "***"; // written by stringify just above
  } catch {
    return "***";
  }
}
