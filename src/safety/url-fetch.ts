// The fetch for addresses that nobody vouches for, on kit/http.ts because a connection has to go to the address that was checked. Checked
// again at each redirect, and limited in time and in the size of the unpacked body.

import type { Agent, IncomingMessage } from "node:http";
import type { LookupFunction } from "node:net";
import { UserError } from "../kit/errors.ts";
import { failureCode, failureWords, httpFor, readBody, sendRequest } from "../kit/http.ts";
import { type CheckedUrl, hostOf, UrlRefusedError } from "./url-guard.ts";

export interface WebRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** For all of it: connecting, every redirect, the last byte. */
  readonly timeoutMs?: number;
  /** Of the body, unpacked. */
  readonly maxBytes?: number;
  /** 0: a redirect is an answer like any other. */
  readonly maxRedirects?: number;
  /** Asked before every connection; rejects with `UrlRefusedError`. */
  check(url: string): Promise<CheckedUrl>;
  /** Looks at the head of the answer before its body is read; may throw. */
  accept?(head: WebHead): void;
  readonly proxy?: ProxySettings | undefined;
}

export interface WebHead {
  /** Where the answer came from, after redirects. */
  readonly url: URL;
  readonly status: number;
  readonly statusText: string;
  readonly contentType: string;
  readonly location: string | undefined;
}

export interface WebAnswer extends WebHead {
  readonly body: Buffer;
}

/** No answer, or none that can be used. The message says which address and why. */
export class WebError extends UserError {
  override name = "WebError";
}

const MB = 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_BYTES = 5 * MB;
const MAX_REDIRECTS = 5;

/** Rejects with `UrlRefusedError`, `WebError`, or the signal's reason. Any status is an answer. */
export async function webFetch(address: string, request: WebRequest): Promise<WebAnswer> {
  const { timeoutMs = TIMEOUT_MS, maxRedirects = MAX_REDIRECTS } = request;
  const late = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([request.signal, late]);
  let url = address;
  try {
    for (let redirects = 0; ; redirects++) {
      const checked = await unlessAborted(request.check(url), signal);
      url = checked.url.href;
      const step = await exchange(checked, request, { signal, followsRedirects: maxRedirects > 0 });
      if ("body" in step) return step;
      if (redirects >= maxRedirects)
        throw new WebError(`${address} redirects more than ${maxRedirects} times; it may go round in circles.`);
      url = step.redirect.href;
    }
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason;
    if (error instanceof UrlRefusedError || error instanceof WebError) throw error;
    if (late.aborted) throw new WebError(`${hostFor(url)} did not answer within ${timeoutMs / 1000} seconds.`);
    throw new WebError(`${hostFor(url)} ${failureWords(error)}.`);
  }
}

async function exchange(
  checked: CheckedUrl,
  request: WebRequest,
  how: { readonly signal: AbortSignal; readonly followsRedirects: boolean },
): Promise<WebAnswer | { readonly redirect: URL }> {
  const incoming = await send(checked, request, how.signal);
  try {
    const head = headOf(incoming, checked.url);
    const redirect = how.followsRedirects ? redirectOf(head) : null;
    if (redirect) return { redirect };
    request.accept?.(head);
    return { ...head, body: await limitedBody(incoming, request.maxBytes ?? MAX_BYTES, how.signal) };
  } finally {
    incoming.destroy();
  }
}

function send({ url, addresses }: CheckedUrl, request: WebRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const agent = proxyAgent(url, request.proxy);
  return sendRequest(url, {
    method: request.method,
    headers: {
      "user-agent": "Mozilla/5.0 (compatible; Hermes)",
      "accept-encoding": "gzip, deflate, br",
      ...request.headers,
    },
    body: request.body,
    signal,
    // A connection of its own: one from a pool was opened for another check.
    ...(agent ? { agent } : { agent: false, lookup: pinnedTo(addresses) }),
  });
}

/** The name is not asked for again: between a check and a second answer lies the attack. */
function pinnedTo(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  return (_host, { all }, callback) => {
    const [first] = entries;
    if (all) callback(null, entries);
    else if (first) callback(null, first.address, first.family);
    else callback(Object.assign(new Error("no checked address"), { code: "ENOTFOUND" }), "", 4);
  };
}

function headOf(incoming: IncomingMessage, url: URL): WebHead {
  return {
    url,
    status: incoming.statusCode ?? 0,
    statusText: incoming.statusMessage ?? "",
    contentType: incoming.headers["content-type"] ?? "",
    location: incoming.headers.location,
  };
}

function redirectOf({ status, location, url }: WebHead): URL | null {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return null;
  if (!URL.canParse(location, url.href))
    throw new WebError(`${url.host} redirects to something that is not an address.`);
  return new URL(location, url.href);
}

async function limitedBody(incoming: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  const tooLong = () => new WebError(`The answer is longer than ${formatBytes(maxBytes)}; that is too much to read.`);
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) throw tooLong();
  const chunks: Buffer[] = [];
  const stop = () => incoming.destroy(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of readBody(incoming, maxBytes)) chunks.push(chunk);
  } catch (error) {
    throw failureCode(error) === "ANSWER_TOO_LONG" ? tooLong() : error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return Buffer.concat(chunks);
}

/** A lookup cannot be called off, but nobody has to wait for it. */
function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

function hostFor(url: string): string {
  return URL.canParse(url) ? new URL(url).host || hostOf(new URL(url)) : url;
}

const formatBytes = (bytes: number) =>
  bytes >= MB ? `${Math.round(bytes / MB)} MB` : `${Math.round(bytes / 1024)} KB`;

// The proxy that some networks prescribe. It makes the connections, and it looks names up.

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
function proxyAgent(url: URL, settings: ProxySettings | undefined): Agent | null {
  if (!isProxied(url, settings)) return null;
  const { Agent } = httpFor(url);
  const { http_proxy: HTTP_PROXY, https_proxy: HTTPS_PROXY } = settings ?? {};
  return new Agent({ proxyEnv: { HTTP_PROXY, HTTPS_PROXY } });
}

function isExempt(host: string, list: string): boolean {
  return list
    .split(/[\s,]+/)
    .map((entry) => entry.toLowerCase().replace(/^\*?\./, ""))
    .some((entry) => entry === "*" || (entry !== "" && (host === entry || host.endsWith(`.${entry}`))));
}
