// What comes in: which messages are for us, what they say in plain words, and the promise to Slack that they are stored.
import { open } from "node:fs/promises";
import { asList, asRecord, asText } from "../../../../kit/json.ts";
import type { ChatSource } from "../../chat.ts";
import type { AdapterHost, ChatMessage, ReceivedFile } from "../../contract.ts";
import { channelSettings, isForUs, isYes } from "../../groups.ts";
import {
  mentions,
  namedIn,
  readChange,
  readCommand,
  readFile,
  readMessage,
  readPress,
  type SharedFile,
  type Spoken,
  toPlainText,
  typeOf,
} from "./inbound.ts";
import { ReadUpTo, readMissed, slackTime } from "./missed.ts";
import { choiceOf } from "./questions.ts";
import type { Envelope } from "./socket.ts";
import type { SlackWeb, Workspace } from "./web.ts";

const MAX_REMEMBERED = 5000;
const CONTEXT_MESSAGES = 30;
/** A call, a poll of another app: Slack has no words for it. */
const UNREADABLE = "[unsupported: message without text]";
const SHARED = "[shared a message]";
const NOTHING_SAID = "[mentioned you without a text]";
const END_MS = 3000;
/** Stands for everything that was written while no connection was open. */
const GAP = "gap";

export class Reception {
  readonly #host: AdapterHost;
  readonly #web: SlackWeb;
  readonly #over = new AbortController();
  /** What is done in each channel, one behind the other. */
  readonly #lines = new Map<string, Promise<void>>();
  /** Slack sends a mention as two events, and all of them again when it gets impatient. */
  readonly #taken = new Map<string, Promise<void>>();
  readonly #followed = new Set<string>();
  #upTo = new ReadUpTo("0");
  #connections = 0;
  #isCatchingUp = false;

  constructor(host: AdapterHost, web: SlackWeb) {
    this.#host = host;
    this.#web = web;
  }

  /** Before the first connection: from where on, and which threads are ours. */
  async begin(): Promise<void> {
    const { clock } = this.#host;
    const stored = await this.#host.cursor();
    const start = stored ?? slackTime(clock.now());
    this.#upTo = new ReadUpTo(start);
    if (stored === null) await this.#host.receive([], start);
    for (const { chat_id: chat, thread_id: thread, guild_id: team } of await this.#host.knownChats()) {
      if (chat && thread) this.follow(chat, thread);
      if (chat && team) this.#web.place(chat, this.#web.ofTeam(team));
    }
  }

  /** A connection is there. What was written since the last one is read behind its back. */
  opened(): void {
    this.#upTo.hold(GAP, this.#upTo.moment);
    this.#connections++;
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    this.#catchUp()
      .catch((error: unknown) => this.#host.log.error("missed messages of Slack could not be read", error))
      .finally(() => {
        this.#isCatchingUp = false;
      });
  }

  /** A connection that opens meanwhile has a gap of its own. */
  async #catchUp(): Promise<void> {
    for (let read = 0; read < this.#connections && !this.#over.signal.aborted; ) {
      const now = this.#connections;
      const isRead = await readMissed(this.#upTo.moment, {
        host: this.#host,
        web: this.#web,
        signal: this.#over.signal,
        inOrder: (channel, work) => this.#inOrder(channel, work),
        take: async (messages) => {
          for (const message of messages)
            await this.#once(message, (await this.#web.locate(message.channel)).workspace);
        },
      });
      read = now;
      if (!isRead || this.#over.signal.aborted || now < this.#connections) continue;
      this.#upTo.done(GAP);
      await this.#host.receive([], this.#upTo.moment);
    }
  }

