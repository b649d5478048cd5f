// What people write to a DingTalk robot, as the messages of every platform. Pure.
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import type { ChatMessage } from "../../contract.ts";

export interface DingTalkFile {
  readonly code: string;
  readonly name: string | undefined;
}

export interface Said {
  readonly id: string;
  readonly type: ChatMessage["type"];
  readonly text: string;
  readonly files: readonly DingTalkFile[];
  readonly source: ChatSource;
  readonly mentionsUs: boolean;
  /** Milliseconds. */
  readonly at: number;
  /** Where an answer goes without a token, for as long as it is valid. */
  readonly webhook: { readonly url: string; readonly expires: number } | null;
}

const KINDS: Readonly<Record<string, ChatMessage["type"]>> = {
  picture: "photo",
  audio: "voice",
  video: "video",
  file: "document",
};

/** Null: not a message of a person. */
export function readMessage(data: Json): Said | null {
  const id = asText(data.msgId);
  const staff = asText(data.senderStaffId);
  const sender = asText(data.senderId);
  const conversation = asText(data.conversationId);
  if (id === "" || conversation === "" || (staff === "" && sender === "")) return null;
  const isDirect = data.conversationType === "1";
  const user = staff || sender;
  const name = asText(data.senderNick);
  const { webhook, ...said } = { ...contentOf(data), webhook: webhookOf(data) };
  return {
    ...{ id, ...said, webhook, mentionsUs: data.isInAtList === true },
    at: typeof data.createAt === "number" ? data.createAt : 0,
    source: {
      platform: "dingtalk",
      // By this id a person can be written to at any time; the conversation's would need the robot to be in it.
      ...(isDirect && staff !== ""
        ? { chat_id: `user:${staff}`, chat_id_alt: conversation, chat_name: name }
        : { chat_id: conversation, chat_name: asText(data.conversationTitle) || name || conversation }),
      ...{ chat_type: isDirect ? "dm" : "group", user_id: user, user_name: name || user, message_id: id },
      ...(sender !== "" && sender !== user ? { user_id_alt: sender } : {}),
    },
  };
}

function webhookOf(data: Json): Said["webhook"] {
  const url = asText(data.sessionWebhook);
  const expires = data.sessionWebhookExpiredTime;
  return url === "" ? null : { url, expires: typeof expires === "number" ? expires : 0 };
}

function contentOf(data: Json): Pick<Said, "type" | "text" | "files"> {
  const kind = asText(data.msgtype);
  const content = asRecord(data.content);
  if (kind === "text") {
    const text = asText(asRecord(data.text).content).trim();
    return { type: text.startsWith("/") ? "command" : "text", text, files: [] };
  }
  if (kind === "richText") {
    const parts = asList(content.richText).map(asRecord);
    const files = parts.map(({ downloadCode }) => ({ code: asText(downloadCode), name: undefined }));
    const text = parts.map((part) => asText(part.text)).join("");
    return { type: "text", text: text.trim(), files: files.filter(({ code }) => code !== "") };
  }
  const code = asText(content.downloadCode);
  const type = KINDS[kind];
  if (type === undefined || code === "")
    return { type: "text", text: `[unsupported: ${kind || "message"}]`, files: [] };
  const name = asText(content.fileName);
  // Speech comes with what DingTalk has understood.
  const heard = asText(content.recognition);
  return { type, text: heard, files: [{ code, name: name === "" ? undefined : name }] };
}
