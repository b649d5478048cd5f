// The fetch for models, on kit/http.ts for its start-up time and because a slow model may think for longer than five minutes.
import type { IncomingMessage } from "node:http";
import { headersOf, MAX_ANSWER_BYTES, readBody, sendRequest } from "../../kit/http.ts";
import type { FetchLike, ResponseLike } from "./transport.ts";

interface ModelFetchOptions {
  readonly connectMs?: number;
}

/**
 * Answers `demo:` addresses inside this process. Waits as long as the caller does: how long an answer may take is decided per request
 * (`ModelRequest.limits`). Follows no redirect.
 */
export function createModelFetch({ connectMs = 30_000 }: ModelFetchOptions = {}): FetchLike {
  return async (url, { method, headers, body = "", signal }) => {
    if (url.startsWith("demo:")) return (await import("../demo.ts")).demoFetch({ body, signal });
    return responseOf(await sendRequest(new URL(url), { method, headers, body, signal, connectMs }));
  };
}

/** Connections that no request uses are closed; the next request to their host opens a new one. */
export function closeIdleConnections(): void {
  for (const { globalAgent } of [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")]) {
    for (const sockets of Object.values(globalAgent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Of a stream only the text is kept, a small part of it. */
const MAX_STREAM_BYTES = 256 * 1024 * 1024;

function responseOf(incoming: IncomingMessage): ResponseLike {
  const status = incoming.statusCode ?? 0;
  return {
    status,
    ok: status >= 200 && status < 300,
    statusText: incoming.statusMessage ?? "",
    headers: headersOf(incoming),
    body: {
      getReader() {
        const streams = incoming.headers["content-type"]?.includes("event-stream");
        const chunks = readBody(incoming, streams ? MAX_STREAM_BYTES : MAX_ANSWER_BYTES);
        return {
          async read() {
            const { done, value } = await chunks.next();
            return done ? { done } : { done: false, value };
          },
          async cancel() {
            incoming.destroy();
          },
        };
      },
    },
  };
}
