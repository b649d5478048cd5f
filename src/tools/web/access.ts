// The way out to the web for one run: what may be opened by its settings, and how.
import { lookup } from "node:dns/promises";
import type { Config } from "../../home/config/schema.ts";
import type { AddressCheck } from "../../safety/guarded-proxy.ts";
import { isProxied, proxySettings, type WebAnswer, type WebRequest, webFetch } from "../../safety/url-fetch.ts";
import { type CheckedUrl, checkUrl, parseWebUrl, UrlRefusedError, WebsitePolicy } from "../../safety/url-guard.ts";
import type { ToolContext } from "../toolset/context.ts";

/** What of a run the web tools need; a tool's context has it all. */
export type WebRun = Pick<ToolContext, "config" | "home" | "clock" | "log" | "signal" | "redact" | "env">;

type RequestOptions = Omit<WebRequest, "check" | "proxy" | "signal">;

export interface WebAccess {
  /** Of the run: whatever is made of an answer ends with it, too. */
  readonly signal: AbortSignal;
  /** Rejects with `UrlRefusedError` for an address that the guard or the user's own list closes. */
  check(url: string): Promise<CheckedUrl>;
  /** The user's own list closes this site; nothing is looked up. */
  isClosed(url: string): Promise<boolean>;
  /** For addresses that came from a model, a page or a chat: checked, also at each redirect. */
  fetch(url: string, options?: RequestOptions): Promise<WebAnswer>;
  /** For services the user set up: they may stand on this machine. Nothing is followed, so keys go nowhere else. */
  fetchService(url: string, options?: RequestOptions): Promise<WebAnswer>;
}

// Settings are one object until they change, and a list is remembered for a while.
const policies = new WeakMap<Config, WebsitePolicy>();

interface AccessOptions {
  /** Whether the local network is open; default: as `security.allow_private_urls` says. */
  readonly allowPrivate?: boolean | ((url: string) => boolean);
}

export function openWebAccess(run: WebRun, options: AccessOptions = {}): WebAccess {
  const { config, signal } = run;
  const { allowPrivate = config.security.allow_private_urls } = options;
  const env = (name: string) => run.env?.(name);
  const proxy = proxySettings(env);
  const policy = policyOf(run, env("HOME") ?? "");
  const guard = (url: string, allowPrivate: boolean) =>
    checkUrl(url, {
      allowPrivate,
      proxied: isProxied(parseWebUrl(url), proxy),
      resolve: (host) => resolveHost(host, config.network.force_ipv4 ? 4 : 0),
    });
  const check = async (url: string) => {
    const block = await policy.check(url);
    if (block) throw new UrlRefusedError("policy", block.message);
    return guard(url, typeof allowPrivate === "function" ? allowPrivate(url) : allowPrivate);
  };
  return {
    signal,
    check,
    isClosed: async (url) => (await policy.check(url)) !== null,
    fetch: (url, options = {}) => webFetch(url, { ...options, check, signal, proxy }),
    fetchService: (url, options = {}) =>
      webFetch(url, { ...options, maxRedirects: 0, check: (url) => guard(url, true), signal, proxy }),
  };
}

/**
 * The same question as a guarding proxy asks it: before a navigation, and again for every connection the browser makes. `opened`: servers of
 * this machine (`host:port`) that the user said yes to.
 */
export function addressCheck(run: WebRun, opened: ReadonlySet<string>): AddressCheck {
  const { security, browser } = run.config;
  const allowPrivate = (url: string) =>
    security.allow_private_urls || browser.allow_private_urls || opened.has(parseWebUrl(url).host);
  const access = openWebAccess(run, { allowPrivate });
  return async (url) => {
    try {
      const { addresses, isPrivate } = await access.check(url);
      return { allowed: true, addresses, isPrivate };
    } catch (error) {
      if (error instanceof UrlRefusedError)
        return { allowed: false, reason: error.message, isPrivate: error.kind === "private" };
      throw error;
    }
  };
}

function policyOf({ config, home, clock, log }: WebRun, userHome: string): WebsitePolicy {
  const known = policies.get(config);
  if (known) return known;
  const settings = () => config.security.website_blocklist;
  const policy = new WebsitePolicy({ settings, homeDir: home.dir, userHome, clock, log });
  policies.set(config, policy);
  return policy;
}

async function resolveHost(host: string, family: 0 | 4): Promise<readonly string[]> {
  return (await lookup(host, { all: true, family, order: "verbatim" })).map(({ address }) => address);
}
