// The fetch of HTTP servers: what a redirect may take along, and certificates of one's own.
import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { expandPath } from "../safety/paths.ts";
import { checkUrl } from "../safety/url-guard.ts";
import { failureText, McpError } from "./errors.ts";
import type { HttpPlace } from "./settings.ts";

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MOST_REDIRECTS = 5;

/** Whose address it is, and where the paths of its settings begin. */
interface FetchOwner {
  readonly server: string;
  readonly cwd: string;
  readonly osHome: string;
}

/** Rejects with `McpError` when a file of the settings cannot be read. */
export async function serverFetch(place: HttpPlace, owner: FetchOwner): Promise<Fetch> {
  const own = place.verify !== true || place.clientCert !== null;
  const base: Fetch = own ? await tlsFetch(place, owner) : (url, init) => fetch(url, init);
  return followingRedirects(base, place, owner.server);
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
      `MCP server "${server}" leads to ${target.host}, an address of this machine or its local network. A server on the internet may not.`,
    );
}

/** Follows redirects by itself: to another origin go no credentials, neither the token nor the headers the user configured. */
function followingRedirects(base: Fetch, { url: home, headers }: HttpPlace, server: string): Fetch {
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
      if (n === MOST_REDIRECTS) throw new Error(`more than ${MOST_REDIRECTS} redirects`);
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

/** On Node's own HTTPS client: the built-in fetch cannot be told about certificates. */
async function tlsFetch({ verify, clientCert, clientKey }: HttpPlace, owner: FetchOwner): Promise<Fetch> {
  const { request } = await import("node:https");
  const read = (key: string, path: string) => readNamed(key, path, owner);
  const tls = {
    rejectUnauthorized: verify !== false,
    ...(typeof verify === "string" ? { ca: await read("ssl_verify", verify) } : {}),
    ...(clientCert === null ? {} : { cert: await read("client_cert", clientCert) }),
    // One file may hold both.
    ...(clientCert === null ? {} : { key: await read("client_key", clientKey ?? clientCert) }),
  };
  return (url, init = {}) => {
    if (new URL(url).protocol !== "https:") return fetch(url, init);
    return new Promise((resolve, reject) => {
      const outgoing = request(
        url,
        {
          method: init.method ?? "GET",
          headers: Object.fromEntries(new Headers(init.headers)),
          ...(init.signal ? { signal: init.signal } : {}),
          ...tls,
        },
        (incoming) => {
          const headers = new Headers();
          for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
            headers.append(incoming.rawHeaders[i] ?? "", incoming.rawHeaders[i + 1] ?? "");
          }
          const status = incoming.statusCode ?? 502;
          const empty = status === 204 || status === 304 || status < 200;
          // Node's stream types and the web's do not know of each other.
          const body = empty ? null : (Readable.toWeb(incoming) as ReadableStream);
          resolve(new Response(body, { status, statusText: incoming.statusMessage ?? "", headers }));
        },
      );
      outgoing.on("error", reject);
      outgoing.end(
        typeof init.body === "string"
          ? init.body
          : init.body instanceof URLSearchParams
            ? String(init.body)
            : undefined,
      );
    });
  };
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
