// Images cost: some servers refuse them, and their bytes never enter the database.
import {
  type ContentPart,
  type HistoryMessage,
  type Message,
  type ToolMessage,
  textOf,
  type UserMessage,
} from "../messages.ts";

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
    if (message.role === "tool") return [{ ...message, content: REMOVED }];
    return message.role === "user" && message.api_content?.trim() ? [{ ...message, content: "" }] : [];
  });
  const changed = stripped.length !== messages.length || stripped.some((message, index) => message !== messages[index]);
  return { messages: changed ? stripped : messages, changed };
}

/** What a row keeps of a message: picture bytes become a word, addresses and paths of pictures stay. */
export function withoutImageBytes(message: HistoryMessage): HistoryMessage {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (!message.content.some(hasBytes)) return message;
  const said = picturesToWords(message, hasBytes, LOST);
  if (typeof said.content === "string" || said.content.some((part) => part.type !== "text")) return said;
  return { ...said, content: textOf(said.content) };
}

/** Some pictures of a message become a word, in what it says and in what is sent of it. */
export function picturesToWords<M extends UserMessage | ToolMessage>(
  message: M,
  takes: (part: ContentPart) => boolean,
  word: string,
): M {
  if (typeof message.content === "string") return message;
  const content = message.content.map((part): ContentPart => (takes(part) ? { type: "text", text: word } : part));
  const { api_content: sent } = message;
  if (message.role === "tool" || sent === undefined) return { ...message, content };
  const said = textOf(message.content);
  const now = textOf(content);
  if (said === "") return { ...message, content, api_content: `${now}\n\n${sent}` };
  const rest = sent.startsWith(said) ? sent.slice(said.length) : null;
  return { ...message, content, api_content: rest === null ? `${sent}\n${word}` : now + rest };
}

/** A picture was said here once, and only the word for it was kept. */
export function lacksImage(message: HistoryMessage): boolean {
  if (message.role === "assistant") return false;
  return textOf(message.content).split("\n").includes(LOST);
}

function hasBytes(part: ContentPart): boolean {
  return part.type === "image_url" && part.image_url.url.startsWith("data:");
}
