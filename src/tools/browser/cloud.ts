// Browsers that run elsewhere: of a company that rents them out, or provided by a plugin.

import { z } from "zod";
import { findProvider, providerNames } from "../toolset/availability.ts";
import { openWebAccess, type WebRun } from "../web/access.ts";

/** `open` is asked once per conversation, with its first page. */
export interface BrowserProvider {
  open(): Promise<ProvidedBrowser>;
}

export interface ProvidedBrowser {
  /** Address of its debugging port. */
  readonly cdpUrl: string;
  /** Called when the conversation needs it no more. */
  close?(): Promise<void> | void;
}

/** Names for `browser.engine` that are no program of this machine. */
export function isProvided(name: string): boolean {
  return name === "browserbase" || providerNames("browser").includes(name);
}

/** Null when nobody provides one of this name; rejects when what a plugin provides is no browser. */
export async function findBrowserProvider(name: string, run: WebRun): Promise<BrowserProvider | null> {
  if (name === "browserbase") return browserbase(run);
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

// A browser that Browserbase runs: rented with the first page of a conversation, given back with its end.

const BASE_URL = "https://api.browserbase.com";
const rented = z.object({ id: z.string(), connectUrl: z.string() });

function browserbase(run: WebRun): BrowserProvider {
  const setting = (name: string) => run.env?.(name)?.trim() ?? "";
  const [key, projectId] = [setting("BROWSERBASE_API_KEY"), setting("BROWSERBASE_PROJECT_ID")];
  const base = (setting("BROWSERBASE_BASE_URL") || BASE_URL).replace(/(?<!\/)\/+$/, "");
  // Giving it back must not be called off with the call that opened it.
  const { fetchService } = openWebAccess({ ...run, signal: new AbortController().signal });
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", "x-bb-api-key": key };
    const answer = await fetchService(`${base}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const text = answer.body.toString("utf8");
    if (answer.status >= 300) throw new Error(`Browserbase answered HTTP ${answer.status}: ${text.slice(0, 200)}`);
    return text;
  };
  return {
    async open() {
      if (key === "" || projectId === "") throw new Error("set BROWSERBASE_API_KEY and BROWSERBASE_PROJECT_ID");
      const { id, connectUrl } = rented.parse(JSON.parse(await post("/v1/sessions", { projectId })));
      return {
        cdpUrl: connectUrl,
        async close() {
          const body = { projectId, status: "REQUEST_RELEASE" };
          await post(`/v1/sessions/${encodeURIComponent(id)}`, body).catch((error: unknown) =>
            run.log.warn("a rented browser could not be given back; it ends by itself", error),
          );
        },
      };
    },
  };
}
