// A message of Discord becomes one of the gateway, if it is meant for us: who wrote where, in what thread it goes on, what came with it.
import { messageOf } from "../../../../kit/errors.ts";
import type { ChatSource } from "../../chat.ts";
import type { AdapterHost, ChatMessage, ReceivedFile } from "../../contract.ts";
import { channelSettings, isForUs, isYes, listIn } from "../../groups.ts";
import { CODES, type DiscordApi } from "./api.ts";
import { apiUrlOf } from "./entry.ts";
import { canHoldThreads, isThread, type Room, type Rooms, targetOf } from "./rooms.ts";
import type { Member, Message } from "./shapes.ts";
import { displayName, namesBot, readableText, threadName } from "./text.ts";

/** As the socket and the history have it; the history leaves the server and the member out. */
export type DiscordMessage = Message & { readonly guild_id?: string; readonly member?: Member };

/** Everything else is a notice of Discord's own: somebody joined, a message was pinned. */
const WRITTEN: ReadonlySet<number> = new Set([0, 19]);
const VOICE_FLAG = 1 << 13;
const ARCHIVE_MINUTES = 1440;
const BACKFILL = 50;
const MAX_BACKFILL = 100;
const MEMBER_SECONDS = 300;

/** How a message turns to us. */
interface Calls {
  /** By our name in the text: an answer to one of our messages mentions us without it. */
  readonly byName: boolean;
  readonly mentionsUs: boolean;
  readonly repliesToUs: boolean;
}

export class Inbound {
  readonly #host: AdapterHost;
  readonly #discord: DiscordApi;
  readonly #rooms: Rooms;
  readonly #selfId: string;
  /** Roles of people whose message did not carry them. */
  readonly #roles = new Map<string, { readonly at: number; readonly roles: readonly string[] }>();

  constructor(parts: { host: AdapterHost; discord: DiscordApi; rooms: Rooms; selfId: string }) {
    this.#host = parts.host;
    this.#discord = parts.discord;
    this.#rooms = parts.rooms;
    this.#selfId = parts.selfId;
  }

