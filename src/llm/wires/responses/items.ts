// Our messages as input items of the Responses API.
import { asList, asRecord, asText, isRecord, type Json, parseJson } from "../../../kit/json.ts";
import { contentToSend, type OutgoingMessage, type OutgoingPart } from "../../cache-control.ts";
import { CallIdsOnWire, deterministicCallId, splitResponsesToolId } from "../../call-ids.ts";
import { type FinishReason, textOf } from "../../messages.ts";
import { partsOf } from "../outgoing.ts";
import { failureFrom } from "../transport.ts";

interface ReplayOptions {
  /** Who would read the encrypted items. Only items of the same issuer are sent back; without an issuer all are. */
  readonly issuer?: string;
  /** False: no replay state at all. */
  readonly replay?: boolean;
}

const LONGEST_CALL_ID = 64;
const shortEnough = (id: string) => (id.length > LONGEST_CALL_ID ? deterministicCallId("", id, 0) : id);

/** System messages are not part of the input; they are the instructions. */
export function toResponsesInput(messages: readonly OutgoingMessage[], options: ReplayOptions = {}): readonly Json[] {
  const ids = new CallIdsOnWire(shortEnough);
  const sent = new Set<string>();
  return messages.flatMap((message): readonly Json[] => {
    switch (message.role) {
      case "system":
        return [];
      case "user":
        return [{ role: "user", content: renderContent(message) }];
      case "tool": {
        const call_id = ids.answered(message.tool_call_id) ?? shortEnough(message.tool_call_id);
        return [{ type: "function_call_output", call_id, output: renderContent(message) }];
      }
      default:
        return assistantItems(message, ids, sent, options);
    }
  });
}

function assistantItems(
  message: OutgoingMessage & { role: "assistant" },
  ids: CallIdsOnWire,
  sent: Set<string>,
  options: ReplayOptions,
): readonly Json[] {
  const reasoning = replayable(message.codex_reasoning_items, options).flatMap((item) => reasoningItem(item, sent));
  const text = contentText(message);
  const recorded = replayable(message.codex_message_items, options).map(messageItem);
  // What was stored may differ from what came (masked secrets): then the stored text is what goes back.
  const said = recorded.length > 0 && finalText(recorded).trim() === text.trim() ? recorded : plainMessage(text);
  const calls = (message.tool_calls ?? []).map((call, index) => ({
    type: "function_call",
    call_id: ids.open(call, index),
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  // A reasoning item must be followed by what it led to.
  const alone = said.length === 0 && calls.length === 0;
  return [...reasoning, ...(alone ? [{ role: "assistant", content: "" }] : said), ...calls];
}

function plainMessage(text: string): readonly Json[] {
  return text.trim() === "" ? [] : [{ role: "assistant", content: text }];
}

function replayable(items: readonly unknown[] | undefined, { issuer, replay = true }: ReplayOptions): readonly Json[] {
  if (!replay) return [];
  return asList(items).filter(
    (item) => isRecord(item) && (issuer === undefined || item._issuer_kind === issuer),
  ) as Json[]; // isRecord above
}

function reasoningItem(item: Json, sent: Set<string>): readonly Json[] {
  const id = asText(item.id);
  if (asText(item.encrypted_content) === "" || sent.has(id)) return [];
  if (id !== "") sent.add(id);
  return [{ type: "reasoning", summary: asList(item.summary), encrypted_content: item.encrypted_content }];
}

function messageItem(item: Json): Json {
  const content = asList(item.content)
    .map(asRecord)
    .filter((part) => part.type === "output_text");
  return {
    type: "message",
    role: "assistant",
    ...(asText(item.id) && { id: item.id }),
    status: asText(item.status) || "completed",
    ...(asText(item.phase) && { phase: item.phase }),
    content: content.map((part) => ({ type: "output_text", text: asText(part.text), annotations: [] })),
  };
}

function finalText(items: readonly Json[]): string {
  return items
    .filter((item) => !isCommentary(item))
    .map((item) =>
      asList(item.content)
        .map((part) => asText(asRecord(part).text))
        .join(""),
    )
    .join("\n");
}

/** Text the model wrote for itself on the way; it is not the answer. */
export function isCommentary(item: Json): boolean {
  return item.phase === "commentary" || item.phase === "analysis";
}

function renderContent(message: OutgoingMessage): string | readonly Json[] {
  const parts = partsOf(message);
  return parts.some((part) => part.type === "image_url") ? parts.map(renderPart) : contentText(message);
}

function contentText(message: OutgoingMessage): string {
  return textOf(contentToSend(message));
}

function renderPart(part: OutgoingPart): Json {
  if (part.type === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: part.image_url.url, detail: part.image_url.detail ?? "auto" };
}

// codex_responses: what comes back, as a finished response.

interface ResponsesCall {
  readonly id: string;
  readonly callId: string;
  readonly itemId: string | null;
  readonly name: string;
  readonly arguments: string;
}

interface ResponsesAnswer {
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
    code: isRecord(response.error) ? undefined : asText(response.status) || "failed",
  });
}
