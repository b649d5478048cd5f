// One request over HTTP, on Node's plain client. Hand-made: the built-in `fetch` costs about 60 ms and 20 MB with its first call, gives up
// after five minutes without a byte, and takes neither checked addresses nor certificates.
import type { ClientRequest, IncomingMessage } from "node:http";
import type { RequestOptions } from "node:https";
import type { Readable, Transform } from "node:stream";

interface HttpOptions
  extends Pick<
    RequestOptions,
    "method" | "headers" | "agent" | "lookup" | "ca" | "cert" | "key" | "rejectUnauthorized"
  > {
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | null | undefined;
  /** For TCP and TLS together. Later than that is a failure with the code `ETIMEDOUT`. */
  readonly connectMs?: number;
}

/** Node's client for an address. Not by `import`: that reads every export of the module, and one of them loads the built-in fetch. */
export function httpFor(url: URL) {
  return url.protocol === "https:" ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");
}

/**
 * Sends a request and resolves with the head of the answer, whatever its status. Follows no redirect. There is no limit for an answer: that
 * is for the caller's signal. Rejects with the error of the socket; `failureWords` says what it means.
 */
export async function sendRequest(
  url: URL,
  { body, signal, connectMs, ...options }: HttpOptions,
): Promise<IncomingMessage> {
  signal?.throwIfAborted();
  const bytes = body === undefined ? null : Buffer.from(body);
  const outgoing = httpFor(url).request(url, {
    ...options,
    headers: { accept: "*/*", ...options.headers, ...(bytes && { "content-length": String(bytes.byteLength) }) },
    signal: signal ?? undefined,
  });
  if (connectMs !== undefined) limitConnecting(outgoing, url.protocol === "https:", connectMs);
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("response", (incoming) => {
      // From here on a broken connection fails the body's reader.
      outgoing.off("error", reject).on("error", (error) => incoming.destroy(error));
      resolve(incoming);
    });
    outgoing.end(bytes ?? undefined);
  });
}

function limitConnecting(outgoing: ClientRequest, secure: boolean, connectMs: number): void {
  outgoing.once("socket", (socket) => {
    if (!socket.connecting && !(secure && !("encrypted" in socket))) return; // a connection that is used again
    const timer = setTimeout(() => {
      const error = new Error(`no connection within ${connectMs} ms`);
      outgoing.destroy(Object.assign(error, { code: "ETIMEDOUT" }));
    }, connectMs);
    const stop = () => clearTimeout(timer);
    socket.once(secure ? "secureConnect" : "connect", stop).once("close", stop);
  });
}

/** The headers by name in lower case; a header that came several times is one text. */
export function* headersOf(incoming: IncomingMessage): Generator<[string, string]> {
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) yield [name, Array.isArray(value) ? value.join(", ") : value];
  }
}

/**
 * The body as the server meant it: some compress also where nobody asked for it. One compression at most: of two, a few bytes become
 * gigabytes. Whoever reads it limits its size.
 */
export function unpackedBody(incoming: IncomingMessage): Readable {
  const encoding = incoming.headers["content-encoding"]?.trim().toLowerCase();
  if (!encoding || encoding === "identity") return incoming;
  const { createUnzip, createBrotliDecompress, createZstdDecompress } = process.getBuiltinModule("node:zlib");
  const unpackers: Readonly<Record<string, () => Transform>> = {
    gzip: createUnzip,
    "x-gzip": createUnzip,
    deflate: createUnzip,
    br: createBrotliDecompress,
    zstd: createZstdDecompress,
  };
  const unpacker = unpackers[encoding]?.();
  if (!unpacker) {
    incoming.destroy();
    throw Object.assign(new Error(`unknown content encoding ${encoding}`), { code: "Z_DATA_ERROR" });
  }
  process.getBuiltinModule("node:stream").pipeline(incoming, unpacker, () => undefined); // the reader gets the error
  return unpacker;
}

/** The unpacked body in pieces. A body that ends too early is a broken connection, not an end. */
export async function* readBody(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  for await (const chunk of unpackedBody(incoming)) yield chunk;
  if (!incoming.complete) throw Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOTFOUND: "was not found",
  EAI_AGAIN: "could not be looked up; the name server does not answer",
  ECONNREFUSED: "refuses the connection",
  ECONNRESET: "broke off the connection",
  EPIPE: "broke off the connection",
  EHOSTUNREACH: "cannot be reached",
  ENETUNREACH: "cannot be reached; the network may be down",
  ETIMEDOUT: "did not answer in time",
  Z_DATA_ERROR: "sent a body that cannot be unpacked",
  Z_BUF_ERROR: "sent a body that cannot be unpacked",
};

/** What went wrong, in words that follow the name of the server: "refuses the connection (ECONNREFUSED)". */
export function failureWords(error: unknown): string {
  const code = failureCode(error) ?? "";
  const unknown = () => `could not be read: ${causesOf(error).findLast(({ message }) => message)?.message ?? error}`;
  const words =
    FAILURES[code] ??
    (/CERT|SELF_SIGNED|TLS|SSL|UNABLE_TO_/.test(code) ? "has no valid certificate or speaks no TLS" : undefined) ??
    (code.startsWith("HPE_") ? "does not answer in HTTP" : unknown());
  return code === "" ? words : `${words} (${code})`;
}

/** The system's name of a failed connection: ECONNREFUSED, ENOTFOUND ... It may be some causes deep. */
export function failureCode(error: unknown): string | undefined {
  return causesOf(error)
    .map(({ code }) => code)
    .find((code) => typeof code === "string" && code !== "") as string | undefined; // found to be one
}

interface Cause {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

function causesOf(error: unknown): readonly Cause[] {
  const chain: Cause[] = [];
  for (let next = error; typeof next === "object" && next !== null && chain.length < 5; ) {
    const cause: Cause = next;
    chain.push(cause);
    next = cause.cause ?? (Array.isArray(cause.errors) ? cause.errors[0] : undefined);
  }
  return chain;
}
