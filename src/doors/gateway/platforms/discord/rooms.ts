// The servers, channels and threads that the bot sees, as the socket tells of them; what it did not tell is asked for.
import type { ChatSource } from "../../chat.ts";
import type { ChatTarget, KnownChat } from "../../contract.ts";
import type { Channel, Guild as GuildFacts, Role } from "./shapes.ts";
import { displayName, type Named } from "./text.ts";

/** A channel or a thread. */
export interface Room {
  readonly id: string;
  readonly type: number;
  readonly name: string;
  readonly guildId?: string | undefined;
  /** Of a thread the channel it belongs to, of a channel its category. */
  readonly parentId?: string | undefined;
  readonly topic?: string | undefined;
  /** The newest message in it, as far as is known. */
  readonly lastMessageId?: string | undefined;
  readonly ownerId?: string | undefined;
  /** The bot is a member of this thread. */
  readonly isJoined?: boolean | undefined;
}

const TYPE = { text: 0, dm: 1, news: 5, newsThread: 10, thread: 11, privateThread: 12, forum: 15, media: 16 } as const;
const THREADS: ReadonlySet<number> = new Set([TYPE.newsThread, TYPE.thread, TYPE.privateThread]);
const HOLDS_THREADS: ReadonlySet<number> = new Set([TYPE.text, TYPE.news]);
const LISTED: ReadonlyMap<number, string> = new Map([
  [TYPE.text, "channel"],
  [TYPE.news, "channel"],
  [TYPE.forum, "forum"],
  [TYPE.media, "forum"],
]);
/** Threads come and go for as long as the program runs. */
const MAX_ROOMS = 10_000;

export const isThread = ({ type }: Room) => THREADS.has(type);
export const canHoldThreads = ({ type }: Room) => HOLDS_THREADS.has(type);

interface Guild {
  readonly name: string;
  readonly roles: ReadonlySet<string>;
  /** The roles that are the bot's own: naming one names the bot. */
  readonly ownRoles: ReadonlySet<string>;
}

export class Rooms {
  readonly #selfId: string;
  readonly #fetch: (id: string) => Promise<Channel | null>;
  readonly #guilds = new Map<string, Guild>();
  readonly #rooms = new Map<string, Room>();
  /** Threads that the bot has written in. */
  readonly #followed = new Set<string>();

  constructor(selfId: string, fetch: (id: string) => Promise<Channel | null>) {
    this.#selfId = selfId;
    this.#fetch = fetch;
  }

