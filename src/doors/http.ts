// What every door that is called over HTTP does the same way: bodies within a limit, secrets that show nothing, an address to listen on.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { t } from "../home/language/words.ts";
import { codeOf, messageOf, UserError } from "../kit/errors.ts";

/** Whoever asked has hung up. */
export class CallerGoneError extends Error {}

/** Null when there is more of it. By hand: leaving a loop over the request closes its connection, and the reply with it. */
export function readWithin(request: IncomingMessage, max: number): Promise<Buffer | null> {
  if (Number(request.headers["content-length"] ?? 0) > max) return Promise.resolve(null);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= max) chunks.push(chunk);
      else resolve(null);
    });
    request.once("end", () => resolve(Buffer.concat(chunks)));
    request.once("error", reject);
    request.once("close", () => reject(new CallerGoneError("the caller is gone")));
  });
}

const DRAIN_MS = 2_000;

/** What is left of a body is read away for a moment before the end: a connection that closes on unread bytes takes the reply with it. */
export function drained(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, DRAIN_MS);
    const done = () => {
      clearTimeout(late);
      resolve();
    };
    request.once("end", done).once("close", done).once("error", done);
    request.resume();
  });
}

/** By their hashes: neither the text nor its length shows in the time it takes. */
export function sameSecret(given: string, expected: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}

/** One header as text; empty when it did not come. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value.join(", ") : (value ?? "")).trim();
}

export const isLoopbackHost = (host: string) => /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i.test(host);

/** A server that cannot listen. */
export class NotListeningError extends UserError {
  override name = "NotListeningError";
  readonly code: string;
  /** Trying again may help. */
  readonly retryable: boolean;
  constructor(error: Error, { host, port, setting }: ListenAddress) {
    const code = codeOf(error);
    const isTaken = code === "EADDRINUSE";
    super(
      isTaken
        ? t("port {port} on {host} is taken; choose another with {setting}", { port: String(port), host, setting })
        : t("cannot listen on {address} ({setting}): {why}", {
            address: `${host}:${port}`,
            setting,
            why: messageOf(error),
          }),
      { cause: error },
    );
    this.code = isTaken ? "port_taken" : "not_listening";
    this.retryable = code !== "EACCES" && code !== "EADDRNOTAVAIL";
  }
}

interface ListenAddress {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The setting that names the port, for the error when it is taken. */
  readonly setting: string;
}

/** Resolves to `http://HOST:PORT` with the real port; rejects with a `NotListeningError`. */
export async function listenOn(server: Server, address: ListenAddress): Promise<string> {
  const { host, port } = address;
  await new Promise<void>((resolve, reject) => {
    const failed = (error: Error) => reject(new NotListeningError(error, address));
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      resolve();
    });
  });
  const { port: real } = server.address() as AddressInfo; // it listens on a port
  return `http://${host.includes(":") ? `[${host}]` : host}:${real}`;
}

const CLOSE_MS = 2_000;

/** Nothing new is taken; what is being answered has a moment to end. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    server.close(() => {
      clearTimeout(late);
      resolve();
    });
    server.closeIdleConnections();
  });
}
