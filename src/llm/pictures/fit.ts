// Requests whose pictures a server found too large: the same requests with smaller copies. Each copy is made once, so the bytes stay the
// same from request to request.
import { runInWorker } from "../../kit/worker.ts";
import {
  type ContentPart,
  type HistoryMessage,
  type Message,
  type ToolMessage,
  textOf,
  type UserMessage,
} from "../messages.ts";
import type { ModelRequest } from "../wire.ts";

const TIME_MS = 30_000;
const MEMORY_MB = 512;
const LEFT_OUT = "[picture left out: too large for this model, and not a PNG or JPEG that could be made smaller]";

export class FitPictures {
  /** Of the newest request, by limit and address: what no request carries any more is let go of. Null = it cannot be made smaller. */
  readonly #copies = new WeakMap<ImageLimit, ReadonlyMap<string, string | null>>();
  readonly #messages = new WeakMap<ImageLimit, WeakMap<Message, Message>>();

  /** The request as the limit wants it, how many of its pictures had to be left out, and how many of those for the first time. */
  async fit(
    request: ModelRequest,
    limit: ImageLimit | null,
    signal: AbortSignal,
  ): Promise<{ readonly request: ModelRequest; readonly lost: number; readonly newlyLost: number }> {
    if (limit === null) return { request, lost: 0, newlyLost: 0 };
    const known = this.#copies.get(limit);
    const copies = new Map<string, string | null>();
    let newlyLost = 0;
    const sent = request.messages.flatMap(pictureUrls);
    for (const url of new Set(sent)) {
      const before = known?.get(url);
      const copy = before !== undefined ? before : await fitPicture(url, limit, signal);
      // The request of an interrupted turn does not leave.
      if (signal.aborted) return { request, lost: 0, newlyLost };
      copies.set(url, copy);
      if (before === undefined && copy === null) newlyLost++;
    }
    this.#copies.set(limit, copies);
    const lost = sent.filter((url) => copies.get(url) === null).length;
    return { request: { ...request, messages: this.#withCopies(request.messages, limit, copies) }, lost, newlyLost };
  }

  #withCopies(messages: readonly Message[], limit: ImageLimit, copies: ReadonlyMap<string, string | null>) {
    const known = this.#messages.get(limit) ?? new WeakMap<Message, Message>();
    this.#messages.set(limit, known);
    return messages.map((message) => {
      const fit = known.get(message) ?? withCopies(message, copies);
      known.set(message, fit);
      return fit;
    });
  }
}

/** Addresses of the pictures of a message. */
export const pictureUrls = ({ content }: Message): string[] =>
  Array.isArray(content) ? content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : [])) : [];

/** The message itself when none of its pictures is large. */
function withCopies(message: Message, copies: ReadonlyMap<string, string | null>): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (pictureUrls(message).every((url) => copies.get(url) === url)) return message;
  const content = message.content.map((part): ContentPart => {
    if (part.type !== "image_url") return part;
    const url = copies.get(part.image_url.url);
    return url ? { ...part, image_url: { ...part.image_url, url } } : { type: "text", text: LEFT_OUT };
  });
  return { ...message, content };
}

/** The picture itself when it is small enough; null when it cannot be made smaller. */
export async function fitPicture(url: string, limit: ImageLimit, signal: AbortSignal): Promise<string | null> {
  if (!isLargeImage(url, limit)) return url;
  const worker = new URL("./smaller-worker.ts", import.meta.url);
  const data = { base64: url.slice(url.indexOf(",") + 1), limit };
  const base64 = await runInWorker<string>(worker, data, { signal, timeMs: TIME_MS, memoryMb: MEMORY_MB }).catch(
    (error) => {
      if (signal.aborted) return null;
      throw error;
    },
  );
  return base64 === null ? null : `data:image/jpeg;base64,${base64}`;
}

// Images cost: some servers refuse them, and their bytes never enter the database.

const LOST = "[screenshot]";
const REMOVED = "[image content removed — server does not support images]";
const REFUSAL =
  /does not support (?:image|vision|multimodal)|do(?:es)? not (?:accept|allow) image|image input|only (?:supports? )?text|text[- ]only|multimodal[^.]{0,200}not supported|images? (?:is|are) not supported|unknown variant [`'"]?image_url|no endpoints found that support image/i;

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

/** What a person said in a row, and for how many pictures there is only the word left. */
export function withoutPictureWords(text: string): { readonly text: string; readonly pictures: number } {
  const lines = text.split("\n");
  const said = lines.filter((line) => line !== LOST);
  return { text: said.join("\n"), pictures: lines.length - said.length };
}

/** A picture was said here once, and only the word for it was kept. */
export function lacksImage(message: HistoryMessage): boolean {
  if (message.role === "assistant") return false;
  return textOf(message.content).split("\n").includes(LOST);
}

function hasBytes(part: ContentPart): boolean {
  return part.type === "image_url" && part.image_url.url.startsWith("data:");
}

// How large a picture is, read from its first bytes.

export interface ImageLimit {
  readonly bytes: number;
  /** Pixels of the longer side. */
  readonly side: number;
}

const MB = 1024 * 1024;
/** What servers commonly take; and what the strictest take of many pictures at once. */
export const COMMON_LIMIT: ImageLimit = { bytes: 4 * MB, side: 8000 };
export const STRICT_LIMIT: ImageLimit = { bytes: MB, side: 2000 };
/** Base64 characters that are decoded to find the size; a JPEG may carry a preview and colour tables in front. */
const HEAD = 256 * 1024;

/** Only pictures that travel inside the request have a size here. */
export function isLargeImage(url: string, limit: ImageLimit): boolean {
  const comma = url.indexOf(",");
  if (!url.startsWith("data:") || comma < 0) return false;
  const base64 = url.slice(comma + 1);
  if ((base64.length * 3) / 4 > limit.bytes) return true;
  const size = imageSize(Buffer.from(base64.slice(0, HEAD), "base64"));
  return size !== null && Math.max(size.width, size.height) > limit.side;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Null when the bytes are no PNG, GIF, WebP or JPEG, or too few to tell. */
export function imageSize(bytes: Buffer): Size | null {
  if (bytes.length >= 24 && bytes.subarray(1, 4).toString("latin1") === "PNG")
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (bytes.length >= 10 && bytes.subarray(0, 3).toString("latin1") === "GIF")
    return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (bytes.length >= 30 && bytes.subarray(8, 12).toString("latin1") === "WEBP") return webpSize(bytes);
  return bytes.length >= 4 && bytes.readUInt16BE(0) === 0xffd8 ? jpegSize(bytes) : null;
}

function webpSize(bytes: Buffer): Size | null {
  const kind = bytes.subarray(12, 16).toString("latin1");
  if (kind === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === "VP8 ") return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  if (kind !== "VP8L") return null;
  const packed = bytes.readUInt32LE(21);
  return { width: (packed & 0x3fff) + 1, height: ((packed >> 14) & 0x3fff) + 1 };
}

function jpegSize(bytes: Buffer): Size | null {
  for (let at = 2; at + 9 < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt16BE(at);
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    if (marker < 0xffc0) return null;
  }
  return null;
}
