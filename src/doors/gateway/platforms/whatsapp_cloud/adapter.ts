// Talks to Meta's Cloud API: its calls about messages and reports, and the requests for what goes out.
import { createHmac } from "node:crypto";
import { openAsBlob } from "node:fs";
import { within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asList, asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import { headerOf, sameSecret } from "../../../http.ts";
import {
  type AdapterHost,
  type ChatMessage,
  type ChatTarget,
  type ChoiceButton,
  type OutgoingFile,
  type PlatformAdapter,
  PlatformError,
  type ReceivedFile,
  type SendOptions,
  type SendResult,
} from "../../contract.ts";
import { channelSettings } from "../../groups.ts";
import { type HttpCall, type HttpReply, type Listener, listen, sameHex } from "../../listener.ts";
import { CallFailedError, callWeb, trimmedUrl, type WebReply } from "../../web-calls.ts";
import { whatsappText } from "./format.ts";
import { type Incoming, type Report, readCall } from "./incoming.ts";
import { envelope, fitsQuestion, planFile, questionContent, reasonOf, refusal, textContent } from "./outgoing.ts";

const API = "https://graph.facebook.com";
const VERSION = "v20.0";
const PATH = "/whatsapp/webhook";
const PORT = 8090;
const MAX_CALL_BYTES = 4 * 1024 * 1024;
const FETCH_MS = 15_000;
/** A report is acknowledged when what it is about is written down; until then Meta would repeat it for us. */
const SETTLE_MS = 1000;
/** How long a report is waited for when nobody knows whether a message was taken. */
const REPORT_MS = 10_000;
const TYPING_MS = 20_000;
const MOST_KNOWN = 1000;
const QUOTE = 500;

export const openWhatsapp = (host: AdapterHost): PlatformAdapter => new Whatsapp(host);

class Whatsapp implements PlatformAdapter {
  readonly #host: AdapterHost;
  #account = "";
  #listener: Listener | null = null;
  #signal: AbortSignal | undefined;
  /** Keys that reports came for, with the id of the message. */
  readonly #reported = new Map<string, string>();
  readonly #awaited = new Map<string, () => void>();
  /** Parts on their way, each until a moment after its outcome. */
  readonly #settling = new Map<string, Promise<void>>();
  /** The newest message of each chat, and when it was last said there that somebody writes. */
  readonly #newest = new Map<string, { readonly id: string; typedAt: number }>();
  readonly #texts = new Map<string, string>();

  constructor(host: AdapterHost) {
    this.#host = host;
  }

  get account(): string {
    return this.#account;
  }

  get listening(): string | undefined {
    return this.#listener?.url;
  }

  async connect(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const reply = await this.#call("GET", `/${this.#number}?fields=display_phone_number,verified_name`).catch(
      (error) => {
        throw new PlatformError("unreachable", messageOf(error), { retryable: true, cause: error });
      },
    );
    if (reply.status !== 200) {
      const { failed, error } = refusal(reply, this.#number, this.#host.clock.now());
      const isOurs = failed === "refused" || reply.status === 401;
      throw new PlatformError(isOurs ? "auth" : "unreachable", error, { retryable: !isOurs });
    }
    this.#account = asText(asRecord(reply.json).display_phone_number) || this.#number;
    this.#listener = await listen({
      host: this.#text("webhook_host", "WHATSAPP_CLOUD_WEBHOOK_HOST") || "127.0.0.1",
      port: Number(this.#host.option("webhook_port", "WHATSAPP_CLOUD_WEBHOOK_PORT") ?? PORT),
      setting: "WHATSAPP_CLOUD_WEBHOOK_PORT",
      log: this.#host.log,
      maxBytes: MAX_CALL_BYTES,
      early: (call) => this.#early(call),
      handle: (call) => this.#handle(call),
    });
  }

  async disconnect(): Promise<void> {
    await this.#listener?.close();
    this.#listener = null;
  }

  // --- what comes in

  #early({ method, path, query }: Omit<HttpCall, "body">): HttpReply | null {
    if (path === "/health" && method === "GET")
      return { status: 200, body: { status: "ok", platform: "whatsapp_cloud" } };
    if (path !== (this.#text("webhook_path", "WHATSAPP_CLOUD_WEBHOOK_PATH") || PATH))
      return { status: 404, body: "not found" };
    if (method === "GET") return this.#verification(query);
    return method === "POST"
      ? null
      : { status: 405, headers: { allow: "GET, HEAD, POST" }, body: "method not allowed" };
  }

  /** Meta asks once, when the address is entered. */
  #verification(query: URLSearchParams): HttpReply {
    const token = this.#text("verify_token", "WHATSAPP_CLOUD_VERIFY_TOKEN");
    const isRight = token !== "" && sameSecret(query.get("hub.verify_token") ?? "", token);
    if (query.get("hub.mode") !== "subscribe" || !isRight) return { status: 403, body: "wrong verify token" };
    const headers = { "x-content-type-options": "nosniff" };
    return { status: 200, headers, body: (query.get("hub.challenge") ?? "").slice(0, 200) };
  }

  async #handle({ headers, body }: HttpCall): Promise<HttpReply> {
    const secret = this.#text("app_secret", "WHATSAPP_CLOUD_APP_SECRET");
    const given = headerOf(headers, "x-hub-signature-256");
    const expected = createHmac("sha256", secret).update(body).digest();
    if (secret === "" || !given.startsWith("sha256=") || !sameHex(given.slice(7), expected))
      return { status: 401, body: "invalid signature" };
    const value = parseJson(body.toString("utf8"));
    if (value === undefined) return { status: 400, body: "not JSON" };
    const { messages, reports } = readCall(value, this.#number);
    await this.#receive(messages);
    await Promise.all(reports.map((report) => this.#report(report)));
    return { status: 200, body: "" };
  }

  async #receive(incoming: readonly Incoming[]): Promise<void> {
    const texts = incoming.filter(({ press }) => press === null);
    if (texts.length > 0) {
      const isNew = await this.#host.receive(await Promise.all(texts.map((one) => this.#messageOf(one))));
      for (const [at, one] of texts.entries()) if (isNew[at]) this.#seen(one);
    }
    for (const one of incoming) await this.#press(one);
  }

  async #press(incoming: Incoming): Promise<void> {
    if (incoming.press === null) return;
    const { id, from, replyTo, press } = incoming;
    const key = `press:${id}`;
    await this.#host.pressed({
      ...{ ...press, source: sourceOf(incoming), messageId: replyTo },
      answer: async (text) => {
        await this.#send({ chatId: from }, key, textContent(whatsappText(text)));
      },
    });
  }

  /** The sender sees that it was read; nothing depends on it. */
  #seen({ id, from, text }: Incoming): void {
    remember(this.#newest, from, { id, typedAt: Number.NEGATIVE_INFINITY });
    remember(this.#texts, id, text.slice(0, QUOTE));
    void this.#call("POST", `/${this.#number}/messages`, {
      messaging_product: "whatsapp",
      status: "read",
      message_id: id,
    })
      .then(({ status }) => status !== 200 && this.#host.log.debug(`a message was not marked as read: ${status}`))
      .catch((error) => this.#host.log.debug("a message was not marked as read", error));
  }

  async #messageOf(incoming: Incoming): Promise<ChatMessage> {
    const { id, from, text, type, media, replyTo, sentAt } = incoming;
    const source = sourceOf(incoming);
    const file = media === null ? null : await this.#fetch(media, source);
    const note = typeof file === "string" ? file : "";
    const quoted = replyTo === undefined ? undefined : this.#texts.get(replyTo);
    return {
      ...{ type, source, updateId: id, messageId: id },
      text: [text, note].filter((line) => line !== "").join("\n"),
      sentAt: sentAt || Math.floor(this.#host.clock.now() / 1000),
      ...(file !== null && typeof file !== "string" ? { files: [file] } : {}),
      ...(replyTo === undefined ? {} : { replyTo: { messageId: replyTo, text: quoted } }),
      ...channelSettings([from], this.#host.option),
    };
  }

  /** Two steps: where the file lies, then the file. A line of text when it cannot be had. */
  async #fetch(media: NonNullable<Incoming["media"]>, source: ChatMessage["source"]): Promise<ReceivedFile | string> {
    const name = media.name ?? media.kind;
    let size = "";
    try {
      if ((await this.#host.allows?.({ source })) === false) return "";
      const fetchIt = async () => {
        const reply = await this.#call("GET", `/${encodeURIComponent(media.id)}?phone_number_id=${this.#number}`);
        const { url, file_size: bytes } = asRecord(reply.json);
        if (reply.status !== 200 || asText(url) === "") throw new Error(`WhatsApp answered ${reply.status}`);
        size = Number(bytes) > 0 ? ` (${bytes} bytes)` : "";
        return this.#host.download(asText(url), {
          headers: { authorization: `Bearer ${this.#token}` },
          ownHost: new URL(this.#api).host,
          ...(media.name === undefined ? {} : { name: media.name }),
        });
      };
      return await within(fetchIt, FETCH_MS, this.#host.clock);
    } catch (error) {
      return `[file not fetched: ${name}${size}: ${messageOf(error)}]`;
    }
  }

  async #report({ messageId, key, failure, to }: Report): Promise<void> {
    if (key === "" || messageId === "") return;
    remember(this.#reported, key, messageId);
    this.#awaited.get(key)?.();
    if (failure !== null) {
      const reason = reasonOf(failure.code, failure.words, to);
      this.#host.log.warn(`a message was not delivered: ${reason}`);
      this.#host.undelivered?.(key, reason);
    }
    await this.#settling.get(key);
  }

  // --- what goes out

  async send(target: ChatTarget, text: string, { key, plain }: SendOptions): Promise<SendResult> {
    const body = plain ? text : whatsappText(text);
    const result = await this.#send(target, key, textContent(body === "" ? text : body));
    if ("messageId" in result && result.messageId) remember(this.#texts, result.messageId, text.slice(0, QUOTE));
    return result;
  }

  async ask(
    target: ChatTarget,
    text: string,
    question: { readonly id: string; readonly buttons: readonly ChoiceButton[] },
    options: SendOptions,
  ): Promise<SendResult> {
    const formatted = whatsappText(text);
    const content = questionContent(formatted, question);
    if (content === null) return this.send(target, text, options);
    if (!fitsQuestion(formatted)) {
      const first = await this.send(target, text, { ...options, key: `${options.key}:text` });
      if ("failed" in first) return first;
    }
    return this.#send(target, options.key, content);
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, { key }: SendOptions): Promise<SendResult> {
    const blob = await openAsBlob(file.path).catch((error: unknown) => messageOf(error));
    if (typeof blob === "string") return { failed: "refused", error: `${file.name} cannot be read: ${blob}` };
    const plan = planFile(file, blob.size);
    if (typeof plan === "string") return { failed: "refused", error: plan };
    const form = new FormData();
    form.set("messaging_product", "whatsapp");
    form.set("type", plan.mediaType);
    form.set("file", new File([blob], file.name, { type: plan.mediaType }));
    try {
      const reply = await this.#call("POST", `/${this.#number}/media`, form);
      const id = asText(asRecord(reply.json).id);
      if (reply.status !== 200 || id === "") return refusal(reply, target.chatId, this.#host.clock.now());
      const result = await this.#send(target, key, plan.content(id));
      if (plan.kind === "audio" && file.caption && !("failed" in result))
        await this.#send(target, `${key}:caption`, textContent(whatsappText(file.caption)));
      return result;
    } catch (error) {
      if (!(error instanceof CallFailedError)) throw error;
      return { failed: "unreachable", error: error.message }; // an upload alone reaches nobody
    }
  }

  async typing({ chatId }: ChatTarget): Promise<void> {
    const newest = this.#newest.get(chatId);
    const now = this.#host.clock.now();
    if (!newest || now - newest.typedAt < TYPING_MS) return;
    newest.typedAt = now;
    const typing = { status: "read", message_id: newest.id, typing_indicator: { type: "text" } };
    await this.#call("POST", `/${this.#number}/messages`, { messaging_product: "whatsapp", ...typing }).catch((error) =>
      this.#host.log.debug("nobody was shown that we write", error),
    );
  }

  /** By the reports, which carry the key. Meta repeats those that came while nobody listened. */
  async findSent(_target: ChatTarget, key: string): Promise<string | null | undefined> {
    const known = this.#reported.get(key);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited.set(key, resolve);
    await Promise.race([promise, this.#host.clock.sleep(REPORT_MS, this.#signal).catch(() => undefined)]);
    this.#awaited.delete(key);
    return this.#reported.get(key);
  }

  async #send(target: ChatTarget, key: string, content: Json): Promise<SendResult> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settling.set(key, promise);
    try {
      const reply = await this.#call("POST", `/${this.#number}/messages`, envelope(target, key, content));
      if (reply.status !== 200) return refusal(reply, target.chatId, this.#host.clock.now());
      const [message] = asList(asRecord(reply.json).messages).map(asRecord);
      return { messageId: asText(message?.id) || null };
    } catch (error) {
      if (!(error instanceof CallFailedError)) throw error;
      return { failed: error.kind, error: error.message };
    } finally {
      void this.#host.clock
        .sleep(SETTLE_MS, this.#signal)
        .catch(() => undefined)
        .then(() => {
          this.#settling.delete(key);
          resolve();
        });
    }
  }

  #call(method: "GET" | "POST", path: string, body?: Json | FormData): Promise<WebReply> {
    const version = this.#text("api_version", "WHATSAPP_CLOUD_API_VERSION") || VERSION;
    const headers = { authorization: `Bearer ${this.#token}` };
    return callWeb(`${this.#api}/${version}${path}`, { method, headers, body, signal: this.#signal });
  }

  get #api(): string {
    return trimmedUrl(this.#text("api_url", "WHATSAPP_CLOUD_API_URL") || API);
  }

  get #number(): string {
    return this.#text("phone_number_id", "WHATSAPP_CLOUD_PHONE_NUMBER_ID");
  }

  get #token(): string {
    return this.#text("access_token", "WHATSAPP_CLOUD_ACCESS_TOKEN");
  }

  #text(key: string, variable: string): string {
    return String(this.#host.option(key, variable) ?? "").trim();
  }
}

function sourceOf({ from, name, id }: Incoming): ChatMessage["source"] {
  return {
    ...{ platform: "whatsapp_cloud", chat_type: "dm", chat_id: from, user_id: from, message_id: id },
    ...(name === undefined ? {} : { user_name: name, chat_name: name }),
  };
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MOST_KNOWN) return;
    map.delete(oldest);
  }
}
