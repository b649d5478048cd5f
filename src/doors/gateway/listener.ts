// A small HTTP server for platforms that call us. Bodies are read whole and within a limit before anybody looks at them.
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "../../home/log.ts";
import { codeOf, messageOf } from "../../kit/errors.ts";
import { PlatformError } from "./contract.ts";

export interface HttpCall {
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
  early?(call: Omit<HttpCall, "body">): HttpReply | null;
  handle(call: HttpCall): Promise<HttpReply>;
}

export interface Listener {
  readonly url: string;
  close(): Promise<void>;
}

const BODY_SECONDS = 30;
const MAX_BYTES = 1_048_576;

/** Rejects with a `PlatformError` when the port is taken or the address is not ours. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { createServer } = process.getBuiltinModule("node:http");
  const { host, port, setting, log } = options;
  const server: Server = createServer({ requestTimeout: BODY_SECONDS * 1000 }, (request, response) => {
    answer(request, options)
      .catch((error: unknown): HttpReply => {
        log.error("a request from outside failed", error);
        return { status: 500, body: { error: "internal error" } };
      })
      .then((reply) => write(request, response, reply));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(notListening(error, host, port, setting)));
    server.listen(port, host, resolve);
  });
  const { port: real } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${real}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, options: ListenOptions): Promise<HttpReply> {
  const { pathname: path, searchParams: query } = new URL(request.url ?? "/", "http://localhost");
  const head = { method: request.method ?? "GET", path, query, headers: request.headers };
  const early = options.early?.(head) ?? null;
  if (early !== null) return early;
  const max = options.maxBytes ?? MAX_BYTES;
  if (Number(request.headers["content-length"] ?? 0) > max) return tooLarge(max);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > max) return tooLarge(max);
    chunks.push(chunk);
  }
  return options.handle({ ...head, body: Buffer.concat(chunks) });
}

const tooLarge = (max: number): HttpReply => ({ status: 413, body: { error: `the body is larger than ${max} bytes` } });

/** What is left of a body is read away for a moment, so that the reply arrives before the connection closes. */
function write(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers = {}, body = "" }: HttpReply,
): void {
  const isText = typeof body === "string";
  const type = isText ? "text/plain; charset=utf-8" : "application/json";
  if (!request.complete) {
    response.setHeader("connection", "close");
    request.resume();
  }
  response.writeHead(status, { "content-type": type, ...headers });
  response.end(isText ? body : JSON.stringify(body));
}

function notListening(error: Error, host: string, port: number, setting: string): PlatformError {
  const code = codeOf(error);
  if (code === "EADDRINUSE")
    return new PlatformError("port_taken", `port ${port} on ${host} is taken; choose another with ${setting}`, {
      retryable: true,
      cause: error,
    });
  return new PlatformError("not_listening", `cannot listen on ${host}:${port} (${setting}): ${messageOf(error)}`, {
    retryable: code !== "EACCES" && code !== "EADDRNOTAVAIL",
    cause: error,
  });
}