  /** Null: not for us. Opens a thread and downloads files where the message asks for it. */
  async read(message: DiscordMessage): Promise<ChatMessage | null> {
    if (!this.#isWritten(message)) return null;
    const room = message.guild_id === undefined ? null : await this.#rooms.find(message.channel_id);
    const isInDm = message.guild_id === undefined;
    if (!isInDm && room === null) return null;
    const calls = this.#calls(message);
    if (room !== null && !this.#isMeant(message, room, calls)) return null;
    if (message.author.bot && !this.#mayBotsTalk(calls.mentionsUs || isInDm)) return null;

    const said = this.readable(message);
    const isCommand = /^\/[a-z]/i.test(said);
    const about = { chatId: message.channel_id, user: message.author, nick: message.member?.nick ?? null };
    const sender = {
      source: await this.#rooms.sourceOf(room, about),
      ...(message.author.bot ? { isBot: true } : {}),
      mentionsUs: isInDm || calls.mentionsUs || calls.repliesToUs,
      allowedByRole: await this.hasAllowedRole(message.author.id, message.member?.roles, message.guild_id),
    };
    const written = {
      ...{ updateId: message.id, messageId: message.id, sentAt: Date.parse(message.timestamp) / 1000 },
      ...sender,
    };
    // A stranger opens no thread and leaves no file.
    if ((await this.#host.allows?.(sender)) === false) return { ...written, text: said, type: "text" };

    const wantsThread = room !== null && calls.byName && !isCommand;
    const thread = wantsThread ? await this.#threadFor(message, room, said) : null;
    const source = thread === null ? sender.source : await this.#rooms.sourceOf(thread, about);
    const { files, notes } = await this.#files(message);
    const text = [said, ...unsupportedIn(message), ...notes].filter((line) => line !== "").join("\n");
    const repliedTo = message.referenced_message;
    return {
      ...{ ...written, source, ...this.settingsOf(source) },
      text: text || (files.length > 0 ? "" : message.message_snapshots ? "[forwarded]" : "[no text]"),
      type: typeOf(message, files, isCommand),
      ...(files.length > 0 ? { files } : {}),
      ...(repliedTo ? { replyTo: { messageId: repliedTo.id, text: this.readable(repliedTo) } } : {}),
      context: await this.#context(message, room),
      ...(thread === null ? {} : { replyIn: targetOf(source) }),
    };
  }

  readable(message: Pick<DiscordMessage, "content" | "mentions" | "guild_id">): string {
    const ownRoles = this.#rooms.ownRoles(message.guild_id);
    return readableText(message.content, { selfId: this.#selfId, ownRoles, people: message.mentions ?? [] });
  }

  /** Own messages, those of webhooks and notices are nobody's. */
  #isWritten({ author, webhook_id, type }: DiscordMessage): boolean {
    return author.id !== this.#selfId && webhook_id === undefined && WRITTEN.has(type);
  }

  #calls({ content, mentions, mention_roles, guild_id, referenced_message }: DiscordMessage): Calls {
    const ownRoles = this.#rooms.ownRoles(guild_id);
    const byRole = mention_roles.some((id) => ownRoles.has(id));
    return {
      byName: byRole || namesBot(content, this.#selfId),
      mentionsUs: byRole || mentions.some(({ id }) => id === this.#selfId),
      repliesToUs: referenced_message?.author.id === this.#selfId,
    };
  }

  #isMeant(message: DiscordMessage, room: Room, calls: Calls): boolean {
    const { mentionsUs, repliesToUs } = calls;
    const others = message.mentions.some(({ id }) => id !== this.#selfId) || message.mention_roles.length > 0;
    const isForOthers = others && !mentionsUs && !repliesToUs;
    if (isForOthers && this.#is("ignore_no_mention", true)) return false;
    return this.isOpenFor(room, { text: message.content, mentionsUs, repliesToUs });
  }

  /** By the lists of channels and the rules for groups. */
  isOpenFor(
    room: Room,
    said: { text: string; mentionsUs?: boolean; repliesToUs?: boolean; isCommand?: boolean },
  ): boolean {
    const [chatId, threadId] = isThread(room) ? [room.parentId ?? room.id, room.id] : [room.id, undefined];
    const ids = [threadId, chatId, room.parentId];
    const ignored = this.#list("ignored_channels");
    if (ids.some((id) => id !== undefined && ignored.has(id))) return false;
    const isFollowed = this.#rooms.isFollowed(room) && !this.#is("thread_require_mention", false);
    const { text, mentionsUs = false, repliesToUs = false, isCommand = false } = said;
    return isForUs(
      { chatId, threadId, parentChatId: room.parentId, text, mentionsUs, repliesToUs, isCommand, isFollowed },
      this.#host.option,
      { requireMention: true, prefix: "DISCORD", chats: "CHANNELS" },
      this.#host.log,
    );
  }

  #mayBotsTalk(mentionsUs: boolean): boolean {
    const rule = String(this.#option("allow_bots") ?? "").toLowerCase();
    return rule === "all" || (rule === "mentions" && mentionsUs);
  }

  settingsOf({ thread_id, chat_id, parent_chat_id }: ChatSource) {
    return channelSettings([thread_id, chat_id, parent_chat_id], this.#host.option);
  }

  /** The thread that belongs to a message which calls us by name in a channel; null where none is wanted or possible. */
  async #threadFor(message: DiscordMessage, room: Room, said: string): Promise<Room | null> {
    if (!canHoldThreads(room) || !this.#is("auto_thread", true)) return null;
    const without = this.#list("no_thread_channels");
    if (without.has("*") || without.has(room.id) || (room.parentId && without.has(room.parentId))) return null;
    // As the history shows a message whose thread was opened before.
    if (message.thread) return this.#rooms.add(message.thread, room.guildId);
    const name = threadName(said, `Chat with ${displayName(message.author, message.member?.nick)}`);
    const result = await this.#discord.ask((limit) =>
      this.#discord.api.openThread(room.id, message.id, { name, auto_archive_duration: ARCHIVE_MINUTES }, limit),
    );
    if ("value" in result) return this.#rooms.add(result.value, room.guildId);
    const { failure } = result;
    // A thread below a message has the message's id, also when the answer was lost or it was opened before.
    const mayExist =
      failure.type === "no_answer" || (failure.type === "answered" && failure.code === CODES.threadExists);
    const thread = mayExist ? await this.#rooms.find(message.id) : null;
    if (thread === null) this.#host.log.warn(`no thread for a message in #${room.name}: ${failure.message}`);
    return thread;
  }

  async #files({ attachments }: DiscordMessage) {
    const files: ReceivedFile[] = [];
    const notes: string[] = [];
    for (const { url, filename, size } of attachments) {
      try {
        const ownHost = new URL(apiUrlOf(this.#host.option)).host;
        files.push(await this.#host.download(url, { name: filename, ownHost }));
      } catch (error) {
        notes.push(`[file not fetched: ${filename} (${size} bytes): ${messageOf(error)}]`);
      }
    }
    return { files, notes };
  }

  /** What others wrote: the forwarded text, and what was said in the channel since our last word. */
  async #context(message: DiscordMessage, room: Room | null): Promise<string | undefined> {
    const forwarded = (message.message_snapshots ?? []).map(({ message: { content } }) => `Forwarded: ${content}`);
    const earlier = room === null || this.#seesAll(room) ? [] : await this.#earlier(message);
    return [...earlier, ...forwarded].join("\n") || undefined;
  }

  /** Every message of such a room comes to us anyway. */
  #seesAll(room: Room): boolean {
    return this.isOpenFor(room, { text: "" });
  }

  async #earlier({ id, channel_id, guild_id }: DiscordMessage): Promise<readonly string[]> {
    const wanted = Number(this.#option("history_backfill_limit") ?? BACKFILL);
    const limit = Math.min(MAX_BACKFILL, Math.floor(wanted));
    if (!this.#is("history_backfill", true) || !(limit > 0)) return [];
    const result = await this.#discord.ask((options) =>
      this.#discord.api.messages(channel_id, { before: id, limit }, options),
    );
    if ("failure" in result) {
      this.#host.log.warn(`earlier messages of a channel cannot be read: ${result.failure.message}`);
      return [];
    }
    const own = result.value.findIndex(({ author }) => author.id === this.#selfId);
    const unseen = own === -1 ? result.value : result.value.slice(0, own);
    return unseen
      .filter(({ type, content }) => WRITTEN.has(type) && content !== "")
      .map((one) => `${displayName(one.author)}: ${this.readable({ ...one, ...(guild_id ? { guild_id } : {}) })}`)
      .reverse();
  }

  /** Whether a role of a person is on the list; undefined without such a list. */
  async hasAllowedRole(
    userId: string,
    known: readonly string[] | undefined,
    guildId?: string,
  ): Promise<boolean | undefined> {
    const allowed = this.#list("allowed_roles");
    if (allowed.size === 0) return undefined;
    if (known !== undefined) return known.some((role) => allowed.has(role));
    const guilds = this.#rooms.guildsWithRole(allowed).filter((id) => guildId === undefined || id === guildId);
    const roles = await Promise.all(guilds.map((guild) => this.#rolesOf(guild, userId)));
    return roles.flat().some((role) => allowed.has(role));
  }

  async #rolesOf(guildId: string, userId: string): Promise<readonly string[]> {
    const key = `${guildId}:${userId}`;
    const now = this.#host.clock.now() / 1000;
    const known = this.#roles.get(key);
    if (known !== undefined && now - known.at < MEMBER_SECONDS) return known.roles;
    const result = await this.#discord.ask((limit) => this.#discord.api.member(guildId, userId, limit));
    if ("failure" in result) return []; // not a member, or not to be learned: no right comes of it
    if (this.#roles.size > 1000) this.#roles.clear();
    this.#roles.set(key, { at: now, roles: result.value.roles });
    return result.value.roles;
  }

  #option = (key: string) => this.#host.option(key, `DISCORD_${key.toUpperCase()}`);
  #is = (key: string, fallback: boolean) => isYes(this.#option(key), fallback);
  #list = (key: string) => listIn(this.#option(key));
}

/** Never silence: what cannot be read is at least named. */
function unsupportedIn({ sticker_items = [], poll, content, attachments, embeds }: DiscordMessage): readonly string[] {
  const lines = [
    ...sticker_items.map(({ name }) => `[unsupported: sticker] ${name}`),
    ...(poll ? [`[unsupported: poll] ${poll.question.text ?? ""}`.trim()] : []),
  ];
  const isBare = content === "" && attachments.length === 0 && lines.length === 0;
  return isBare && embeds.length > 0 ? ["[unsupported: embed]"] : lines;
}

function typeOf({ flags }: DiscordMessage, files: readonly ReceivedFile[], isCommand: boolean): ChatMessage["type"] {
  const [first] = files;
  if (first === undefined) return isCommand ? "command" : "text";
  const [kind] = first.mediaType.split("/");
  if (kind === "audio") return ((flags ?? 0) & VOICE_FLAG) !== 0 ? "voice" : "audio";
  if (kind === "image") return "photo";
  return kind === "video" ? "video" : "document";
}
