// Calls of the Bot API: grammy over Node's plain HTTP client. grammy's own tells neither whether a request ever left nor the status of an
// answer that is not JSON, and both decide whether a message may be sent again.
import type { Agent, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Api, ApiClientOptions } from "grammy";
import { joinSignals } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { failureWords, httpFor, readBody } from "../../../../kit/http.ts";
import { parseJson } from "../../../../kit/json.ts";
import type { AdapterHost, SendResult } from "../../contract.ts";
import { addressesOf } from "./entry.ts";

export interface Calls {
  /** Runs calls within a limit of seconds; without one, that of the settings. Rejects with `CallError`. */
  run<T>(work: (api: Api, signal: GrammySignal) => Promise<T>, options?: CallOptions): Promise<T>;
  close(): void;
}

interface CallOptions {
  readonly seconds?: number;
  readonly signal?: AbortSignal;
}

/** What grammy declares in place of the platform's own. */
type GrammySignal = Parameters<Api["getMe"]>[0];

/** A call that did not work out. `status` 0: there was no answer. */
export class CallError extends Error {
  override name = "CallError";
  readonly status: number;
  /** The request may have been read there. */
  readonly left: boolean;
  readonly retryAfter: number | undefined;
  /** The group has become another chat. */
  readonly movedTo: number | undefined;
  constructor(message: string, about: Pick<CallError, "status" | "left"> & Partial<CallError> & { cause?: unknown }) {
    super(message, { cause: about.cause });
    this.status = about.status;
    this.left = about.left;
    this.retryAfter = about.retryAfter;
    this.movedTo = about.movedTo;
  }
}

const SECONDS = 30;
const MAX_BYTES = 16 * 1024 * 1024;
/** Shorter than servers keep an idle connection: a request on one that is just being closed has an unknown end. */
const IDLE_MS = 4000;

export async function openCalls(host: AdapterHost, token: string): Promise<Calls> {
  const { Api } = await host.package("grammy", () => import("grammy"));
  const { api: root } = addressesOf(host.option);
  const { Agent } = httpFor(new URL(root));
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const options: ApiClientOptions = {
    apiRoot: root,
    // The limits here are on the clock of the gateway; grammy's own would only come in between.
    timeoutSeconds: 3600,
    // As much of `fetch` as grammy uses; its type is that of another package's.
    fetch: fetchOver(agent) as unknown as NonNullable<ApiClientOptions["fetch"]>, // see the line above
  };
  const api = new Api(token, options);
  const limit = Number(host.option("request_timeout", "TELEGRAM_REQUEST_TIMEOUT")) || SECONDS;
  const over = new AbortController();
  return {
    async run(work, { seconds = limit, signal } = {}) {
      const timeUp = new AbortController();
      const stop = joinSignals(timeUp.signal, over.signal, ...(signal ? [signal] : []));
      const done = new AbortController();
      const timer = host.clock.sleep(seconds * 1000, done.signal).then(
        () => timeUp.abort(),
        () => undefined, // the call was faster
      );
      try {
        return await work(api, stop.signal as unknown as GrammySignal); // the same thing by another name
      } catch (error) {
        throw asCallError(
          error,
          timeUp.signal.aborted ? `no answer within ${seconds} seconds` : null,
          new URL(root).host,
          token,
        );
      } finally {
        done.abort();
        stop.release();
        await timer;
      }
    },
    close() {
      over.abort();
      agent.destroy();
    },
  };
}

/** What grammy throws, in words without the token. */
function asCallError(error: unknown, timedOut: string | null, server: string, token: string): CallError {
  if (error instanceof CallError) return error;
  const clean = (text: string) => text.replaceAll(token, "[token]");
  if (isApiError(error)) {
    const { error_code: status, description, parameters } = error;
    const about = { retryAfter: parameters.retry_after, movedTo: parameters.migrate_to_chat_id };
    return new CallError(clean(description), { status, left: true, ...about });
  }
  const inner = error instanceof Error && "error" in error ? error.error : error;
  const left = !(inner instanceof Error && "left" in inner && inner.left === false);
  const what = timedOut === null ? `${server} ${failureWords(inner)}` : `${server}: ${timedOut}`;
  return new CallError(clean(what), { status: 0, left, cause: new Error(clean(messageOf(inner))) });
}

interface ApiError {
  readonly error_code: number;
  readonly description: string;
  readonly parameters: { readonly retry_after?: number; readonly migrate_to_chat_id?: number };
}

const isApiError = (error: unknown): error is Error & ApiError => error instanceof Error && "error_code" in error;

type Failure = Extract<SendResult, { failed: string }>;

/** What a failed call means for what was to be sent. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof CallError)) return { failed: "unknown", error: messageOf(error) };
  const { status, message, left, retryAfter } = error;
  const said = (failed: Failure["failed"]): Failure => ({ failed, error: message });
  if (status === 0) return said(left ? "unknown" : "unreachable");
  if (status === 429) return { ...said("rate_limited"), retryAfter: retryAfter ?? 5 };
  // With a token that is not accepted (401, 404) nothing gets there until somebody changes it; a redirect is somebody else's answer.
  if (status >= 500 || status < 400 || status === 401 || status === 404) return said("unreachable");
  if (status !== 400) return said("refused");
  if (/can't parse entities|text is empty|must be non-empty/i.test(message)) return said("format");
  if (/thread not found|topic_(?:deleted|closed|id_invalid)/i.test(message)) return said("thread_gone");
  return said("refused");
}

// HTTP.

interface Init {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | Readable;
  readonly signal: Pick<AbortSignal, "aborted" | "addEventListener" | "removeEventListener">;
}

/** Errors say with `left` whether the request was on its way. No redirect is followed: the token is in the address. */
function fetchOver(agent: Agent) {
  return async (address: string, { method, headers, body, signal }: Init) => {
    const url = new URL(address);
    let left = false;
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      const size = typeof body === "string" ? { "content-length": String(Buffer.byteLength(body)) } : {};
      const request = httpFor(url).request(url, { method, agent, headers: { ...headers, ...size } });
      const stop = () => request.destroy(new Error("stopped"));
      signal.addEventListener("abort", stop);
      request.once("close", () => signal.removeEventListener("abort", stop));
      request.once("socket", (socket) => {
        const isOpen = () => {
          left = true;
        };
        if (!socket.connecting) isOpen();
        else socket.once(url.protocol === "https:" ? "secureConnect" : "connect", isOpen);
      });
      request.once("response", resolve).on("error", reject);
      if (signal.aborted) stop();
      else if (typeof body === "string") request.end(body);
      else body.on("error", (error) => request.destroy(error)).pipe(request);
    });
    try {
      const incoming = await answer;
      const parts: Buffer[] = [];
      for await (const part of readBody(incoming, MAX_BYTES)) parts.push(part);
      const text = Buffer.concat(parts).toString("utf8");
      return { json: async () => answerIn(text, incoming) };
    } catch (error) {
      throw Object.assign(error instanceof Error ? error : new Error(String(error)), { left });
    }
  };
}

/** Something between us and the Bot API answers in its own words. */
function answerIn(text: string, { statusCode: status = 0, statusMessage }: IncomingMessage): unknown {
  const json = parseJson(text);
  if (typeof json === "object" && json !== null && "ok" in json) return json;
  if (status < 300) throw Object.assign(new Error("the answer is not JSON"), { left: true });
  return { ok: false, error_code: status, description: `${status} ${statusMessage ?? ""}`.trim() };
}
