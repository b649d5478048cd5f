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
  readonly body?: string | Uint8Array | undefined;
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
  const bytes = typeof body === "string" ? Buffer.from(body) : (body ?? null);
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
 * gigabytes. Whoever reads it limits its size, with `limited`.
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

/** The unpacked body in pieces, up to so many bytes. A body that ends too early is a broken connection, not an end. */
export async function* readBody(incoming: IncomingMessage, maxBytes: number): AsyncGenerator<Buffer> {
  yield* limited(unpackedBody(incoming), maxBytes);
  if (!incoming.complete) throw Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
}

/** What an answer that is read as a whole may hold. A megabyte of zeros on the wire is a gigabyte in memory. */
export const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** As much of `fetch` as a short question takes; the built-in one satisfies it too. */
export type ShortFetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
    readonly signal: AbortSignal;
    readonly redirect: "error";
  },
) => Promise<{ readonly ok: boolean; readonly status: number; readonly body: AsyncIterable<Uint8Array> | null }>;

/** Without the 24 ms and 20 MB that the built-in fetch costs with its first call. A redirect is an answer that is not ok. */
export const shortFetch: ShortFetch = async (url, { redirect: _, ...options }) => {
  const incoming = await sendRequest(new URL(url), options);
  const status = incoming.statusCode ?? 0;
  return { ok: status >= 200 && status < 300, status, body: readBody(incoming, MAX_ANSWER_BYTES) };
};

/** The text of an answer of `fetch`, which unpacks without a limit. */
export async function textOf(
  response: { readonly body: AsyncIterable<Uint8Array> | null },
  maxBytes: number,
): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of limited(response.body ?? [], maxBytes)) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/** Ends with the code `ANSWER_TOO_LONG` where more than `maxBytes` come; of a stream of events, which never ends, in one event. */
export async function* limited<Piece extends Uint8Array>(
  body: AsyncIterable<Piece> | Iterable<Piece>,
  maxBytes: number,
  { perEvent = false }: { readonly perEvent?: boolean } = {},
): AsyncGenerator<Piece> {
  let size = 0;
  let last = 0;
  for await (const piece of body) {
    const start = perEvent ? startOfLastEvent(piece, last) : -1;
    size = start < 0 ? size + piece.length : piece.length - start;
    if (size > maxBytes) {
      const most = `${Math.round(maxBytes / (1024 * 1024))} MB`;
      throw Object.assign(new Error(`the answer is longer than ${most}`), { code: "ANSWER_TOO_LONG" });
    }
    last = piece.at(-1) ?? last;
    yield piece;
  }
}

const LF = 10;

/** Behind the last blank line of a piece; -1 when it has none. */
function startOfLastEvent(piece: Uint8Array, last: number): number {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const blank = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\n\r\n"));
  if (blank >= 0) return blank + 2;
  return last === LF && bytes[0] === LF ? 1 : -1;
}

const FAILURES: Readonly<Record<string, string>> = {
  ENOTFOUND: "was not found",
  EAI_AGAIN: "could not be looked up; the DNS server does not respond",
  ECONNREFUSED: "refused the connection",
  ECONNRESET: "closed the connection",
  EPIPE: "closed the connection",
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
    (/CERT|SELF_SIGNED|TLS|SSL|UNABLE_TO_/.test(code)
      ? "has no valid certificate or does not support TLS"
      : undefined) ??
    (code.startsWith("HPE_") ? "does not speak HTTP" : unknown());
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
