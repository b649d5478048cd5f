// Requests whose pictures a server found too large: the same requests with smaller copies. Each copy is made once, so the bytes stay the
// same from request to request.
import { runAside } from "../../kit/worker.ts";
import type { ContentPart, Message } from "../messages.ts";
import type { ModelRequest } from "../wire.ts";
import { type ImageLimit, isLargeImage } from "./image-size.ts";

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
    const sent = request.messages.flatMap(pictures);
    for (const url of new Set(sent)) {
      const before = known?.get(url);
      const copy = before !== undefined ? before : await copyOf(url, limit, signal);
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

const pictures = ({ content }: Message): string[] =>
  Array.isArray(content) ? content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : [])) : [];

/** The message itself when none of its pictures is large. */
function withCopies(message: Message, copies: ReadonlyMap<string, string | null>): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  if (pictures(message).every((url) => copies.get(url) === url)) return message;
  const content = message.content.map((part): ContentPart => {
    if (part.type !== "image_url") return part;
    const url = copies.get(part.image_url.url);
    return url ? { ...part, image_url: { ...part.image_url, url } } : { type: "text", text: LEFT_OUT };
  });
  return { ...message, content };
}

async function copyOf(url: string, limit: ImageLimit, signal: AbortSignal): Promise<string | null> {
  if (!isLargeImage(url, limit)) return url;
  const worker = new URL("./smaller-worker.ts", import.meta.url);
  const data = { base64: url.slice(url.indexOf(",") + 1), limit };
  const base64 = await runAside<string>(worker, data, { signal, timeMs: TIME_MS, memoryMb: MEMORY_MB }).catch(
    (error) => {
      if (signal.aborted) return null;
      throw error;
    },
  );
  return base64 === null ? null : `data:image/jpeg;base64,${base64}`;
}
