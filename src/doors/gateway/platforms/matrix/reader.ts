// Turns the news of a sync into messages and changes: fills gaps, looks up what a reply answers, fetches files, answers invitations.
import { messageOf } from "../../../../kit/errors.ts";
import { asList, asRecord, asText, type Json } from "../../../../kit/json.ts";
import { accessRules, forStranger, isAuthorised } from "../../access.ts";
import type { ChatSource } from "../../chat.ts";
import type { AdapterHost, ChatMessage, ReceivedFile } from "../../contract.ts";
import { channelSettings, isForUs, isYes } from "../../groups.ts";
import { type Homeserver, MatrixFailure } from "./client.ts";
import {
  type Attachment,
  HISTORY_FILTER,
  isArrival,
  mentions,
  type RoomEvent,
  readEvent,
  relationOf,
  saidBy,
  sinceWeCame,
  spokenText,
  withCommand,
} from "./inbound.ts";
import { transactionId } from "./outbound.ts";
import type { Room, Rooms } from "./rooms.ts";

interface ReaderOptions {
  readonly host: AdapterHost;
  readonly server: Homeserver;
  readonly rooms: Rooms;
  /** After it nothing is asked for any more. */
  readonly signal: AbortSignal;
  commands(): ReadonlySet<string>;
}

interface Change {
  readonly id: string;
  readonly text: string | null;
}

const MAX_MISSED = 1000;
const PAGE = 100;
const KEPT_SENDERS = 2000;
const MAX_JOINS = 5;

export class Reader {
  readonly #host: AdapterHost;
  readonly #server: Homeserver;
  readonly #rooms: Rooms;
  readonly #signal: AbortSignal;
  readonly #commands: () => ReadonlySet<string>;
  /** Who wrote what was handed on lately: only they may change it. */
  readonly #senders = new Map<string, string>();
  /** Rooms we want to be in, with the number of tries. */
  readonly #joining = new Map<string, number>();
  readonly #toldEncrypted = new Set<string>();
  #threads: Set<string> | null = null;

  constructor({ host, server, rooms, signal, commands }: ReaderOptions) {
    this.#host = host;
    this.#server = server;
    this.#rooms = rooms;
    this.#signal = signal;
    this.#commands = commands;
  }

  /** Rejects with `MatrixFailure` when the homeserver fails half-way: the same news are read again then. */
  async read(
    news: Json,
    since: string,
  ): Promise<{ readonly messages: readonly ChatMessage[]; readonly changes: readonly Change[] }> {
    const messages = new Map<string, ChatMessage>();
    const changes: Change[] = [];
    const { join, leave } = asRecord(news.rooms);
    for (const id of Object.keys(asRecord(leave))) this.#rooms.forget(id);
    for (const [roomId, about] of Object.entries(asRecord(join))) {
      const { state, timeline } = asRecord(about);
      for (const event of eventsIn(asRecord(state).events)) this.#rooms.noteChange(roomId, event.type);
      const events = await this.#timeline(roomId, asRecord(timeline), since);
      for (const event of events) this.#rooms.noteChange(roomId, event.type);
      for (const event of events) {
        if (this.#isChange(event)) {
          const change = await this.#changeBy(roomId, event);
          const known = change ? messages.get(change.id) : undefined;
          if (change && known) {
            if (change.text === null) messages.delete(change.id);
            else messages.set(change.id, { ...known, text: change.text });
          } else if (change) changes.push(change);
          continue;
        }
        const message = await this.#messageBy(roomId, event);
        if (message) messages.set(event.id, message);
      }
    }
    for (const message of messages.values()) this.#noteSender(message.updateId, message.source.user_id ?? "");
    return { messages: [...messages.values()], changes };
  }

