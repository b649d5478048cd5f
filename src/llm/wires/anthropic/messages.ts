// Our messages as turns of the Messages API: what it refuses is mended here, so that any history can be sent.

import { asRecord, asText, isRecord, type Json, parseJson } from "../../../kit/json.ts";
import { type CacheMarker, contentToSend, type OutgoingMessage, type OutgoingPart } from "../../cache-control.ts";
import { CallIdsOnWire } from "../../call-ids.ts";
import type { ToolCall } from "../../messages.ts";
import { profileFor } from "../../providers/profiles.ts";
import type { ProviderProfile } from "../../wire.ts";
import { partsOf } from "../outgoing.ts";

export interface AnthropicOptions {
  readonly baseUrl?: string;
  readonly model?: string;
  /** `latest` for a history met for the first time; `all` within a session, so that no request rewrites the one before it. */
  readonly keepThinking?: "latest" | "all";
  /** Images of the newest N image-bearing tool results stay. */
  readonly keepImages?: number;
  /** Overrides what the URL says. */
  readonly thinkingReplay?: ThinkingReplay;
  /** User text as blocks even where a string would do: a cache marker then adds a key and never changes the shape. */
  readonly asBlocks?: boolean;
}

interface AnthropicMessages {
  readonly system: string | readonly TextBlock[] | undefined;
  readonly messages: readonly Turn[];
}

export function toAnthropicMessages(
  messages: readonly OutgoingMessage[],
  options: AnthropicOptions = {},
): AnthropicMessages {
  const { keepThinking = "latest", keepImages = 3, baseUrl = "", model = "" } = options;
  const { turns, changed } = dropOrphans(toTurns(messages, options.asBlocks === true));
  const alternating = startWithUser(mergeNeighbours(turns, changed));
  const thought = applyThinkingPolicy(alternating, {
    replay: options.thinkingReplay ?? thinkingReplayFor(baseUrl, model),
    keepThinking,
    changed,
  });
  return { system: systemOf(messages), messages: dropOldImages(thought, keepImages).map(dropBlankText) };
}

function systemOf(messages: readonly OutgoingMessage[]): AnthropicMessages["system"] {
  const contents = messages.filter((message) => message.role === "system").map((message) => message.content);
  const parts: readonly OutgoingPart[] = contents.flatMap((content) =>
    typeof content === "string" ? [{ type: "text" as const, text: content }] : (content ?? []),
  );
  const texts = parts.flatMap((part) => (part.type === "text" && part.text.trim() !== "" ? [part] : []));
  if (texts.some((part) => part.cache_control)) return texts;
  return texts.map((part) => part.text).join("\n") || undefined;
}

function toTurns(messages: readonly OutgoingMessage[], asBlocks: boolean): readonly Turn[] {
  const ids = new CallIdsOnWire(cleanToolId);
  const turns: Turn[] = [];
  let results: Block[] | null = null;
  for (const message of messages) {
    if (message.role !== "tool") results = null;
    if (message.role === "user") turns.push({ role: "user", content: userContent(message, { asBlocks }) });
    if (message.role === "assistant") turns.push({ role: "assistant", content: assistantBlocks(message, ids) });
    if (message.role !== "tool") continue;
    if (results === null) {
      results = [];
      turns.push({ role: "user", content: results });
    }
    results.push(toolResultBlock(message, ids.answered(message.tool_call_id) ?? cleanToolId(message.tool_call_id)));
  }
  return turns;
}

/** Calls that the very next message does not answer, and results that answer nothing, are refused by the API. */
function dropOrphans(turns: readonly Turn[]): { turns: readonly Turn[]; changed: Set<Turn> } {
  const changed = new Set<Turn>();
  const answered = turns.map((turn, index): Turn => {
    if (turn.role !== "assistant") return turn;
    const results = new Set(resultsIn(turns[index + 1]).map((block) => block.tool_use_id));
    const kept = turn.content.filter((block) => block.type !== "tool_use" || results.has(block.id));
    if (kept.length === turn.content.length) return turn;
    const mended: AssistantTurn = {
      role: "assistant",
      content: kept.length > 0 ? kept : [textBlock("(tool call removed)")],
    };
    changed.add(mended);
    return mended;
  });
  const paired = answered.map((turn, index): Turn => {
    if (turn.role !== "user" || typeof turn.content === "string") return turn;
    const calls = new Set(
      blocksOf(answered[index - 1]?.content ?? []).flatMap((block) => (block.type === "tool_use" ? [block.id] : [])),
    );
    const kept = turn.content.filter((block) => block.type !== "tool_result" || calls.delete(block.tool_use_id));
    return kept.length > 0
      ? { role: "user", content: kept }
      : { role: "user", content: [textBlock("(tool result removed)")] };
  });
  return { turns: paired, changed };
}

