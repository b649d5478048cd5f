// The homeserver as the adapter calls it: matrix-js-sdk for requests and errors, without its own sync loop, retries and queues, which would
// acknowledge and repeat on their own.
import { createHash } from "node:crypto";
import type { Method } from "matrix-js-sdk";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, type Json } from "../../../../kit/json.ts";
import { type AdapterHost, PlatformError, type SendResult } from "../../contract.ts";
import { CallFailedError, exchange, trimmedUrl } from "../../web-calls.ts";

/** What the homeserver, or the way to it, did with a request. */
export class MatrixFailure extends Error {
  override name = "MatrixFailure";
  /** Null: it did not answer. */
  readonly status: number | null;
  readonly code: string;
  readonly retryAfter: number | undefined;
  readonly mayHaveArrived: boolean;
  constructor(
    message: string,
    about: { status: number | null; code: string; retryAfter?: number; mayHaveArrived: boolean },
  ) {
    super(message);
    this.status = about.status;
    this.code = about.code;
    this.retryAfter = about.retryAfter;
    this.mayHaveArrived = about.mayHaveArrived;
  }
}

interface CallOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Json;
  readonly signal?: AbortSignal;
}

export interface Homeserver {
  readonly userId: string;
  /** Of the address that is configured, as in a URL. */
  readonly host: string;
  /** Parts of the path behind `/_matrix/client/v3`. Rejects with `MatrixFailure`. */
  call(method: "GET" | "POST" | "PUT", path: readonly string[], options?: CallOptions): Promise<Json>;
  /** Resolves with its `mxc:` address. */
  upload(file: Blob, about: { readonly name: string; readonly type: string }): Promise<string>;
  /** Where a file is, and what it takes to read it; null: not an `mxc:` address. */
  media(uri: string): Promise<{ readonly url: string; readonly headers: Readonly<Record<string, string>> } | null>;
}

const REQUEST_SECONDS = 30;
const UPLOAD_SECONDS = 600;

/** Logs in. Rejects with a `PlatformError`. */
export async function openHomeserver(host: AdapterHost): Promise<Homeserver> {
  const sdk = await host.package("matrix-js-sdk", () => import("matrix-js-sdk"));
  const baseUrl = trimmedUrl(host.option("homeserver", "MATRIX_HOMESERVER"));
  const seconds = Number(host.option("request_timeout")) || REQUEST_SECONDS;
  const syncSeconds = seconds + syncTimeout(host);

  const limitOf = (path: string) =>
    path.endsWith("/sync") ? syncSeconds : path.endsWith("/upload") ? UPLOAD_SECONDS : seconds;
  const fetchFn = async (url: string | URL | Request, init: RequestInit = {}) => {
    const target = new URL(url instanceof Request ? url.url : url);
    try {
      const { method = "GET", body, signal } = init;
      const headers = Object.fromEntries(new Headers(init.headers));
      const { bytes, ...head } = await exchange(target, { method, headers, body, signal }, limitOf(target.pathname));
      return new Response(bytes.length === 0 ? null : bytes, { ...head, headers: [...head.headers] });
    } catch (error) {
      // The SDK hands on errors of this name as they are, and drops the cause of all others.
      throw Object.assign(error as Error, { name: "AbortError" }); // exchange rejects with errors only
    }
  };
  // Not by createClient: that looks for the storage of a browser, and Node warns about it on the console.
  const make = (accessToken?: string) =>
    new sdk.MatrixClient({ baseUrl, accessToken, fetchFn, logger: SILENT, disableVoip: true });

  let token = textOption(host, "token", "MATRIX_ACCESS_TOKEN");
  if (token === "") token = await logIn(host, make());
  const client = make(token);
  const failed = (error: unknown) => failureOf(error, host.clock.now());
  const whoami = await client.whoami().catch((error: unknown) => {
    throw notLoggedIn(failed(error), baseUrl);
  });
  return {
    userId: whoami.user_id,
    host: new URL(baseUrl).host,
    call: async (method, path, { query = {}, body, signal } = {}) => {
      const way = `/${path.map(encodeURIComponent).join("/")}`;
      // The SDK's names of the methods are the methods.
      const reply = client.http.authedRequest<unknown>(method as Method, way, { ...query }, body, {
        abortSignal: signal,
        priority: undefined,
      });
      return asRecord(
        await reply.catch((error: unknown) => {
          throw failed(error);
        }),
      );
    },
    upload: async (file, { name, type }) => {
      const { content_uri: uri } = await client.uploadContent(file, { name, type }).catch((error: unknown) => {
        throw failed(error);
      });
      return uri;
    },
    media: async (uri) => {
      const isNew = await client.isVersionSupported("v1.11").catch(() => true);
      const url = client.mxcUrlToHttp(uri, undefined, undefined, undefined, false, false, isNew);
      const headers: Record<string, string> = isNew ? { authorization: `Bearer ${token}` } : {};
      return url === null ? null : { url, headers };
    },
  };

  async function logIn(on: AdapterHost, to: ReturnType<typeof make>): Promise<string> {
    const user = textOption(on, "user_id", "MATRIX_USER_ID");
    // The homeserver knows repeats of a message by device: a new device for each start would not be protected from doubles.
    const device = textOption(on, "device_id", "MATRIX_DEVICE_ID") || `HERMES${shortHash(`${baseUrl} ${user}`)}`;
    const reply = await to
      .loginRequest({
        type: "m.login.password",
        identifier: { type: "m.id.user", user },
        password: textOption(on, "password", "MATRIX_PASSWORD"),
        device_id: device,
        initial_device_display_name: "Hermes",
      })
      .catch((error: unknown) => {
        throw notLoggedIn(failureOf(error, on.clock.now()), baseUrl);
      });
    return reply.access_token;
  }
}

