// The proxy that some networks prescribe. It makes the connections, and it looks names up.
import type { Agent } from "node:http";

/** The usual variables, as far as they are set. */
export interface ProxySettings {
  readonly http_proxy?: string | undefined;
  readonly https_proxy?: string | undefined;
  readonly no_proxy?: string | undefined;
}

export function proxySettings(env: (name: string) => string | undefined): ProxySettings | undefined {
  const either = (name: string) => env(name) || env(name.toUpperCase()) || undefined;
  const all = either("all_proxy");
  const http_proxy = either("http_proxy") ?? all;
  const https_proxy = either("https_proxy") ?? all;
  return http_proxy || https_proxy ? { http_proxy, https_proxy, no_proxy: either("no_proxy") } : undefined;
}

export function isProxied(url: URL, settings: ProxySettings | undefined): boolean {
  const proxy = url.protocol === "https:" ? settings?.https_proxy : settings?.http_proxy;
  return proxy !== undefined && /^https?:/i.test(proxy) && !isExempt(url.hostname, settings?.no_proxy ?? "");
}

/** Null: the connection is made from here. */
export function proxyAgent(url: URL, settings: ProxySettings | undefined): Agent | null {
  if (!isProxied(url, settings)) return null;
  const { Agent } =
    url.protocol === "https:" ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");
  const { http_proxy: HTTP_PROXY, https_proxy: HTTPS_PROXY } = settings ?? {};
  return new Agent({ proxyEnv: { HTTP_PROXY, HTTPS_PROXY } });
}

function isExempt(host: string, list: string): boolean {
  return list
    .split(/[\s,]+/)
    .map((entry) => entry.toLowerCase().replace(/^\*?\./, ""))
    .some((entry) => entry === "*" || (entry !== "" && (host === entry || host.endsWith(`.${entry}`))));
}