function resultsIn(turn: Turn | undefined): readonly ToolResultBlock[] {
  if (turn?.role !== "user" || typeof turn.content === "string") return [];
  return turn.content.filter((block) => block.type === "tool_result");
}

function mergeNeighbours(turns: readonly Turn[], changed: Set<Turn>): readonly Turn[] {
  const merged: Turn[] = [];
  for (const turn of turns) {
    const before = merged.at(-1);
    if (before?.role !== turn.role) {
      merged.push(turn);
      continue;
    }
    merged.pop();
    merged.push(mergeTwo(before, turn, changed));
  }
  return merged;
}

function mergeTwo(first: Turn, second: Turn, changed: Set<Turn>): Turn {
  if (first.role === "assistant") {
    const content = [...first.content, ...blocksOf(second.content).filter((block) => !isThinking(block))];
    const turn: Turn = { role: "assistant", content };
    if (changed.has(first)) changed.add(turn);
    return turn;
  }
  if (typeof first.content === "string" && typeof second.content === "string")
    return { role: "user", content: `${first.content}\n${second.content}` };
  return { role: "user", content: [...blocksOf(first.content), ...blocksOf(second.content)] };
}

function startWithUser(turns: readonly Turn[]): readonly Turn[] {
  return turns[0]?.role === "user" ? turns : [{ role: "user", content: [textBlock("(empty)")] }, ...turns];
}

function dropOldImages(turns: readonly Turn[], keep: number): readonly Turn[] {
  if (keep === Infinity) return turns;
  let left = keep;
  const fewer = (block: Block): Block => {
    if (block.type !== "tool_result" || typeof block.content === "string") return block;
    if (!block.content.some((inner) => inner.type === "image") || left-- > 0) return block;
    const content = block.content.map((inner) =>
      inner.type === "image" ? textBlock("[screenshot removed to save context]") : inner,
    );
    return { ...block, content };
  };
  return turns
    .toReversed()
    .map((turn): Turn => {
      if (turn.role === "assistant" || typeof turn.content === "string") return turn;
      return { role: "user", content: turn.content.toReversed().map(fewer).toReversed() };
    })
    .toReversed();
}

const isBlank = (block: Block) => block.type === "text" && block.text.trim() === "";

function dropBlankText(turn: Turn): Turn {
  if (typeof turn.content === "string" || !turn.content.some(isBlank)) return turn;
  const kept = turn.content.filter((block) => !isBlank(block));
  const lost = turn.content.filter(isBlank).find((block) => "cache_control" in block && block.cache_control);
  const said = kept.length > 0 ? kept : [textBlock(turn.role === "user" ? "(empty message)" : "(empty)")];
  const content = lost && "cache_control" in lost && lost.cache_control ? markLast(said, lost.cache_control) : said;
  return turn.role === "user" ? { role: "user", content } : { role: "assistant", content };
}

// The Messages API speaks in blocks. These are the ones we send, and how our messages become them.

type Markable = { readonly cache_control?: CacheMarker };
type TextBlock = { readonly type: "text"; readonly text: string } & Markable;
type ImageBlock = {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "url"; readonly url: string };
} & Markable;
type ThinkingBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string }
  | { readonly type: "redacted_thinking"; readonly data: string };
type ToolUseBlock = {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
} & Markable;
type ToolResultBlock = {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content: string | readonly (TextBlock | ImageBlock)[];
} & Markable;
type Block = TextBlock | ImageBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock;

interface UserTurn {
  readonly role: "user";
  readonly content: string | readonly Block[];
}
interface AssistantTurn {
  readonly role: "assistant";
  readonly content: readonly Block[];
}
type Turn = UserTurn | AssistantTurn;

