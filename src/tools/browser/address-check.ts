// May this address be opened? One question, asked before a navigation and again for every connection the browser makes.
import { UrlRefusedError } from "../../safety/url-guard.ts";
import { openWebAccess, type WebRun } from "../web/access.ts";

export type AddressVerdict =
  /** No addresses: a proxy of the network knows the way there. */
  | { readonly allowed: true; readonly addresses: readonly string[]; readonly isPrivate: boolean }
  | { readonly allowed: false; readonly reason: string };

/** Never rejects for what an address is: a name that nobody knows is a reason like any other. */
export type AddressCheck = (url: string) => Promise<AddressVerdict>;

export function addressCheck(run: WebRun): AddressCheck {
  const { security, browser } = run.config;
  const access = openWebAccess(run, { allowPrivate: security.allow_private_urls || browser.allow_private_urls });
  return async (url) => {
    try {
      const { addresses, isPrivate } = await access.check(url);
      return { allowed: true, addresses, isPrivate };
    } catch (error) {
      if (error instanceof UrlRefusedError) return { allowed: false, reason: error.message };
      throw error;
    }
  };
}
