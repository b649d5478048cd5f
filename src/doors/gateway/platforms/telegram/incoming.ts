// Updates of Telegram in the words of every platform: who wrote what where, whether it is meant for us, and what came with it.
import { createReadStream } from "node:fs";
import { messageOf } from "../../../../kit/errors.ts";
import type { ChatSource } from "../../chat.ts";
import type { AdapterHost, ButtonPress, ChatMessage, ReceivedFile } from "../../contract.ts";
import { channelSettings, isForUs, isYes, listIn } from "../../groups.ts";
import type { Calls } from "./calls.ts";
import { addressesOf } from "./entry.ts";
import { GENERAL, parsePress } from "./sending.ts";
import type { CallbackQuery, Message, MessageEntity, MessageOrigin, Sticker, Update } from "./shapes.ts";

interface Me {
  readonly id: number;
  readonly username: string;
}

/** What an update asks for. */
export type Incoming =
  | { readonly type: "message"; readonly message: ChatMessage }
  | { readonly type: "changed"; readonly which: { chatId: string; messageId: string }; readonly text: string }
  | { readonly type: "pressed"; readonly press: ButtonPress };

const MB = 1024 * 1024;
/** What the Bot API of Telegram hands out; an own server has another limit. */
const MOST_BYTES = 20 * MB;
const MOST_BYTES_OWN = 2000 * MB;
const TOPICS = 1000;
const formatBytes = (size: number) =>
  size < MB ? `${Math.ceil(size / 1024)} KB` : `${Math.round((size * 10) / MB) / 10} MB`;
/** Telegram writes in the name of a group or channel with accounts of its own. */
const STAND_INS = new Set([777_000, 1_087_968_824, 136_817_688]);

const UNSUPPORTED = [
  ..."poll contact dice game story checklist giveaway giveaway_winners invoice paid_media live_photo".split(" "),
  ..."rich_message gift unique_gift passport_data web_app_data".split(" "),
];

export class IncomingReader {
  readonly #host: AdapterHost;
  readonly #calls: Calls;
  readonly #token: string;
  readonly #me: Me;
  readonly #topics = new Map<string, string>();

  constructor(host: AdapterHost, calls: Calls, token: string, me: Me) {
    this.#host = host;
    this.#calls = calls;
    this.#token = token;
    this.#me = me;
  }