  /** What is being stored gets a moment for it. */
  async end(): Promise<void> {
    this.#over.abort();
    const quiet = Promise.allSettled([...this.#lines.values()]);
    const pause = new AbortController();
    await Promise.race([quiet, this.#host.clock.sleep(END_MS, pause.signal).catch(() => undefined)]);
    pause.abort();
  }

  /** A thread we wrote in needs no mention any more. */
  follow(channel: string, thread: string): void {
    if (this.#followed.size >= MAX_REMEMBERED) this.#followed.delete([...this.#followed][0] ?? "");
    this.#followed.add(`${channel}:${thread}`);
  }

  async take({ type, body }: Envelope): Promise<void> {
    if (type === "slash_commands") return this.#takeCommand(body);
    if (type === "interactive") return this.#takePress(body);
    if (type !== "events_api") return;
    const { event: raw, team_id: team } = asRecord(body);
    const event = asRecord(raw);
    if (event.type !== "message" && event.type !== "app_mention") return;
    const workspace = this.#web.ofTeam(asText(team));
    const changed = readChange(event);
    if (changed !== null) {
      const { channel, ts } = changed.type === "edited" ? changed.message : changed;
      return this.#inOrder(channel, async () => {
        const text = changed.type === "edited" ? await this.#plain(changed.message.text, workspace) : null;
        await this.#host.changed(`${channel}:${ts}`, text);
      });
    }
    const message = readMessage(event);
    if (message === null) return;
    await this.#inOrder(message.channel, () => this.#once(message, workspace));
  }

  /** One behind the other in a channel, side by side in others. */
  #inOrder(channel: string, work: () => Promise<void>): Promise<void> {
    const before = this.#lines.get(channel) ?? Promise.resolve();
    const mine = before.then(async () => {
      if (this.#over.signal.aborted) throw new Error("the connection to Slack was closed");
      await work();
    });
    const settled = mine.catch(() => undefined); // whoever asked for it is told
    this.#lines.set(channel, settled);
    settled.then(() => {
      if (this.#lines.get(channel) === settled) this.#lines.delete(channel);
    });
    return mine;
  }

  #once(message: Spoken, workspace: Workspace): Promise<void> {
    const id = `${message.channel}:${message.ts}`;
    const before = this.#taken.get(id);
    if (before) return before;
    if (this.#taken.size >= MAX_REMEMBERED) this.#taken.delete([...this.#taken.keys()][0] ?? "");
    const taken = this.#receive(message, workspace);
    this.#taken.set(id, taken);
    taken.catch(() => this.#taken.delete(id)); // it comes again
    return taken;
  }

  async #receive(spoken: Spoken, workspace: Workspace): Promise<void> {
    const { channel, ts } = spoken;
    const id = `${channel}:${ts}`;
    this.#web.place(channel, workspace);
    this.#upTo.begin(id, ts);
    const message = await this.#messageFrom(spoken, workspace);
    if (message !== null) await this.#host.receive([message], this.#upTo.with(id, ts));
    this.#upTo.done(id, ts);
  }

  async #messageFrom(spoken: Spoken, workspace: Workspace): Promise<ChatMessage | null> {
    const { channel, ts, user, botId, text } = spoken;
    const { option, log } = this.#host;
    const isOurs =
      (user !== undefined && user === workspace.user) || (botId !== undefined && botId === workspace.botId);
    if (isOurs || (user === undefined && botId === undefined)) return null;
    const mentionsUs = mentions(text, workspace.user);
    const isBot = botId !== undefined;
    const inThread = spoken.threadTs !== undefined && spoken.threadTs !== ts;
    const isDirect = channel.startsWith("D");
    const isFollowed = inThread && this.#isFollowed(spoken, workspace);
    const threadId = inThread || this.#repliesInThread ? (spoken.threadTs ?? ts) : undefined;
    const plain = await this.#plain(text, workspace);
    if (!isDirect) {
      const asked = { chatId: channel, threadId: spoken.threadTs, text: plain, mentionsUs, isFollowed };
      if (!isForUs(asked, option, { requireMention: true, prefix: "SLACK", chats: "CHANNELS" }, log)) return null;
    }
    const source = await this.#sourceOf({ channel, user: user ?? botId ?? "", threadId, ts }, workspace);
    const about = { source, ...(isBot ? { isBot } : {}), ...(mentionsUs ? { mentionsUs } : {}) };
    const isKnown = (await this.#host.allows?.(about)) ?? true;
    const isCalled = isKnown && inThread && !isFollowed && !isDirect;
    const context = [...(isCalled ? await this.#threadBefore(spoken, workspace) : [])];
    for (const shared of spoken.shared) context.push(await this.#plain(shared, workspace));
    if (isKnown && !isDirect && threadId !== undefined) this.follow(channel, threadId);
    const { files, notes } = await this.#fetchAll(isKnown ? spoken.files : [], workspace);
    const whole = [plain, ...notes].filter((part) => part !== "").join("\n");
    const isEmpty = whole === "" && spoken.files.length === 0;
    if (isEmpty && !mentionsUs && !isDirect) return null;
    const nothing = spoken.shared.length > 0 ? SHARED : mentionsUs ? NOTHING_SAID : UNREADABLE;
    return {
      text: isEmpty ? nothing : whole,
      type: typeOf(
        whole,
        files,
        spoken.files.some(({ isVoice }) => isVoice),
      ),
      ...about,
      updateId: `${channel}:${ts}`,
      messageId: ts,
      sentAt: Number(ts),
      ...(files.length > 0 ? { files } : {}),
      ...(context.length > 0 ? { context: context.join("\n") } : {}),
      ...channelSettings([spoken.threadTs, channel], option),
    };
  }

  /** Ours by what was said before, unless every message needs a mention. */
  #isFollowed({ channel, threadTs, parentUser }: Spoken, workspace: Workspace): boolean {
    if (isYes(this.#host.option("strict_mention", "SLACK_STRICT_MENTION"), false)) return false;
    return this.#followed.has(`${channel}:${threadTs}`) || (parentUser !== undefined && parentUser === workspace.user);
  }

  get #repliesInThread(): boolean {
    return isYes(this.#host.option("reply_in_thread", "SLACK_REPLY_IN_THREAD"), true);
  }

  async #plain(text: string, workspace: Workspace): Promise<string> {
    const { users, channels } = namedIn(text);
    const names = new Map<string, string>();
    for (const id of users) if (id !== workspace.user) names.set(id, (await this.#web.userName(workspace, id)) ?? id);
    for (const id of channels) names.set(id, (await this.#web.channel(workspace, id)).name ?? id);
    return toPlainText(text, workspace.user, names);
  }

  async #sourceOf(
    place: {
      readonly channel: string;
      readonly user: string;
      readonly threadId?: string | undefined;
      readonly ts?: string | undefined;
    },
    workspace: Workspace,
  ): Promise<ChatSource> {
    const { channel, user, threadId, ts } = place;
    const isDirect = channel.startsWith("D");
    const userName = user === "" ? undefined : await this.#web.userName(workspace, user);
    const { name, topic } = isDirect ? { name: userName } : await this.#web.channel(workspace, channel);
    return {
      platform: "slack",
      chat_type: isDirect ? "dm" : "group",
      chat_id: channel,
      user_id: user,
      ...(name ? { chat_name: name } : {}),
      ...(topic ? { chat_topic: topic } : {}),
      ...(userName ? { user_name: userName } : {}),
      ...(threadId ? { thread_id: threadId } : {}),
      ...(workspace.team ? { guild_id: workspace.team } : {}),
      ...(ts ? { message_id: ts } : {}),
    };
  }

  /** Somebody calls us into a thread: what was said there before. */
  async #threadBefore({ channel, threadTs = "", ts }: Spoken, workspace: Workspace): Promise<readonly string[]> {
    try {
      const { client } = workspace;
      const about = { channel, ts: threadTs, limit: CONTEXT_MESSAGES };
      const { messages } = await client.call("conversations.replies", about);
      const lines: string[] = [];
      for (const one of asList(messages)) {
        const said = readMessage(one, channel);
        if (said === null || said.ts >= ts) continue;
        const who = said.user === undefined ? undefined : await this.#web.userName(workspace, said.user);
        lines.push(`${who ?? said.user ?? "bot"}: ${await this.#plain(said.text, workspace)}`);
      }
      return lines;
    } catch (error) {
      this.#host.log.debug("slack: the thread could not be read", error);
      return [];
    }
  }

  async #fetchAll(shared: readonly SharedFile[], workspace: Workspace) {
    const files: ReceivedFile[] = [];
    const notes: string[] = [];
    for (const one of shared)
      try {
        files.push(await this.#fetch(one, workspace));
      } catch (error) {
        const size = one.size > 0 ? `, ${one.size} bytes` : "";
        const why = error instanceof Error ? error.message : String(error);
        notes.push(`[file ${one.name}${size} could not be fetched: ${why}]`);
      }
    return { files, notes };
  }

  async #fetch(shared: SharedFile, workspace: Workspace): Promise<ReceivedFile> {
    const { client, token } = workspace;
    const info = shared.isHidden ? (await client.call("files.info", { file: shared.id })).file : undefined;
    const file = info === undefined ? shared : readFile(info);
    if (file.isGone) throw new Error("it was deleted or is beyond the limit of the workspace");
    if (!this.#web.isOwnUrl(file.url)) throw new Error(`it is kept elsewhere: ${file.url || "no address"}`);
    const kept = await this.#host.download(file.url, {
      name: file.name,
      headers: { authorization: `Bearer ${token}` },
      ownHost: this.#web.ownHost,
    });
    if (await isSignInPage(kept, file))
      throw new Error("Slack sent a sign-in page; add the scope files:read to the app");
    return kept;
  }

  async #takeCommand(body: unknown): Promise<void> {
    const command = readCommand(body);
    if (command === null) return;
    const { channel, user, id, text } = command;
    const workspace = this.#web.ofTeam(command.team);
    this.#web.place(channel, workspace);
    const source = await this.#sourceOf({ channel, user }, workspace);
    const sentAt = Math.floor(this.#host.clock.now() / 1000);
    const message: ChatMessage = {
      ...{ text, type: "command", sentAt, mentionsUs: true },
      updateId: `command:${id || `${channel}:${user}:${sentAt}:${text}`}`,
      source: { user_name: command.userName, ...source },
    };
    await this.#inOrder(channel, async () => void (await this.#host.receive([message])));
  }

  async #takePress(body: unknown): Promise<void> {
    const press = readPress(body);
    const chosen = press === null ? null : choiceOf(press.actionId, press.value);
    if (press === null || chosen === null) return;
    const { channel, user, messageTs, threadTs, label } = press;
    const workspace = this.#web.ofTeam(press.team);
    this.#web.place(channel, workspace);
    const source = await this.#sourceOf({ channel, user, threadId: threadTs, ts: messageTs }, workspace);
    await this.#host.pressed({
      source: { user_name: press.userName, ...source },
      choice: chosen.choice,
      questionId: chosen.id,
      messageId: messageTs,
      answer: async (text) => {
        // The question itself shows what was chosen.
        if (text === label) return;
        await workspace.client.call("chat.postEphemeral", {
          ...{ channel, user, text },
          ...(threadTs ? { thread_ts: threadTs } : {}),
        });
      },
    });
  }
}

/** Without the scope Slack does not refuse: it sends the page on which people sign in. */
async function isSignInPage({ path, mediaType }: ReceivedFile, { mediaType: claimed }: SharedFile): Promise<boolean> {
  if (claimed === "" || claimed.startsWith("text/") || !mediaType.startsWith("text/")) return false;
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(200), 0, 200, 0);
    return /^\s{0,100}<(?:!doctype html|html)/i.test(buffer.toString("utf8", 0, bytesRead));
  } finally {
    await file.close();
  }
}
