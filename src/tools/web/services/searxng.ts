import { z } from "zod";
import { WebError } from "../../../safety/url-fetch.ts";
import type { WebHit, WebService } from "../service.ts";

const found = z.object({
  results: z.array(z.object({ url: z.string(), title: z.string().nullish(), content: z.string().nullish() })),
});
const MOST_PAGES = 5;

/** A search engine of one's own; many installations answer in JSON only when told to. */
export const searxng: WebService = {
  name: "searxng",
  title: "SearXNG",
  baseUrl: "",
  async search(query, limit, line) {
    const hits = new Map<string, WebHit>();
    for (let page = 1; page <= MOST_PAGES && hits.size < limit; page++) {
      const asked = new URLSearchParams({ q: query, format: "json", pageno: String(page) });
      const { results } = await line.json(`/search?${asked}`, found).catch((error: unknown) => {
        if (error instanceof WebError && / HTTP 403/.test(error.message))
          throw new WebError(
            `SearXNG at ${line.baseUrl} gives no JSON. Add "json" to search.formats in its settings.yml.`,
          );
        throw error;
      });
      const before = hits.size;
      for (const { url, title, content } of results)
        if (!hits.has(url)) hits.set(url, { url, title: title ?? "", description: content ?? "" });
      if (hits.size === before) break;
    }
    return [...hits.values()];
  },
};
