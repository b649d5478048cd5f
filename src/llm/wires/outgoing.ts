// The steps every wire takes before it renders: images a host cannot see become text, cache markers are laid.
import { contentToSend, type OutgoingMessage, type OutgoingPart, type OutgoingTool } from "../cache-control.ts";
import { planCache } from "../cache-plan.ts";
import type { Message } from "../messages.ts";
import type { ModelRequest } from "../wire.ts";

const IMAGE_REMOVED = "[image content removed — server does not support images]";

export interface Prepared {
  readonly messages: readonly OutgoingMessage[];
  readonly tools: readonly OutgoingTool[];
}

export function prepare({ target, messages, tools, cacheTtl = "5m", promptLayout }: ModelRequest): Prepared {
  const { images, cacheLayout } = target.profile;
  const seen = images ? messages : messages.map(withoutImages);
  const stable = promptLayout?.stable ?? "";
  const planned = planCache({ messages: seen, tools, target, ttl: cacheTtl, stable });
  return {
    tools: planned.tools,
    messages: cacheLayout === "envelope" ? planned.messages.map(withParts) : planned.messages,
  };
}

/** Text as a part in every message: a marker that moves on then takes only a key with it and leaves the shape as it was. */
function withParts(message: OutgoingMessage): OutgoingMessage {
  const content = partsOf(message);
  if (content.length === 0) return message;
  if (message.role === "system" || message.role === "assistant") return { ...message, content };
  const { api_content: _, ...rest } = message;
  return { ...rest, content };
}

/** The content as parts, blank texts left out. */
export function partsOf(message: OutgoingMessage): readonly OutgoingPart[] {
  const content = contentToSend(message);
  const parts: readonly OutgoingPart[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  return parts.filter((part) => part.type !== "text" || part.text.trim() !== "");
}

function withoutImages(message: Message): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (!message.content.some((part) => part.type === "image_url")) return message;
  const content = message.content.map((part) =>
    part.type === "image_url" ? ({ type: "text", text: IMAGE_REMOVED } as const) : part,
  );
  return { ...message, content };
}
