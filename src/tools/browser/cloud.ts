// Browsers that run elsewhere: of a company that rents them out, or whatever a plugin brings.
import { findProvider, providerNames } from "../extra-providers.ts";
import type { WebRun } from "../web/access.ts";

/** `open` is asked once per conversation, with its first page. */
export interface BrowserProvider {
  open(): Promise<BroughtBrowser>;
}

export interface BroughtBrowser {
  /** Address of its debugging port. */
  readonly cdpUrl: string;
  /** Called when the conversation needs it no more. */
  close?(): Promise<void> | void;
}

/** Names for `browser.engine` that are no program of this machine. */
export function isBrought(name: string): boolean {
  return name === "browserbase" || providerNames("browser").includes(name);
}

/** Null when nobody brings one of this name; rejects when what a plugin brings is no browser. */
export async function findBrowserProvider(name: string, run: WebRun): Promise<BrowserProvider | null> {
  if (name === "browserbase") return (await import("./browserbase.ts")).browserbase(run);
  const found = await findProvider("browser", name);
  if (found === null) return null;
  const open: unknown = (found as { open?: unknown }).open; // whatever the plugin handed over
  if (typeof open !== "function") throw new Error(`the browser provider "${name}" of a plugin has no open()`);
  return {
    async open() {
      const given: unknown = await open.call(found);
      const { cdpUrl, close } = (given ?? {}) as { cdpUrl?: unknown; close?: unknown }; // checked here
      if (typeof cdpUrl !== "string" || cdpUrl === "") throw new Error("open() gave no cdpUrl");
      return typeof close === "function" ? { cdpUrl, close: async () => void (await close.call(given)) } : { cdpUrl };
    },
  };
}
