// All traffic of a browser, or of a sandbox, passes here. Names are looked up and judged on this side, and the connection goes to exactly the
// addresses that were judged: redirects, frames, scripts and sockets cannot reach what a navigation may not.

import type { ClientRequest, IncomingMessage, RequestOptions, Server, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { messageOf } from "../kit/errors.ts";
import { isProxied, type ProxySettings } from "./url-fetch.ts";

// The proxy that some networks prescribe, seen from the guard: what was checked goes on through it.

/** Null: the connection is made from here. */
function networkProxyFor(url: URL, settings: ProxySettings | undefined): URL | null {
  if (!isProxied(url, settings)) return null;
  return new URL((url.protocol === "https:" ? settings?.https_proxy : settings?.http_proxy) ?? "");
}

/** A connection to `host:port` through the proxy; rejects with the reason when there is none. */
function openTunnel(proxy: URL, target: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const outgoing = requestOf(proxy)({ ...throughProxy(proxy, target, { host: target }), method: "CONNECT" });
    outgoing.setTimeout(CONNECT_MS, () => outgoing.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`)));
    outgoing.once("error", (error) => reject(new Error(`the proxy ${proxy.host}: ${error.message}`)));
    outgoing.once("connect", ({ statusCode = 0, statusMessage }, socket: Duplex, head: Buffer) => {
      if (statusCode !== 200) {
        socket.destroy();
        reject(new Error(`the proxy ${proxy.host} answered ${statusCode} ${statusMessage}`));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    outgoing.end();
  });
}

/** What a request needs to be sent to the proxy instead of to its target. */
function throughProxy(proxy: URL, path: string, headers: Readonly<Record<string, unknown>>): RequestOptions {
  const { username, password } = proxy;
  const secret = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64");
  return {
    protocol: proxy.protocol,
    hostname: proxy.hostname.replace(/^\[|\]$/g, ""),
    port: proxy.port || (proxy.protocol === "https:" ? 443 : 80),
    path,
    agent: false,
    headers: { ...headers, ...(username === "" ? {} : { "proxy-authorization": `Basic ${secret}` }) } as NonNullable<
      RequestOptions["headers"]
    >, // headers as they came in, and one text
  };
}

function requestOf(proxy: URL) {
  return proxy.protocol === "https:"
    ? process.getBuiltinModule("node:https").request
    : process.getBuiltinModule("node:http").request;
}

const CONNECT_MS = 15_000;

export interface Refusal {
  readonly host: string;
  readonly reason: string;
}

interface GuardedProxy {
  readonly url: string;
  close(): Promise<void>;
}

interface GuardOptions {
  readonly check: AddressCheck;
  onRefused(refusal: Refusal): void;
  /** The network's own proxy, where it has one. */
  readonly network?: ProxySettings | undefined;
}

/** On a port of this machine. */
export async function startGuardedProxy(options: GuardOptions): Promise<GuardedProxy> {
  const { server, close } = openGuardedProxy(options);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the guarding proxy has no port");
  return { url: `http://127.0.0.1:${address.port}`, close };
}

/** A server that listens nowhere yet: connections may also be handed to it (`emit("connection", socket)`). */
export function openGuardedProxy(options: GuardOptions): { readonly server: Server; close(): Promise<void> } {
  const { createServer } = process.getBuiltinModule("node:http");
  const sockets = new Set<Duplex>();
  const keep = (socket: Duplex) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
  };
  const server = createServer((request, response) => void forward(request, response, options, keep));
  server.on("connection", keep);
  server.on("connect", async (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const url = parse(`https://${request.url}`);
    const reached = url ? await connectTo(url, options) : { status: 400, reason: "no host" };
    if ("reason" in reached) {
      const { status, reason } = reached;
      const text = `${reason}\n`;
      client.end(
        `HTTP/1.1 ${status} ${status === 403 ? "Refused" : "Unreachable"}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      );
      return;
    }
    keep(reached);
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    if (head.length > 0) reached.write(head);
    reached.pipe(client).pipe(reached);
    client.once("close", () => reached.destroy());
    reached.once("close", () => client.destroy());
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
      if (!server.listening) resolve();
    });
  return { server, close };
}

interface NoWay {
  readonly status: number;
  readonly reason: string;
}

type Way = { readonly proxy: URL } | { readonly addresses: readonly string[] };

/** The way to an address that may be opened: through the network's proxy, or to the very addresses that were judged. */
async function wayTo(url: URL, { check, onRefused, network }: GuardOptions): Promise<Way | NoWay> {
  // Where the browser's own requests are sent: a name that nobody can own.
  if (url.hostname.endsWith(".invalid")) return { status: 502, reason: "no such place" };
  const verdict = await check(url.href);
  if (!verdict.allowed) {
    onRefused({ host: url.host, reason: verdict.reason });
    return { status: 403, reason: verdict.reason };
  }
  const proxy = networkProxyFor(url, network);
  return proxy ? { proxy } : { addresses: verdict.addresses };
}

async function connectTo(url: URL, options: GuardOptions): Promise<Duplex | NoWay> {
  const way = await wayTo(url, options);
  if ("reason" in way) return way;
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  if ("addresses" in way) return openOneOf(way.addresses, port);
  return openTunnel(way.proxy, `${url.hostname}:${port}`).catch(
    (error: unknown): NoWay => ({ status: 502, reason: messageOf(error) }),
  );
}

async function openOneOf(addresses: readonly string[], port: number): Promise<Socket | NoWay> {
  let reason = "no address";
  for (const address of addresses) {
    try {
      return await open(address, port);
    } catch (error) {
      reason = messageOf(error);
    }
  }
  return { status: 502, reason };
}

async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  options: GuardOptions,
  keep: (socket: Duplex) => void,
): Promise<void> {
  const url = parse(incoming.url ?? "");
  const sent = url ? await requestTo(url, incoming, options) : { status: 400, reason: "not a proxy request" };
  const fail = ({ status, reason }: NoWay) =>
    response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(reason);
  if ("reason" in sent) {
    fail(sent);
    return;
  }
  sent.once("socket", keep);
  sent.once("response", (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  sent.once("error", (error) => {
    if (response.headersSent) response.destroy();
    else fail({ status: 502, reason: error.message });
  });
  response.once("close", () => sent.destroy());
  incoming.pipe(sent);
}

async function requestTo(url: URL, incoming: IncomingMessage, options: GuardOptions): Promise<ClientRequest | NoWay> {
  const way = await wayTo(url, options);
  if ("reason" in way) return way;
  const { "proxy-connection": _hop, "proxy-authorization": _other, ...given } = incoming.headers;
  const headers = { ...given, host: url.host, connection: "close" };
  const shared = { method: incoming.method, setHost: false };
  if ("proxy" in way) return requestOf(way.proxy)({ ...throughProxy(way.proxy, url.href, headers), ...shared });
  const socket = await openOneOf(way.addresses, Number(url.port) || 80);
  if ("reason" in socket) return socket;
  const { request } = process.getBuiltinModule("node:http");
  return request({ ...shared, createConnection: () => socket, path: url.pathname + url.search, headers });
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(CONNECT_MS, () => fail(new Error(`no connection within ${CONNECT_MS / 1000} s`)));
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.off("error", fail);
      resolve(socket);
    });
  });
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

// May this address be opened? One question, asked again for every connection.

type AddressVerdict =
  /** No addresses: a proxy of the network knows the way there. */
  | { readonly allowed: true; readonly addresses: readonly string[]; readonly isPrivate: boolean }
  /** `isPrivate`: refused for being of the local network, and for nothing else. */
  | { readonly allowed: false; readonly reason: string; readonly isPrivate?: boolean };

/** Never rejects for what an address is: a name that nobody knows is a reason like any other. */
export type AddressCheck = (url: string) => Promise<AddressVerdict>;
