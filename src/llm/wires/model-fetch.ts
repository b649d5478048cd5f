// The fetch for real servers. Node's own gives up after five minutes without a byte, also where a slow model is still thinking.
import type { FetchLike } from "./transport.ts";

export interface ModelFetchOptions {
  /** TCP and TLS together. A breach is a failure with code `UND_ERR_CONNECT_TIMEOUT`. */
  readonly connectMs?: number;
}

/** Waits as long as the caller does: how long an answer may take is decided per request (`ModelRequest.limits`). */
export function createModelFetch({ connectMs = 30_000 }: ModelFetchOptions = {}): FetchLike {
  let dispatcher: unknown;
  return (url, init) => {
    dispatcher ??= createDispatcher(connectMs);
    return fetch(url, dispatcher ? ({ ...init, dispatcher } as RequestInit) : init); // `dispatcher` is Node's own addition to fetch
  };
}

type DispatcherClass = new (options: object) => unknown;

/** Node shows its built-in HTTP client through the global dispatcher only; a client of the same class takes our time limits. */
function createDispatcher(connectMs: number): unknown {
  new Headers(); // loads the built-in client, which sets the global dispatcher
  const globals: Readonly<Record<symbol, { readonly constructor: unknown } | undefined>> = globalThis as never; // looked up by symbol only
  const shared = globals[Symbol.for("undici.globalDispatcher.2")] ?? globals[Symbol.for("undici.globalDispatcher.1")];
  if (typeof shared?.constructor !== "function") return undefined;
  const Dispatcher = shared.constructor as DispatcherClass; // the Agent class of the built-in client
  return new Dispatcher({ connect: { timeout: connectMs }, headersTimeout: 0, bodyTimeout: 0 });
}
