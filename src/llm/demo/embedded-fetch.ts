import type { FetchLike } from "../wires/transport.ts";

/** Sends `demo:` addresses to the embedded model, which is loaded for the first of them, and everything else on. */
export function embeddedFetch(fetch: FetchLike): FetchLike {
  return async (url, init) => {
    if (!url.startsWith("demo:")) return fetch(url, init);
    const { demoFetch } = await import("./demo-fetch.ts");
    return demoFetch(url, init);
  };
}
