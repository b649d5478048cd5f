// One account of signal-cli, which runs as a daemon of its own: JSON-RPC to do things, a stream of events for what comes in.
import { readFile } from "node:fs/promises";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { OutOfTime, within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { failureWords, sendRequest } from "../../../../kit/http.ts";
import { asList, asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
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
import { CallFailedError, callWeb, mediaTypeOf, trimmedUrl } from "../../web-calls.ts";
import { messageIdOf, readEnvelope, readMessageId, type Said, type SignalAttachment, updateIdOf } from "./envelope.ts";
import { styledText } from "./styles.ts";

export const openSignal = async (host: AdapterHost): Promise<PlatformAdapter> => new SignalAdapter(host);

/** signal-cli sends a sign of life every 15 seconds. */
const SILENT_SECONDS = 60;
const REQUEST_SECONDS = 60;
const RETRIES = [0.5, 1, 2, 4];
const KEPT_TEXTS = 500;
const MAX_FILE = 95 * 1024 * 1024;
const MARKS = { working: "👀", done: "✅", failed: "❌" } as const;

/** What signal-cli said to a call. */
class RpcError extends Error {
  override name = "RpcError";
  readonly code: number;
  readonly data: Json;
  constructor(code: number, message: string, data: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

class SignalAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #url: string;
  readonly account: string;
  readonly #over = new AbortController();
  /** Texts of late messages, to quote them. */
  readonly #texts = new Map<string, string>();
  readonly #groupNames = new Map<string, string>();
  #reading: Promise<void> | null = null;
  #lastEvent: string | null = null;
  #nextCall = 0;
  #marking = Promise.resolve();

  constructor(host: AdapterHost) {
    this.#host = host;
    this.#url = trimmedUrl(host.option("http_url", "SIGNAL_HTTP_URL"));
    this.account = String(host.option("account", "SIGNAL_ACCOUNT")).trim();
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#over.abort(), { once: true });
    this.#lastEvent = await this.#host.cursor();
    const stream = await this.#openStream();
    await this.#learnGroups().catch((error: unknown) =>
      this.#host.log.warn(`the names of groups are not known: ${messageOf(error)}`),
    );
    this.#reading = this.#readOn(stream);
  }

  async disconnect(): Promise<void> {
    this.#over.abort();
    await this.#reading;
  }

  // Reading.

  /** Where signal-cli keeps events, it sends those again that came behind the last one we know. */
  async #openStream() {
    const { host } = new URL(this.#url);
    const url = new URL(`${this.#url}/api/v1/events?account=${encodeURIComponent(this.account)}`);
    const headers = {
      accept: "text/event-stream",
      ...(this.#lastEvent === null ? {} : { "last-event-id": this.#lastEvent }),
    };
    const open = () => sendRequest(url, { headers, agent: false, signal: this.#over.signal, connectMs: 10_000 });
    const stream = await open().catch((error: unknown) => {
      throw new PlatformError("unreachable", `signal-cli at ${host} ${failureWords(error)}; is its daemon running?`, {
        retryable: true,
        cause: error,
      });
    });
    if (stream.statusCode === 200) return stream;
    stream.destroy();
    if (stream.statusCode === 400)
      throw new PlatformError(
        "auth",
        `signal-cli at ${host} has no account ${this.account}; register or link it there, or set SIGNAL_ACCOUNT`,
        {
          retryable: false,
        },
      );
    throw new PlatformError("refused", `signal-cli at ${host} answered with status ${stream.statusCode}`, {
      retryable: true,
    });
  }

  async #readOn(first: AsyncIterable<Uint8Array>): Promise<void> {
    const { log, clock } = this.#host;
    let stream: AsyncIterable<Uint8Array> | null = first;
    let failures = 0;
    while (!this.#over.signal.aborted) {
      try {
        stream ??= await this.#openStream();
        await this.#readEvents(stream, () => {
          failures = 0;
        });
        throw new Error("the stream of events ended");
      } catch (error) {
        stream = null;
        if (this.#over.signal.aborted) return;
        const wait = RETRIES[failures++];
        if (wait === undefined || (error instanceof PlatformError && !error.retryable)) return this.#lost(error);
        log.warn(`reading from signal-cli failed, next try in ${wait} s: ${messageOf(error)}`);
        await clock.sleep(wait * 1000, this.#over.signal).catch(() => undefined);
      }
    }
  }

  #lost(error: unknown): void {
    const isTold = error instanceof PlatformError;
    const told = isTold
      ? error
      : new PlatformError("stream", `signal-cli: ${messageOf(error)}`, { retryable: true, cause: error });
    this.#host.lost(told);
  }

  /** One event after the other: what is stored of one is stored before the next is looked at. */
  async #readEvents(stream: AsyncIterable<Uint8Array>, alive: () => void): Promise<void> {
    const waiting: EventSourceMessage[] = [];
    const parser = createParser({ onEvent: (event) => waiting.push(event) });
    const decoder = new TextDecoder();
    const pieces = stream[Symbol.asyncIterator]();
    for (;;) {
      const next = await within(() => pieces.next(), SILENT_SECONDS * 1000, this.#host.clock, this.#over.signal).catch(
        (error) => {
          void pieces.return?.();
          throw error instanceof OutOfTime ? new Error(`nothing came for ${SILENT_SECONDS} seconds`) : error;
        },
      );
      if (next.done) return;
      alive();
      parser.feed(decoder.decode(next.value, { stream: true }));
      for (const event of waiting.splice(0)) await this.#take(event);
    }
  }

  async #take({ data, id }: EventSourceMessage): Promise<void> {
    const host = this.#host;
    const { envelope, exception, account } = asRecord(parseJson(data));
    if (exception !== undefined)
      host.log.warn(`signal-cli could not read a message: ${asText(asRecord(exception).message)}`);
    const isOurs = account === undefined || account === this.account;
    const read = isOurs ? readEnvelope(asRecord(envelope), this.account) : null;
    const cursor = id === undefined || id === "" ? undefined : id;
    if (read?.type === "changed") await host.changed(updateIdOf(read.author, read.timestamp), read.text);
    if (read?.type === "said") await this.#receive(read, cursor);
    else if (read !== null && cursor !== undefined) await host.receive([], cursor);
    if (cursor !== undefined) this.#lastEvent = cursor;
  }

  async #receive(said: Said, cursor: string | undefined): Promise<void> {
    const id = messageIdOf(said.author, said.timestamp);
    if (!this.#isForUs(said)) return;
    this.#keepText(id, said.text);
    const files: ReceivedFile[] = [];
    const problems: string[] = [];
    const { quote, source } = said;
    const mayFetch =
      said.attachments.length > 0 && ((await this.#host.allows?.({ source, mentionsUs: said.mentionsUs })) ?? true);
    for (const attachment of mayFetch ? said.attachments : []) {
      const got = await this.#fetch(attachment, said.source.chat_id ?? "");
      if (typeof got === "string") problems.push(got);
      else files.push(got);
    }
    const groupName = this.#groupNames.get(source.chat_id ?? "");
    const message: ChatMessage = {
      text: [said.text, ...problems].filter((line) => line !== "").join("\n"),
      type: typeOf(said),
      source: { ...source, ...(groupName === undefined ? {} : { chat_name: groupName }), message_id: id },
      ...{ updateId: updateIdOf(said.author, said.timestamp), messageId: id, sentAt: said.timestamp / 1000 },
      mentionsUs: said.mentionsUs || quote?.author === this.account,
      ...(files.length > 0 ? { files } : {}),
      ...(quote === null
        ? {}
        : { replyTo: { messageId: messageIdOf(quote.author, quote.timestamp), text: quote.text } }),
      ...channelSettings([source.chat_id, source.chat_id_alt], this.#host.option),
    };
    const [isNew] = await this.#host.receive([message], cursor);
    if (isNew && isYes(this.#host.option("read_receipts", "SIGNAL_READ_RECEIPTS"), true)) this.#confirm(said);
  }

  #isForUs({ source, text, mentionsUs, quote }: Said): boolean {
    if (source.chat_type === "dm") return true;
    const about = {
      chatId: source.chat_id ?? "",
      parentChatId: source.chat_id_alt,
      ...{ text, mentionsUs, repliesToUs: quote?.author === this.account, isCommand: text.startsWith("/") },
    };
    return isForUs(about, this.#host.option, { requireMention: true, prefix: "SIGNAL" }, this.#host.log);
  }

  /** Shown as read on the other side. Nobody waits for it. */
  #confirm({ author, timestamp }: Said): void {
    if (author === this.account) return;
    this.#call("sendReceipt", { recipient: [author], targetTimestamp: [timestamp], type: "read" }).catch(
      (error: unknown) => this.#host.log.debug(`a receipt was not sent: ${messageOf(error)}`),
    );
  }

  async #fetch({ id, name, type, size }: SignalAttachment, chatId: string): Promise<ReceivedFile | string> {
    const shown = name ?? (type || "file");
    const problem = (reason: string) =>
      `[not received: ${shown}${size === undefined ? "" : ` (${size} bytes)`}: ${reason}]`;
    if (id === "") return problem("signal-cli did not keep it");
    try {
      const reply = await this.#call("getAttachment", { id, ...addressOf(chatId) });
      const data = typeof reply === "string" ? reply : asText(asRecord(reply).data);
      if (data === "") return problem("signal-cli did not keep it");
      return await this.#host.keepFile(Buffer.from(data, "base64"), name === undefined ? {} : { name });
    } catch (error) {
      return problem(messageOf(error));
    }
  }

  async #learnGroups(): Promise<void> {
    for (const group of asList(await this.#call("listGroups", {})).map(asRecord))
      if (asText(group.name) !== "") this.#groupNames.set(`group:${asText(group.id)}`, asText(group.name));
  }

  // Sending.

  send(target: ChatTarget, text: string, { plain }: SendOptions): Promise<SendResult> {
    const styled = plain ? { text, ranges: [] } : styledText(text);
    const styles = styled.ranges.map(({ start, length, style }) => `${start}:${length}:${style}`);
    return this.#sendMessage(target, { message: styled.text, ...(styles.length > 0 ? { textStyle: styles } : {}) });
  }

  async sendFile(target: ChatTarget, file: OutgoingFile): Promise<SendResult> {
    const bytes = await readFile(file.path).catch((error: unknown) => messageOf(error));
    if (typeof bytes === "string") return { failed: "refused", error: `${file.name} cannot be read: ${bytes}` };
    if (bytes.length > MAX_FILE) return { failed: "refused", error: `${file.name} is larger than Signal takes` };
    // Whole and not by its path: signal-cli may run in a container, or on another machine.
    const name = file.name.replace(/[;,\s]/g, "_");
    const attachment = `data:${mediaTypeOf(file.name)};filename=${name};base64,${bytes.toString("base64")}`;
    const caption = styledText(file.caption ?? "");
    const styles = caption.ranges.map(({ start, length, style }) => `${start}:${length}:${style}`);
    const message =
      caption.text === "" ? {} : { message: caption.text, ...(styles.length > 0 ? { textStyle: styles } : {}) };
    return this.#sendMessage(target, { ...message, attachments: [attachment] });
  }

  async #sendMessage(target: ChatTarget, params: Json): Promise<SendResult> {
    try {
      const quoted = target.replyTo === undefined ? null : readMessageId(target.replyTo);
      const quote = quoted && {
        quoteTimestamp: quoted.timestamp,
        quoteAuthor: quoted.author,
        quoteMessage: this.#texts.get(target.replyTo ?? "") ?? "",
      };
      const sent = asRecord(await this.#call("send", { ...addressOf(target.chatId), ...params, ...quote }));
      const failure = resultFailure(asList(sent.results).map(asRecord));
      if (failure) return failure;
      const { timestamp } = sent;
      if (typeof timestamp !== "number") return { messageId: null };
      const id = messageIdOf(this.account, timestamp);
      this.#keepText(id, asText(params.message));
      return { messageId: id };
    } catch (error) {
      return sendFailure(error);
    }
  }

  async remove({ chatId }: ChatTarget, messageId: string): Promise<void> {
    const id = readMessageId(messageId);
    if (id) await this.#call("remoteDelete", { ...addressOf(chatId), targetTimestamp: id.timestamp });
  }

  async typing({ chatId }: ChatTarget): Promise<void> {
    await this.#call("sendTyping", addressOf(chatId));
  }

  /** One after the other: work may end before its first mark is there. */
  mark(target: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    const marked = this.#marking.then(() => this.#mark(target, messageId, state));
    this.#marking = marked.catch(() => undefined); // told to the caller
    return marked;
  }

  async #mark({ chatId }: ChatTarget, messageId: string, state: "working" | "done" | "failed"): Promise<void> {
    const id = readMessageId(messageId);
    if (!id || !isYes(this.#host.option("reactions", "SIGNAL_REACTIONS"), false)) return;
    // A person has one reaction to a message: the next one takes its place.
    const about = { emoji: MARKS[state], targetAuthor: id.author, targetTimestamp: id.timestamp };
    await this.#call("sendReaction", { ...addressOf(chatId), ...about });
  }

  async chats(): Promise<readonly KnownChat[]> {
    await this.#learnGroups();
    return [...this.#groupNames].map(([id, name]) => ({ id, name, type: "group" }));
  }

  /** Rejects with `CallFailedError` or `RpcError`. */
  async #call(method: string, params: Json): Promise<unknown> {
    const reply = await callWeb(`${this.#url}/api/v1/rpc`, {
      method: "POST",
      body: { jsonrpc: "2.0", id: String(++this.#nextCall), method, params: { account: this.account, ...params } },
      seconds: Number(this.#host.option("request_timeout")) || REQUEST_SECONDS,
    });
    if (reply.status >= 500)
      throw new CallFailedError("unreachable", `signal-cli answered with status ${reply.status}`);
    const { error, result } = asRecord(reply.json);
    if (reply.status >= 400) throw new RpcError(-1, `signal-cli answered with status ${reply.status}`, {});
    if (error === undefined || error === null) return result;
    const { code, message, data } = asRecord(error);
    throw new RpcError(typeof code === "number" ? code : -1, asText(message) || "signal-cli refused", asRecord(data));
  }

  #keepText(id: string, text: string): void {
    this.#texts.set(id, text);
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > KEPT_TEXTS && oldest !== undefined) this.#texts.delete(oldest);
  }
}

function addressOf(chatId: string): Json {
  return chatId.startsWith("group:") ? { groupId: chatId.slice("group:".length) } : { recipient: [chatId] };
}

function typeOf({ attachments, text }: Said): ChatMessage["type"] {
  const [first] = attachments;
  if (!first) return text.startsWith("/") ? "command" : "text";
  if (first.type.startsWith("image/")) return "photo";
  if (first.type.startsWith("video/")) return "video";
  // What is spoken into the app has no name, a file has one.
  if (first.type.startsWith("audio/")) return first.name === undefined ? "voice" : "audio";
  return "document";
}

const CODES = { user: -1, io: -3, untrusted: -4, rateLimit: -5 } as const;

function sendFailure(error: unknown): SendResult {
  if (error instanceof CallFailedError) return { failed: error.kind, error: error.message };
  if (!(error instanceof RpcError)) return { failed: "unknown", error: messageOf(error) };
  const { code, data, message } = error;
  const results = asList(asRecord(data.response).results).map(asRecord);
  if (code === CODES.rateLimit) return resultFailure(results) ?? { failed: "rate_limited", error: message };
  if (code === CODES.io) return { failed: "unreachable", error: message };
  if (code === CODES.user && /style/i.test(message)) return { failed: "format", error: message };
  return resultFailure(results) ?? { failed: "refused", error: message };
}

/** Null: at least one got it. Of a group that is as good as sent; the others get it when they can. */
function resultFailure(results: readonly Json[]): SendResult | null {
  const failed = results.filter(({ type }) => type !== "SUCCESS");
  if (results.length === 0 || failed.length < results.length) return null;
  const limited = failed.find(({ type }) => type === "RATE_LIMIT_FAILURE");
  const wait = limited?.retryAfterSeconds;
  if (limited)
    return {
      failed: "rate_limited",
      error: "Signal limits how much is sent",
      ...(typeof wait === "number" ? { retryAfter: wait } : {}),
    };
  if (failed.some(({ type }) => type === "NETWORK_FAILURE"))
    return { failed: "unreachable", error: "signal-cli cannot reach Signal" };
  if (failed.some(({ type }) => type === "IDENTITY_FAILURE"))
    return {
      failed: "refused",
      error: "the safety number of the receiver has changed; trust it with: signal-cli trust",
    };
  return { failed: "refused", error: "the receiver is not registered with Signal" };
}
