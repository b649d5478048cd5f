// Images cost: some servers refuse them, and their bytes never enter the database.
import { type ContentPart, type HistoryMessage, type Message, textOf } from "../../llm/messages.ts";

const LOST = "[screenshot]";
const REMOVED = "[image content removed — server does not support images]";
const REFUSAL =
  /does not support (?:image|vision|multimodal)|do(?:es)? not (?:accept|allow) image|image input|only (?:supports? )?text|text[- ]only|multimodal[^.]*not supported|images? (?:is|are) not supported|unknown variant [`'"]?image_url|no endpoints found that support image/i;

/** A server's 4xx text that means "no images here". */
export function refusesImages(status: number | undefined, text: string): boolean {
  return status !== undefined && status >= 400 && status < 500 && REFUSAL.test(text);
}

/** User parts lose their images, a user message left empty goes; a tool message left empty says what was taken. `takes`: only these go. */
export function stripImagesFromMessages(
  messages: readonly Message[],
  takes: (url: string) => boolean = () => true,
): {
  readonly messages: readonly Message[];
  readonly changed: boolean;
} {
  const stripped = messages.flatMap((message): readonly Message[] => {
    if (message.role === "assistant" || typeof message.content === "string") return [message];
    const kept = message.content.filter((part) => part.type === "text" || !takes(part.image_url.url));
    if (kept.length === message.content.length) return [message];
    if (kept.length > 0) return [{ ...message, content: kept }];
    return message.role === "tool" ? [{ ...message, content: REMOVED }] : [];
  });
  const changed = stripped.length !== messages.length || stripped.some((message, index) => message !== messages[index]);
  return { messages: changed ? stripped : messages, changed };
}

/** What a row keeps of a message: picture bytes become a word, addresses and paths of pictures stay. */
export function withoutImageBytes(message: HistoryMessage): HistoryMessage {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (!message.content.some(hasBytes)) return message;
  const parts = message.content.map((part): ContentPart => (hasBytes(part) ? { type: "text", text: LOST } : part));
  if (parts.some((part) => part.type !== "text")) return { ...message, content: parts };
  return { ...message, content: parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n") };
}

/** A picture was said here once, and only the word for it was kept. */
export function lacksImage(message: HistoryMessage): boolean {
  if (message.role === "assistant") return false;
  return textOf(message.content).split("\n").includes(LOST);
}

function hasBytes(part: ContentPart): boolean {
  return part.type === "image_url" && part.image_url.url.startsWith("data:");
}
