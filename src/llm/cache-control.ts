// Cache markers for hosts that want them spelled out. Laid over the outgoing copy last, so that they hide nothing from earlier steps.
import {
  type AssistantMessage,
  type ContentPart,
  type Message,
  type SystemMessage,
  type ToolMessage,
  type UserMessage,
  userContentToSend,
} from "./messages.ts";
import type { ToolDefinition } from "./wire.ts";

/** "The prompt up to here may be cached." */
export interface CacheMarker {
  readonly type: "ephemeral";
  readonly ttl?: "1h";
}

type Markable = { readonly cache_control?: CacheMarker };
export type OutgoingPart = ContentPart & Markable;
export type OutgoingTool = ToolDefinition & Markable;
type Outgoing<M extends Message> = Omit<M, "content"> &
  Markable & { readonly content: readonly OutgoingPart[] | Extract<M["content"], string | null> };

/** A message on its way out: like the stored one, but any of its parts, or the message itself, may carry a marker. */
export type OutgoingMessage =
  | Outgoing<SystemMessage>
  | Outgoing<UserMessage>
  | Outgoing<AssistantMessage>
  | Outgoing<ToolMessage>;

export type CacheLayout = "envelope" | "native";
export type CacheTtl = "5m" | "1h" | "off";

/** What the API accepts in one request. */
export const MAX_MARKERS = 4;

export function markerFor(ttl: Exclude<CacheTtl, "off">): CacheMarker {
  return ttl === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

/**
 * Marks the system message and the newest messages, four in all.
 *
 * `envelope` (OpenAI-style hosts) puts every marker on a content part, so a message without content cannot carry one and an earlier one
 * takes its slot. `native` (Anthropic wire) may put it on the message; the wire moves it to the last block that can carry it.
 */
export function applyCacheControl(
  messages: readonly OutgoingMessage[],
  { ttl, layout }: { readonly ttl: CacheTtl; readonly layout: CacheLayout },
): readonly OutgoingMessage[] {
  if (ttl === "off" || messages.some(isMarked)) return messages;
  const marker = markerFor(ttl);
  const marked = [...messages];
  let left = MAX_MARKERS;
  const mark = (index: number) => {
    const message = messages[index];
    const copy = message && left > 0 ? withMarker(message, marker, layout) : null;
    if (!copy) return;
    marked[index] = copy;
    left--;
  };
  const system = messages.findIndex((message) => message.role === "system");
  if (system >= 0) mark(system);
  for (let index = messages.length - 1; index >= 0; index--) if (messages[index]?.role !== "system") mark(index);
  return marked;
}

function isMarked(message: OutgoingMessage): boolean {
  if (message.cache_control) return true;
  return (
    typeof message.content === "object" && (message.content ?? []).some((part) => part.cache_control !== undefined)
  );
}

/** A marked copy; null when the message cannot carry a marker in this layout. */
export function withMarker(message: OutgoingMessage, marker: CacheMarker, layout: CacheLayout): OutgoingMessage | null {
  if (message.role === "tool" && layout === "native") return { ...message, cache_control: marker };
  const content = markLastPart(partsToSend(message), marker);
  if (!content) return layout === "native" ? { ...message, cache_control: marker } : null;
  if (message.role === "system" || message.role === "assistant") return { ...message, content };
  const { api_content: _, ...rest } = message;
  return { ...rest, content };
}

/**
 * The messages as they were before markers were laid: shapes that marking itself makes (one text, a system text cut in two) are joined
 * again, everything else keeps its structure.
 */
export function stripCacheControl(messages: readonly OutgoingMessage[]): readonly OutgoingMessage[] {
  return messages.some(isMarked)
    ? messages.map((message) => (isMarked(message) ? unmarked(message) : message))
    : messages;
}

function unmarked(message: OutgoingMessage): OutgoingMessage {
  const { cache_control: _, ...bare } = message;
  if (typeof bare.content === "string" || bare.content === null) return bare;
  const { content } = bare;
  const cut = bare.role === "system" && content.length === 2;
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (texts.length === content.length && (cut || content.length === 1)) return { ...bare, content: texts.join("") };
  return { ...bare, content: content.map(({ cache_control: __, ...part }) => part) };
}

function partsToSend(message: OutgoingMessage): readonly OutgoingPart[] {
  const content = contentToSend(message);
  return typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
}

/** What is sent of a message: `api_content`, where there is one, stands in for the content. */
export function contentToSend(message: OutgoingMessage): OutgoingMessage["content"] {
  if (message.role === "user") return userContentToSend(message);
  if (message.role === "tool") return message.api_content ?? message.content;
  return message.content;
}

/** Null when no part has anything to cache: a marker on a blank text is refused. */
function markLastPart(parts: readonly OutgoingPart[], marker: CacheMarker): readonly OutgoingPart[] | null {
  const last = parts.findLastIndex((part) => part.type !== "text" || part.text.trim() !== "");
  if (last < 0) return null;
  return parts.map((part, index) => (index === last ? { ...part, cache_control: marker } : part));
}
