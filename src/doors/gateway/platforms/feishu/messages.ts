// Feishu's messages as those of every platform, and ours as its cards. Pure.
import { asList, asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import type { ChatMessage, ChoiceButton } from "../../contract.ts";

export interface FeishuFile {
  readonly key: string;
  readonly kind: "image" | "file";
  readonly name: string | undefined;
}

export interface Said {
  readonly id: string;
  readonly chat: string;
  readonly isDirect: boolean;
  readonly sender: { readonly open: string; readonly union: string; readonly isApp: boolean };
  readonly type: ChatMessage["type"];
  readonly text: string;
  readonly files: readonly FeishuFile[];
  /** The message at the root of the thread it is in. */
  readonly thread: string | undefined;
  readonly parent: string | undefined;
  readonly mentionsUs: boolean;
  /** Milliseconds. */
  readonly at: number;
}

/** Null: not a message. */
export function readMessage(event: Json, us: string): Said | null {
  const message = asRecord(event.message);
  const { sender_id: ids, sender_type: kind } = asRecord(event.sender);
  const id = asText(message.message_id);
  if (id === "") return null;
  const mentions = asList(message.mentions).map(asRecord);
  const isUs = (mention: Json) => us !== "" && asRecord(mention.id).open_id === us;
  const content = asRecord(parseJson(asText(message.content)));
  const { text, files, type } = contentOf(asText(message.message_type), content, (key) => {
    const mention = mentions.find((one) => one.key === key);
    if (mention && isUs(mention)) return "";
    return mention ? `@${asText(mention.name)}` : key === "@_all" ? "@all" : key;
  });
  const parent = asText(message.parent_id);
  return {
    ...{ id, chat: asText(message.chat_id), isDirect: message.chat_type === "p2p", files, text },
    type: type === "text" && text.startsWith("/") ? "command" : type,
    sender: { open: asText(asRecord(ids).open_id), union: asText(asRecord(ids).union_id), isApp: kind === "app" },
    thread: asText(message.thread_id) === "" ? undefined : asText(message.root_id) || id,
    parent: parent === "" ? undefined : parent,
    mentionsUs: mentions.some(isUs),
    at: Number(message.create_time) || 0,
  };
}

type Content = Pick<Said, "text" | "files" | "type">;

function contentOf(kind: string, content: Json, named: (key: string) => string): Content {
  const mentioned = (text: string) => text.replace(/@_(?:user_\d{1,6}|all)/g, named).trim();
  const file = (key: unknown, of: FeishuFile["kind"], name?: string): FeishuFile[] =>
    asText(key) === "" ? [] : [{ key: asText(key), kind: of, name: name === "" ? undefined : name }];
  switch (kind) {
    case "text":
      return { type: "text", text: mentioned(asText(content.text)), files: [] };
    case "post":
      return postOf(content, mentioned);
    case "image":
      return { type: "photo", text: "", files: file(content.image_key, "image") };
    case "file":
      return { type: "document", text: "", files: file(content.file_key, "file", asText(content.file_name)) };
    case "audio":
      return { type: "voice", text: "", files: file(content.file_key, "file") };
    case "media":
      return { type: "video", text: "", files: file(content.file_key, "file", asText(content.file_name)) };
    case "location": {
      const place = `${asText(content.name)} (${asText(content.latitude)}, ${asText(content.longitude)})`;
      return { type: "location", text: `Location: ${place}`, files: [] };
    }
    default:
      return { type: "text", text: `[unsupported: ${kind || "message"}] ${asText(content.title)}`.trim(), files: [] };
  }
}

/** Paragraphs of marked-up parts; some clients wrap them in a language. */
function postOf(content: Json, mentioned: (text: string) => string): Content {
  const post = "content" in content ? content : asRecord(Object.values(content)[0]);
  const parts = asList(post.content).map((line) => asList(line).map(asRecord));
  const lines = parts.map((line) => line.map(partOf).join(""));
  const files = parts.flat().flatMap(({ tag, image_key: image, file_key: media }): FeishuFile[] => {
    if (tag === "img" && asText(image) !== "") return [{ key: asText(image), kind: "image", name: undefined }];
    return tag === "media" && asText(media) !== "" ? [{ key: asText(media), kind: "file", name: undefined }] : [];
  });
  const text = [asText(post.title), ...lines].filter((line, index) => line !== "" || index > 0).join("\n");
  return { type: "text", text: mentioned(text), files };
}

function partOf(part: Json): string {
  if (part.tag === "a") return `[${asText(part.text)}](${asText(part.href)})`;
  if (part.tag === "at") return asText(part.user_id);
  if (part.tag === "code_block")
    return `\n\`\`\`${asText(part.language).toLowerCase()}\n${asText(part.text)}\n\`\`\`\n`;
  return asText(part.text);
}

// What we send.

/** The form that can be changed later; its Markdown has headings, tables and code. */
export function textCard(markdown: string): Json {
  return {
    schema: "2.0",
    config: { update_multi: true },
    body: { elements: [{ tag: "markdown", content: markdown }] },
  };
}

export function questionCard(markdown: string, id: string, buttons: readonly ChoiceButton[]): Json {
  const rows = buttons.map(({ label, choice }, index) => ({
    tag: "button",
    text: { tag: "plain_text", content: label },
    type: index === 0 ? "primary" : "default",
    behaviors: [{ type: "callback", value: { hermes_question: id, choice } }],
  }));
  return {
    ...{ schema: "2.0", config: { update_multi: true } },
    body: { elements: [{ tag: "markdown", content: markdown }, ...rows] },
  };
}

interface Press {
  readonly question: string;
  readonly choice: string;
  readonly message: string;
  readonly chat: string;
  readonly user: { readonly open: string; readonly union: string };
}

/** Null: a button of something else. */
export function readPress(event: Json): Press | null {
  const value = asRecord(asRecord(event.action).value);
  const context = asRecord(event.context);
  const { open_id: open, union_id: union } = asRecord(event.operator);
  const question = asText(value.hermes_question);
  if (question === "" || asText(open) === "") return null;
  return {
    ...{ question, choice: asText(value.choice), user: { open: asText(open), union: asText(union) } },
    ...{ message: asText(context.open_message_id), chat: asText(context.open_chat_id) },
  };
}
