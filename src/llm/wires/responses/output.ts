// codex_responses: what comes back, as a finished response.

import { asList, asRecord, asText, isRecord, type Json, parseJson } from "../../../kit/moved-json.ts";
import { splitResponsesToolId } from "../../call-ids.ts";
import type { FinishReason } from "../../messages.ts";
import { failureFrom } from "../failure.ts";
import { isCommentary } from "./items.ts";

export interface ResponsesCall {
  readonly id: string;
  readonly callId: string;
  readonly itemId: string | null;
  readonly name: string;
  readonly arguments: string;
}

export interface ResponsesAnswer {
  readonly finishReason: FinishReason;
  readonly content: string | null;
  readonly reasoning: string | null;
  readonly toolCalls: readonly ResponsesCall[];
  /** Replay state, stamped with who can read it. */
  readonly reasoningItems: readonly Json[];
  readonly messageItems: readonly Json[];
}

const UNFINISHED = ["queued", "in_progress", "incomplete"];
// A call written as text in the model's internal notation instead of being made.
const LEAKED_CALL = /\bto=functions\.[A-Za-z_]\w*/;

/** Throws WireFailure for a response that failed or was cancelled. */
export function fromResponsesOutput(json: unknown, { issuer }: { readonly issuer?: string } = {}): ResponsesAnswer {
  const response = asRecord(json);
  const status = asText(response.status) || "completed";
  if (status === "failed" || status === "cancelled") throw responseFailure(response);
  const items = asList(response.output).filter(isRecord);
  const stamp = (item: Json): Json => (issuer === undefined ? item : { ...item, _issuer_kind: issuer });

  const messages = items.filter((item) => item.type === "message");
  const final = messages.filter((item) => !isCommentary(item));
  const text = final.map(textOfItem).join("\n");
  const leaked = LEAKED_CALL.test(text);
  const refused = final.some((item) => asList(item.content).some((part) => asRecord(part).type === "refusal"));

  const thoughts = items.filter((item) => item.type === "reasoning");
  const reasoning = items.flatMap((item) => {
    if (item.type === "reasoning") return asList(item.summary).map((part) => asText(asRecord(part).text));
    return item.type === "message" && isCommentary(item) ? [textOfItem(item)] : [];
  });
  const calls = items.filter(isCall);
  const toolCalls = calls.flatMap(toCall);
  const unfinished = UNFINISHED.includes(status) || final.some((item) => UNFINISHED.includes(asText(item.status)));
  // Calls that were begun and never finished are no answer either.
  const noAnswer = final.length === 0 && (thoughts.length > 0 || messages.length > 0 || calls.length > 0);
  const reason = asText(asRecord(response.incomplete_details).reason);

  const finishReason = (): FinishReason => {
    if (toolCalls.length > 0) return "tool_calls";
    if (refused || reason === "content_filter") return "content_filter";
    return unfinished || noAnswer || leaked ? "incomplete" : "stop";
  };
  return {
    finishReason: finishReason(),
    content: leaked ? "" : final.length > 0 ? text : null,
    reasoning: reasoning.filter((entry) => entry !== "").join("\n\n") || null,
    toolCalls,
    reasoningItems: thoughts.filter((item) => !asText(item.id).startsWith("rs_tmp_")).map(stamp),
    messageItems: leaked ? [] : messages.map(stamp),
  };
}

export function textOfItem(item: Json): string {
  const parts = asList(item.content).map(asRecord);
  return parts.map((part) => asText(part.text) || asText(part.refusal)).join("");
}

export function isCall({ type }: Json): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

function toCall(item: Json): readonly ResponsesCall[] {
  if (UNFINISHED.includes(asText(item.status))) return [];
  const itemId = asText(item.id) || null;
  const callId = asText(item.call_id) || (splitResponsesToolId(itemId ?? "")[0] ?? "");
  return [{ id: callId, callId, itemId, name: asText(item.name), arguments: argumentsOf(item) }];
}

function argumentsOf(item: Json): string {
  if (item.type === "function_call")
    return isRecord(item.arguments) ? JSON.stringify(item.arguments) : asText(item.arguments);
  const input = asText(item.input);
  return isRecord(parseJson(input)) ? input : JSON.stringify({ input });
}

export function responseFailure(response: Json) {
  const fallback = `The response ended with status ${asText(response.status) || "failed"}.`;
  return failureFrom(isRecord(response.error) ? { error: response.error } : {}, {
    fallback,
    ...(isRecord(response.error) ? {} : { code: asText(response.status) || "failed" }),
  });
}
