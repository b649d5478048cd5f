// What is sent to a room: contents of events, and the ids that make a repeat the same message.
import { createHash } from "node:crypto";
import type { Json } from "../../../../kit/json.ts";
import type { ChatTarget, OutgoingFile } from "../../contract.ts";
import { formattedBody } from "./html.ts";

/** The homeserver answers a repeat of the same id with the event it made the first time. What is said differently is another one. */
export function transactionId(key: string, ...variant: readonly string[]): string {
  return `hermes-${createHash("sha256")
    .update(JSON.stringify([key, ...variant]))
    .digest("hex")
    .slice(0, 32)}`;
}

export function textContent(markdown: string, { plain = false }: { readonly plain?: boolean | undefined }): Json {
  const html = plain ? null : formattedBody(markdown);
  return {
    msgtype: "m.text",
    body: markdown,
    ...(html === null ? {} : { format: "org.matrix.custom.html", formatted_body: html }),
    // Said in so many words, so that a name inside of the text rings nobody's bell.
    "m.mentions": {},
  };
}

export function inPlace(content: Json, { threadId, replyTo }: ChatTarget): Json {
  if (threadId !== undefined)
    return {
      ...content,
      "m.relates_to": {
        rel_type: "m.thread",
        event_id: threadId,
        is_falling_back: replyTo === undefined,
        "m.in_reply_to": { event_id: replyTo ?? threadId },
      },
    };
  if (replyTo !== undefined) return { ...content, "m.relates_to": { "m.in_reply_to": { event_id: replyTo } } };
  return content;
}

/** The new text, and the same behind a star for clients that cannot edit. */
export function editContent(
  markdown: string,
  messageId: string,
  options: { readonly plain?: boolean | undefined },
): Json {
  const fresh = textContent(markdown, options);
  const html = fresh.formatted_body;
  return {
    ...fresh,
    body: `* ${markdown}`,
    ...(html === undefined ? {} : { formatted_body: `* ${html}` }),
    "m.new_content": fresh,
    "m.relates_to": { rel_type: "m.replace", event_id: messageId },
  };
}

const MESSAGE_TYPES = {
  image: "m.image",
  audio: "m.audio",
  voice: "m.audio",
  video: "m.video",
  document: "m.file",
} as const;

export function fileContent(
  file: OutgoingFile,
  about: { readonly uri: string; readonly size: number; readonly type: string },
): Json {
  const caption = file.caption ?? "";
  return {
    ...(caption === "" ? { body: file.name } : textContent(caption, {})),
    msgtype: MESSAGE_TYPES[file.kind],
    filename: file.name,
    url: about.uri,
    info: { mimetype: about.type, size: about.size },
    ...(file.kind === "voice" ? { "org.matrix.msc3245.voice": {}, "org.matrix.msc1767.audio": {} } : {}),
    "m.mentions": {},
  };
}
