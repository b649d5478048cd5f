// One DingTalk robot: messages come over its stream, answers go to the webhook of a conversation while it is valid, else over the API.
import { openAsBlob } from "node:fs";
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
import { addressProblem, CallFailedError, callWeb, mediaTypeOf, trimmedUrl, type WebReply } from "../../web-calls.ts";
import { asPlatformError, type OpenSocket, openSocket, reopened } from "../../web-socket.ts";
import { type DingTalkFile, readMessage, type Said } from "./messages.ts";

export const openDingTalk = async (host: AdapterHost): Promise<PlatformAdapter> => new DingTalkAdapter(host);

const API = "https://api.dingtalk.com";
const OLD_API = "https://oapi.dingtalk.com";
const TOPIC = "/v1.0/im/bot/messages/get";
/** Its sign of life comes every minute or so. */
const SILENT_SECONDS = 180;
const TOKEN_MARGIN_SECONDS = 300;
const TITLE_LENGTH = 40;
const TOO_FAST = new Set([130_101, 90_018, 88, 410_100]);

/** DingTalk answered, and not as one would like. */
class RefusedError extends Error {
  override name = "RefusedError";
  readonly result: SendResult;
  constructor(result: SendResult & { readonly error: string }) {
    super(result.error);
    this.result = result;
  }
}

class DingTalkAdapter implements PlatformAdapter {
  readonly #host: AdapterHost;
  readonly #api: string;
  readonly #oldApi: string;
  readonly #over = new AbortController();
  readonly #webhooks = new Map<string, { readonly url: string; readonly expires: number }>();
  readonly account: string;
  #socket: OpenSocket | null = null;
  #token: { readonly value: string; readonly expires: number } | null = null;
  #lastFrame = 0;

  constructor(host: AdapterHost) {
    this.#host = host;
    const set = trimmedUrl(host.option("api_url", "DINGTALK_API_URL"));
    this.#api = set || API;
    this.#oldApi = trimmedUrl(host.option("oapi_url")) || (set === "" ? OLD_API : set);
    this.account = this.#text("client_id", "DINGTALK_CLIENT_ID");
  }

