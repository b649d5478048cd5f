// Calls of the Bot API over Node's plain HTTP client. What decides whether a message may be sent again is kept: whether a request ever left,
// and the status of an answer, be it JSON or not.
import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { Agent, IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { joinSignals } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { failureWords, httpFor, readBody } from "../../../../kit/http.ts";
import { asRecord, asText, parseJson } from "../../../../kit/json.ts";
import type { AdapterHost, SendResult } from "../../contract.ts";
import { keptConnections } from "../../web-calls.ts";
import { addressesOf } from "./entry.ts";

type Parameters = Readonly<Record<string, unknown>>;

export interface Calls {
  /**
   * Calls a method within a limit of seconds; without one, that of the settings. Files are given as `Upload`, as a parameter or in a list of
   * media. Rejects with `CallError`.
   */
  call<T>(method: string, parameters?: Parameters, options?: CallOptions): Promise<T>;
  close(): void;
}

interface CallOptions {
  readonly seconds?: number;
  readonly signal?: AbortSignal;
}

/** A file that is read while it is sent. */
export class Upload {
  readonly path: string;
  readonly name: string;
  constructor(path: string, name: string) {
    this.path = path;
    this.name = name.replace(/[\r\n";]/g, "_");
  }
}

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

export function openCalls(host: AdapterHost, token: string): Calls {
  const { api: root } = addressesOf(host.option);
  const agent = keptConnections(root);
  const server = new URL(root).host;
  const limit = Number(host.option("request_timeout", "TELEGRAM_REQUEST_TIMEOUT")) || SECONDS;
  const over = new AbortController();
  return {
    async call<T>(method: string, parameters: Parameters = {}, { seconds = limit, signal }: CallOptions = {}) {
      const timeUp = new AbortController();
      const stop = joinSignals(timeUp.signal, over.signal, ...(signal ? [signal] : []));
      const done = new AbortController();
      const timer = host.clock.sleep(seconds * 1000, done.signal).then(
        () => timeUp.abort(),
        () => undefined, // the call was faster
      );
      try {
        const url = new URL(`${root}/bot${token}/${method}`);
        const content = await contentOf(parameters).catch((error: Error) => {
          throw Object.assign(error, { left: false });
        });
        return (await post(url, content, { agent, signal: stop.signal })) as T; // as the Bot API documents the method
      } catch (error) {
        const late = timeUp.signal.aborted ? `no answer within ${seconds} seconds` : null;
        throw withoutToken(error, late, server, token);
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

/** What failed, in words without the token. */
function withoutToken(error: unknown, timedOut: string | null, server: string, token: string): CallError {
  const clean = (text: string) => text.replaceAll(token, "[token]");
  if (error instanceof CallError) return Object.assign(error, { message: clean(error.message) });
  const left = !(error instanceof Error && "left" in error && error.left === false);
  const what = timedOut === null ? `${server} ${failureWords(error)}` : `${server}: ${timedOut}`;
  return new CallError(clean(what), { status: 0, left, cause: new Error(clean(messageOf(error))) });
}

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

interface Content {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/** Files go as a form whose other fields are JSON; what names them is `attach://`. */
async function contentOf(parameters: Parameters): Promise<Content> {
  const uploads: Upload[] = [];
  const named = (_: string, value: unknown) =>
    value instanceof Upload ? `attach://file${uploads.push(value) - 1}` : value;
  const body = JSON.stringify(parameters, named);
  if (uploads.length === 0)
    return { headers: { ...JSON_TYPE, "content-length": String(Buffer.byteLength(body)) }, body };
  const boundary = `----${randomUUID()}`;
  const head = (fields: string) => `--${boundary}\r\ncontent-disposition: form-data; ${fields}\r\n`;
  const fields = Object.entries(asRecord(parseJson(body))).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `${head(`name="${name}"`)}\r\n${text}\r\n`;
  });
  const files = await Promise.all(
    uploads.map(async ({ path, name }, at) => ({
      path,
      head: `${head(`name="file${at}"; filename="${name}"`)}content-type: application/octet-stream\r\n\r\n`,
      size: (await stat(path)).size,
    })),
  );
  const end = `--${boundary}--\r\n`;
  const around = [...fields, ...files.map((file) => `${file.head}\r\n`), end];
  const length = files.reduce((sum, { size }) => sum + size, Buffer.byteLength(around.join("")));
  return {
    headers: { "content-type": `multipart/form-data; boundary=${boundary}`, "content-length": String(length) },
    body: Readable.from(pieces(fields, files, end)),
  };
}

const JSON_TYPE = { "content-type": "application/json" };

async function* pieces(
  fields: readonly string[],
  files: readonly { readonly path: string; readonly head: string; readonly size: number }[],
  end: string,
): AsyncGenerator<Buffer> {
  yield Buffer.from(fields.join(""));
  for (const { path, head, size } of files) {
    yield Buffer.from(head);
    // As long as was announced, also where it grew since.
    if (size > 0) yield* createReadStream(path, { end: size - 1 });
    yield Buffer.from("\r\n");
  }
  yield Buffer.from(end);
}

/** Resolves to the result. Errors say with `left` whether the request was on its way. No redirect is followed: the token is in the address. */
async function post(
  url: URL,
  { headers, body }: Content,
  { agent, signal }: { readonly agent: Agent; readonly signal: AbortSignal },
): Promise<unknown> {
  let left = false;
  try {
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = httpFor(url).request(url, { method: "POST", agent, headers });
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
    const parts = await Array.fromAsync(readBody(incoming, MAX_BYTES));
    return resultIn(Buffer.concat(parts).toString("utf8"), incoming);
  } catch (error) {
    if (error instanceof CallError) throw error;
    throw Object.assign(error instanceof Error ? error : new Error(String(error)), { left });
  }
}

/** Something between us and the Bot API answers in its own words. */
function resultIn(text: string, { statusCode: status = 0, statusMessage }: IncomingMessage): unknown {
  const { ok, result, error_code: code, description, parameters } = asRecord(parseJson(text));
  if (ok === true) return result;
  if (ok === undefined && status < 300) throw new Error("the answer is not JSON");
  if (ok === undefined) throw new CallError(`${status} ${statusMessage ?? ""}`.trim(), { status, left: true });
  const { retry_after: wait, migrate_to_chat_id: movedTo } = asRecord(parameters);
  throw new CallError(asText(description) || `refused (${Number(code) || status})`, {
    ...{ status: Number(code) || status, left: true },
    ...(typeof wait === "number" ? { retryAfter: wait } : {}),
    ...(typeof movedTo === "number" ? { movedTo } : {}),
  });
}