const isThinking = (block: Block): block is ThinkingBlock =>
  block.type === "thinking" || block.type === "redacted_thinking";

const isSigned = (block: ThinkingBlock): boolean =>
  block.type === "thinking" ? Boolean(block.signature) : block.data !== "";

const textBlock = (text: string): TextBlock => ({ type: "text", text });

function blocksOf(content: string | readonly Block[]): readonly Block[] {
  return typeof content === "string" ? [textBlock(content)] : content;
}

/** The alphabet of tool ids on this wire. */
function cleanToolId(id: string): string {
  return id.replace(/[^A-Za-z0-9_-]/g, "_") || "tool_0";
}

function userContent(message: OutgoingMessage, options: { asBlocks: boolean }): string | readonly Block[] {
  const content = contentToSend(message);
  const blocks = partsOf(message).map(partToBlock);
  if (blocks.length === 0) blocks.push(textBlock("(empty message)"));
  if (message.cache_control) return markLast(blocks, message.cache_control);
  const [only] = blocks;
  const plain = (typeof content === "string" || content?.length === 0) && !options.asBlocks;
  return plain && only?.type === "text" && blocks.length === 1 ? only.text : blocks;
}

function toolResultBlock(message: OutgoingMessage & { role: "tool" }, id: string): ToolResultBlock {
  const parts = partsOf(message);
  const marker = message.cache_control ?? parts.find((part) => part.cache_control)?.cache_control;
  const blocks = parts.map((part) => partToBlock(withoutMarker(part)));
  const content = blocks.some((block) => block.type === "image")
    ? blocks
    : blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n") || "(no output)";
  return { type: "tool_result", tool_use_id: id, content, ...(marker && { cache_control: marker }) };
}

/** Thinking, text and calls of an answer, in the order in which they must go back. */
function assistantBlocks(message: OutgoingMessage & { role: "assistant" }, ids: CallIdsOnWire): readonly Block[] {
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
function markLast(blocks: readonly Block[], marker: CacheMarker): readonly Block[] {
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

// Thinking that goes back to a server. A signature proves a block to the server that wrote it; every other server refuses it.

type ThinkingReplay = ProviderProfile["thinkingReplay"];

/** The rule of an endpoint, for callers that know nothing but its URL and model. */
function thinkingReplayFor(baseUrl: string, model: string): ThinkingReplay {
  if (baseUrl === "") return "native";
  return profileFor({ provider: "custom", model, baseUrl, apiMode: "anthropic_messages" }).thinkingReplay;
}

interface ThinkingPolicy {
  readonly replay: ThinkingReplay;
  readonly keepThinking: "latest" | "all";
  /** Assistant turns that lost a call on the way: the signatures of such a turn are dead. */
  readonly changed: ReadonlySet<Turn>;
}

function applyThinkingPolicy(turns: readonly Turn[], policy: ThinkingPolicy): readonly Turn[] {
  if (policy.replay === "keep") return turns;
  const latest = turns.findLast((turn) => turn.role === "assistant");
  return turns.map((turn) => {
    if (turn.role === "user" || !turn.content.some(isThinking)) return turn;
    const kept = turn.content.flatMap((block) =>
      isThinking(block) ? replay(block, turn, turn === latest, policy) : [block],
    );
    return { role: "assistant", content: kept.length > 0 ? kept : [textBlock("(thinking elided)")] };
  });
}

function replay(
  block: ThinkingBlock,
  turn: AssistantTurn,
  isLatest: boolean,
  policy: ThinkingPolicy,
): readonly Block[] {
  if (policy.replay === "strip") return [];
  if (policy.replay === "unsigned-only") return isSigned(block) ? [] : [block];
  if (policy.keepThinking === "latest" && !isLatest) return [];
  if (isSigned(block) && !policy.changed.has(turn)) return [block];
  if (isSigned(block) || policy.keepThinking === "latest") return thinkingAsText(block);
  return [];
}

function thinkingAsText(block: ThinkingBlock): readonly Block[] {
  return block.type === "thinking" && block.thinking.trim() !== "" ? [textBlock(block.thinking)] : [];
}
