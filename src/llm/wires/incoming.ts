// The last step of every answer with tool calls: ids that are free, arguments that are JSON, and what cannot be run kept apart.
import type { FreshCallIds } from "../call-ids.ts";
import { repairArguments } from "../json-repair.ts";
import type { AssistantMessage, FinishReason, ToolCall } from "../messages.ts";
import type { ModelEvent } from "../wire.ts";
import { WireFailure } from "./transport.ts";

export interface RawCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote it. */
  readonly arguments: string;
  /** Fields of the finished call that only this wire knows. */
  readonly extra?: Partial<Pick<ToolCall, "extra_content" | "response_item_id">>;
  /** The wire has a call id in addition to the id. */
  readonly hasCallId?: boolean;
}

export interface FinishedCalls {
  readonly calls: readonly ToolCall[];
  /** Calls whose arguments are no JSON: in `calls` they keep their raw text, and they must not be run. */
  readonly unusable: ReadonlySet<ToolCall>;
  /** One of them ends in the middle: the whole answer was cut, whatever the server says. */
  readonly cut: boolean;
  /** Names of the tools whose arguments were repaired. */
  readonly repaired: readonly string[];
}

export function finishCalls(
  raw: readonly RawCall[],
  ids: FreshCallIds,
  options: { readonly truncated: boolean },
): FinishedCalls {
  const unusable = new Set<ToolCall>();
  let cut = false;
  const repaired: string[] = [];
  const calls = raw.map((each, index) => {
    const { json, outcome } = repairArguments(each.arguments, options);
    const lost = outcome === "cut" || outcome === "invalid";
    const args = lost ? each.arguments : json;
    const id = ids.claim(each.id, each.name, args, index);
    const call: ToolCall = {
      id,
      type: "function",
      function: { name: each.name, arguments: args },
      ...(each.hasCallId && { call_id: id }),
      ...each.extra,
    };
    if (lost) unusable.add(call);
    if (outcome === "cut") cut = true;
    if (outcome === "repaired") repaired.push(each.name);
    return call;
  });
  return { calls, unusable, cut, repaired };
}

/** The end of a good answer: the calls that may be run, usage, and `done`. */
export function closingEvents(
  { calls, unusable, repaired }: FinishedCalls,
  finishReason: FinishReason,
  message: Omit<AssistantMessage, "role" | "tool_calls" | "finish_reason">,
  usage: readonly ModelEvent[],
): readonly ModelEvent[] {
  const { content, ...rest } = message;
  return [
    ...calls.filter((call) => !unusable.has(call)).map((call) => ({ type: "tool_call", call }) as const),
    ...usage,
    {
      type: "done",
      finishReason,
      message: {
        role: "assistant",
        content: content || (calls.length > 0 ? null : ""),
        ...(calls.length > 0 && { tool_calls: calls }),
        ...rest,
        finish_reason: finishReason,
      },
      ...(repaired.length > 0 && { repaired }),
    },
  ];
}

/** The answer ended without its last word. What had come is reported with the failure. */
export function cutOff(sawAnything: boolean): WireFailure {
  return sawAnything
    ? new WireFailure({ message: "The connection was lost before the answer was complete.", code: "stream_cut" })
    : new WireFailure({ message: "The server ended the stream without an answer.", code: "empty_stream" });
}