  /** A new session of the socket tells of these servers again; of direct chats it never does. */
  forget(guilds: readonly string[]): void {
    for (const id of guilds) this.removeGuild(id);
    for (const { id, guildId } of this.#rooms.values()) if (guildId === undefined) this.#rooms.delete(id);
  }

  addGuild(guild: GuildFacts & { readonly channels: readonly Channel[]; readonly threads: readonly Channel[] }): void {
    this.#guilds.set(guild.id, { name: guild.name, ...this.#rolesIn(guild.roles) });
    for (const channel of [...guild.channels, ...guild.threads]) this.add(channel, guild.id);
  }

  changeGuild({ id, name, roles }: GuildFacts): void {
    if (this.#guilds.has(id)) this.#guilds.set(id, { name, ...this.#rolesIn(roles) });
  }

  #rolesIn(roles: readonly Role[]) {
    const own = roles.filter(({ tags }) => tags?.bot_id === this.#selfId);
    return { roles: new Set(roles.map(({ id }) => id)), ownRoles: new Set(own.map(({ id }) => id)) };
  }

  removeGuild(id: string): void {
    this.#guilds.delete(id);
    for (const room of this.#rooms.values()) if (room.guildId === id) this.#rooms.delete(room.id);
  }

  hasGuild(id: string): boolean {
    return this.#guilds.has(id);
  }

  add(channel: Channel, guildId?: string): Room {
    const room = roomFrom(channel, guildId);
    this.#rooms.delete(room.id);
    this.#rooms.set(room.id, room);
    const [oldest] = this.#rooms.keys();
    if (this.#rooms.size > MAX_ROOMS && oldest !== undefined) this.#rooms.delete(oldest);
    return room;
  }

  remove(id: string): void {
    this.#rooms.delete(id);
    this.#followed.delete(id);
  }

  all(): readonly Room[] {
    return [...this.#rooms.values()];
  }

  async find(id: string): Promise<Room | null> {
    const known = this.#rooms.get(id);
    if (known !== undefined) return known;
    const channel = await this.#fetch(id);
    return channel === null ? null : this.add(channel);
  }

  follow(threadId: string): void {
    this.#followed.add(threadId);
  }

  wroteIn(id: string): void {
    const room = this.#rooms.get(id);
    if (room !== undefined && isThread(room)) this.follow(id);
  }

  isFollowed(room: Room): boolean {
    return isThread(room) && (room.isJoined === true || room.ownerId === this.#selfId || this.#followed.has(room.id));
  }

  ownRoles(guildId: string | undefined): ReadonlySet<string> {
    return (guildId && this.#guilds.get(guildId)?.ownRoles) || new Set();
  }

  /** The servers that have one of these roles. An id of a role belongs to one server only. */
  guildsWithRole(roles: ReadonlySet<string>): readonly string[] {
    return [...this.#guilds].filter(([, guild]) => !roles.isDisjointFrom(guild.roles)).map(([id]) => id);
  }

  /** Who wrote where. The same for every message of a person in a room, so that the prompt of the conversation stays the same. */
  async sourceOf(room: Room | null, about: { chatId: string; user: Named; nick?: string | null }): Promise<ChatSource> {
    const { chatId, user, nick } = about;
    const person = { platform: "discord", user_id: user.id, user_name: displayName(user, nick) };
    if (room === null || room.guildId === undefined)
      return { ...person, chat_type: "dm", chat_id: chatId, chat_name: displayName(user) };
    const parent = isThread(room) && room.parentId !== undefined ? await this.find(room.parentId) : null;
    const names = [this.#guilds.get(room.guildId)?.name, parent && `#${parent.name}`];
    const place = { guild_id: room.guildId, chat_topic: (parent ?? room).topic };
    if (!isThread(room))
      return {
        ...person,
        ...place,
        chat_type: "group",
        chat_id: room.id,
        chat_name: joined([...names, `#${room.name}`]),
      };
    return {
      ...{ ...person, ...place, chat_type: "thread", chat_name: joined([...names, room.name]) },
      // A reply finds its way to the channel when the thread is gone.
      ...{ chat_id: room.parentId ?? room.id, thread_id: room.id, parent_chat_id: room.parentId },
    };
  }

  listed(): readonly KnownChat[] {
    return this.all().flatMap(({ id, name, type, guildId }) => {
      const kind = LISTED.get(type);
      const guild = guildId === undefined ? undefined : this.#guilds.get(guildId)?.name;
      return kind === undefined ? [] : [{ id, name, type: kind, ...(guild === undefined ? {} : { guild }) }];
    });
  }
}

const joined = (names: readonly (string | null | undefined)[]) => names.filter(Boolean).join(" / ");

export const targetOf = ({ chat_id, thread_id }: ChatSource): ChatTarget => ({
  chatId: chat_id ?? "",
  ...(thread_id === undefined ? {} : { threadId: thread_id }),
});

function roomFrom(channel: Channel, guildId?: string): Room {
  return {
    id: channel.id,
    type: channel.type,
    name: channel.name ?? "",
    guildId: channel.guild_id ?? guildId,
    parentId: channel.parent_id || undefined,
    topic: channel.topic || undefined,
    lastMessageId: channel.last_message_id || undefined,
    ownerId: channel.owner_id,
    isJoined: channel.member !== undefined,
  };
}
