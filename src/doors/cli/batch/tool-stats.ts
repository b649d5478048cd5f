// What the tools of a run were used for, and how often the models showed their reasoning.
import { isFailedResult } from "../../../agent/tool-failure.ts";
import { type HistoryMessage, textOf } from "../../../llm/messages.ts";

export interface ToolStats {
  readonly count: number;
  readonly success: number;
  readonly failure: number;
}

export interface ReasoningStats {
  readonly total_assistant_turns: number;
  readonly turns_with_reasoning: number;
}

export function toolStatsOf(messages: readonly HistoryMessage[]): Readonly<Record<string, ToolStats>> {
  const names = new Map<string, string>();
  const stats: Record<string, ToolStats> = {};
  for (const message of messages) {
    if (message.role === "assistant")
      for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name);
    if (message.role !== "tool") continue;
    const name = message.name ?? message.tool_name ?? names.get(message.tool_call_id) ?? "unknown";
    const failed = isFailedResult(name, textOf(message.content));
    const one = { count: 1, success: failed ? 0 : 1, failure: failed ? 1 : 0 };
    stats[name] = addStats(stats[name], one);
  }
  return stats;
}

export function addStats(one: ToolStats | undefined, other: ToolStats): ToolStats {
  if (!one) return other;
  return {
    count: one.count + other.count,
    success: one.success + other.success,
    failure: one.failure + other.failure,
  };
}

export function reasoningStatsOf(messages: readonly HistoryMessage[]): ReasoningStats {
  const turns = messages.filter((message) => message.role === "assistant");
  const thinking = turns.filter(
    ({ reasoning, reasoning_content, content }) =>
      (reasoning ?? reasoning_content ?? "").trim() !== "" || /<(?:think|REASONING_SCRATCHPAD)>/.test(content ?? ""),
  );
  return { total_assistant_turns: turns.length, turns_with_reasoning: thinking.length };
}
