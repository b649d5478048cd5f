// The Messages API speaks in blocks. These are the ones we send, and how our messages become them.

import { asRecord, asText, isRecord, type Json, parseJson } from "../../../kit/moved-json.ts";
import { type CacheMarker, contentToSend, type OutgoingMessage, type OutgoingPart } from "../../cache-control.ts";
import type { CallIdsOnWire } from "../../call-ids.ts";
import type { ToolCall } from "../../messages.ts";
import { partsOf } from "../outgoing.ts";

type Markable = { readonly cache_control?: CacheMarker };
export type TextBlock = { readonly type: "text"; readonly text: string } & Markable;
export type ImageBlock = {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "url"; readonly url: string };
} & Markable;
export type ThinkingBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string }
  | { readonly type: "redacted_thinking"; readonly data: string };
export type ToolUseBlock = {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
} & Markable;
export type ToolResultBlock = {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string | readonly (TextBlock | ImageBlock)[];
} & Markable;
export type Block = TextBlock | ImageBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock;

export interface UserTurn {
  readonly role: "user";
  readonly content: string | readonly Block[];
}
export interface AssistantTurn {
  readonly role: "assistant";
  readonly content: readonly Block[];
}
export type Turn = UserTurn | AssistantTurn;

export const isThinking = (block: Block): block is ThinkingBlock =>
  block.type === "thinking" || block.type === "redacted_thinking";

export const isSigned = (block: ThinkingBlock): boolean =>
  block.type === "thinking" ? Boolean(block.signature) : block.data !== "";

export const textBlock = (text: string): TextBlock => ({ type: "text", text });

export function blocksOf(content: string | readonly Block[]): readonly Block[] {
  return typeof content === "string" ? [textBlock(content)] : content;
}

/** The alphabet of tool ids on this wire. */
export function cleanToolId(id: string): string {
  return id.replace(/[^A-Za-z0-9_-]/g, "_") || "tool_0";
}

export function userContent(message: OutgoingMessage, options: { asBlocks: boolean }): string | readonly Block[] {
  const content = contentToSend(message);
  const blocks = partsOf(message).map(partToBlock);
  if (blocks.length === 0) blocks.push(textBlock("(empty message)"));
  if (message.cache_control) return markLast(blocks, message.cache_control);
  const [only] = blocks;
  const plain = (typeof content === "string" || content?.length === 0) && !options.asBlocks;
  return plain && only?.type === "text" && blocks.length === 1 ? only.text : blocks;
}

export function toolResultBlock(message: OutgoingMessage & { role: "tool" }, id: string): ToolResultBlock {
  const parts = partsOf(message);
  const marker = message.cache_control ?? parts.find((part) => part.cache_control)?.cache_control;
  const blocks = parts.map((part) => partToBlock(withoutMarker(part)));
  const content = blocks.some((block) => block.type === "image")
    ? blocks
    : blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n") || "(no output)";
  return { type: "tool_result", tool_use_id: id, content, ...(marker && { cache_control: marker }) };
}

/** Thinking, text and calls of an answer, in the order in which they must go back. */
export function assistantBlocks(
  message: OutgoingMessage & { role: "assistant" },
  ids: CallIdsOnWire,
): readonly Block[] {
  const calls = (message.tool_calls ?? []).map((call, index) => ({
    call,
    block: toolUseBlock(call, ids.open(call, index)),
  }));
  const recorded = message.anthropic_content_blocks ?? [];
  const ordered = recorded.length > 0 ? replayOrder(recorded.filter(isRecord), textOf(message), calls) : null;
  const blocks = ordered ?? [...thinkingOf(message), ...textOf(message), ...calls.map(({ block }) => block)];
  const said = blocks.length > 0 ? blocks : [textBlock("(empty)")];
  const marker = message.cache_control ?? partsOf(message).find((part) => part.cache_control)?.cache_control;
  return marker ? markLast(said, marker) : said;
}

