// The chats behind the look-alike Bot API: people who write, messages as they are seen, buttons that are pressed.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { UploadedFile } from "./telegram-rules.ts";

export interface Person {
  readonly id: number;
  readonly is_bot: boolean;
  readonly first_name: string;
  readonly username?: string;
}

interface Entity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
}

interface Button {
  readonly text: string;
  readonly callback_data?: string;
}

/** A message as it stands in a chat now. */
export interface Posted {
  readonly id: number;
  readonly from: Person;
  text: string;
  entities: readonly Entity[];
  buttons: readonly (readonly Button[])[];
  readonly thread: number | null;
  readonly replyTo: number | null;
  readonly silent: boolean;
  readonly file: { readonly kind: string; readonly upload: UploadedFile } | null;
  /** Earlier texts. */
  readonly past: string[];
  reaction: string | null;
}

/** What a message of the bot consists of, as the server has read it from a call. */
export type NewPost = Partial<Omit<Posted, "id" | "past" | "reaction">> & { readonly from: Person };

type Json = Readonly<Record<string, unknown>>;

export interface WriteOptions {
  readonly thread?: number;
  readonly replyTo?: number;
  /** More of the message: a poll, a forward. */
  readonly also?: Json;
}

interface RoomOptions {
  readonly id: number;
  readonly type: "private" | "group" | "supergroup" | "channel";
  readonly title?: string;
  readonly isForum?: boolean;
  readonly person?: Person;
}

/** Where a room takes numbers of updates and files from. */
export interface Exchange {
  readonly bot: Person;
  announce(kind: string, content: Json): void;
  keepFile(bytes: Buffer, path: string): string;
}

export class Room {
  readonly id: number;
  readonly options: RoomOptions;
  readonly messages = new Map<number, Posted>();
  /** Topics by their thread. */
  readonly topics = new Map<number, string>();
  readonly #openers = new Map<number, Person>();
  /** Why nothing can be sent here. */
  closed: { readonly code: number; readonly description: string } | null = null;
  /** Under which id this group goes on. */
  movedTo: number | null = null;
  typing = 0;
  #last = 100;
  readonly #exchange: Exchange;

  constructor(options: RoomOptions, exchange: Exchange) {
    this.id = options.id;
    this.options = options;
    this.#exchange = exchange;
  }

  topic(name: string, { by }: { readonly by?: Person } = {}): number {
    const thread = ++this.#last;
    this.topics.set(thread, name);
    if (by) this.#openers.set(thread, by);
    return thread;
  }

  // --- what people do

