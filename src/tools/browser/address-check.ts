// May this address be opened? One question, asked before a navigation and again for every connection the browser makes.
import { lookup } from "node:dns/promises";
import { checkUrl, UrlRefusedError } from "../../safety/url-guard.ts";
import { WebsitePolicy } from "../../safety/url-guard-policy.ts";
import type { ToolContext } from "../context.ts";

export type AddressVerdict =
  | { readonly allowed: true; readonly addresses: readonly string[] }
  | { readonly allowed: false; readonly reason: string };

/** Never rejects for what an address is: a name that nobody knows is a reason like any other. */
export type AddressCheck = (url: string) => Promise<AddressVerdict>;

export function addressCheck(ctx: Pick<ToolContext, "config" | "home" | "clock" | "log" | "env">): AddressCheck {
  const { config, home, clock, log } = ctx;
  const policy = new WebsitePolicy({
    settings: () => config.security.website_blocklist,
    homeDir: home.dir,
    userHome: ctx.env?.("HOME") ?? home.dir,
    clock,
    log,
  });
  const options = {
    allowPrivate: config.security.allow_private_urls || config.browser.allow_private_urls,
    resolve: async (host: string) => (await lookup(host, { all: true })).map(({ address }) => address),
  };
  return async (url) => {
    try {
      const { addresses } = await checkUrl(url, options);
      const block = await policy.check(url);
      return block ? { allowed: false, reason: block.message } : { allowed: true, addresses };
    } catch (error) {
      if (error instanceof UrlRefusedError) return { allowed: false, reason: error.message };
      throw error;
    }
  };
}