const textOption = (host: AdapterHost, key: string, variable: string) =>
  String(host.option(key, variable) ?? "").trim();
const shortHash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();

/** Seconds that a request for news is left open. */
export function syncTimeout(host: AdapterHost): number {
  const set = Number(host.option("sync_timeout", "MATRIX_SYNC_TIMEOUT") ?? 30);
  return set >= 0 ? set : 30;
}

/** It logs addresses with room names in them, to the console. */
const SILENT = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  getChild: () => SILENT,
};

function failureOf(error: unknown, now: number): MatrixFailure {
  if (error instanceof CallFailedError)
    return new MatrixFailure(error.message, { status: null, code: "", mayHaveArrived: error.kind === "unknown" });
  const { httpStatus: status, errcode, data, httpHeaders } = asRecord(error);
  if (typeof status !== "number")
    return new MatrixFailure(messageOf(error), { status: null, code: "", mayHaveArrived: true });
  const written = httpHeaders instanceof Headers ? httpHeaders.get("retry-after") : null;
  const wait = asRecord(data).retry_after_ms;
  const said = asText(asRecord(data).error) || `HTTP ${status}`;
  const code = asText(errcode);
  return new MatrixFailure(`${said}${code === "" ? "" : ` (${code})`}`, {
    status,
    code,
    mayHaveArrived: false,
    ...(typeof wait === "number" ? { retryAfter: wait / 1000 } : written !== null ? secondsIn(written, now) : {}),
  });
}

function secondsIn(written: string, now: number): { retryAfter?: number } {
  const seconds = /^\d+$/.test(written) ? Number(written) : (Date.parse(written) - now) / 1000;
  return Number.isFinite(seconds) ? { retryAfter: Math.max(0, seconds) } : {};
}

/** The token is not valid, or no longer. */
export const isLoggedOut = ({ code }: MatrixFailure) => code === "M_UNKNOWN_TOKEN" || code === "M_MISSING_TOKEN";

export function notLoggedIn(failure: MatrixFailure, baseUrl: string): PlatformError {
  const { host } = new URL(baseUrl);
  if (failure.status === null || failure.status === 429 || failure.status >= 500)
    return new PlatformError("unreachable", `${host}: ${failure.message}`, { retryable: true, cause: failure });
  if (failure.status === 401 || failure.status === 403)
    return new PlatformError(
      "auth",
      `${host} does not accept this login: ${failure.message}; set a new MATRIX_ACCESS_TOKEN: hermes gateway setup`,
      { retryable: false, cause: failure },
    );
  return new PlatformError("refused", `${host} refused the login: ${failure.message}; check MATRIX_HOMESERVER`, {
    retryable: false,
    cause: failure,
  });
}

/** What came of sending, in the words of the delivery. */
export function sendFailure(error: unknown, isInThread: boolean): SendResult {
  if (!(error instanceof MatrixFailure)) return { failed: "unknown", error: messageOf(error) };
  const { status, code, retryAfter, mayHaveArrived, message } = error;
  if (status === null) return { failed: mayHaveArrived ? "unknown" : "unreachable", error: message };
  if (status === 429 || code === "M_LIMIT_EXCEEDED") return { failed: "rate_limited", error: message, retryAfter };
  if (status >= 500 || isLoggedOut(error)) return { failed: "unreachable", error: message };
  if (code === "M_BAD_JSON" || code === "M_NOT_JSON") return { failed: "format", error: message };
  if (isInThread && status === 400 && /thread|relation|event/i.test(message))
    return { failed: "thread_gone", error: message };
  return { failed: "refused", error: message };
}
