// Talks to Twilio: its calls about messages that came in, and its REST interface for those that go out.
import { createHmac, timingSafeEqual } from "node:crypto";
import { within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asList, asRecord, asText } from "../../../../kit/json.ts";
import type {
  AdapterHost,
  ChatMessage,
  ChatTarget,
  PlatformAdapter,
  ReceivedFile,
  SendOptions,
  SendResult,
} from "../../contract.ts";
import { PlatformError } from "../../contract.ts";
import { channelSettings } from "../../groups.ts";
import { type HttpCall, type HttpReply, type Listener, listen } from "../../listener.ts";
import { CallFailedError, callWeb, retryAfter, trimmedUrl, type WebReply } from "../../web-calls.ts";
import { withoutMarks } from "./format.ts";

const API = "https://api.twilio.com";
const PATH = "/webhooks/twilio";
const PORT = 8080;
/** Twilio waits 15 seconds for an answer. */
const FETCH_MS = 10_000;
const MOST_KNOWN = 1000;
/** In front of every message of a trial account. */
const TRIAL = "Sent from your Twilio trial account - ";
const EMPTY: HttpReply = {
  status: 200,
  headers: { "content-type": "text/xml; charset=utf-8" },
  body: '<?xml version="1.0" encoding="UTF-8"?><Response></Response>',
};

export const openSms = (host: AdapterHost): PlatformAdapter => new Sms(host);

class Sms implements PlatformAdapter {
  readonly #host: AdapterHost;
  #listener: Listener | null = null;
  #signal: AbortSignal | undefined;
  /** When parts were handed over, and what Twilio made of those that it took. */
  readonly #begun = new Map<string, number>();
  readonly #ours = new Map<string, string>();

  constructor(host: AdapterHost) {
    this.#host = host;
  }

  get account(): string {
    return this.#text("phone_number", "TWILIO_PHONE_NUMBER");
  }

  get listening(): string | undefined {
    return this.#listener?.url;
  }