  /** Returns the number of the message. */
  write(from: Person, text: string, options: WriteOptions = {}): number {
    const posted = this.post({
      from,
      text,
      entities: entitiesIn(text),
      thread: options.thread ?? null,
      replyTo: options.replyTo ?? null,
    });
    this.#announce(
      "message",
      posted,
      { text, ...(posted.entities.length > 0 ? { entities: posted.entities } : {}) },
      options.also,
    );
    return posted.id;
  }

  edit(id: number, text: string): void {
    const posted = this.#find(id);
    posted.past.push(posted.text);
    posted.text = text;
    this.#announce("edited_message", posted, { text }, { edit_date: now() });
  }

  /** Bots are not told. */
  delete(id: number): void {
    this.messages.delete(id);
  }

  /** A picture, a sound, a file: `photo`, `voice`, `audio`, `video`, `document`, `sticker`. */
  attach(
    from: Person,
    kind: string,
    bytes: Buffer,
    { caption, name, ...options }: WriteOptions & { caption?: string; name?: string } = {},
  ): number {
    const id = this.#exchange.keepFile(bytes, `${kind}s/${name ?? `file_${this.#last}`}`);
    const file = { file_id: id, file_unique_id: id.slice(0, 8), file_size: bytes.length };
    const sized = { ...file, width: 90, height: 60 };
    const forms: Readonly<Record<string, Json>> = {
      photo: { photo: [{ ...sized, file_id: `${id}-small`, file_size: 10 }, sized] },
      voice: { voice: { ...file, duration: 2, mime_type: "audio/ogg" } },
      audio: { audio: { ...file, duration: 2, title: "Song" } },
      video: { video: { ...sized, duration: 2 } },
      document: { document: { ...file, ...(name ? { file_name: name } : {}) } },
      sticker: {
        sticker: { ...sized, type: "regular", is_animated: false, is_video: false, emoji: "👋", set_name: "Waves" },
      },
    };
    const posted = this.post({
      from,
      text: caption ?? "",
      thread: options.thread ?? null,
      replyTo: options.replyTo ?? null,
    });
    const entities = entitiesIn(caption ?? "");
    const said =
      caption === undefined ? {} : { caption, ...(entities.length > 0 ? { caption_entities: entities } : {}) };
    this.#announce("message", posted, { ...forms[kind], ...said }, options.also);
    return posted.id;
  }

  /** Something else: `{ poll: ... }`, `{ location: ... }`. */
  say(from: Person, content: Json, options: WriteOptions = {}): number {
    const posted = this.post({ from, thread: options.thread ?? null });
    this.#announce("message", posted, content, options.also);
    return posted.id;
  }

  /** Presses the button on the newest message that has it. */
  press(from: Person, label: string): void {
    const posted = [...this.messages.values()]
      .reverse()
      .find(({ buttons }) => buttons.flat().some(({ text }) => text === label));
    const button = posted?.buttons.flat().find(({ text }) => text === label);
    if (!posted || !button?.callback_data) throw new Error(`no button ${label} in:\n${this.transcript()}`);
    this.pressData(from, button.callback_data, posted.id);
  }

  /** As a client that still shows a button does. */
  pressData(from: Person, data: string, message: number): void {
    const posted = this.messages.get(message);
    const shown = posted
      ? this.#message(posted, { text: posted.text || "-" })
      : { chat: this.#chat(), message_id: message, date: 0 };
    this.#exchange.announce("callback_query", {
      id: randomBytes(6).toString("hex"),
      from,
      message: shown,
      chat_instance: "1",
      data,
    });
  }

  // --- what is seen

  get fromBot(): readonly Posted[] {
    return [...this.messages.values()].filter(({ from }) => from.id === this.#exchange.bot.id);
  }

  /** The newest message of the bot that looks like this, once there is one. */
  async shows(pattern: RegExp, ms = 60_000): Promise<Posted> {
    for (const deadline = Date.now() + ms; ; await sleep(10)) {
      const found = this.fromBot.findLast(({ text }) => pattern.test(text));
      if (found) return found;
      if (Date.now() > deadline) throw new Error(`${pattern} was not seen in:\n${this.transcript()}`);
    }
  }

  /** The chat as a person reads it from top to bottom. */
  transcript(): string {
    const lines = [...this.messages.values()].map(({ from, text, buttons, file, thread, reaction }) => {
      const name = from.id === this.#exchange.bot.id ? "Bot" : from.first_name;
      const topic = thread === null ? "" : ` (${this.topics.get(thread) ?? thread})`;
      const attached = file ? ` <${file.kind} ${file.upload.name}>` : "";
      const keys = buttons.map((row) => `\n   ${row.map((button) => `[${button.text}]`).join(" ")}`).join("");
      return `${name}${topic}:${attached} ${text.replaceAll("\n", "\n   ")}${reaction ? ` ${reaction}` : ""}${keys}`.trimEnd();
    });
    return lines.join("\n");
  }

  // --- for the server

  post({
    from,
    text = "",
    entities = [],
    buttons = [],
    thread = null,
    replyTo = null,
    silent = false,
    file = null,
  }: NewPost): Posted {
    const posted: Posted = {
      id: ++this.#last,
      from,
      text,
      entities,
      buttons,
      thread,
      replyTo,
      silent,
      file,
      past: [],
      reaction: null,
    };
    this.messages.set(posted.id, posted);
    return posted;
  }

  /** A message of the bot as a call is answered with. */
  asAnswer(posted: Posted): Json {
    return this.#message(posted, { text: posted.text || "-" });
  }

  #find(id: number): Posted {
    const posted = this.messages.get(id);
    if (!posted) throw new Error(`there is no message ${id}`);
    return posted;
  }

  #announce(kind: string, posted: Posted, content: Json, also: Json = {}): void {
    const type = this.options.type === "channel" ? kind.replace("message", "channel_post") : kind;
    this.#exchange.announce(type, { ...this.#message(posted, content), ...also });
  }

  #chat(): Json {
    const { id, type, title, isForum, person } = this.options;
    if (person) return { id, type, first_name: person.first_name };
    return { id, type, title, ...(isForum ? { is_forum: true } : {}) };
  }

  #message(posted: Posted, content: Json): Json {
    const { id, from, thread, replyTo } = posted;
    const answered = replyTo === null ? undefined : this.messages.get(replyTo);
    const name = thread === null ? undefined : this.topics.get(thread);
    // In a topic, what answers nothing else answers the message that opened it.
    const opener = this.#openers.get(thread ?? 0);
    const root = name !== undefined && {
      message_id: thread,
      date: now(),
      ...(opener ? { from: opener } : {}),
      chat: this.#chat(),
      forum_topic_created: { name, icon_color: 1 },
    };
    const reply = answered
      ? { ...this.#message({ ...answered, replyTo: null, thread: null }, { text: answered.text || "-" }) }
      : root || undefined;
    return {
      ...{ message_id: id, date: now(), chat: this.#chat() },
      ...(this.options.type === "channel" ? { sender_chat: this.#chat() } : { from }),
      ...(thread === null ? {} : { message_thread_id: thread, is_topic_message: true }),
      ...(reply ? { reply_to_message: reply } : {}),
      ...content,
    };
  }
}

const now = () => Math.floor(Date.now() / 1000);

/** What clients mark by themselves. */
function entitiesIn(text: string): Entity[] {
  const found = (type: string, pattern: RegExp) =>
    [...text.matchAll(pattern)].map(({ 0: words, index }) => ({ type, offset: index, length: words.length }));
  return [
    ...found("bot_command", /(?<![^\s])\/[a-z0-9_]{1,32}(?:@\w{3,32})?(?!\S)/gi),
    ...found("mention", /(?<![^\s(])@\w{3,32}/g),
  ].sort((a, b) => a.offset - b.offset);
}
