// A stored history may be broken: a process died between two rows, another program wrote it. Replay needs it in order.
import type { HistoryMessage, Message, ToolCall } from "../../llm/messages.ts";
import { mergeAssistants, mergeUsers, staysApart } from "./merge.ts";

export interface RepairedSequence {
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