  /** The account is asked for first: a wrong token is known at the start, not with the first answer. */
  async connect(signal: AbortSignal): Promise<void> {
    const { log } = this.#host;
    this.#signal = signal;
    const reply = await this.#call("GET", ".json").catch((error: unknown) => {
      throw new PlatformError("unreachable", messageOf(error), { retryable: true, cause: error });
    });
    if (reply.status === 401 || reply.status === 404)
      throw new PlatformError("auth", "Twilio refused TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN", { retryable: false });
    if (reply.status !== 200)
      throw new PlatformError("unreachable", `Twilio answered ${reply.status}`, { retryable: true });
    this.#listener = await listen({
      host: this.#text("webhook_host", "SMS_WEBHOOK_HOST") || "127.0.0.1",
      port: Number(this.#host.option("webhook_port", "SMS_WEBHOOK_PORT") ?? PORT),
      setting: "SMS_WEBHOOK_PORT",
      log,
      early: (call) => this.#early(call),
      handle: (call) => this.#handle(call),
    });
  }

  async disconnect(): Promise<void> {
    await this.#listener?.close();
    this.#listener = null;
  }

  #early({ method, path }: Omit<HttpCall, "body">): HttpReply | null {
    if (path === "/health")
      return method === "GET" ? { status: 200, body: { status: "ok", platform: "sms" } } : notAllowed("GET, HEAD");
    if (path !== new URL(this.#webhookUrl).pathname && path !== PATH) return { status: 404, body: "not found" };
    return method === "POST" ? null : notAllowed("POST");
  }

  async #handle({ headers, body }: HttpCall): Promise<HttpReply> {
    const form = new URLSearchParams(body.toString("utf8"));
    const token = this.#text("auth_token", "TWILIO_AUTH_TOKEN");
    if (!isSigned(this.#webhookUrl, form, String(headers["x-twilio-signature"] ?? ""), token))
      return { status: 403, body: "invalid signature" };
    const message = await this.#messageOf(form);
    if (message !== null) await this.#host.receive([message]);
    return EMPTY;
  }

  /** Null: an echo of our own, or a report about one. */
  async #messageOf(form: URLSearchParams): Promise<ChatMessage | null> {
    const [sid, from] = [form.get("MessageSid") ?? form.get("SmsSid") ?? "", form.get("From") ?? ""];
    if (sid === "" || from === "" || from === this.account || !form.has("Body")) return null;
    const source = { platform: "sms", chat_id: from, chat_type: "dm", user_id: from, message_id: sid } as const;
    const { files, notes } = await this.#fetchMedia(form, source);
    const text = [form.get("Body") ?? "", ...notes].filter((line) => line !== "").join("\n");
    return {
      ...{ text, source, updateId: sid, messageId: sid },
      type: typeOf(files),
      sentAt: Math.floor(this.#host.clock.now() / 1000),
      ...(files.length > 0 ? { files } : {}),
      ...channelSettings([from], this.#host.option),
    };
  }

  async #fetchMedia(form: URLSearchParams, source: ChatMessage["source"]) {
    const count = Math.min(10, Number(form.get("NumMedia") ?? 0) || 0);
    if (count === 0 || (await this.#host.allows?.({ source })) === false) return { files: [], notes: [] };
    const all = Array.from({ length: count }, async (_, at) => {
      const url = form.get(`MediaUrl${at}`) ?? "";
      const name = `${form.get(`MediaContentType${at}`) || "file"} ${at + 1}`;
      try {
        const { clock } = this.#host;
        return await within(() => this.#download(url), FETCH_MS, clock);
      } catch (error) {
        return `[file not fetched: ${name}: ${messageOf(error)}]`;
      }
    });
    const done = await Promise.all(all);
    return {
      files: done.filter((one): one is ReceivedFile => typeof one !== "string"),
      notes: done.filter((one) => typeof one === "string"),
    };
  }

  /** The token goes to Twilio itself and nowhere else. */
  #download(url: string): Promise<ReceivedFile> {
    const { host } = new URL(this.#api);
    const isTheirs = URL.parse(url)?.host === host;
    return this.#host.download(url, { ownHost: host, ...(isTheirs ? { headers: this.#authorization } : {}) });
  }

  async send(target: ChatTarget, text: string, { key, plain }: SendOptions): Promise<SendResult> {
    const body = plain ? text : withoutMarks(text);
    const from = this.account.startsWith("MG") ? "MessagingServiceSid" : "From";
    const form = new URLSearchParams({ To: target.chatId, [from]: this.account, Body: body });
    remember(this.#begun, key, this.#now);
    try {
      const reply = await this.#call("POST", "/Messages.json", form);
      const sid = asText(asRecord(reply.json).sid);
      if (reply.status !== 201 && reply.status !== 200) return this.#refusal(reply, target);
      remember(this.#ours, sid, key);
      return { messageId: sid };
    } catch (error) {
      if (!(error instanceof CallFailedError)) throw error;
      return { failed: error.kind, error: error.message };
    }
  }

  #refusal(reply: WebReply, { chatId }: ChatTarget): SendResult {
    const { code, message } = asRecord(reply.json);
    const error =
      REASONS[Number(code)]?.(chatId) ?? `Twilio answered ${reply.status}: ${asText(message).slice(0, 200)}`;
    if (reply.status === 429)
      return { failed: "rate_limited", error, retryAfter: retryAfter(reply.headers, this.#host.clock.now()) ?? 1 };
    // Not logged in: the token may have been changed, and will be set again.
    if (reply.status >= 500 || reply.status === 401) return { failed: "unreachable", error };
    return { failed: "refused", error };
  }

  /** By number, time and text: there is no key in Twilio's list. What was found for another part is not this one. */
  async findSent(
    { chatId }: ChatTarget,
    key: string,
    text: string,
    since = this.#begun.get(key),
  ): Promise<string | null | undefined> {
    if (since === undefined) return undefined;
    const from = since - 60; // clocks differ
    // Not by the day it was sent: a message that still waits there has none.
    const query = new URLSearchParams({ To: chatId, PageSize: "100" });
    const reply = await this.#call("GET", `/Messages.json?${query}`).catch(() => null);
    if (reply?.status !== 200) return undefined;
    const wanted = withoutMarks(text);
    const found = asList(asRecord(reply.json).messages)
      .map(asRecord)
      .filter(({ sid }) => (this.#ours.get(asText(sid)) ?? key) === key)
      .filter(({ direction }) => asText(direction).startsWith("outbound"))
      .filter(({ date_created }) => Date.parse(asText(date_created)) / 1000 >= from)
      .find(({ body }) => asText(body) === wanted || asText(body) === TRIAL + wanted);
    if (!found) return null;
    remember(this.#ours, asText(found.sid), key);
    return asText(found.sid);
  }

  #call(method: "GET" | "POST", path: string, form?: URLSearchParams): Promise<WebReply> {
    const account = this.#text("account_sid", "TWILIO_ACCOUNT_SID");
    return callWeb(`${this.#api}/2010-04-01/Accounts/${encodeURIComponent(account)}${path}`, {
      method,
      headers: {
        ...this.#authorization,
        ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      },
      body: form?.toString(),
      signal: this.#signal,
    });
  }

  get #authorization() {
    const account = this.#text("account_sid", "TWILIO_ACCOUNT_SID");
    const token = this.#text("auth_token", "TWILIO_AUTH_TOKEN");
    return { authorization: `Basic ${Buffer.from(`${account}:${token}`).toString("base64")}` };
  }

  get #api(): string {
    return trimmedUrl(this.#text("api_url", "TWILIO_API_URL") || API);
  }

  get #webhookUrl(): string {
    return this.#text("webhook_url", "SMS_WEBHOOK_URL");
  }

  get #now(): number {
    return this.#host.clock.now() / 1000;
  }

  #text(key: string, variable: string): string {
    return String(this.#host.option(key, variable) ?? "").trim();
  }
}

/** Codes of Twilio that have a reason people can do something about. */
const REASONS: Readonly<Record<number, (to: string) => string>> = {
  21211: (to) => `${to} is not a phone number`,
  21408: (to) => `this Twilio account may not send to the country of ${to}; allow it in the console (Geo permissions)`,
  21608: (to) => `a trial account of Twilio only sends to verified numbers, and ${to} is not one`,
  21610: (to) => `${to} has unsubscribed (STOP); they have to send START first`,
  21614: (to) => `${to} cannot receive text messages`,
};

const notAllowed = (allow: string): HttpReply => ({ status: 405, headers: { allow }, body: "method not allowed" });

function typeOf([first]: readonly ReceivedFile[]): ChatMessage["type"] {
  const kind = first?.mediaType.split("/")[0];
  if (kind === undefined) return "text";
  return kind === "image" ? "photo" : kind === "audio" || kind === "video" ? kind : "document";
}

function remember<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MOST_KNOWN) return;
    map.delete(oldest);
  }
}

/** HMAC-SHA1 over the address and the sorted fields. Twilio signs addresses with and without their port, so each form is looked at. */
export function isSigned(url: string, form: URLSearchParams, signature: string, token: string): boolean {
  const fields = [...new Set(form.keys())]
    .sort()
    .map((name) => name + [...new Set(form.getAll(name))].sort().join(""))
    .join("");
  const given = Buffer.from(signature, "base64");
  return addressForms(url)
    .map((address) =>
      createHmac("sha1", token)
        .update(Buffer.from(address + fields))
        .digest(),
    )
    .map((expected) => given.length === expected.length && timingSafeEqual(given, expected))
    .includes(true);
}

function addressForms(url: string): readonly string[] {
  const { protocol, hostname, port } = new URL(url);
  const rest = url.replace(/^https?:\/\/[^/?#]*/i, "");
  const known = port || (protocol === "https:" ? "443" : "80");
  return [url, `${protocol}//${hostname}${rest}`, `${protocol}//${hostname}:${known}${rest}`];
}
