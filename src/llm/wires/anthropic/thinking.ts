// Thinking that goes back to a server. A signature proves a block to the server that wrote it; every other server refuses it.
import { profileFor } from "../../providers/profiles.ts";
import type { ProviderProfile } from "../../wire.ts";
import {
  type AssistantTurn,
  type Block,
  isSigned,
  isThinking,
  type ThinkingBlock,
  type Turn,
  textBlock,
} from "./blocks.ts";

export type ThinkingReplay = ProviderProfile["thinkingReplay"];

/** The rule of an endpoint, for callers that know nothing but its URL and model. */
export function thinkingReplayFor(baseUrl: string, model: string): ThinkingReplay {
  if (baseUrl === "") return "native";
  return profileFor({ provider: "custom", model, baseUrl, apiMode: "anthropic_messages" }).thinkingReplay;
}

export interface ThinkingPolicy {
  readonly replay: ThinkingReplay;
  readonly keepThinking: "latest" | "all";
  /** Assistant turns that lost a call on the way: the signatures of such a turn are dead. */
  readonly changed: ReadonlySet<Turn>;
}

export function applyThinkingPolicy(turns: readonly Turn[], policy: ThinkingPolicy): readonly Turn[] {
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
  if (isSigned(block) || policy.keepThinking === "latest") return asText(block);
  return [];
}

function asText(block: ThinkingBlock): readonly Block[] {
  return block.type === "thinking" && block.thinking.trim() !== "" ? [textBlock(block.thinking)] : [];
}
