// A bot of Mattermost: its REST API, and the socket that events come by. The socket is never told what arrived, so the place in the stream is
// kept with every post and what was missed is read from the history when it opens.
import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import { within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asList, asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type KnownChat,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type ReceivedFile,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { channelSettings, isForUs, isYes } from "../../groups.ts";
import { callWeb, trimmedUrl } from "../../web-calls.ts";
import { type OpenSocket, openSocket, reopened } from "../../web-socket.ts";
import {
  type Channel,
  connectFailure,
  type Post,
  RefusedError,
  readChannel,
  readPost,
  readPostFile,
  readPosts,
  sendFailure,
  typeOf,
  withoutMention,
} from "./posts.ts";

export async function openMattermost(host: AdapterHost): Promise<PlatformAdapter> {
  return new MattermostAdapter(host);
}

const DAY_MS = 24 * 3600_000;
const LOOK_BACK_MS = 7 * DAY_MS;
const PER_CHANNEL = 50;
const UPLOAD_SECONDS = 300;
const HELLO_MS = 20_000;
const PING_MS = 30_000;
const MAX_REMEMBERED = 5000;
/** A call, a poll of a plugin: it has no words. */
const UNREADABLE = "[unsupported: message without text]";
const NOTHING_SAID = "[mentioned you without a text]";

class MattermostAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #url: string;
  readonly #token: string;
  readonly #names = new Map<string, string>();
  readonly #channels = new Map<string, Channel>();
  readonly #followed = new Set<string>();
  readonly #over = new AbortController();
  #me = { id: "", name: "" };
  #socket: OpenSocket | null = null;
  #sequence = 1;
  /** Milliseconds: everything up to here is stored. */
  #upTo = 0;
  #heardAt = 0;
  #beat: NodeJS.Timeout | null = null;

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#url = trimmedUrl(host.option("url", "MATTERMOST_URL"));
    this.#token = asText(host.option("token", "MATTERMOST_TOKEN"));
  }

  get account(): string {
    return `@${this.#me.name}`;
  }

  // --- the connection

  async connect(signal: AbortSignal): Promise<void> {
    try {
      const me = asRecord(await this.#call("GET", "/users/me"));
      this.#me = { id: asText(me.id), name: asText(me.username) };
      signal.throwIfAborted();
      const stored = await this.#host.cursor();
      this.#upTo = stored === null ? this.#host.clock.now() : Number(stored);
      if (stored === null) await this.#host.receive([], String(this.#upTo));
      for (const { chat_id: chat, thread_id: thread } of await this.#host.knownChats())
        if (chat && thread) this.#follow(chat, thread);
      await within(() => this.#open(), HELLO_MS, this.#host.clock, signal);
    } catch (error) {
      await this.disconnect();
      throw connectFailure(error);
    }
  }

  /** Resolves when the server has begun to talk. */
  async #open(): Promise<void> {
    const { log, clock } = this.#host;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let hasBegun = false;
    let isLost = false;
    const lost = (error: PlatformError) => {
      if (isLost) return;
      isLost = true;
      socket?.close();
      if (hasBegun) this.#reopen(error);
      else reject(error);
    };
    const onFrame = async (data: string | Uint8Array) => {
      this.#heardAt = clock.now();
      const frame = asRecord(parseJson(String(data)));
      if (frame.event === "hello") {
        hasBegun = true;
        resolve();
      }
      // What could not be stored is read again behind the next `hello`: the place in the stream stays.
      if (!isLost) await this.#take(frame).catch((error: unknown) => lost(connectFailure(error)));
    };
    const onLost = (reason: string) => lost(new PlatformError("lost", reason, { retryable: true }));
    const address = `${this.#url.replace(/^http/, "ws")}/api/v4/websocket`;
    let socket: OpenSocket | null = null;
    socket = await openSocket(address, { log, onFrame, onLost });
    this.#socket = socket;
    this.#act("authentication_challenge", { token: this.#token });
    await promise;
    if (this.#beat) clearInterval(this.#beat);
    this.#beat = setInterval(() => this.#ping(lost), PING_MS).unref();
  }

  #reopen(error: PlatformError): void {
    const { clock, log } = this.#host;
    const { signal } = this.#over;
    if (signal.aborted) return;
    log.warn("the connection to Mattermost is lost", error);
    reopened(() => within(() => this.#open(), HELLO_MS, clock, signal), { clock, signal, log })
      .then((failure) => failure && this.#host.lost(failure))
      .catch((unforeseen: unknown) => log.error("Mattermost could not be reconnected", unforeseen));
  }

  /** A network that is gone says nothing; whoever asks is not answered. */
  #ping(lost: (error: PlatformError) => void): void {
    if (this.#host.clock.now() - this.#heardAt > PING_MS * 2.5)
      return lost(new PlatformError("silent", "Mattermost has not answered for a while", { retryable: true }));
    this.#act("ping", {});
  }

  #act(action: string, data: Json): void {
    this.#socket?.send(JSON.stringify({ action, seq: this.#sequence++, data }));
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    if (this.#beat) clearInterval(this.#beat);
    this.#socket?.close();
    this.#socket = null;
  }

  async #call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: Json | Blob, seconds?: number) {
    const reply = await callWeb(`${this.#url}/api/v4${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}` },
      body,
      ...(seconds ? { seconds } : {}),
    });
    if (reply.status < 200 || reply.status > 299) throw new RefusedError(reply, this.#host.clock.now());
    return reply.json;
  }

  // --- what comes in

  async #take({ event, data: about }: Json): Promise<void> {
    if (this.#over.signal.aborted) return;
    const data = asRecord(about);
    if (event === "hello") return this.#readMissed();
    if (event !== "posted" && event !== "post_edited" && event !== "post_deleted") return;
    const post = readPost(data.post);
    if (post === null) return;
    if (event === "post_deleted") return this.#host.changed(post.id, null);
    if (event === "post_edited") return this.#host.changed(post.id, this.#wordsOf(post));
    const name = asText(data.sender_name).replace(/^@/, "");
    if (name !== "") this.#remember(post.user, name);
    await this.#receive(post);
  }

  /** Behind `hello` in the line of frames: what arrives meanwhile waits. */
  async #readMissed(): Promise<void> {
    if (!isYes(this.#host.option("missed_messages"), true)) return;
    const since = Math.max(this.#upTo, this.#host.clock.now() - DAY_MS);
    const channels = asList(await this.#call("GET", "/users/me/channels")).map(readChannel);
    const posts: Post[] = [];
    for (const channel of channels) {
      this.#channels.set(channel.id, channel);
      if (channel.lastPostAt <= since) continue;
      const changed = await this.#changedSince(channel.id, since);
      for (const post of changed.filter(({ createdAt }) => createdAt < since)) await this.#catchChange(post);
      posts.push(...changed.filter((post) => post.createdAt >= since && post.deletedAt === 0).slice(-PER_CHANNEL));
    }
    for (const post of posts.sort((a, b) => a.createdAt - b.createdAt)) await this.#receive(post);
  }

  /** Two posts may be of one millisecond, and the server leaves that one out. */
  async #changedSince(channel: string, since: number): Promise<readonly Post[]> {
    try {
      return readPosts(await this.#call("GET", `/channels/${channel}/posts?since=${since - 1}`));
    } catch (error) {
      if (!isGone(error)) throw error;
      return [];
    }
  }

  async #catchChange(post: Post): Promise<void> {
    if (post.deletedAt > 0) return this.#host.changed(post.id, null);
    if (post.editedAt > 0) await this.#host.changed(post.id, this.#wordsOf(post));
  }

  async #receive(post: Post): Promise<void> {
    const message = await this.#messageFrom(post);
    const upTo = Math.max(this.#upTo, post.createdAt);
    if (message !== null) await this.#host.receive([message], String(upTo));
    this.#upTo = upTo;
  }

  async #messageFrom(post: Post): Promise<ChatMessage | null> {
    const { option, log } = this.#host;
    if (post.user === this.#me.id || post.isSystem) return null;
    const channel = await this.#channel(post.channel);
    // We were removed from it meanwhile.
    if (channel === null) return null;
    const mentionsUs = withoutMention(post.text, this.#me.name) !== null;
    const text = this.#wordsOf(post);
    const isDirect = channel.type === "dm";
    const isFollowed = this.#isFollowed(post);
    if (!isDirect) {
      const asked = { chatId: post.channel, threadId: post.root, text, mentionsUs, isFollowed };
      if (!isForUs(asked, option, { requireMention: true, prefix: "MATTERMOST", chats: "CHANNELS" }, log)) return null;
    }
    const opens = !isDirect && isYes(option("reply_in_thread", "MATTERMOST_REPLY_IN_THREAD"), true);
    const threadId = post.root ?? (opens ? post.id : undefined);
    const source = await this.#sourceOf(post, channel, threadId);
    const about = { source, ...(post.isBot ? { isBot: true } : {}), ...(mentionsUs ? { mentionsUs } : {}) };
    const isKnown = (await this.#host.allows?.(about)) ?? true;
    if (isKnown && threadId) this.#follow(post.channel, threadId);
    const { files, notes } = await this.#fetchAll(isKnown ? post : { ...post, fileIds: [] });
    const whole = [text, ...notes].filter((part) => part !== "").join("\n");
    const isEmpty = whole === "" && post.fileIds.length === 0;
    if (isEmpty && !mentionsUs && !isDirect) return null;
    return {
      ...about,
      text: !isEmpty ? whole : mentionsUs ? NOTHING_SAID : UNREADABLE,
      type: typeOf(whole, files),
      updateId: post.id,
      messageId: post.id,
      sentAt: post.createdAt / 1000,
      ...(files.length > 0 ? { files } : {}),
      ...channelSettings([post.root, post.channel], option),
    };
  }

  /** Our own name says to whom, not what. */
  #wordsOf({ text }: Post): string {
    return withoutMention(text, this.#me.name) ?? text.trim();
  }

  #isFollowed({ channel, root }: Post): boolean {
    if (root === undefined || isYes(this.#host.option("strict_mention", "MATTERMOST_STRICT_MENTION"), false))
      return false;
    return this.#followed.has(`${channel}:${root}`);
  }

  #follow(channel: string, root: string): void {
    if (this.#followed.size >= MAX_REMEMBERED) this.#followed.delete([...this.#followed][0] ?? "");
    this.#followed.add(`${channel}:${root}`);
  }

  async #sourceOf(post: Post, channel: Channel, threadId: string | undefined): Promise<ChatSource> {
    const userName = await this.#userName(post.user);
    const name = channel.type === "dm" ? userName : channel.name;
    return {
      ...{ platform: "mattermost", chat_type: channel.type, chat_id: post.channel, user_id: post.user },
      ...(name ? { chat_name: name } : {}),
      ...(channel.topic ? { chat_topic: channel.topic } : {}),
      ...(userName ? { user_name: userName } : {}),
      ...(threadId ? { thread_id: threadId } : {}),
      ...(channel.team ? { guild_id: channel.team } : {}),
      message_id: post.id,
    };
  }

  async #channel(id: string): Promise<Channel | null> {
    const known = this.#channels.get(id);
    if (known) return known;
    try {
      const channel = readChannel(await this.#call("GET", `/channels/${id}`));
      if (this.#channels.size >= MAX_REMEMBERED) this.#channels.clear();
      this.#channels.set(id, channel);
      return channel;
    } catch (error) {
      if (!isGone(error)) throw error;
      return null;
    }
  }

  async #userName(id: string): Promise<string | undefined> {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    try {
      const name = asText(asRecord(await this.#call("GET", `/users/${id}`)).username);
      this.#remember(id, name);
      return name;
    } catch (error) {
      this.#host.log.debug("mattermost: the name of somebody is not known", error);
      return undefined;
    }
  }

  #remember(id: string, name: string): void {
    if (this.#names.size >= MAX_REMEMBERED) this.#names.clear();
    this.#names.set(id, name);
  }

  async #fetchAll(post: Post): Promise<{ readonly files: readonly ReceivedFile[]; readonly notes: readonly string[] }> {
    const files: ReceivedFile[] = [];
    const notes: string[] = [];
    if (post.fileIds.length === 0) return { files, notes };
    const shared =
      post.files.length > 0
        ? post.files
        : asList(await this.#call("GET", `/posts/${post.id}/files/info`).catch(() => [])).map(readPostFile);
    for (const { id, name, size } of shared)
      try {
        const headers = { authorization: `Bearer ${this.#token}` };
        const ownHost = new URL(this.#url).host;
        files.push(await this.#host.download(`${this.#url}/api/v4/files/${id}`, { name, headers, ownHost }));
      } catch (error) {
        notes.push(`[file ${name}, ${size} bytes could not be fetched: ${messageOf(error)}]`);
      }
    if (shared.length === 0) notes.push(`[${post.fileIds.length} files could not be fetched]`);
    return { files, notes };
  }

  // --- what goes out

  send(target: ChatTarget, text: string, { key }: SendOptions): Promise<SendResult> {
    return this.#post(target, key, { message: text });
  }

  async #post({ chatId, threadId }: ChatTarget, key: string, content: Json): Promise<SendResult> {
    const mark = this.#markOf(key);
    try {
      const sent = await this.#call("POST", "/posts", {
        ...{ channel_id: chatId, root_id: threadId ?? "", pending_post_id: mark, props: { hermes_part: mark } },
        ...content,
      });
      if (threadId) this.#follow(chatId, threadId);
      return { messageId: asText(asRecord(sent).id) || null };
    } catch (error) {
      return sendFailure(error);
    }
  }

  /** The server knows pending posts by this alone, whoever sent them: other bots have keys like ours. */
  #markOf(key: string): string {
    return createHash("sha256").update(`${this.#token}\n${key}`).digest("hex").slice(0, 40);
  }

  async edit(_target: ChatTarget, messageId: string, text: string): Promise<SendResult> {
    try {
      await this.#call("PUT", `/posts/${messageId}/patch`, { message: text });
      return { messageId };
    } catch (error) {
      return sendFailure(error);
    }
  }

  async remove(_target: ChatTarget, messageId: string): Promise<void> {
    await this.#call("DELETE", `/posts/${messageId}`);
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, { key }: SendOptions): Promise<SendResult> {
    try {
      const query = new URLSearchParams({ channel_id: target.chatId, filename: file.name });
      const answer = await this.#call("POST", `/files?${query}`, await openAsBlob(file.path), UPLOAD_SECONDS);
      const id = asText(asRecord(asList(asRecord(answer).file_infos)[0]).id);
      return await this.#post(target, key, { message: file.caption ?? "", file_ids: [id] });
    } catch (error) {
      return sendFailure(error);
    }
  }

  async typing({ chatId, threadId }: ChatTarget): Promise<void> {
    this.#act("user_typing", { channel_id: chatId, parent_id: threadId ?? "" });
  }

  async findSent(target: ChatTarget, key: string, _text: string, since?: number): Promise<string | null | undefined> {
    const from = since === undefined ? this.#host.clock.now() - LOOK_BACK_MS : since * 1000;
    const mark = this.#markOf(key);
    const answer = await this.#call("GET", `/channels/${target.chatId}/posts?since=${Math.floor(from)}`);
    const posts = readPosts(answer);
    const found = posts.find(({ props, deletedAt }) => props.hermes_part === mark && deletedAt === 0);
    if (found) return found.id;
    // The server gives a thousand at most, and does not say which are missing.
    return posts.length >= 1000 ? undefined : null;
  }

  async chats(): Promise<readonly KnownChat[]> {
    const found: KnownChat[] = [];
    for (const channel of asList(await this.#call("GET", "/users/me/channels")).map(readChannel)) {
      const other = channel.members.find((id) => id !== this.#me.id);
      const name = channel.type === "dm" && other ? ((await this.#userName(other)) ?? other) : channel.name;
      found.push({ id: channel.id, name, type: channel.type });
    }
    return found;
  }
}

const isGone = (error: unknown) => error instanceof RefusedError && (error.status === 403 || error.status === 404);
