// The fetch for MCP servers, on kit/http.ts because the built-in one takes no certificates. A redirect to another origin takes no
// credentials along.
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { VERSION } from "../home/paths.ts";
import { failureWords, headersOf, limited, MAX_ANSWER_BYTES, sendRequest, unpackedBody } from "../kit/http.ts";
import { expandPath } from "../safety/paths.ts";
import { checkUrl } from "../safety/url-guard.ts";
import { failureText, McpError } from "./errors.ts";
import type { HttpEndpoint } from "./settings.ts";

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MAX_REDIRECTS = 5;

/** Whose address it is, and where the paths of its settings begin. */
interface FetchOwner {
  readonly server: string;
  readonly cwd: string;
  readonly osHome: string;
}

/** Rejects with `McpError` when a file of the settings cannot be read. */
export async function serverFetch(endpoint: HttpEndpoint, owner: FetchOwner): Promise<Fetch> {
  return followingRedirects(await fetchWith(endpoint, owner), endpoint, owner.server);
}

/** A server may name other addresses: in a redirect, or for signing in. From the internet none of them leads into the local network. */
async function checkForeign(target: URL, home: URL, server: string): Promise<void> {
  const resolve = async (host: string) => (await lookup(host, { all: true })).map(({ address }) => address);
  const own = new URL(home);
  own.username = own.password = "";
  const { isPrivate } = await checkUrl(own, { allowPrivate: true, resolve });
  const foreign = await checkUrl(target, { allowPrivate: true, resolve });
  if (foreign.isPrivate && !isPrivate)
    throw new McpError(
      "refused",
      `MCP server "${server}" leads to ${target.host}, an address on this machine or its local network. Servers on the internet may not redirect there.`,
    );
}

/** Follows redirects by itself: to another origin go no credentials, neither the token nor the headers the user configured. */
function followingRedirects(base: Fetch, { url: home, headers }: HttpEndpoint, server: string): Fetch {
  const configured = Object.keys(headers);
  return async (url, init = {}) => {
    let target = new URL(url);
    let request: RequestInit = { ...init, redirect: "manual" };
    for (let n = 0; ; n++) {
      if (target.origin !== home.origin) await checkForeign(target, home, server);
      const response = await base(target, request);
      const location = response.headers.get("location");
      if (response.status < 300 || response.status > 399 || response.status === 304 || location === null)
        return response;
      if (n === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
      await response.body?.cancel();
      const next = new URL(location, target);
      if (!/^https?:$/.test(next.protocol)) throw new Error(`redirect to ${next.protocol} is not followed`);
      if (next.origin !== target.origin)
        request = { ...request, headers: withoutCredentials(request.headers, configured) };
      if (response.status === 303 || (response.status < 303 && request.method === "POST")) {
        const { body: _body, ...rest } = request;
        request = { ...rest, method: "GET" };
      }
      target = next;
    }
  };
}

function withoutCredentials(headers: RequestInit["headers"], configured: readonly string[]): Headers {
  const kept = new Headers(headers);
  for (const name of ["authorization", "cookie", "proxy-authorization", ...configured]) kept.delete(name);
  return kept;
}

async function fetchWith({ verify, clientCert, clientKey }: HttpEndpoint, owner: FetchOwner): Promise<Fetch> {
  const read = (key: string, path: string | null) => (path === null ? undefined : readNamed(key, path, owner));
  const tls = {
    rejectUnauthorized: verify !== false,
    ca: await read("ssl_verify", typeof verify === "string" ? verify : null),
    cert: await read("client_cert", clientCert),
    // One file may hold both.
    key: await read("client_key", clientCert && (clientKey ?? clientCert)),
  };
  return async (url, { method, headers, body, signal } = {}) => {
    const target = new URL(url);
    try {
      const incoming = await sendRequest(target, {
        ...(target.protocol === "https:" && tls),
        method,
        headers: { "user-agent": `hermes/${VERSION}`, ...Object.fromEntries(new Headers(headers)) },
        body: body == null ? undefined : String(body), // the SDK sends texts and forms
        signal,
      });
      const status = incoming.statusCode ?? 502;
      const stream = [204, 304].includes(status) ? null : limitedStream(incoming);
      return new Response(stream, { status, statusText: incoming.statusMessage, headers: [...headersOf(incoming)] });
    } catch (error) {
      signal?.throwIfAborted();
      // The SDK takes a TypeError, and nothing else, for a server that cannot be reached.
      throw new TypeError(`${target.host} ${failureWords(error)}`, { cause: error });
    }
  };
}

function limitedStream(incoming: IncomingMessage): ReadableStream {
  const perEvent = incoming.headers["content-type"]?.includes("event-stream") === true;
  const body = Readable.from(limited<Buffer>(unpackedBody(incoming), MAX_ANSWER_BYTES, { perEvent }), {
    objectMode: false,
  });
  return Readable.toWeb(body) as ReadableStream; // Node's stream types and the web's do not know of each other
}

async function readNamed(key: string, path: string, { server, cwd, osHome }: FetchOwner): Promise<Buffer> {
  try {
    return await readFile(expandPath(path, cwd, osHome));
  } catch (error) {
    throw new McpError(
      "missing",
      `MCP server "${server}": the file of mcp_servers.${server}.${key} cannot be read (${failureText(error)}). Correct it in config.yaml.`,
    );
  }
}
