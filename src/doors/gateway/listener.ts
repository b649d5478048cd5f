// A small HTTP server for platforms that call us. Bodies are read whole and within a limit before anybody looks at them.
import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "../../home/log.ts";
import { CallerGoneError, closeServer, drained, listenOn, NotListeningError, readWithin } from "../http.ts";
import { PlatformError } from "./contract.ts";

export interface HttpCall {
  /** A HEAD is a GET here; the reply's body is left out on its way. */
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface HttpReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: string | object;
}

interface ListenOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The setting that names the port, for the error when it is taken. */
  readonly setting: string;
  readonly log: Logger;
  readonly maxBytes?: number;
  /** Looked at before the body is read: a reply ends it there. */
  early?(call: Omit<HttpCall, "body">): HttpReply | null | Promise<HttpReply | null>;
  handle(call: HttpCall): Promise<HttpReply>;
}

export interface Listener {
  readonly url: string;
  /** Nothing new is taken; what is being answered has a moment to end. */
  close(): Promise<void>;
}

const BODY_MS = 30_000;
const HEAD_MS = 10_000;
/** Connections that have sent no whole request; the oldest of more is closed, so that a caller with something to say finds room. */
const MOST_WAITING = 200;
const LOOK_MS = 5_000;
const MAX_BYTES = 1_048_576;

/** Rejects with a `PlatformError` when the port is taken or the address is not ours. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { createServer } = process.getBuiltinModule("node:http");
  const { port, log } = options;
  const limits = { requestTimeout: BODY_MS, headersTimeout: HEAD_MS, connectionsCheckingInterval: LOOK_MS };
  const waiting = new Set<Socket>();
  const server: Server = createServer(limits, (request, response) => {
    const { socket } = request;
    request.once("end", () => waiting.delete(socket));
    answer(request, options)
      .catch((error: unknown) => failed(error, request, log))
      .then((reply) => reply && write(request, response, reply, { isLast: !server.listening }))
      .catch((error: unknown) => log.debug("a reply could not be written", error))
      .finally(() => !socket.destroyed && waiting.add(socket));
  });
  server.on("connection", (socket) => {
    waiting.add(socket);
    socket.once("close", () => waiting.delete(socket));
    const [oldest] = waiting;
    if (waiting.size > MOST_WAITING) oldest?.destroy();
  });
  const url = await listenOn(server, options).catch((error: unknown) => {
    if (!(error instanceof NotListeningError)) throw error;
    throw new PlatformError(error.code, error.message, { retryable: error.retryable, cause: error });
  });
  server.on("error", (error) => log.error(`the server on port ${port} failed`, error));
  return { url, close: () => closeServer(server) };
}

async function answer(request: IncomingMessage, options: ListenOptions): Promise<HttpReply> {
  const url = URL.parse(request.url ?? "/", "http://localhost");
  if (url === null) return { status: 400, body: { error: "the address of the request is not one" } };
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  const head = { method, path: url.pathname, query: url.searchParams, headers: request.headers };
  const early = (await options.early?.(head)) ?? null;
  if (early !== null) return early;
  const max = options.maxBytes ?? MAX_BYTES;
  const body = await readWithin(request, max);
  return body === null ? tooLarge(max) : options.handle({ ...head, body });
}

const tooLarge = (max: number): HttpReply => ({ status: 413, body: { error: `the body is larger than ${max} bytes` } });

/** Null: nobody is there to be answered. */
function failed(error: unknown, request: IncomingMessage, log: Logger): HttpReply | null {
  if (error instanceof CallerGoneError || (request.destroyed && !request.complete)) return null;
  log.error("a request from outside failed", error);
  return { status: 500, body: { error: "internal error" } };
}

/** What is left of a body is read away for a moment before the end: a connection that closes on unread bytes takes the reply with it. */
async function write(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers = {}, body = "" }: HttpReply,
  { isLast }: { readonly isLast: boolean },
): Promise<void> {
  const type = typeof body === "string" ? "text/plain; charset=utf-8" : "application/json";
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  response.writeHead(status, {
    "content-type": type,
    ...(status === 204 ? {} : { "content-length": String(bytes.length) }),
    ...(request.complete && !isLast ? {} : { connection: "close" }),
    ...headers,
  });
  response.write(bytes);
  if (!request.complete) await drained(request);
  response.end();
}

// What a caller proves itself with. Nothing of it shows in the time that the comparison takes.

/** A signature in hex digits. */
export function sameHex(given: string, expected: Uint8Array): boolean {
  const bytes = /^(?:[0-9a-f]{2}){1,64}$/i.test(given) ? Buffer.from(given, "hex") : Buffer.alloc(0);
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}
