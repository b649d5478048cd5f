// May this address be opened? One question, asked before a navigation and again for every connection the browser makes.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Config } from "../../home/config/schema.ts";

export type AddressVerdict =
  | { readonly allowed: true; readonly addresses: readonly string[] }
  | { readonly allowed: false; readonly reason: string };

/** Never rejects: a name that cannot be looked up is a reason like any other. */
export type AddressCheck = (url: URL) => Promise<AddressVerdict>;

const METADATA_HOSTS = new Set(["metadata.google.internal", "metadata.goog"]);
const METADATA_ADDRESSES = new Set(
  ["169.254.169.254", "169.254.170.2", "169.254.169.253", "100.100.100.200", "fd00:ec2::254"].map(canonical),
);

export function addressCheck(config: Config): AddressCheck {
  const privateToo = config.security.allow_private_urls || config.browser.allow_private_urls;
  return async (url) => {
    const refuse = (reason: string): AddressVerdict => ({ allowed: false, reason });
    if (!/^(?:https?|wss?):$/.test(url.protocol))
      return refuse(`only http and https addresses are opened, not ${url.protocol}`);
    const host = url.hostname
      .replace(/^\[|\]$/g, "")
      .replace(/\.$/, "")
      .toLowerCase();
    if (host === "") return refuse("the address names no host");
    if (METADATA_HOSTS.has(host)) return refuse(`${host} hands out credentials of this machine and is never opened`);
    const addresses = await resolve(host);
    if (addresses === null) return refuse(`the host ${host} is not known`);
    for (const address of addresses) {
      if (METADATA_ADDRESSES.has(canonical(address))) {
        return refuse(`${host} hands out credentials of this machine and is never opened`);
      }
      if (!privateToo && !isPublic(address)) {
        return refuse(
          `${host} is an address of this machine or of a private network; security.allow_private_urls: true in config.yaml allows them`,
        );
      }
    }
    return { allowed: true, addresses: addresses.slice(0, 8) };
  };
}

async function resolve(host: string): Promise<readonly string[] | null> {
  if (isIP(host)) return [host];
  try {
    const found = await lookup(host, { all: true });
    return found.length > 0 ? found.map(({ address }) => address) : null;
  } catch {
    return null; // said by the caller, with the name
  }
}

function isPublic(address: string): boolean {
  return ipaddr.process(address).range() === "unicast";
}

function canonical(address: string): string {
  return ipaddr.process(address).toNormalizedString();
}