  /** In order. What lies between the last news and these, when there was too much for one answer, is asked for. */
  async #timeline(roomId: string, timeline: Json, since: string): Promise<readonly RoomEvent[]> {
    const me = this.#server.userId;
    const events = eventsIn(timeline.events);
    const isWhole = timeline.limited !== true || events.some((event) => event.stateKey === me && isArrival(event));
    if (isWhole) return sinceWeCame(events, me);
    const missed: RoomEvent[] = [];
    let from = asText(timeline.prev_batch);
    while (from !== "" && missed.length < MAX_MISSED) {
      const query = { dir: "b", from, to: since, limit: String(PAGE), filter: HISTORY_FILTER };
      const page = await this.#server.call("GET", ["rooms", roomId, "messages"], { query, signal: this.#signal });
      const older = eventsIn(page.chunk);
      missed.push(...older);
      const next = asText(page.end);
      from =
        older.length === 0 || next === from || older.some((one) => one.stateKey === me && isArrival(one)) ? "" : next;
    }
    if (missed.length >= MAX_MISSED)
      this.#host.log.warn(`more than ${MAX_MISSED} events were missed in ${roomId}; older ones are not read`);
    return sinceWeCame([...missed.reverse(), ...events], me);
  }

  #isChange(event: RoomEvent): boolean {
    return event.type === "m.room.redaction" || relationOf(event).replaces !== undefined;
  }

  async #changeBy(roomId: string, event: RoomEvent): Promise<Change | null> {
    if (event.sender === this.#server.userId) return null;
    if (event.type === "m.room.redaction")
      return (await this.#mayRedact(roomId, event)) ? { id: event.redacts, text: null } : null;
    const { replaces = "" } = relationOf(event);
    const author = this.#senders.get(replaces) ?? (await this.#event(roomId, replaces))?.sender;
    // Anybody can send an event that claims to replace another.
    if (event.type !== "m.room.message" || author !== event.sender) return null;
    const room = await this.#rooms.about(roomId);
    const text = spokenText(asRecord(event.content["m.new_content"]), { isReply: false, us: this.#usIn(room) });
    return text === "" ? null : { id: replaces, text: withCommand(text, this.#commands()) };
  }

  /** Whoever wrote it, or somebody whom the homeserver let: then nothing is left of it. A room speaks for its own events alone. */
  async #mayRedact(roomId: string, { redacts, sender }: RoomEvent): Promise<boolean> {
    if (redacts === "") return false;
    if (this.#senders.get(redacts) === sender) return true;
    const event = await this.#event(roomId, redacts);
    return event !== null && (event.sender === sender || Object.keys(event.content).length === 0);
  }

  async #messageBy(roomId: string, event: RoomEvent): Promise<ChatMessage | null> {
    if (event.sender === this.#server.userId) {
      const { thread } = relationOf(event);
      if (thread !== undefined) (await this.#followed()).add(thread);
      return null;
    }
    if (event.type === "m.room.encrypted") return await this.#tellEncrypted(roomId, event);
    if (!["m.room.message", "m.sticker"].includes(event.type) && !event.type.endsWith("poll.start")) return null;
    const room = await this.#rooms.about(roomId);
    const us = this.#usIn(room);
    const { thread, replyTo } = relationOf(event);
    const spoken = withCommand(spokenText(event.content, { isReply: replyTo !== undefined, us }), this.#commands());
    const said = saidBy(event, spoken);
    if (!said) return null;
    const answered = replyTo === undefined ? null : await this.#event(roomId, replyTo);
    const mentionsUs = mentions(event, us) || answered?.sender === us.userId;
    const isWanted =
      room.isDirect ||
      isForUs(
        {
          chatId: roomId,
          threadId: thread,
          text: asText(event.content.body),
          mentionsUs,
          isCommand: said.type === "command",
          isFollowed: thread !== undefined && (await this.#followed()).has(thread),
        },
        this.#host.option,
        { requireMention: true, prefix: "MATRIX", chats: "ROOMS" },
        this.#host.log,
      );
    if (!isWanted) return null;
    const opened = thread ?? (this.#opensThread(room) ? event.id : undefined);
    if (opened !== undefined) (await this.#followed()).add(opened);
    const source = sourceOf(room, event, opened);
    const mayFetch = said.attachment && ((await this.#host.allows?.({ source, mentionsUs })) ?? true);
    const file = said.attachment && mayFetch ? await this.#fetch(said.attachment) : null;
    const text = [said.text, file && "problem" in file ? file.problem : ""].filter((line) => line !== "").join("\n");
    return {
      ...{ text, type: said.type, mentionsUs, updateId: event.id, messageId: event.id, sentAt: event.at / 1000 },
      source,
      ...(file && "path" in file ? { files: [file] } : {}),
      ...(replyTo === undefined
        ? {}
        : {
            replyTo: {
              messageId: replyTo,
              text: answered ? spokenText(answered.content, { isReply: true, us: null }) : undefined,
            },
          }),
      ...(opened !== undefined && thread === undefined ? { replyIn: { chatId: roomId, threadId: opened } } : {}),
      ...channelSettings([opened, roomId], this.#host.option),
    };
  }

  #opensThread({ isDirect }: Room): boolean {
    return !isDirect && isYes(this.#host.option("auto_thread", "MATRIX_AUTO_THREAD"), false);
  }

  /** Threads we have written in, or been written to. */
  async #followed(): Promise<Set<string>> {
    if (this.#threads) return this.#threads;
    const known = await this.#host.knownChats();
    this.#threads = new Set(known.flatMap(({ thread_id: thread }) => (thread ? [thread] : [])));
    return this.#threads;
  }

  #usIn({ members }: Room) {
    return { userId: this.#server.userId, name: members.get(this.#server.userId) ?? "" };
  }

  /** Null: it is gone, or not for us to see. */
  async #event(roomId: string, id: string): Promise<RoomEvent | null> {
    try {
      return readEvent(await this.#server.call("GET", ["rooms", roomId, "event", id], { signal: this.#signal }));
    } catch (error) {
      if (error instanceof MatrixFailure && (error.status === 404 || error.status === 403)) return null;
      throw error;
    }
  }

  async #fetch(file: Attachment): Promise<ReceivedFile | { readonly problem: string }> {
    const size = file.size === undefined ? "" : ` (${file.size} bytes)`;
    const problem = (reason: string) => ({ problem: `[not received: ${file.name}${size}: ${reason}]` });
    if (file.isEncrypted) return problem("it is encrypted");
    try {
      const media = await this.#server.media(file.uri);
      if (media === null) return problem("it has no address on the homeserver");
      return await this.#host.download(media.url, {
        name: file.name,
        headers: media.headers,
        ownHost: this.#server.host,
      });
    } catch (error) {
      return problem(messageOf(error));
    }
  }

  /** Said once for each room, and only to those who may talk to us. The words go unencrypted: there is no other way. */
  async #tellEncrypted(roomId: string, event: RoomEvent): Promise<null> {
    if (this.#toldEncrypted.has(roomId)) return null;
    const room = await this.#rooms.about(roomId);
    this.#toldEncrypted.add(roomId);
    this.#host.log.warn(
      `${room.name} (${roomId}) is encrypted: messages there cannot be read; use a room without encryption`,
    );
    if (!room.isDirect || !(await this.#isAllowed(sourceOf(room, event, undefined)))) return null;
    const body = { msgtype: "m.notice", body: CANNOT_READ };
    const path = ["rooms", roomId, "send", "m.room.message", transactionId(roomId, "encrypted")];
    await this.#server
      .call("PUT", path, { body })
      .catch((error: unknown) => this.#host.log.warn(`${roomId}: ${messageOf(error)}`));
    return null;
  }

  // Invitations.

  /** Accepts those of people who may talk to us, and direct ones of strangers where strangers can pair. */
  async answerInvites(news: Json): Promise<void> {
    const { invite } = asRecord(news.rooms);
    for (const [roomId, about] of Object.entries(asRecord(invite))) {
      const events = asList(asRecord(asRecord(about).invite_state).events).map(asRecord);
      const ours =
        events.find(({ type, state_key: key }) => type === "m.room.member" && key === this.#server.userId) ?? {};
      const inviter = asText(ours.sender);
      const isDirect = asRecord(ours.content).is_direct === true;
      if (await this.#accepts(roomId, inviter, isDirect)) this.#joining.set(roomId, 0);
      else
        this.#host.log.warn(
          `an invitation of ${inviter} to ${roomId} was not accepted; to allow it add them to MATRIX_ALLOWED_USERS, or set MATRIX_AUTO_JOIN=true`,
        );
    }
    for (const [roomId, tries] of this.#joining) await this.#join(roomId, tries);
  }

  async #accepts(roomId: string, inviter: string, isDirect: boolean): Promise<boolean> {
    if (isYes(this.#host.option("auto_join", "MATRIX_AUTO_JOIN"), false)) return true;
    const source: ChatSource = {
      ...{ platform: "matrix", chat_id: roomId, user_id: inviter },
      chat_type: isDirect ? "dm" : "group",
    };
    return (await this.#isAllowed(source)) || forStranger(source, this.#rules()) === "pair";
  }

  async #join(roomId: string, tries: number): Promise<void> {
    this.#joining.delete(roomId);
    try {
      await this.#server.call("POST", ["join", roomId], { body: {}, signal: this.#signal });
      this.#rooms.forget(roomId);
    } catch (error) {
      const mayWork =
        error instanceof MatrixFailure && (error.status === null || error.status === 429 || error.status >= 500);
      if (mayWork && tries < MAX_JOINS) this.#joining.set(roomId, tries + 1);
      else this.#host.log.warn(`${roomId} could not be joined: ${messageOf(error)}`);
    }
  }

  async #isAllowed(source: ChatSource): Promise<boolean> {
    return (await this.#host.allows?.({ source })) ?? isAuthorised({ source, isPaired: false }, this.#rules());
  }

  #rules() {
    const env = (name: string) => {
      const value = this.#host.option(name, name);
      return value === undefined ? undefined : String(value);
    };
    const behaviour = this.#host.option("unauthorized_dm_behavior");
    return accessRules("matrix", { env, forStrangers: "", extra: { unauthorized_dm_behavior: behaviour } });
  }

  /** The newest of each room. Best effort: it is only shown. */
  async markRead(messages: readonly ChatMessage[]): Promise<void> {
    const newest = new Map(messages.map(({ source, updateId }) => [source.chat_id ?? "", updateId]));
    for (const [room, id] of newest)
      await this.#server
        .call("POST", ["rooms", room, "receipt", "m.read", id], { body: {}, signal: this.#signal })
        .catch((error: unknown) => this.#host.log.debug(`${room}: ${messageOf(error)}`));
  }

  #noteSender(id: string, sender: string): void {
    this.#senders.set(id, sender);
    const [oldest] = this.#senders.keys();
    if (this.#senders.size > KEPT_SENDERS && oldest !== undefined) this.#senders.delete(oldest);
  }
}

const CANNOT_READ =
  "This room is encrypted, and I cannot read encrypted messages. Please write to me in a room without encryption.";

const eventsIn = (list: unknown) =>
  asList(list)
    .map(readEvent)
    .filter((event) => event !== null);

function sourceOf(room: Room, event: RoomEvent, thread: string | undefined): ChatSource {
  return {
    platform: "matrix",
    chat_id: room.id,
    chat_name: room.name,
    chat_type: room.isDirect ? "dm" : "group",
    user_id: event.sender,
    user_name: room.members.get(event.sender) ?? event.sender,
    message_id: event.id,
    ...(thread === undefined ? {} : { thread_id: thread }),
    ...(room.topic === "" ? {} : { chat_topic: room.topic }),
  };
}
