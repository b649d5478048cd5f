// What people write to a WeCom robot, as the messages of every platform. Pure.
import { createDecipheriv } from "node:crypto";
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import type { ChatMessage } from "../../contract.ts";

export interface WeComFile {
  readonly url: string;
  /** It is encrypted with this, in base64. */
  readonly key: string;
  readonly kind: "image" | "file" | "video";
}

export interface Said {
  readonly id: string;
  readonly type: ChatMessage["type"];
  readonly text: string;
  readonly files: readonly WeComFile[];
  readonly source: ChatSource;
  readonly quote: string;
  /** Unix seconds. */
  readonly at: number;
}

/** Null: not a message of a person. */
export function readMessage(body: Json): Said | null {
  const id = asText(body.msgid);
  const user = asText(asRecord(body.from).userid);
  if (id === "" || user === "") return null;
  const isGroup = body.chattype === "group";
  const chat = asText(body.chatid);
  const { text, files } = contentOf(body);
  const kind = asText(body.msgtype);
  // In a group a robot hears only what begins with its name.
  const spoken = isGroup ? text.replace(/^@\S{1,64}\s{0,10}/, "") : text;
  return {
    ...{ id, files, text: spoken, quote: contentOf(asRecord(body.quote)).text },
    type: typeOf(kind, spoken),
    at: typeof body.create_time === "number" ? body.create_time : 0,
    source: {
      platform: "wecom",
      ...(isGroup ? { chat_id: chat, chat_type: "group" } : { chat_id: user, chat_type: "dm" }),
      ...{ user_id: user, user_name: user, message_id: id },
    },
  };
}

function typeOf(kind: string, text: string): ChatMessage["type"] {
  if (kind === "image") return "photo";
  if (kind === "file") return "document";
  if (kind === "video") return "video";
  return text.startsWith("/") ? "command" : "text";
}

function contentOf(body: Json): { readonly text: string; readonly files: readonly WeComFile[] } {
  const kind = asText(body.msgtype);
  const part = asRecord(body[kind]);
  switch (kind) {
    case "":
      return { text: "", files: [] };
    case "text":
    case "voice": // WeCom hands over what it has understood, and no sound
      return { text: asText(part.content).trim(), files: [] };
    case "image":
    case "file":
    case "video":
      return { text: "", files: [{ url: asText(part.url), key: asText(part.aeskey), kind }] };
    case "mixed": {
      const parts = asList(part.msg_item).map(asRecord).map(contentOf);
      const text = parts.map((one) => one.text).filter((line) => line !== "");
      return { text: text.join("\n"), files: parts.flatMap(({ files }) => files) };
    }
    default:
      return { text: `[unsupported: ${kind}]`, files: [] };
  }
}

/** AES-256 in CBC, with the start of the key before it and filled up to 32 bytes: more than Node takes away by itself. */
export function decrypted(bytes: Uint8Array, key: string): Buffer {
  const secret = Buffer.from(key, "base64");
  if (secret.length !== 32) throw new Error("its key is not valid");
  const decipher = createDecipheriv("aes-256-cbc", secret, secret.subarray(0, 16)).setAutoPadding(false);
  const plain = Buffer.concat([decipher.update(bytes), decipher.final()]);
  const fill = plain.at(-1) ?? 0;
  const isFilled = fill >= 1 && fill <= 32 && plain.subarray(-fill).every((byte) => byte === fill);
  if (!isFilled) throw new Error("it cannot be decrypted");
  return plain.subarray(0, -fill);
}