/** Puts a marker on the last block that can carry one; thinking cannot. */
export function markLast(blocks: readonly Block[], marker: CacheMarker): readonly Block[] {
  const last = blocks.findLastIndex((block) => !isThinking(block));
  return blocks.map((block, index) => (index === last ? { ...block, cache_control: marker } : block));
}

function textOf(message: OutgoingMessage): readonly Block[] {
  return partsOf(message).map((part) => partToBlock(withoutMarker(part)));
}

function thinkingOf(message: OutgoingMessage & { role: "assistant" }): readonly Block[] {
  const kept = (message.reasoning_details ?? []).flatMap(toThinkingBlock);
  if (kept.length > 0 || !message.reasoning_content?.trim()) return kept;
  return [{ type: "thinking", thinking: message.reasoning_content }];
}

/** Only the fields that are legal as input: what an answer carries besides is refused when it comes back. */
function toThinkingBlock(detail: unknown): readonly ThinkingBlock[] {
  const { type, thinking, signature, data } = asRecord(detail);
  if (type === "redacted_thinking") return [{ type, data: asText(data) }];
  if (type !== "thinking") return [];
  return [{ type, thinking: asText(thinking), ...(asText(signature) && { signature: asText(signature) }) }];
}

interface SentCall {
  readonly call: ToolCall;
  readonly block: ToolUseBlock;
}

/** Replays the recorded order. Texts and inputs come from what is stored, where secrets are masked; calls that are gone stay gone. */
function replayOrder(
  recorded: readonly Json[],
  stored: readonly Block[],
  calls: readonly SentCall[],
): readonly Block[] {
  const left = [...calls];
  const takeCall = (id: string, name: string): readonly Block[] => {
    const byId = left.findIndex(({ call }) => call.id === id || call.call_id === id);
    const at = byId >= 0 ? byId : left.findIndex(({ call }) => call.function.name === name);
    return at < 0 ? [] : left.splice(at, 1).map(({ block }) => block);
  };
  const texts = recorded.filter((entry) => entry.type === "text").map((entry) => asText(entry.text));
  const said = stored.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  const unchanged = texts.join("\n").trim() === said.trim();
  const pending = [...stored];
  const takeText = (text: string): readonly Block[] => {
    if (unchanged) return text.trim() === "" ? [] : [textBlock(text)];
    return pending.splice(0);
  };
  const ordered = recorded.flatMap((entry): readonly Block[] => {
    if (entry.type === "tool_use") return takeCall(asText(entry.id), asText(entry.name));
    return entry.type === "text" ? takeText(asText(entry.text)) : toThinkingBlock(entry);
  });
  return [...ordered, ...(unchanged ? [] : pending), ...left.map(({ block }) => block)];
}

function toolUseBlock(call: ToolCall, id: string): ToolUseBlock {
  const input = parseJson(call.function.arguments);
  return { type: "tool_use", id, name: call.function.name, input: isRecord(input) ? input : {} };
}

function withoutMarker({ cache_control: _, ...part }: OutgoingPart): OutgoingPart {
  return part;
}

const SHOWABLE = ["image/jpeg", "image/png", "image/gif", "image/webp"];

function partToBlock(part: OutgoingPart): TextBlock | ImageBlock {
  const marker = part.cache_control && { cache_control: part.cache_control };
  if (part.type === "text") return { type: "text", text: part.text, ...marker };
  const { url } = part.image_url;
  if (/^https?:\/\//i.test(url)) return { type: "image", source: { type: "url", url }, ...marker };
  const [, media_type = "", data = ""] = /^data:([^;,]+)(?:;[^;,]+)*;base64,(.+)$/s.exec(url) ?? [];
  if (SHOWABLE.includes(media_type)) return { type: "image", source: { type: "base64", media_type, data }, ...marker };
  return {
    type: "text",
    text: `[image of a kind that cannot be shown here: ${media_type || url.slice(0, 40)}]`,
    ...marker,
  };
}
