// Our messages as turns of the Messages API: what it refuses is mended here, so that any history can be sent.
import type { OutgoingMessage, OutgoingPart } from "../../cache-control.ts";
import { CallIdsOnWire } from "../../call-ids.ts";
import {
  type AssistantTurn,
  assistantBlocks,
  type Block,
  blocksOf,
  cleanToolId,
  isThinking,
  markLast,
  type TextBlock,
  type ToolResultBlock,
  type Turn,
  textBlock,
  toolResultBlock,
  userContent,
} from "./blocks.ts";
import { applyThinkingPolicy, type ThinkingReplay, thinkingReplayFor } from "./thinking.ts";

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

export interface AnthropicMessages {
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
