// One WeCom robot on its long connection: everything goes over one WebSocket, requests and answers joined by an id.
import { createHash, randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { OutOfTime, within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type ReceivedFile,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { channelSettings, isForUs } from "../../groups.ts";
import { trimmedUrl } from "../../web-calls.ts";
import { asPlatformError, type OpenSocket, openSocket, reopened } from "../../web-socket.ts";
import { decrypted, readMessage, type Said, type WeComFile } from "./messages.ts";

export const openWeCom = async (host: AdapterHost): Promise<PlatformAdapter> => new WeComAdapter(host);

const ADDRESS = "wss://openws.work.weixin.qq.com";
const PING_SECONDS = 30;
const REPLY_SECONDS = 15;
const CHUNK = 512 * 1024;
const MAX_CHUNKS = 100;
const BUSY = -1;
const TOO_OFTEN = new Set([45_009, 45_033, 846_607]);
const MEDIA = { image: "image", voice: "voice", video: "video", audio: "file", document: "file" } as const;

interface Waiting {
  resolve(frame: Json): void;
  reject(error: Error): void;
}

/** The connection went while an answer was awaited. */
class ClosedError extends Error {
  override name = "ClosedError";
}

class WeComAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly account: string;
  readonly #over = new AbortController();
  readonly #waiting = new Map<string, Waiting>();
  #socket: OpenSocket | null = null;

  constructor(host: AdapterHost) {
    this.#host = host;
    this.account = this.#text("bot_id", "WECOM_BOT_ID");
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#end(), { once: true });
    await this.#open().catch((error: unknown) => {
      this.#end();
      throw asPlatformError(error);
    });
    void this.#stayAlive();
  }

  async disconnect(): Promise<void> {
    this.#end();
  }

  #end(): void {
    this.#over.abort();
    this.#drop("the connection was closed");
  }

  /** Whoever waits for an answer is told that none will come. */
  #drop(reason: string): void {
    this.#socket?.close();
    this.#socket = null;
    for (const { reject } of this.#waiting.values()) reject(new ClosedError(reason));
    this.#waiting.clear();
  }

  // The connection.

  async #open(): Promise<void> {
    const url = trimmedUrl(this.#host.option("websocket_url", "WECOM_WEBSOCKET_URL")) || ADDRESS;
    this.#socket = await openSocket(url, {
      log: this.#host.log,
      onFrame: (data) => this.#take(asRecord(parseJson(String(data)))),
      onLost: (reason) => void this.#reopen(reason),
    });
    if (this.#over.signal.aborted) return this.#drop("stopped");
    const body = { bot_id: this.account, secret: this.#text("secret", "WECOM_SECRET") };
    const { errcode, errmsg } = await this.#ask("aibot_subscribe", body);
    if (errcode === 0 || errcode === undefined) return;
    this.#drop("refused");
    throw new PlatformError(
      "auth",
      `WeCom does not accept this bot: ${asText(errmsg)} (${String(errcode)}); set WECOM_BOT_ID and WECOM_SECRET: hermes gateway setup`,
      { retryable: errcode === BUSY },
    );
  }

  async #reopen(reason: string): Promise<void> {
    this.#drop(reason);
    if (this.#over.signal.aborted) return;
    const { clock, log } = this.#host;
    log.info(`the connection ended, it is opened again: ${reason}`);
    const error = await reopened(() => this.#open(), { clock, log, signal: this.#over.signal });
    if (error !== null) this.#host.lost(error);
  }

  async #stayAlive(): Promise<void> {
    const { clock } = this.#host;
    while (!this.#over.signal.aborted) {
      await clock.sleep(PING_SECONDS * 1000, this.#over.signal).catch(() => undefined);
      if (this.#over.signal.aborted || this.#socket === null) continue;
      await this.#ask("ping").catch((error: unknown) => {
        if (error instanceof OutOfTime) return this.#reopen("it no longer answers");
        return undefined; // lost meanwhile, and being opened again
      });
    }
  }

  /** Rejects with `OutOfTime` or `ClosedError`: whether it arrived is not known then. */
  async #ask(cmd: string, body?: Json): Promise<Json> {
    const id = `${cmd}_${randomUUID()}`;
    const answer = Promise.withResolvers<Json>();
    this.#waiting.set(id, answer);
    const frame = { cmd, headers: { req_id: id }, ...(body === undefined ? {} : { body }) };
    try {
      if (!this.#socket?.send(JSON.stringify(frame)))
        throw new PlatformError("closed", "not connected", { retryable: true });
      const seconds = Number(this.#host.option("request_timeout")) || REPLY_SECONDS;
      return await within(() => answer.promise, seconds * 1000, this.#host.clock);
    } finally {
      this.#waiting.delete(id);
      answer.promise.catch(() => undefined); // told above, or nobody waits for it any more
    }
  }

  /** Messages are stored before the next frame is looked at; answers are not held up by that. */
  async #take(frame: Json): Promise<void> {
    const id = asText(asRecord(frame.headers).req_id);
    const body = asRecord(frame.body);
    if (frame.cmd === "aibot_msg_callback") {
      const said = readMessage(body);
      // A file is fetched meanwhile; what WeCom answers to others must not wait for it.
      if (said) this.#line = this.#line.then(() => this.#receive(said)).catch((error: unknown) => this.#failed(error));
      return;
    }
    if (frame.cmd === "aibot_event_callback" && asRecord(body.event).eventtype === "disconnected_event")
      this.#host.log.warn("another connection of this bot took over; is it set up in two places?");
    this.#waiting.get(id)?.resolve(frame);
  }

  #line = Promise.resolve();

  #failed(error: unknown): void {
    this.#host.log.error("a message could not be stored", error);
  }

  async #receive(said: Said): Promise<void> {
    const { source, text } = said;
    const { option, log } = this.#host;
    const about = { chatId: source.chat_id ?? "", text, mentionsUs: true };
    if (source.chat_type !== "dm" && !isForUs(about, option, { requireMention: true, prefix: "WECOM" }, log)) return;
    const files: ReceivedFile[] = [];
    const problems: string[] = [];
    const mayFetch = said.files.length > 0 && ((await this.#host.allows?.({ source, mentionsUs: true })) ?? true);
    for (const file of mayFetch ? said.files : []) {
      const got = await this.#fetch(file);
      if (typeof got === "string") problems.push(got);
      else files.push(got);
    }
    const message: ChatMessage = {
      text: [text, ...problems].filter((line) => line !== "").join("\n"),
      ...{ type: said.type, source, updateId: said.id, messageId: said.id, mentionsUs: true },
      sentAt: said.at || this.#host.clock.now() / 1000,
      ...(files.length > 0 ? { files } : {}),
      ...(said.quote === "" ? {} : { replyTo: { messageId: `${said.id}:quote`, text: said.quote } }),
      ...channelSettings([source.chat_id], option),
    };
    await this.#host.receive([message]);
  }

  /** What is downloaded is encrypted; only the readable copy stays. */
  async #fetch({ url, key, kind }: WeComFile): Promise<ReceivedFile | string> {
    try {
      const { hostname } = new URL(trimmedUrl(this.#host.option("websocket_url", "WECOM_WEBSOCKET_URL")) || ADDRESS);
      const target = new URL(url);
      const locked = await this.#host.download(url, target.hostname === hostname ? { ownHost: target.host } : {});
      const bytes = await readFile(locked.path);
      await rm(locked.path, { force: true });
      const name = locked.name === undefined ? {} : { name: locked.name };
      return await this.#host.keepFile(key === "" ? bytes : decrypted(bytes, key), name);
    } catch (error) {
      return `[not received: ${kind}: ${messageOf(error)}]`;
    }
  }

  // Sending.

  send(target: ChatTarget, text: string, _options: SendOptions): Promise<SendResult> {
    return this.#message(target, { msgtype: "markdown", markdown: { content: text } });
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    const bytes = await readFile(file.path).catch((error: unknown) => messageOf(error));
    if (typeof bytes === "string") return { failed: "refused", error: `${file.name} cannot be read: ${bytes}` };
    if (bytes.length > CHUNK * MAX_CHUNKS)
      return { failed: "refused", error: `${file.name} is larger than WeCom takes` };
    const type = MEDIA[file.kind];
    const media = await this.#upload(bytes, file.name, type);
    if (typeof media !== "string") return media;
    const sent = await this.#message(target, { msgtype: type, [type]: { media_id: media } });
    // Files have no text of their own here; a repeat of the file must not repeat it.
    if (file.caption && !("failed" in sent)) await this.send(target, file.caption, options);
    return sent;
  }

  /** In pieces. Nobody sees anything of it before the message that shows it, so what went wrong may be repeated. */
  async #upload(bytes: Buffer, filename: string, type: string): Promise<string | SendResult> {
    const count = Math.max(1, Math.ceil(bytes.length / CHUNK));
    const md5 = createHash("md5").update(bytes).digest("hex");
    const about = { type, filename, total_size: bytes.length, total_chunks: count, md5 };
    try {
      const begun = this.#refused(await this.#ask("aibot_upload_media_init", about));
      if ("failed" in begun) return begun;
      const upload = asText(asRecord(begun.frame.body).upload_id);
      for (let index = 0; index < count; index++) {
        const data = bytes.subarray(index * CHUNK, (index + 1) * CHUNK).toString("base64");
        const body = { upload_id: upload, chunk_index: index, base64_data: data };
        const taken = this.#refused(await this.#ask("aibot_upload_media_chunk", body));
        if ("failed" in taken) return taken;
      }
      const ended = this.#refused(await this.#ask("aibot_upload_media_finish", { upload_id: upload }));
      return "failed" in ended ? ended : asText(asRecord(ended.frame.body).media_id);
    } catch (error) {
      return { failed: "unreachable", error: messageOf(error) };
    }
  }

  async #message({ chatId }: ChatTarget, body: Json): Promise<SendResult> {
    try {
      const result = this.#refused(await this.#ask("aibot_send_msg", { chatid: chatId, ...body }));
      return "failed" in result ? result : { messageId: null };
    } catch (error) {
      const isDoubtful = error instanceof OutOfTime || error instanceof ClosedError;
      return { failed: isDoubtful ? "unknown" : "unreachable", error: `WeCom: ${messageOf(error)}` };
    }
  }

  #refused(frame: Json): { readonly frame: Json } | (SendResult & { readonly failed: string }) {
    const { errcode, errmsg } = frame;
    if (errcode === 0 || errcode === undefined) return { frame };
    const error = `WeCom: ${asText(errmsg)} (${String(errcode)})`;
    if (TOO_OFTEN.has(Number(errcode))) return { failed: "rate_limited", error, retryAfter: 60 };
    return { failed: errcode === BUSY ? "unreachable" : "refused", error };
  }

  #text(key: string, variable: string): string {
    return String(this.#host.option(key, variable) ?? "").trim();
  }
}
