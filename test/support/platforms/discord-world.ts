// What Discord holds: people, servers, channels, threads and messages. Every change is told as the event that Discord would send.

export interface DiscordUser {
  readonly id: string;
  readonly username: string;
  readonly global_name: string | null;
  readonly bot?: boolean;
}

export interface DiscordRole {
  readonly id: string;
  readonly name: string;
  /** The bot it was made for. */
  readonly botId?: string;
}

export interface DiscordGuild {
  readonly id: string;
  readonly name: string;
  readonly roles: DiscordRole[];
  /** Roles by member. */
  readonly members: Map<string, readonly string[]>;
}

export interface DiscordChannel {
  readonly id: string;
  readonly type: number;
  readonly name: string;
  readonly guildId?: string;
  readonly parentId?: string;
  readonly topic?: string;
  readonly ownerId?: string;
  /** Of a direct chat. */
  readonly recipient?: DiscordUser;
  archived?: boolean;
  locked?: boolean;
  botJoined?: boolean;
}

export interface DiscordFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: Buffer;
  readonly contentType: string;
}

export interface DiscordMessage {
  readonly id: string;
  readonly channelId: string;
  readonly author: DiscordUser;
  readonly type: number;
  readonly flags: number;
  readonly nonce?: string;
  readonly replyTo?: string;
  readonly webhookId?: string;
  readonly files: readonly DiscordFile[];
  readonly extra: Readonly<Record<string, unknown>>;
  readonly allowedMentions?: unknown;
  content: string;
  components: readonly unknown[];
  editedAt: string | null;
  /** What it said before, oldest first. */
  readonly earlier: string[];
  readonly reactions: string[];
}

export interface WriteOptions {
  readonly replyTo?: DiscordMessage;
  readonly files?: readonly { readonly name: string; readonly bytes: Buffer; readonly contentType?: string }[];
  readonly flags?: number;
  readonly type?: number;
  readonly webhookId?: string;
  /** Further fields of the API's message: stickers, polls. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** Written so long ago, in milliseconds. */
  readonly ago?: number;
}

const EPOCH = 1_420_070_400_000;
const THREADS = new Set([10, 11, 12]);

type Tell = (event: string, data: Readonly<Record<string, unknown>>) => void;

export class DiscordWorld {
  readonly users = new Map<string, DiscordUser>();
  readonly guilds = new Map<string, DiscordGuild>();
  readonly channels = new Map<string, DiscordChannel>();
  readonly messages = new Map<string, DiscordMessage[]>();
  readonly bot: DiscordUser;
  readonly applicationId: string;
  tell: Tell = () => undefined;
  /** Where files are fetched from. */
  fileUrl: (file: DiscordFile) => string = () => "";
  #count = 0n;

  constructor() {
    this.applicationId = this.newId();
    this.bot = { id: this.applicationId, username: "hermes", global_name: null, bot: true };
    this.users.set(this.bot.id, this.bot);
  }

  /** Ids carry the time, and grow. */
  newId(ago = 0): string {
    this.#count = (this.#count + 1n) % 4_000_000n;
    return String((BigInt(Date.now() - ago - EPOCH) << 22n) + this.#count);
  }

  user(username: string, { bot = false, name = null as string | null } = {}): DiscordUser {
    const user = { id: this.newId(), username, global_name: name, ...(bot ? { bot } : {}) };
    this.users.set(user.id, user);
    return user;
  }

  guild(name: string): DiscordGuild {
    const id = this.newId();
    const roles = [
      { id, name: "@everyone" },
      { id: this.newId(), name: "hermes", botId: this.bot.id },
    ];
    const guild = { id, name, roles, members: new Map() };
    this.guilds.set(id, guild);
    this.tell("GUILD_CREATE", this.guildJson(guild));
    return guild;
  }

  role(guild: DiscordGuild, name: string, members: readonly DiscordUser[]): DiscordRole {
    const role = { id: this.newId(), name };
    guild.roles.push(role);
    for (const { id } of members) guild.members.set(id, [...(guild.members.get(id) ?? []), role.id]);
    this.tell("GUILD_UPDATE", this.guildJson(guild));
    return role;
  }

  channel(guild: DiscordGuild, name: string, { type = 0, topic = "" } = {}): DiscordChannel {
    return this.#addChannel(
      { id: this.newId(), type, name, guildId: guild.id, ...(topic ? { topic } : {}) },
      "CHANNEL_CREATE",
    );
  }

