import type { ContentPart, Message } from "../../llm/messages.ts";
import { picturesToWords } from "../../llm/pictures/images.ts";

const STRIPPED = "[Attached image — stripped after compression]";

/** Pictures older than the newest user message that has one become a word. */
export function stripHistoricalMedia<M extends Message>(messages: readonly M[]): readonly M[] {
  const newest = messages.findLastIndex((message) => message.role === "user" && hasImage(message));
  if (newest <= 0) return messages;
  const kept = messages.map((message, index) =>
    index < newest && hasImage(message) ? withoutImages(message) : message,
  );
  return kept.some((message, index) => message !== messages[index]) ? kept : messages;
}

function hasImage({ content }: Message): boolean {
  return Array.isArray(content) && content.some((part: ContentPart) => part.type === "image_url");
}

function withoutImages<M extends Message>(message: M): M {
  if (message.role !== "user" && message.role !== "tool") return message;
  return picturesToWords(message, (part) => part.type === "image_url", STRIPPED) as M; // the role stays
}