  /** Null: nothing that anybody here is interested in. */
  async read(update: Update): Promise<Incoming | null> {
    if (update.callback_query) return this.#press(update.callback_query);
    const edited = update.edited_message ?? update.edited_channel_post;
    if (edited) {
      const text = textIn(edited, this.#me);
      const which = { chatId: String(edited.chat.id), messageId: String(edited.message_id) };
      return text === null ? null : { type: "changed", which, text };
    }
    const message = update.message ?? update.channel_post;
    if (!message || message.from?.id === this.#me.id) return null;
    this.#noteTopic(message);
    return this.#message(message, String(update.update_id));
  }

  async #message(message: Message, updateId: string): Promise<Incoming | null> {
    const text = textIn(message, this.#me);
    if (text === null) return null;
    const source = this.#source(message);
    const named = namesIn(message, this.#me);
    const fate = this.#fate(message, source, named, text);
    if (fate === "ignored") return null;
    const isBot = message.from?.is_bot === true && message.sender_chat === undefined;
    const mentionsUs = named.us || repliesTo(message, this.#me);
    const attached = attachmentOf(message);
    const who = { source, isBot, mentionsUs };
    const isWelcome = attached !== null && ((await this.#host.allows?.(who)) ?? true);
    const { sticker } = message;
    const isKnown = (sticker && (await this.#host.knowsSticker?.(sticker.file_unique_id))) ?? false;
    const fetched = attached && isWelcome && !isKnown && fate === "ours" ? await this.#fetch(attached) : null;
    const note = fetched && "note" in fetched ? fetched.note : "";
    const { forward_origin: origin, reply_to_message: answered, quote } = message;
    const shown = origin ? `[Forwarded from ${oneLine(nameOfOrigin(origin))}]` : text;
    const isAnswer = answered !== undefined && !isTopicRoot(message);
    const album = message.media_group_id;
    const read: ChatMessage = {
      ...{ ...who, updateId, sentAt: message.date },
      text: [shown, note].filter((part) => part !== "").join("\n"),
      type:
        !origin && /^\/[^\s/]+(?=\s|$)/.test(text)
          ? "command"
          : (attached?.type ?? (isPlace(message) ? "location" : "text")),
      messageId: String(message.message_id),
      ...(fetched && "file" in fetched ? { files: [fetched.file] } : {}),
      ...(album === undefined ? {} : { album }),
      ...(sticker ? { sticker: stickerOf(sticker) } : {}),
      ...(isAnswer
        ? {
            replyTo: { messageId: String(answered.message_id), text: quote?.text ?? answered.text ?? answered.caption },
          }
        : {}),
      ...(origin && text !== "" ? { context: text } : {}),
      ...(fate === "observed" ? { observed: true } : {}),
      ...channelSettings([source.thread_id, source.chat_id], this.#host.option),
    };
    return { type: "message", message: read };
  }

  #source(message: Message): ChatSource {
    const { chat, from, sender_chat: sender } = message;
    const inName = sender !== undefined && (from === undefined || STAND_INS.has(from.id)) ? sender : undefined;
    const user = inName ?? from;
    const thread = threadOf(message);
    const topic = thread === undefined ? undefined : this.#topics.get(`${chat.id}:${thread}`);
    const person = nameOf(user);
    return {
      platform: "telegram",
      chat_id: String(chat.id),
      chat_name: nameOf(chat),
      chat_type: chat.type === "private" ? "dm" : chat.type === "channel" ? "channel" : "group",
      ...(user ? { user_id: String(user.id), user_name: person } : {}),
      ...(thread === undefined ? {} : { thread_id: thread }),
      ...(topic === undefined ? {} : { chat_topic: topic }),
      message_id: String(message.message_id),
    };
  }

  #fate(message: Message, source: ChatSource, named: Named, text: string): "ours" | "observed" | "ignored" {
    if (source.chat_type === "dm") return "ours";
    const { option, log } = this.#host;
    const read = (key: string) => option(key, `TELEGRAM_${key.toUpperCase()}`);
    const { thread_id: thread, chat_id: chatId = "" } = source;
    if (thread !== undefined) {
      const topics = listIn(read("allowed_topics"));
      if (topics.size > 0 && !topics.has(thread)) return "ignored";
      if (listIn(read("ignored_threads")).has(thread)) return "ignored";
    }
    const about = {
      ...{ chatId, threadId: thread, text, mentionsUs: named.us, repliesToUs: repliesTo(message, this.#me) },
      isCommand: named.isCommand,
    };
    const defaults = { requireMention: false, prefix: "TELEGRAM" };
    const isExclusive = isYes(read("exclusive_bot_mentions"), false);
    const isForAnother = !named.us && (named.othersCommand || (named.otherBot && isExclusive));
    if (!isForAnother && isForUs(about, option, defaults, log)) return "ours";
    const isHere = isForUs({ ...about, mentionsUs: true }, option, defaults, log);
    if (!isHere && named.us && isYes(read("guest_mode"), false)) return "ours";
    return isHere && isYes(read("observe_unmentioned"), false) ? "observed" : "ignored";
  }

  #press({ id, from, message, data }: CallbackQuery): Incoming {
    const parsed = parsePress(data ?? "");
    let isAnswered = false;
    const answer = async (text: string) => {
      if (isAnswered) return;
      isAnswered = true;
      const said = text === "" ? {} : { text: [...text].slice(0, 200).join("") };
      // After a while Telegram no longer knows the press; nobody waits for it then.
      await this.#calls.call("answerCallbackQuery", { callback_query_id: id, ...said }).catch((error) => {
        this.#host.log.debug("a press of a button could not be answered", error);
      });
    };
    const { message_id: messageId } = message ?? {};
    const place = message
      ? this.#source({ ...message, from } as Message) // it may be gone: only chat, topic and number are read
      : ({ platform: "telegram", chat_type: "dm" } as const);
    const source: ChatSource = { ...place, user_id: String(from.id), user_name: nameOf(from) };
    const { choice = "", questionId = "" } = parsed ?? {};
    const of = messageId === undefined ? {} : { messageId: String(messageId) };
    return { type: "pressed", press: { source, choice, questionId, ...of, answer } };
  }

  #noteTopic(message: Message): void {
    const created = message.forum_topic_created ?? message.reply_to_message?.forum_topic_created;
    const name = message.forum_topic_edited?.name ?? created?.name;
    const thread = message.message_thread_id;
    if (name && thread !== undefined) remember(this.#topics, `${message.chat.id}:${thread}`, name, TOPICS);
  }

  /** Rejects never: what cannot be fetched is named in the text, and the turn runs. */
  async #fetch({ id, name, size }: Attachment): Promise<{ readonly file: ReceivedFile } | { readonly note: string }> {
    const { option } = this.#host;
    const { files, isOwn } = addressesOf(option);
    const maxBytes = isOwn ? MOST_BYTES_OWN : MOST_BYTES;
    const because = (reason: string) => ({
      note: `[${oneLine(name)}${size === undefined ? "" : ` (${formatBytes(size)})`} was not fetched: ${reason}]`,
    });
    if (size !== undefined && size > maxBytes)
      return because(`Telegram gives bots files up to ${formatBytes(maxBytes)}`);
    try {
      const { file_path: path } = await this.#calls.call<{ readonly file_path?: string }>("getFile", {
        file_id: id,
      });
      if (path === undefined) return because("Telegram does not hand it out");
      if (path.startsWith("/")) {
        if (!isOwn || !isYes(option("local_mode", "TELEGRAM_LOCAL_MODE"), false))
          return because("it is a path on the Bot API server; set local_mode if that runs on this machine");
        return { file: await this.#host.keepFile(createReadStream(path), { name }) };
      }
      const url = `${files}/file/bot${this.#token}/${path}`;
      return { file: await this.#host.download(url, { name, ownHost: new URL(files).host, maxBytes }) };
    } catch (error) {
      const reason = messageOf(error).replaceAll(this.#token, "[token]");
      this.#host.log.warn(`a file of a message was not fetched: ${reason}`);
      return because(/file is too big/i.test(reason) ? "it is too large for the Bot API" : reason);
    }
  }
}

// What is in a message.

/** Null: nobody wrote this, it only says that something happened in the chat. */
function textIn(message: Message, me: Me): string | null {
  const written = withoutOurName(message, me);
  const lines: string[] = [];
  const { location, venue, sticker } = message;
  if (venue)
    lines.push(`[location: ${oneLine(venue.title)}, ${oneLine(venue.address)} (${coordinates(venue.location)})]`);
  else if (location) lines.push(`[location: ${coordinates(location)}]`);
  if (sticker) lines.push(stickerOf(sticker).words);
  const isKnown = message.text !== undefined || location !== undefined || attachmentOf(message) !== null;
  const kind = isKnown ? undefined : UNSUPPORTED.find((key) => key in message);
  if (kind !== undefined) lines.push(`[unsupported: ${kind}]`);
  if (!isKnown && kind === undefined) return null;
  return [...lines, ...(written === "" ? [] : [written])].join("\n");
}

/** Names are chosen by others: none may pass for the end of the brackets around it, or for another line. */
const oneLine = (name: string) => [...name.replace(/[[\]\p{C}\p{Z}]+/gu, " ").trim()].slice(0, 80).join("");

function stickerOf({ file_unique_id: id, emoji = "", set_name: set = "" }: Sticker): { id: string; words: string } {
  const from = set === "" ? "" : ` from "${oneLine(set.replaceAll('"', ""))}"`;
  return { id, words: `[sticker${emoji === "" ? "" : ` ${oneLine(emoji)}`}${from}]` };
}

const coordinates = ({ latitude, longitude }: { latitude: number; longitude: number }) => `${latitude}, ${longitude}`;
const isPlace = ({ location, venue }: Message) => location !== undefined || venue !== undefined;

interface Attachment {
  readonly type: Exclude<ChatMessage["type"], "text" | "command" | "location">;
  readonly id: string;
  readonly name: string;
  readonly size: number | undefined;
}

function attachmentOf(message: Message): Attachment | null {
  const { photo, video, video_note: note, animation, audio, voice, document, sticker } = message;
  const as = (
    type: Attachment["type"],
    file: { readonly file_id: string; readonly file_size?: number; readonly file_name?: string },
    name: string,
  ): Attachment => ({ type, id: file.file_id, name: file.file_name ?? name, size: file.file_size });
  // The sizes are in order; the last one is the picture itself.
  const picture = photo?.at(-1);
  if (picture) return as("photo", picture, "photo.jpg");
  // An animation is a document too, for clients that know none.
  if (animation) return as("video", animation, "animation.mp4");
  if (video) return as("video", video, "video.mp4");
  if (note) return as("video", note, "video.mp4");
  if (voice) return as("voice", voice, "voice.ogg");
  if (audio) return as("audio", audio, audio.title ? `${audio.title}.mp3` : "audio.mp3");
  if (document) return as("document", document, "document");
  // What moves is shown by its first picture.
  const still = sticker?.is_video || sticker?.is_animated ? sticker.thumbnail : undefined;
  if (still) return as("sticker", still, "sticker.webp");
  if (sticker)
    return as(
      "sticker",
      sticker,
      sticker.is_video ? "sticker.webm" : sticker.is_animated ? "sticker.tgs" : "sticker.webp",
    );
  return null;
}

interface Named {
  readonly us: boolean;
  readonly otherBot: boolean;
  readonly isCommand: boolean;
  /** `/start@another_bot` */
  readonly othersCommand: boolean;
}

const bodyOf = ({ text, caption, entities, caption_entities: inCaption }: Message) => ({
  body: text ?? caption ?? "",
  entities: (text === undefined ? inCaption : entities) ?? [],
});

/** The name that an entity names somebody by, without `@`; null: it names nobody. */
function nameIn(body: string, { type, offset, length }: MessageEntity): string | null {
  const words = body.slice(offset, offset + length);
  if (type === "mention") return words.slice(1).toLowerCase();
  const at = words.indexOf("@");
  return type === "bot_command" && at !== -1 ? words.slice(at + 1).toLowerCase() : null;
}

function namesIn(message: Message, me: Me): Named {
  const { body, entities } = bodyOf(message);
  const names = entities.map((entity) => nameIn(body, entity)).filter((name) => name !== null);
  const people = entities.flatMap((entity) => (entity.type === "text_mention" ? [entity.user] : []));
  const own = me.username.toLowerCase();
  const command = entities.find(({ type, offset }) => type === "bot_command" && offset === 0);
  const addressed = command === undefined ? null : nameIn(body, command);
  return {
    us: names.includes(own) || people.some(({ id }) => id === me.id),
    otherBot:
      names.some((name) => name !== own && name.endsWith("bot")) ||
      people.some(({ id, is_bot: isBot }) => isBot && id !== me.id),
    isCommand: command !== undefined,
    othersCommand: addressed !== null && addressed !== own,
  };
}

/** Whom it is for is known; what is left is what is said. A message that only names us keeps the name. */
function withoutOurName(message: Message, me: Me): string {
  const { body, entities } = bodyOf(message);
  const own = me.username.toLowerCase();
  const ours = entities.filter((entity) => nameIn(body, entity) === own);
  const left = ours.reduceRight((text, entity) => {
    const start = entity.type === "mention" ? entity.offset : body.indexOf("@", entity.offset);
    const end = entity.offset + entity.length;
    const isBetween = /\s/.test(text.charAt(end)) && (start === 0 || /\s/.test(text.charAt(start - 1)));
    return text.slice(0, start) + text.slice(isBetween ? end + 1 : end);
  }, body);
  return left.trim() === "" ? body : left;
}

/** In a topic every message answers the one that opened it. */
const isTopicRoot = ({ reply_to_message: answered, message_thread_id: thread, is_topic_message: inTopic }: Message) =>
  answered?.forum_topic_created !== undefined || (inTopic === true && answered?.message_id === thread);

const repliesTo = (message: Message, me: Me) => message.reply_to_message?.from?.id === me.id && !isTopicRoot(message);

function threadOf({ chat, is_topic_message: inTopic, message_thread_id: thread }: Message): string | undefined {
  if (inTopic && thread !== undefined) return String(thread);
  return chat.type === "supergroup" && chat.is_forum ? GENERAL : undefined;
}

function nameOf(one: object | undefined): string | undefined {
  const { title, first_name: first, last_name: last, username } = (one ?? {}) as Readonly<Record<string, string>>; // people and chats have some of these
  return title || [first, last].filter((part) => part).join(" ") || username || undefined;
}

function nameOfOrigin(origin: MessageOrigin): string {
  if (origin.type === "hidden_user") return origin.sender_user_name;
  const from = origin.type === "user" ? origin.sender_user : origin.type === "chat" ? origin.sender_chat : origin.chat;
  return nameOf(from) ?? "somebody";
}

function remember(known: Map<string, string>, key: string, value: string, most: number): void {
  known.delete(key);
  known.set(key, value);
  for (const oldest of known.keys()) {
    if (known.size <= most) return;
    known.delete(oldest);
  }
}