  /** A thread that a person opened. */
  thread(parent: DiscordChannel, name: string, owner: DiscordUser, id = this.newId()): DiscordChannel {
    const { id: parentId, guildId = "" } = parent;
    const botJoined = owner.id === this.bot.id;
    return this.#addChannel({ id, type: 11, name, guildId, parentId, ownerId: owner.id, botJoined }, "THREAD_CREATE");
  }

  dm(user: DiscordUser): DiscordChannel {
    const known = [...this.channels.values()].find(({ recipient }) => recipient?.id === user.id);
    if (known) return known;
    const channel = { id: this.newId(), type: 1, name: "", recipient: user };
    this.channels.set(channel.id, channel);
    return channel;
  }

  #addChannel(channel: DiscordChannel, event: string): DiscordChannel {
    this.channels.set(channel.id, channel);
    this.tell(event, this.channelJson(channel));
    return channel;
  }

  removeChannel(channel: DiscordChannel): void {
    this.channels.delete(channel.id);
    this.messages.delete(channel.id);
    const { id, guildId: guild_id, parentId: parent_id, type } = channel;
    this.tell(THREADS.has(type) ? "THREAD_DELETE" : "CHANNEL_DELETE", { id, guild_id, parent_id, type });
  }

  threadsOf(parent: DiscordChannel): readonly DiscordChannel[] {
    return [...this.channels.values()].filter(({ type, parentId }) => THREADS.has(type) && parentId === parent.id);
  }

  // --- messages

  /** Somebody writes. Mentions are read from the text, as the client does. */
  write(author: DiscordUser, channel: DiscordChannel, content: string, options: WriteOptions = {}): DiscordMessage {
    const { replyTo, files = [], flags = 0, type = replyTo ? 19 : 0, webhookId, extra = {}, ago = 0 } = options;
    return this.add({
      ...{ id: this.newId(ago), channelId: channel.id, author, content, type, flags, extra },
      ...(replyTo ? { replyTo: replyTo.id } : {}),
      ...(webhookId ? { webhookId } : {}),
      files: files.map(({ contentType = "application/octet-stream", ...file }) => ({
        ...file,
        contentType,
        id: this.newId(),
      })),
    });
  }

  add(
    parts: Omit<DiscordMessage, "components" | "editedAt" | "earlier" | "reactions"> & {
      readonly components?: readonly unknown[];
    },
  ): DiscordMessage {
    const message: DiscordMessage = { components: [], ...parts, editedAt: null, earlier: [], reactions: [] };
    const all = this.messages.get(message.channelId) ?? [];
    all.push(message);
    all.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    this.messages.set(message.channelId, all);
    const channel = this.channels.get(message.channelId);
    if (channel && THREADS.has(channel.type)) {
      channel.archived = false;
      if (message.author.id === this.bot.id) channel.botJoined = true;
    }
    this.tell("MESSAGE_CREATE", this.liveJson(message));
    return message;
  }

  change(
    message: DiscordMessage,
    {
      content = message.content,
      components = message.components,
    }: { content?: string; components?: readonly unknown[] },
  ): void {
    message.earlier.push(message.content);
    message.content = content;
    message.components = components;
    message.editedAt = new Date().toISOString();
    this.tell("MESSAGE_UPDATE", this.liveJson(message));
  }

  /** Discord itself shows what a link leads to; nobody edited anything. */
  unfurl(message: DiscordMessage): void {
    this.tell("MESSAGE_UPDATE", { ...this.liveJson(message), embeds: [{ type: "link", url: "https://example.com" }] });
  }

  remove(message: DiscordMessage): void {
    const all = this.messages.get(message.channelId) ?? [];
    this.messages.set(
      message.channelId,
      all.filter(({ id }) => id !== message.id),
    );
    const { guildId: guild_id } = this.channels.get(message.channelId) ?? {};
    this.tell("MESSAGE_DELETE", { id: message.id, channel_id: message.channelId, guild_id });
  }

  in(channel: DiscordChannel): readonly DiscordMessage[] {
    return this.messages.get(channel.id) ?? [];
  }

  find(channelId: string, messageId: string): DiscordMessage | undefined {
    return this.messages.get(channelId)?.find(({ id }) => id === messageId);
  }

  /** What the bot wrote in a channel. */
  saidIn(channel: DiscordChannel): readonly DiscordMessage[] {
    return this.in(channel).filter(({ author }) => author.id === this.bot.id);
  }

  // --- as the API writes it

  userJson(user: DiscordUser) {
    const { id, username, global_name, bot } = user;
    const rest = { avatar: null, discriminator: "0", public_flags: 0, flags: 0, primary_guild: null };
    return { id, username, global_name, ...(bot ? { bot } : {}), ...rest };
  }

  channelJson(channel: DiscordChannel): Record<string, unknown> {
    const { id, type, name, guildId, parentId, topic, ownerId, recipient, archived = false, locked = false } = channel;
    const last = this.messages.get(id)?.at(-1)?.id ?? null;
    if (recipient) return { id, type, flags: 0, recipients: [this.userJson(recipient)], last_message_id: last };
    const common = { id, type, name, guild_id: guildId, flags: 0, last_message_id: last, parent_id: parentId ?? null };
    if (!THREADS.has(type)) return { ...common, position: 0, topic: topic ?? null, permission_overwrites: [] };
    const now = new Date().toISOString();
    return {
      ...{ ...common, owner_id: ownerId, message_count: 0, member_count: 1, total_message_sent: 0 },
      thread_metadata: { archived, archive_timestamp: now, auto_archive_duration: 1440, locked },
      ...(channel.botJoined ? { member: { id, user_id: this.bot.id, join_timestamp: now, flags: 0 } } : {}),
    };
  }

  guildJson(guild: DiscordGuild) {
    const channels = [...this.channels.values()].filter(({ guildId }) => guildId === guild.id);
    const isThread = ({ type }: DiscordChannel) => THREADS.has(type);
    return {
      ...{ id: guild.id, name: guild.name, unavailable: false, member_count: 2, members: [] },
      roles: guild.roles.map(({ id, name, botId }) => ({
        ...{ id, name, color: 0, hoist: false, position: 0, permissions: "0", managed: botId !== undefined },
        ...(botId ? { tags: { bot_id: botId } } : {}),
      })),
      channels: channels.filter((one) => !isThread(one)).map((one) => this.channelJson(one)),
      threads: channels.filter((one) => isThread(one) && !one.archived).map((one) => this.channelJson(one)),
    };
  }

  memberJson(guild: DiscordGuild, user: DiscordUser) {
    return {
      ...{ user: this.userJson(user), roles: guild.members.get(user.id) ?? [], nick: null, avatar: null, banner: null },
      ...{ joined_at: "2024-01-01T00:00:00.000Z", premium_since: null, pending: false, mute: false, deaf: false },
      ...{ flags: 0, communication_disabled_until: null },
    };
  }

  /** As the history has it: without the nonce, the server and the member. */
  messageJson(message: DiscordMessage): Record<string, unknown> {
    const { id, channelId, author, content, type, flags, files, replyTo, webhookId, extra, editedAt } = message;
    const people = [...new Set([...content.matchAll(/<@!?(\d{1,20})>/g)].map(([, one = ""]) => one))];
    const original = replyTo === undefined ? undefined : this.find(channelId, replyTo);
    // Whoever is answered is mentioned, unless the client was told otherwise.
    if (original && !people.includes(original.author.id)) people.push(original.author.id);
    return {
      ...{ id, channel_id: channelId, author: this.userJson(author), content, type, flags },
      timestamp: new Date(Number(BigInt(id) >> 22n) + EPOCH).toISOString(),
      ...{ edited_timestamp: editedAt, tts: false, pinned: false, embeds: [], components: message.components },
      mention_everyone: false,
      mentions: people.flatMap((one) => {
        const user = this.users.get(one);
        return user ? [this.userJson(user)] : [];
      }),
      mention_roles: [...content.matchAll(/<@&(\d{1,20})>/g)].map(([, one]) => one),
      attachments: files.map((file) => {
        const { id: fileId, name: filename, bytes, contentType: content_type } = file;
        const url = this.fileUrl(file);
        return { id: fileId, filename, size: bytes.length, url, proxy_url: url, content_type };
      }),
      ...(webhookId ? { webhook_id: webhookId } : {}),
      ...(replyTo ? { message_reference: { type: 0, channel_id: channelId, message_id: replyTo } } : {}),
      ...(replyTo ? { referenced_message: original ? this.messageJson({ ...original, replyTo: "" }) : null } : {}),
      ...(this.channels.get(id) ? { thread: this.channelJson(this.channels.get(id)!) } : {}),
      ...extra,
    };
  }

  /** As the socket has it. */
  liveJson(message: DiscordMessage): Record<string, unknown> {
    const { guildId } = this.channels.get(message.channelId) ?? {};
    const guild = guildId === undefined ? undefined : this.guilds.get(guildId);
    const { user: _, ...member } = guild ? this.memberJson(guild, message.author) : { user: null };
    return {
      ...this.messageJson(message),
      ...(message.nonce === undefined ? {} : { nonce: message.nonce }),
      ...(guild && !message.webhookId ? { guild_id: guild.id, member } : {}),
    };
  }
}
