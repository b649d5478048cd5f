// The proxy that some networks prescribe, seen from the browser's guard: what was checked goes on through it.
import type { RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { isProxied, type ProxySettings } from "../../safety/url-guard-proxy.ts";

const CONNECT_MS = 15_000;

/** Null: the connection is made from here. */
export function networkProxyFor(url: URL, settings: ProxySettings | undefined): URL | null {
  if (!isProxied(url, settings)) return null;
  return new URL((url.protocol === "https:" ? settings?.https_proxy : settings?.http_proxy) ?? "");
}

/** A connection to `host:port` through the proxy; rejects with the reason when there is none. */
export function openTunnel(proxy: URL, target: string): Promise<Duplex> {
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
export function throughProxy(proxy: URL, path: string, headers: Readonly<Record<string, unknown>>): RequestOptions {
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

export function requestOf(proxy: URL) {
  return proxy.protocol === "https:"
    ? process.getBuiltinModule("node:https").request
    : process.getBuiltinModule("node:http").request;
}