  async connect(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#end(), { once: true });
    await this.#open().catch((error: unknown) => {
      throw asPlatformError(error);
    });
    void this.#watch();
  }

  async disconnect(): Promise<void> {
    this.#end();
  }

  #end(): void {
    this.#over.abort();
    this.#socket?.close();
  }

  // Reading.

  async #open(): Promise<void> {
    const reply = await this.#post(`${this.#api}/v1.0/gateway/connections/open`, {
      clientId: this.account,
      clientSecret: this.#text("client_secret", "DINGTALK_CLIENT_SECRET"),
      subscriptions: [{ type: "CALLBACK", topic: TOPIC }],
      ua: "hermes",
    });
    const { endpoint, ticket, message } = asRecord(reply.json);
    if (reply.status === 401 || reply.status === 400 || reply.status === 403)
      throw new PlatformError(
        "auth",
        `DingTalk does not accept this app: ${asText(message) || reply.status}; set DINGTALK_CLIENT_ID and DINGTALK_CLIENT_SECRET: hermes gateway setup`,
        { retryable: false },
      );
    if (reply.status !== 200 || addressProblem(endpoint, "endpoint", "ws") !== null)
      throw new PlatformError("unreachable", `DingTalk answered with status ${reply.status}`, { retryable: true });
    const url = new URL(asText(endpoint));
    url.searchParams.set("ticket", asText(ticket));
    this.#lastFrame = this.#host.clock.now();
    const socket = await openSocket(url, {
      log: this.#host.log,
      onFrame: (data) => this.#take(asRecord(parseJson(String(data)))),
      onLost: (reason) => void this.#reopen(reason),
    });
    this.#socket?.close();
    this.#socket = socket;
    if (this.#over.signal.aborted) socket.close();
  }

  async #reopen(reason: string): Promise<void> {
    if (this.#over.signal.aborted) return;
    const { clock, log } = this.#host;
    log.info(`the stream ended, it is opened again: ${reason}`);
    const error = await reopened(() => this.#open(), { clock, log, signal: this.#over.signal });
    if (error !== null) this.#host.lost(error);
  }

  /** A connection that was cut without a word looks open for hours. */
  async #watch(): Promise<void> {
    const { clock } = this.#host;
    while (!this.#over.signal.aborted) {
      await clock.sleep((SILENT_SECONDS / 4) * 1000, this.#over.signal).catch(() => undefined);
      if (this.#over.signal.aborted || clock.now() - this.#lastFrame < SILENT_SECONDS * 1000) continue;
      this.#socket?.close();
      await this.#reopen(`nothing came for ${SILENT_SECONDS} seconds`);
    }
  }

  /** What is not acknowledged comes again. */
  async #take(frame: Json): Promise<void> {
    this.#lastFrame = this.#host.clock.now();
    const headers = asRecord(frame.headers);
    const data = asText(frame.data);
    if (frame.type === "SYSTEM" && headers.topic === "ping") return this.#acknowledge(headers, data);
    if (frame.type === "SYSTEM" && headers.topic === "disconnect") {
      this.#socket?.close();
      return void this.#reopen("DingTalk asks for it");
    }
    if (frame.type !== "CALLBACK" && frame.type !== "EVENT") return;
    const said = headers.topic === TOPIC ? readMessage(asRecord(parseJson(data))) : null;
    if (said) await this.#receive(said);
    this.#acknowledge(headers, JSON.stringify({ response: null }));
  }

  #acknowledge(headers: Json, data: string): void {
    const about = { contentType: "application/json", messageId: headers.messageId };
    this.#socket?.send(JSON.stringify({ code: 200, headers: about, message: "OK", data }));
  }

  async #receive(said: Said): Promise<void> {
    const chatId = said.source.chat_id ?? "";
    const { source, text, mentionsUs } = said;
    const { option, log } = this.#host;
    const about = { chatId, text, mentionsUs, isCommand: said.type === "command" };
    const isWanted =
      source.chat_type === "dm" || isForUs(about, option, { requireMention: true, prefix: "DINGTALK" }, log);
    if (!isWanted) return;
    if (said.webhook && this.#isTheirs(said.webhook.url)) this.#webhooks.set(chatId, said.webhook);
    const files: ReceivedFile[] = [];
    const problems: string[] = [];
    const mayFetch = said.files.length > 0 && ((await this.#host.allows?.({ source, mentionsUs })) ?? true);
    for (const file of mayFetch ? said.files : []) {
      const got = await this.#fetch(file);
      if (typeof got === "string") problems.push(got);
      else files.push(got);
    }
    const message: ChatMessage = {
      text: [text, ...problems].filter((line) => line !== "").join("\n"),
      ...{ type: said.type, source, updateId: said.id, messageId: said.id, sentAt: said.at / 1000, mentionsUs },
      ...(files.length > 0 ? { files } : {}),
      ...channelSettings([chatId, source.chat_id_alt], option),
    };
    await this.#host.receive([message]);
  }

  /** Answers go to DingTalk and nowhere else, whatever address a message names. */
  #isTheirs(address: string): boolean {
    const url = URL.parse(address);
    if (url === null) return false;
    if ([this.#api, this.#oldApi].some((own) => new URL(own).origin === url.origin)) return true;
    return url.protocol === "https:" && (url.hostname === "dingtalk.com" || url.hostname.endsWith(".dingtalk.com"));
  }

  async #fetch({ code, name }: DingTalkFile): Promise<ReceivedFile | string> {
    try {
      const { downloadUrl } = await this.#authorised("/v1.0/robot/messageFiles/download", {
        downloadCode: code,
        robotCode: this.account,
      });
      const about = name === undefined ? {} : { name };
      return await this.#host.download(asText(downloadUrl), { ...about, ownHost: new URL(this.#api).host });
    } catch (error) {
      return `[not received: ${name ?? "file"}: ${messageOf(error)}]`;
    }
  }

  // Sending.

  async send(target: ChatTarget, text: string, { plain }: SendOptions): Promise<SendResult> {
    try {
      const title = titleOf(text);
      const webhook = this.#webhooks.get(target.chatId);
      if (webhook && webhook.expires > this.#host.clock.now()) {
        const body = plain
          ? { msgtype: "text", text: { content: text } }
          : { msgtype: "markdown", markdown: { title, text } };
        const sent = await this.#byWebhook(webhook.url, body);
        if (sent) return sent;
        this.#webhooks.delete(target.chatId);
      }
      const kind = plain ? "sampleText" : "sampleMarkdown";
      return await this.#byApi(target.chatId, kind, plain ? { content: text } : { title, text });
    } catch (error) {
      return failureOf(error);
    }
  }

  /** Null: the webhook is no longer valid, and nothing was sent. */
  async #byWebhook(url: string, body: Json): Promise<SendResult | null> {
    const reply = await this.#post(url, body);
    const { errcode, errmsg } = asRecord(reply.json);
    if (reply.status >= 500) return { failed: "unreachable", error: `DingTalk answered with status ${reply.status}` };
    if (reply.status === 200 && errcode === 0) return { messageId: null };
    const error = `DingTalk: ${asText(errmsg) || `status ${reply.status}`}`;
    if (reply.status === 429 || TOO_FAST.has(Number(errcode))) return { failed: "rate_limited", error, retryAfter: 60 };
    if (/session|token|webhook/i.test(error)) return null;
    return { failed: "refused", error };
  }

  async #byApi(chatId: string, kind: string, param: Json): Promise<SendResult> {
    const person = chatId.startsWith("user:") ? chatId.slice("user:".length) : null;
    const common = { robotCode: this.account, msgKey: kind, msgParam: JSON.stringify(param) };
    if (person === null) {
      const sent = await this.#authorised("/v1.0/robot/groupMessages/send", { ...common, openConversationId: chatId });
      return { messageId: asText(sent.processQueryKey) || null };
    }
    const sent = await this.#authorised("/v1.0/robot/oToMessages/batchSend", { ...common, userIds: [person] });
    const isIn = (list: unknown) => Array.isArray(list) && list.includes(person);
    if (isIn(sent.invalidStaffIdList)) return { failed: "refused", error: "DingTalk knows nobody with this id" };
    if (isIn(sent.flowControlledStaffIdList))
      return { failed: "rate_limited", error: "DingTalk limits messages to this person" };
    return { messageId: asText(sent.processQueryKey) || null };
  }

  async sendFile(target: ChatTarget, file: OutgoingFile, options: SendOptions): Promise<SendResult> {
    try {
      const form = new FormData();
      form.set("media", await openAsBlob(file.path, { type: mediaTypeOf(file.name) }), file.name);
      const type = file.kind === "image" ? "image" : "file";
      const token = await this.#accessToken();
      const url = `${this.#oldApi}/media/upload?access_token=${encodeURIComponent(token)}&type=${type}`;
      const reply = await callWeb(url, { method: "POST", body: form, seconds: 300 });
      const { media_id: media, errmsg } = asRecord(reply.json);
      if (typeof media !== "string")
        return {
          failed: reply.status >= 500 ? "unreachable" : "refused",
          error: `DingTalk did not take ${file.name}: ${asText(errmsg) || reply.status}`,
        };
      const ending = file.name.split(".").at(-1) ?? "";
      const sent =
        type === "image"
          ? await this.#byApi(target.chatId, "sampleImageMsg", { photoURL: media })
          : await this.#byApi(target.chatId, "sampleFile", { mediaId: media, fileName: file.name, fileType: ending });
      // Files have no text of their own here; a repeat of the file must not repeat it.
      if (file.caption && !("failed" in sent)) await this.send(target, file.caption, options);
      return sent;
    } catch (error) {
      if (error instanceof CallFailedError || error instanceof RefusedError) return failureOf(error);
      return { failed: "refused", error: `${file.name} cannot be read: ${messageOf(error)}` };
    }
  }

  // Calls.

  /** Rejects with `CallFailedError` or `RefusedError`. A token that is not accepted is replaced once. */
  async #authorised(path: string, body: Json): Promise<Json> {
    for (let isRetry = false; ; isRetry = true) {
      const token = await this.#accessToken();
      const reply = await this.#post(`${this.#api}${path}`, body, { "x-acs-dingtalk-access-token": token });
      const answer = asRecord(reply.json);
      if (reply.status === 200) return answer;
      if (reply.status === 401 && !isRetry) {
        this.#token = null;
        continue;
      }
      throw new RefusedError(refusalOf(reply));
    }
  }

  async #accessToken(): Promise<string> {
    const { clock } = this.#host;
    if (this.#token && this.#token.expires > clock.now()) return this.#token.value;
    const secret = this.#text("client_secret", "DINGTALK_CLIENT_SECRET");
    const reply = await this.#post(`${this.#api}/v1.0/oauth2/accessToken`, { appKey: this.account, appSecret: secret });
    const { accessToken, expireIn } = asRecord(reply.json);
    if (reply.status !== 200 || typeof accessToken !== "string") throw new RefusedError(refusalOf(reply));
    const seconds = (typeof expireIn === "number" ? expireIn : 7200) - TOKEN_MARGIN_SECONDS;
    this.#token = { value: accessToken, expires: clock.now() + seconds * 1000 };
    return accessToken;
  }

  #post(url: string, body: Json, headers: Readonly<Record<string, string>> = {}): Promise<WebReply> {
    const seconds = Number(this.#host.option("request_timeout")) || 30;
    return callWeb(url, { method: "POST", body, headers, seconds });
  }

  #text(key: string, variable: string): string {
    return String(this.#host.option(key, variable) ?? "").trim();
  }
}

/** What is shown of a message in the list of conversations. */
function titleOf(text: string): string {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? "";
  return (
    line
      .replace(/[#*_`>~|]/g, "")
      .trim()
      .slice(0, TITLE_LENGTH)
      .toWellFormed() || "Hermes"
  );
}

function refusalOf({ status, json }: WebReply): SendResult & { readonly error: string } {
  const { code, message } = asRecord(json);
  const error = `DingTalk: ${asText(message) || asText(code) || `status ${status}`}`;
  if (status === 429 || /qpslimit|throttl|flowcontrol/i.test(asText(code)))
    return { failed: "rate_limited", error, retryAfter: 10 };
  return { failed: status >= 500 || status === 401 ? "unreachable" : "refused", error };
}

function failureOf(error: unknown): SendResult {
  if (error instanceof RefusedError) return error.result;
  if (error instanceof CallFailedError) return { failed: error.kind, error: error.message };
  return { failed: "unknown", error: messageOf(error) };
}
