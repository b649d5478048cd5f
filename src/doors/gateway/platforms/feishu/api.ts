// Feishu's open interface: a token for two hours, answers with a code of their own, and what the codes mean for a message.
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import type { AdapterHost, SendResult } from "../../contract.ts";
import { CallFailedError, callWeb, isForm, trimmedUrl, type WebReply } from "../../web-calls.ts";

const DOMAINS: Readonly<Record<string, string>> = {
  "": "https://open.feishu.cn",
  feishu: "https://open.feishu.cn",
  lark: "https://open.larksuite.com",
};
const TOKEN_MARGIN_SECONDS = 300;

/** Feishu said no, by a code. */
export class FeishuError extends Error {
  override name = "FeishuError";
  readonly code: number;
  readonly status: number;
  readonly retryAfter: number | undefined;
  constructor({ status, json, headers }: WebReply) {
    const { code, msg } = asRecord(json);
    super(`Feishu: ${asText(msg) || `status ${status}`}${typeof code === "number" ? ` (${code})` : ""}`);
    this.code = typeof code === "number" ? code : -1;
    this.status = status;
    const reset = Number(headers.get("x-ogw-ratelimit-reset") ?? Number.NaN);
    this.retryAfter = Number.isFinite(reset) ? reset : undefined;
  }
}

const LIMITED = new Set([99_991_400, 230_020, 11_232, 11_233]);
const BAD_TOKEN = new Set([99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668]);
/** What is answered was taken back, or its thread is no more. */
const GONE = new Set([230_011, 230_019, 230_110, 231_003]);
/** The card is not one, or holds too much. */
const BAD_CARD = new Set([230_099, 230_028, 200_621, 200_673, 200_861]);

export const isGone = (error: unknown) => error instanceof FeishuError && GONE.has(error.code);
export const isBadToken = (error: FeishuError) => BAD_TOKEN.has(error.code) || error.status === 401;

export function sendFailure(error: unknown, isInThread: boolean): SendResult {
  if (error instanceof CallFailedError) return { failed: error.kind, error: error.message };
  if (!(error instanceof FeishuError)) return { failed: "unknown", error: String(error) };
  const { message, code, status, retryAfter } = error;
  if (status === 429 || LIMITED.has(code)) return { failed: "rate_limited", error: message, retryAfter };
  if (status >= 500 || isBadToken(error)) return { failed: "unreachable", error: message };
  if (BAD_CARD.has(code)) return { failed: "format", error: message };
  if (isInThread && GONE.has(code)) return { failed: "thread_gone", error: message };
  return { failed: "refused", error: message };
}

export class FeishuApi {
  readonly base: string;
  readonly #host: AdapterHost;
  #token: { readonly value: string; readonly expires: number } | null = null;

  constructor(host: AdapterHost) {
    this.#host = host;
    const domain = trimmedUrl(host.option("domain", "FEISHU_DOMAIN"));
    this.base = DOMAINS[domain] ?? domain;
  }

  get credentials() {
    const text = (key: string, variable: string) => String(this.#host.option(key, variable) ?? "").trim();
    return { id: text("app_id", "FEISHU_APP_ID"), secret: text("app_secret", "FEISHU_APP_SECRET") };
  }

  /** The `data` of an answer. Rejects with `CallFailedError` or `FeishuError`; a token that ran out early is replaced once. */
  async call(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: Json | FormData): Promise<Json> {
    for (let isRetry = false; ; isRetry = true) {
      const token = await this.token();
      const reply = await this.#send(method, path, body, { authorization: `Bearer ${token}` });
      const answer = asRecord(reply.json);
      if (reply.status < 300 && answer.code === 0) return { ...answer, ...asRecord(answer.data) };
      const error = new FeishuError(reply);
      if (isRetry || !isBadToken(error)) throw error;
      this.#token = null;
    }
  }

  async token(): Promise<string> {
    const { clock } = this.#host;
    if (this.#token && this.#token.expires > clock.now()) return this.#token.value;
    const { id, secret } = this.credentials;
    const reply = await this.#send("POST", "/open-apis/auth/v3/tenant_access_token/internal", {
      app_id: id,
      app_secret: secret,
    });
    const { code, tenant_access_token: token, expire } = asRecord(reply.json);
    if (code !== 0 || typeof token !== "string") throw new FeishuError(reply);
    const seconds = (typeof expire === "number" ? expire : 7200) - TOKEN_MARGIN_SECONDS;
    this.#token = { value: token, expires: clock.now() + seconds * 1000 };
    return token;
  }

  /** Where events come from; not behind the token. */
  async endpoint(): Promise<WebReply> {
    const { id, secret } = this.credentials;
    return this.#send("POST", "/callback/ws/endpoint", { AppID: id, AppSecret: secret }, { locale: "en" });
  }

  #send(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: Json | FormData,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WebReply> {
    const seconds = Number(this.#host.option("request_timeout")) || (isForm(body) ? 300 : 30);
    return callWeb(`${this.base}${path}`, { method, headers, seconds, ...(body === undefined ? {} : { body }) });
  }
}
