// Our messages as input items of the Responses API.

import { asList, asRecord, asText, isRecord, type Json } from "../../../kit/moved-json.ts";
import { contentToSend, type OutgoingMessage, type OutgoingPart } from "../../cache-control.ts";
import { CallIdsOnWire, deterministicCallId } from "../../call-ids.ts";
import { textOf } from "../../messages.ts";
import { partsOf } from "../outgoing.ts";

export interface ReplayOptions {
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
