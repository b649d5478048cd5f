// A browser that Browserbase runs: rented with the first page of a conversation, given back with its end.
import { z } from "zod";
import { openWebAccess, type WebRun } from "../web/access.ts";
import type { BrowserProvider } from "./cloud.ts";

const BASE_URL = "https://api.browserbase.com";
const rented = z.object({ id: z.string(), connectUrl: z.string() });

export function browserbase(run: WebRun): BrowserProvider {
  const setting = (name: string) => run.env?.(name)?.trim() ?? "";
  const [key, projectId] = [setting("BROWSERBASE_API_KEY"), setting("BROWSERBASE_PROJECT_ID")];
  const base = (setting("BROWSERBASE_BASE_URL") || BASE_URL).replace(/\/+$/, "");
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
          const wish = { projectId, status: "REQUEST_RELEASE" };
          await post(`/v1/sessions/${encodeURIComponent(id)}`, wish).catch((error: unknown) =>
            run.log.warn("a rented browser could not be given back; it ends by itself", error),
          );
        },
      };
    },
  };
}
