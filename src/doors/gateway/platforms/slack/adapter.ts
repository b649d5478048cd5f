// A bot of Slack: what comes by the socket goes to the gateway, what the gateway says goes out by the Web API.
import { asList, asRecord, asText } from "../../../../kit/json.ts";
import {
  type AdapterHost,
  type ChatTarget,
  type ChoiceButton,
  type KnownChat,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { isYes } from "../../groups.ts";
import { escapeMrkdwn, toMrkdwn } from "./markdown.ts";
import { slackTime } from "./missed.ts";
import { questionBlocks, slackCommands } from "./questions.ts";
import { Reception } from "./reception.ts";
import { SlackSocket } from "./socket.ts";
import { errorCode, SlackWeb, sendFailure, type Workspace } from "./web.ts";

export async function openSlack(host: AdapterHost): Promise<PlatformAdapter> {
  return new SlackAdapter(host, await SlackWeb.open(host));
}

/** How `findSent` knows a part again. */
const METADATA = "hermes_part";
/** What `chat.update` takes in `text`, in bytes after escaping, and in a block of Markdown. */
const EDIT_BYTES = 4000;
const EDIT_BLOCK = 12_000;
const STATUS = "is thinking...";
/** Slack takes a status away after two minutes; nobody at work asks for it every two seconds or so. */
const STATUS_MS = 60_000;
const STATUS_OVER_MS = 10_000;
/** As long as sent parts are remembered. */
const LOOK_BACK_MS = 7 * 24 * 3600_000;
const PAGES = 20;
const PAGE = 200;

class SlackAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #web: SlackWeb;
  readonly #reception: Reception;
  readonly #socket: SlackSocket;
  /** Threads that show a status, since when, and what takes it away when the work has ended without a word. */
  readonly #statuses = new Map<string, { readonly since: number; readonly over: NodeJS.Timeout; target: ChatTarget }>();
  /** Files whose message may have arrived, by the key of the part. */
  readonly #uploads = new Map<string, string>();
  #hasStatus = true;

  constructor(host: AdapterHost, web: SlackWeb) {
    this.#host = host;
    this.#web = web;
    this.#reception = new Reception(host, web);
    this.#socket = new SlackSocket({
      host,
      appToken: asText(host.option("app_token", "SLACK_APP_TOKEN")),
      take: (envelope) => this.#reception.take(envelope),
      opened: () => this.#reception.opened(),
    });
  }

  get account(): string {
    const names = this.#web.workspaces.flatMap(({ userName, teamName }) =>
      userName === undefined ? [] : [`@${userName}${teamName ? ` (${teamName})` : ""}`],
    );
    return names.join(", ");
  }

  async connect(signal: AbortSignal): Promise<void> {
    if (!asText(this.#host.option("app_token", "SLACK_APP_TOKEN")))
      throw new PlatformError("not_set_up", "SLACK_APP_TOKEN is not set; set it: hermes gateway setup", {
        retryable: false,
      });
    await this.#web.signIn();
    signal.throwIfAborted();
    await this.#reception.begin();
    await this.#socket.start(signal);
  }

  async disconnect(): Promise<void> {
    await this.#socket.stop();
    await Promise.all([...this.#statuses.values()].map(({ target }) => this.#clearStatus(target)));
    await this.#reception.end();
  }

  send(target: ChatTarget, text: string, options: SendOptions): Promise<SendResult> {
    return this.#post(target, options.key, options.plain ? plainText(text) : { text: toMrkdwn(text), mrkdwn: true });
  }

  ask(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult> {
    if (question.buttons.length === 0) return this.send(target, text, options);
    const blocks = questionBlocks(text, question);
    const hadStatus = this.#statuses.has(placeOf(target));
    const posted = this.#post(target, options.key, { text: toMrkdwn(text), blocks });
    return posted.finally(() => (hadStatus ? this.#setStatus(target, "") : undefined));
  }

  async #post(
    target: ChatTarget,
    key: string,
    content: { readonly text: string; readonly mrkdwn?: boolean; readonly blocks?: readonly object[] },
  ): Promise<SendResult> {
    const { threadId } = target;
    try {
      const { workspace, channel } = await this.#web.locate(target.chatId);
      const metadata = { event_type: METADATA, event_payload: { key } };
      const thread = threadId === undefined ? {} : { thread_ts: threadId };
      const sent = await workspace.client.call("chat.postMessage", { channel, ...content, ...thread, metadata });
      const ts = asText(sent.ts) || null;
      // Slack drops the thread without a word when the message it hangs on was deleted.
      const isAstray = threadId !== undefined && sent.message !== undefined && !asRecord(sent.message).thread_ts;
      if (isAstray && ts !== null && (await this.#takeBack(workspace, channel, ts)))
        return { failed: "thread_gone", error: "Slack: the thread was deleted" };
      this.#wrote(target);
      return { messageId: ts };
    } catch (error) {
      return sendFailure(error);
    }
  }

  /** What was written stays if it cannot be deleted: it arrived then. */
  async #takeBack({ client }: Workspace, channel: string, ts: string): Promise<boolean> {
    try {
      await client.call("chat.delete", { channel, ts });
      return true;
    } catch (error) {
      this.#host.log.debug("slack: a message outside of its thread could not be deleted", error);
      return false;
    }
  }

  /** A message takes the status of its thread away, and the thread is ours to follow. */
  #wrote(target: ChatTarget): void {
    const { chatId, threadId } = target;
    if (threadId === undefined) return;
    this.#forgetStatus(placeOf(target));
    this.#reception.follow(chatId, threadId);
  }

  async edit(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { final: boolean },
  ): Promise<SendResult> {
    const { text: shown } = options.plain ? plainText(text) : { text: toMrkdwn(text) };
    const fits = Buffer.byteLength(shown) <= EDIT_BYTES;
    if (!fits && text.length > EDIT_BLOCK) return this.#replace(target, messageId, text, options);
    try {
      const { workspace, channel } = await this.#web.locate(target.chatId);
      // An empty list takes the blocks of an earlier edit away.
      const blocks = fits ? [] : [{ type: "markdown", text }];
      const content = { text: fits ? shown : beginningOf(shown), blocks };
      await workspace.client.call("chat.update", { channel, ts: messageId, ...content });
      return { messageId };
    } catch (error) {
      // Somebody deleted what was being written: its last form is still owed.
      if (options.final && errorCode(error) === "message_not_found") return this.send(target, text, options);
      return sendFailure(error);
    }
  }

  /** An answer for which an edit has no room: written as a new message, and what was shown of it goes. */
  async #replace(
    target: ChatTarget,
    messageId: string,
    text: string,
    options: SendOptions & { final: boolean },
  ): Promise<SendResult> {
    if (!options.final) return { messageId };
    // An edit is repeated without asking; this one may have arrived.
    const before = await this.findSent(target, options.key, text).catch(() => undefined);
    const sent = typeof before === "string" ? { messageId: before } : await this.send(target, text, options);
    if (!("failed" in sent))
      await this.remove(target, messageId).catch((error: unknown) =>
        this.#host.log.debug("slack: a preview could not be deleted", error),
      );
    return sent;
  }

  async remove(target: ChatTarget, messageId: string): Promise<void> {
    const { workspace, channel } = await this.#web.locate(target.chatId);
    await workspace.client.call("chat.delete", { channel, ts: messageId });
  }

  async closeQuestion(target: ChatTarget, messageId: string, text: string): Promise<void> {
    const { workspace, channel } = await this.#web.locate(target.chatId);
    const shown = beginningOf(toMrkdwn(text));
    await workspace.client.call("chat.update", { channel, ts: messageId, text: shown, blocks: [] });
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    try {
      const { workspace, channel } = await this.#web.locate(target.chatId);
      const ts = await this.#web.upload({ workspace, channel, threadTs: target.threadId }, file, {
        comment: file.caption === undefined ? undefined : toMrkdwn(file.caption),
        began: (id) => this.#uploads.set(options.key, id),
      });
      this.#wrote(target);
      this.#uploads.delete(options.key);
      return { messageId: ts };
    } catch (error) {
      return sendFailure(error);
    }
  }

  async typing(target: ChatTarget): Promise<void> {
    if (target.threadId === undefined || !this.#hasStatus) return;
    const now = this.#host.clock.now();
    const place = placeOf(target);
    const shown = this.#statuses.get(place);
    clearTimeout(shown?.over);
    const isFresh = shown !== undefined && now - shown.since < STATUS_MS;
    const over = setTimeout(() => this.#clearStatus(target), STATUS_OVER_MS).unref();
    this.#statuses.set(place, { since: isFresh ? shown.since : now, over, target });
    if (isFresh) return;
    await this.#setStatus(target, STATUS);
    // A message that was sent meanwhile took away what was not there yet.
    if (!this.#statuses.has(place)) await this.#setStatus(target, "");
  }

  /** While it shows, nobody can write in the thread. */
  async #clearStatus(target: ChatTarget): Promise<void> {
    if (this.#forgetStatus(placeOf(target))) await this.#setStatus(target, "");
  }

  #forgetStatus(place: string): boolean {
    clearTimeout(this.#statuses.get(place)?.over);
    return this.#statuses.delete(place);
  }

  async #setStatus({ chatId, threadId = "" }: ChatTarget, status: string): Promise<void> {
    try {
      const { workspace, channel } = await this.#web.locate(chatId);
      await workspace.client.call("assistant.threads.setStatus", { channel_id: channel, thread_ts: threadId, status });
    } catch (error) {
      // An app without the scope will not have it in a moment.
      if (/^(?:missing_scope|not_allowed_token_type|unknown_method)$/.test(errorCode(error) ?? ""))
        this.#hasStatus = false;
      this.#host.log.debug("slack: the status of a thread could not be set", error);
    }
  }

  async mark(target: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    if (state !== "working") await this.#clearStatus(target);
    if (!isYes(this.#host.option("reactions", "SLACK_REACTIONS"), false)) return;
    const { workspace, channel } = await this.#web.locate(target.chatId);
    const { client } = workspace;
    const about = { channel, timestamp: messageId };
    const quietly = (error: unknown) => this.#host.log.debug("slack: a reaction could not be set", error);
    if (state === "working")
      return void (await client.call("reactions.add", { ...about, name: "eyes" }).catch(quietly));
    await client.call("reactions.remove", { ...about, name: "eyes" }).catch(quietly);
    await client.call("reactions.add", { ...about, name: state === "done" ? "white_check_mark" : "x" }).catch(quietly);
  }

  async findSent(target: ChatTarget, key: string, text: string, since?: number): Promise<string | null | undefined> {
    const file = this.#uploads.get(key);
    // Of a file nothing but its id is certain, and that was in the memory of another process.
    if (file === undefined && text.startsWith("[file: ")) return undefined;
    const isIt = (message: unknown) => {
      const { metadata, files } = asRecord(message);
      if (file !== undefined) return asList(files).some((one) => asRecord(one).id === file);
      const { event_type: type, event_payload: payload } = asRecord(metadata);
      return type === METADATA && asRecord(payload).key === key;
    };
    const { workspace, channel } = await this.#web.locate(target.chatId);
    const { client } = workspace;
    const { threadId } = target;
    // Another home may have had the same keys before.
    const oldest = slackTime(since === undefined ? this.#host.clock.now() - LOOK_BACK_MS : since * 1000);
    for (let page = 0, cursor: string | undefined; page < PAGES; page++) {
      const args = { channel, oldest, limit: PAGE, include_all_metadata: true, ...(cursor ? { cursor } : {}) };
      const answer =
        threadId === undefined
          ? await client.call("conversations.history", args)
          : await client.call("conversations.replies", { ...args, ts: threadId });
      const found = asList(answer.messages).find(isIt);
      if (found !== undefined) return asText(asRecord(found).ts);
      cursor = asText(asRecord(answer.response_metadata).next_cursor);
      if (!cursor) return null;
    }
    return undefined;
  }

  async chats(): Promise<readonly KnownChat[]> {
    const lists = await Promise.all(this.#web.workspaces.map((workspace) => this.#chatsOf(workspace)));
    return lists.flat();
  }

  async #chatsOf(workspace: Workspace): Promise<readonly KnownChat[]> {
    const found: KnownChat[] = [];
    for (let page = 0, cursor: string | undefined; page < PAGES; page++) {
      const answer = await workspace.client.call("users.conversations", {
        types: "public_channel,private_channel,mpim,im",
        exclude_archived: true,
        limit: PAGE,
        ...(cursor ? { cursor } : {}),
      });
      for (const one of asList(answer.channels).map(asRecord)) {
        const id = asText(one.id);
        if (id === "") continue;
        this.#web.place(id, workspace);
        const person = asText(one.user);
        const name = one.is_im ? ((await this.#web.userName(workspace, person)) ?? person) : asText(one.name) || id;
        const type = one.is_im ? "dm" : one.is_mpim ? "group" : "channel";
        const several = this.#web.workspaces.length > 1 && workspace.teamName !== undefined;
        found.push({ id, name, type, ...(several ? { guild: workspace.teamName } : {}) });
      }
      cursor = asText(asRecord(answer.response_metadata).next_cursor);
      if (!cursor) break;
    }
    return found;
  }

  /** Slack takes commands from the manifest of the app alone; the log says what belongs there. */
  async setCommands(commands: readonly { readonly name: string; readonly description: string }[]): Promise<void> {
    const menu = JSON.stringify(slackCommands(commands));
    this.#host.log.debug(`slash_commands for the manifest of the Slack app: ${menu}`);
  }
}

const placeOf = ({ chatId, threadId }: ChatTarget) => `${chatId}:${threadId}`;

const plainText = (text: string) => ({ text: escapeMrkdwn(text), mrkdwn: false });

/** As much as an edit takes; no sign is parted. */
function beginningOf(text: string): string {
  if (Buffer.byteLength(text) <= EDIT_BYTES) return text;
  const cut = Buffer.from(text).subarray(0, EDIT_BYTES - 3);
  return `${new TextDecoder().decode(cut, { stream: true })}…`;
}
