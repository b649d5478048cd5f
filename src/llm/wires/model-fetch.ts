// The fetch for real servers, on Node's plain HTTP client: the built-in `fetch` costs about 60 ms and 20 MB with its first call, and
// gives up after five minutes without a byte, also where a slow model is still thinking.
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Readable, Transform } from "node:stream";
import type { FetchLike, ResponseLike } from "./transport.ts";

interface ModelFetchOptions {
  /** TCP and TLS together. A breach is a failure with code `ETIMEDOUT`. */
  readonly connectMs?: number;
}

/** Answers `demo:` addresses inside this process. Waits as long as the caller does: how long an answer may take is decided per request (`ModelRequest.limits`). Follows no redirect. */
export function createModelFetch({ connectMs = 30_000 }: ModelFetchOptions = {}): FetchLike {
  return async (url, init) => {
    if (url.startsWith("demo:")) return (await import("../demo.ts")).demoFetch(init);
    const secure = new URL(url).protocol === "https:";
    // Not by `import`: that reads every export of the module, and one of them loads the built-in fetch after all.
    const { request } = secure ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");
    init.signal?.throwIfAborted();
    const body = Buffer.from(init.body ?? "");
    const outgoing = request(url, {
      method: init.method ?? "GET",
      headers: { accept: "*/*", ...init.headers, "content-length": String(body.byteLength) },
      ...(init.signal ? { signal: init.signal } : {}),
    });
    limitConnecting(outgoing, secure, connectMs);
    return answerTo(outgoing, body);
  };
}

/** Connections that no request uses are closed; the next request to their host opens a new one. */
export function closeIdleConnections(): void {
  for (const { globalAgent } of [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")]) {
    for (const sockets of Object.values(globalAgent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

function answerTo(outgoing: ClientRequest, body: Buffer): Promise<ResponseLike> {
  return new Promise((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("response", (incoming) => {
      // From here on whoever reads the body hears of a broken connection.
      outgoing.off("error", reject).on("error", (error) => incoming.destroy(error));
      resolve(responseOf(incoming));
    });
    outgoing.end(body);
  });
}

function limitConnecting(outgoing: ClientRequest, secure: boolean, connectMs: number): void {
  outgoing.once("socket", (socket) => {
    const connected = secure ? "secureConnect" : "connect";
    if (!socket.connecting && !(secure && !("encrypted" in socket))) return; // a connection that is used again
    const timer = setTimeout(() => {
      const error = new Error(`no connection within ${connectMs} ms`);
      outgoing.destroy(Object.assign(error, { code: "ETIMEDOUT" }));
    }, connectMs);
    const stop = () => clearTimeout(timer);
    socket.once(connected, stop).once("close", stop);
  });
}

function responseOf(incoming: IncomingMessage): ResponseLike {
  const status = incoming.statusCode ?? 0;
  return {
    status,
    ok: status >= 200 && status < 300,
    statusText: incoming.statusMessage ?? "",
    headers: headersOf(incoming),
    body: { getReader: () => readerOf(incoming) },
  };
}

function* headersOf(incoming: IncomingMessage): Generator<[string, string]> {
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) yield [name, Array.isArray(value) ? value.join(", ") : value];
  }
}

/** Nobody asked for a compressed answer, but some proxies compress all the same. */
function unpacked(incoming: IncomingMessage): Readable {
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
  if (!unpacker) return incoming;
  process.getBuiltinModule("node:stream").pipeline(incoming, unpacker, () => undefined); // whoever reads hears of an error
  return unpacker;
}

function readerOf(incoming: IncomingMessage) {
  const chunks = unpacked(incoming)[Symbol.asyncIterator]();
  return {
    async read() {
      const { done, value } = await chunks.next();
      if (!done) return { done: false as const, value: value as Uint8Array }; // no encoding is set, so chunks are bytes
      // A body that ends before its announced end is a broken connection, not an end.
      if (!incoming.complete) throw Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
      return { done: true as const, value: undefined };
    },
    async cancel() {
      incoming.destroy();
    },
  };
}
