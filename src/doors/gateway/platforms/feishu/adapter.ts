// One app of Feishu or Lark: events come over the persistent connection or a webhook, answers go as cards over the open interface.
import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type ChoiceButton,
  type KnownChat,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type ReceivedFile,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { channelSettings, isForUs, isYes } from "../../groups.ts";
import type { Listener } from "../../listener.ts";
import { CallFailedError, mediaTypeOf } from "../../web-calls.ts";
import { FeishuApi, FeishuError, isBadToken, isGone, sendFailure } from "./api.ts";
import { Connection } from "./connection.ts";
import { type FeishuFile, questionCard, readMessage, readPress, type Said, textCard } from "./messages.ts";
import { openWebhook } from "./webhook.ts";

export const openFeishu = async (host: AdapterHost): Promise<PlatformAdapter> => new FeishuAdapter(host);

const MARKS = { working: "OnIt", done: "DONE", failed: "CrossMark" } as const;
const MOST_NAMES = 2000;
const CHATS_PER_PAGE = 100;

class FeishuAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #api: FeishuApi;
  readonly #names = new Map<string, string>();
  readonly #marks = new Map<string, string>();
  #connection: Connection | null = null;
  #marking = Promise.resolve();
  #listener: Listener | null = null;
  /** Our own open id: what a mention of us names. */
  #us = "";
  account = "";

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#api = new FeishuApi(host);
  }

  get listening(): string | undefined {
    return this.#listener?.url;
  }

  async connect(signal: AbortSignal): Promise<void> {
    const { bot } = await this.#api.call("GET", "/open-apis/bot/v3/info").catch((error: unknown) => {
      throw notConnected(error);
    });
    this.#us = asText(asRecord(bot).open_id);
    this.account = asText(asRecord(bot).app_name) || this.#api.credentials.id;
    if (this.#text("connection_mode", "FEISHU_CONNECTION_MODE") === "webhook") {
      this.#listener = await openWebhook(this.#host, (event) => this.#take(event));
      return;
    }
    this.#connection = new Connection({ host: this.#host, api: this.#api, take: (event) => this.#take(event) });
    await this.#connection.open(signal);
  }

  async disconnect(): Promise<void> {
    this.#connection?.close();
    await this.#listener?.close();
  }

  // Reading.

  /** Resolves to what is answered, for events that want more than a nod. */
  async #take({ header, event }: Json): Promise<Json | null> {
    const about = asRecord(event);
    switch (asRecord(header).event_type) {
      case "im.message.receive_v1": {
        const said = readMessage(about, this.#us);
        if (said && said.sender.open !== this.#us) await this.#receive(said);
        return null;
      }
      case "im.message.recalled_v1":
        await this.#host.changed(asText(about.message_id), null);
        return null;
      case "card.action.trigger":
        return this.#pressed(about);
      default:
        return null;
    }
  }

  async #receive(said: Said): Promise<void> {
    const { option, log } = this.#host;
    const about = {
      ...{ chatId: said.chat, threadId: said.thread, text: said.text, mentionsUs: said.mentionsUs },
      isCommand: said.type === "command",
    };
    if (!said.isDirect && !isForUs(about, option, { requireMention: true, prefix: "FEISHU" }, log)) return;
    const source = await this.#sourceOf(said);
    const { mentionsUs, sender } = said;
    const files: ReceivedFile[] = [];
    const problems: string[] = [];
    const mayFetch =
      said.files.length > 0 && ((await this.#host.allows?.({ source, mentionsUs, isBot: sender.isApp })) ?? true);
    for (const file of mayFetch ? said.files : []) {
      const got = await this.#fetch(said.id, file);
      if (typeof got === "string") problems.push(got);
      else files.push(got);
    }
    const message: ChatMessage = {
      text: [said.text, ...problems].filter((line) => line !== "").join("\n"),
      ...{ type: said.type, source, updateId: said.id, messageId: said.id, sentAt: said.at / 1000, mentionsUs },
      ...(sender.isApp ? { isBot: true } : {}),
      ...(files.length > 0 ? { files } : {}),
      ...(said.parent === undefined
        ? {}
        : { replyTo: { messageId: said.parent, text: await this.#textOf(said.parent) } }),
      ...channelSettings([said.thread, said.chat], option),
    };
    await this.#host.receive([message]);
  }

  async #sourceOf({ chat, isDirect, sender, thread, id }: Said): Promise<ChatSource> {
    const [user, name] = await Promise.all([
      this.#name(
        `/open-apis/contact/v3/users/${sender.open}?user_id_type=open_id`,
        sender.open,
        ({ user: of }) => asRecord(of).name,
      ),
      isDirect ? "" : this.#name(`/open-apis/im/v1/chats/${chat}`, chat, (data) => data.name),
    ]);
    return {
      ...{ platform: "feishu", chat_id: chat, chat_name: isDirect ? user : name, chat_type: isDirect ? "dm" : "group" },
      ...{ user_id: sender.open, user_name: user, message_id: id },
      ...(sender.union === "" ? {} : { user_id_alt: sender.union }),
      ...(thread === undefined ? {} : { thread_id: thread }),
    };
  }

  /** An app may not be allowed to look at names; then the id is one. */
  async #name(path: string, id: string, read: (data: Json) => unknown): Promise<string> {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const name = await this.#api.call("GET", path).then(
      (data) => asText(read(data)),
      () => "",
    );
    if (this.#names.size > MOST_NAMES) this.#names.clear();
    this.#names.set(id, name || id);
    return name || id;
  }

  async #textOf(messageId: string): Promise<string | undefined> {
    const data = await this.#api.call("GET", `/open-apis/im/v1/messages/${messageId}`).catch(() => ({}) as Json); // only shown
    const [item] = Array.isArray(data.items) ? data.items : [];
    const { msg_type: type, body } = asRecord(item);
    const content = { message_id: messageId, message_type: type, content: asRecord(body).content };
    return readMessage({ message: content, sender: {} }, "")?.text;
  }

  async #fetch(messageId: string, { key, kind, name }: FeishuFile): Promise<ReceivedFile | string> {
    try {
      const url = `${this.#api.base}/open-apis/im/v1/messages/${messageId}/resources/${key}?type=${kind}`;
      const headers = { authorization: `Bearer ${await this.#api.token()}` };
      return await this.#host.download(url, {
        headers,
        ownHost: new URL(url).host,
        ...(name === undefined ? {} : { name }),
      });
    } catch (error) {
      return `[not received: ${name ?? kind}: ${messageOf(error)}]`;
    }
  }

  async #pressed(event: Json): Promise<Json | null> {
    const press = readPress(event);
    if (!press) return null;
    const { user, chat } = press;
    let told = "";
    const known = (await this.#host.knownChats()).find((one) => one.chat_id === chat && one.user_id === user.open);
    const source: ChatSource = known ?? {
      ...{ platform: "feishu", chat_id: chat, chat_type: "group", user_id: user.open },
      ...(user.union === "" ? {} : { user_id_alt: user.union }),
    };
    await this.#host.pressed({
      ...{ source, choice: press.choice, questionId: press.question, messageId: press.message },
      answer: async (text) => {
        told = text;
      },
    });
    return told === "" ? {} : { toast: { type: "info", content: told } };
  }

  // Sending.

  send(target: ChatTarget, text: string, { key, plain }: SendOptions): Promise<SendResult> {
    if (plain) return this.#message(target, "text", { text }, `${key}:plain`);
    return this.#message(target, "interactive", textCard(text), key);
  }

  ask(
    target: ChatTarget,
    text: string,
    { id, buttons }: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    { key }: SendOptions,
  ): Promise<SendResult> {
    return this.#message(target, "interactive", questionCard(text, id, buttons), key);
  }

  async closeQuestion(_target: ChatTarget, messageId: string, text: string): Promise<void> {
    await this.#api.call("PATCH", `/open-apis/im/v1/messages/${messageId}`, {
      content: JSON.stringify(textCard(text)),
    });
  }

  async edit(_target: ChatTarget, messageId: string, text: string): Promise<SendResult> {
    try {
      await this.#api.call("PATCH", `/open-apis/im/v1/messages/${messageId}`, {
        content: JSON.stringify(textCard(text)),
      });
      return { messageId };
    } catch (error) {
      return sendFailure(error, false);
    }
  }

  async remove(_target: ChatTarget, messageId: string): Promise<void> {
    await this.#api.call("DELETE", `/open-apis/im/v1/messages/${messageId}`);
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, { key }: SendOptions): Promise<SendResult> {
    try {
      const { type, content } = await this.#upload(file);
      const sent = await this.#message(target, type, content, key);
      // Files have no text of their own here.
      if (file.caption && !("failed" in sent)) await this.send(target, file.caption, { key: `${key}:caption` });
      return sent;
    } catch (error) {
      if (error instanceof CallFailedError) return { failed: "unreachable", error: error.message };
      if (error instanceof FeishuError) return sendFailure(error, false);
      return { failed: "refused", error: `${file.name} cannot be read: ${messageOf(error)}` };
    }
  }

  async #upload({ path, name, kind }: OutgoingFile): Promise<{ readonly type: string; readonly content: Json }> {
    const bytes = await openAsBlob(path, { type: mediaTypeOf(name) });
    const form = new FormData();
    if (kind === "image") {
      form.set("image_type", "message");
      form.set("image", bytes, name);
      const { image_key: key } = await this.#api.call("POST", "/open-apis/im/v1/images", form);
      return { type: "image", content: { image_key: key } };
    }
    const type = fileTypeOf(name);
    form.set("file_type", type);
    form.set("file_name", name);
    form.set("file", bytes, name);
    const { file_key: key } = await this.#api.call("POST", "/open-apis/im/v1/files", form);
    // Only this kind of sound is played; everything else is a file.
    const shown = type === "opus" ? "audio" : type === "mp4" && kind === "video" ? "media" : "file";
    return { type: shown, content: { file_key: key } };
  }

  /** Feishu answers a repeat of the same id within an hour with the message it made the first time. */
  async #message(
    { chatId, threadId, replyTo }: ChatTarget,
    type: string,
    content: Json,
    key: string,
  ): Promise<SendResult> {
    const uuid = createHash("sha256")
      .update(`${key} ${threadId ?? ""}`)
      .digest("hex")
      .slice(0, 40);
    const body = { msg_type: type, content: JSON.stringify(content), uuid };
    const answered = replyTo ?? threadId;
    try {
      if (answered !== undefined) {
        const reply = { ...body, reply_in_thread: threadId !== undefined };
        const sent = await this.#api
          .call("POST", `/open-apis/im/v1/messages/${answered}/reply`, reply)
          .catch((error: unknown) => {
            if (threadId === undefined && isGone(error)) return null;
            throw error;
          });
        if (sent !== null) return { messageId: asText(sent.message_id) || null };
      }
      const kind = chatId.startsWith("ou_") ? "open_id" : chatId.startsWith("on_") ? "union_id" : "chat_id";
      const sent = await this.#api.call("POST", `/open-apis/im/v1/messages?receive_id_type=${kind}`, {
        ...body,
        receive_id: chatId,
      });
      return { messageId: asText(sent.message_id) || null };
    } catch (error) {
      return sendFailure(error, threadId !== undefined);
    }
  }

  /** One after the other: work may end before its first mark is there. */
  mark(_target: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    const marked = this.#marking.then(() => this.#mark(messageId, state));
    this.#marking = marked.catch(() => undefined); // told to the caller
    return marked;
  }

  async #mark(messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    if (!isYes(this.#host.option("reactions", "FEISHU_REACTIONS"), false)) return;
    const path = `/open-apis/im/v1/messages/${messageId}/reactions`;
    const before = this.#marks.get(messageId);
    this.#marks.delete(messageId);
    if (before !== undefined) await this.#api.call("DELETE", `${path}/${before}`);
    const { reaction_id: id } = await this.#api.call("POST", path, { reaction_type: { emoji_type: MARKS[state] } });
    if (state === "working") this.#marks.set(messageId, asText(id));
  }

  async chats(): Promise<readonly KnownChat[]> {
    const { items } = await this.#api.call("GET", `/open-apis/im/v1/chats?page_size=${CHATS_PER_PAGE}`);
    const list = Array.isArray(items) ? items.map(asRecord) : [];
    return list.map(({ chat_id: id, name }) => ({ id: asText(id), name: asText(name) || asText(id), type: "group" }));
  }

  #text(key: string, variable: string): string {
    return String(this.#host.option(key, variable) ?? "").trim();
  }
}

const FILE_TYPES = ["opus", "mp4", "pdf", "doc", "xls", "ppt"] as const;

function fileTypeOf(name: string): string {
  const ending = (name.split(".").at(-1) ?? "")
    .toLowerCase()
    .replace(/^(docx?|xlsx?|pptx?)$/, (found) => found.slice(0, 3));
  return FILE_TYPES.find((type) => type === ending) ?? "stream";
}

function notConnected(error: unknown): PlatformError {
  if (!(error instanceof FeishuError))
    return new PlatformError("unreachable", messageOf(error), { retryable: true, cause: error });
  if (error.status >= 500 || error.status === 429)
    return new PlatformError("unreachable", error.message, { retryable: true, cause: error });
  const what = isBadToken(error) || error.code === 10_003 || error.code === 10_014 ? "auth" : "refused";
  return new PlatformError(
    what,
    `${error.message}; check FEISHU_APP_ID, FEISHU_APP_SECRET and the bot feature of the app: hermes gateway setup`,
    {
      retryable: false,
      cause: error,
    },
  );
}
