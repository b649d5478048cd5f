import { z } from "zod";
import type { WebHit, WebService } from "./service.ts";

const found = z.object({
  web: z
    .object({
      results: z.array(z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() })),
    })
    .nullish(),
});
const PAGE = 20;
const MOST_PAGES = 10;

export const brave: WebService = {
  name: "brave",
  title: "Brave Search",
  keyName: "BRAVE_SEARCH_API_KEY",
  baseUrl: "https://api.search.brave.com",
  async search(query, limit, line) {
    const hits: WebHit[] = [];
    for (let page = 0; page < MOST_PAGES && hits.length < limit; page++) {
      const count = Math.min(PAGE, limit);
      const asked = new URLSearchParams({ q: query, count: String(count), offset: String(page) });
      const { web } = await line.json(`/res/v1/web/search?${asked}`, found, {
        headers: { accept: "application/json", "x-subscription-token": line.key },
      });
      const results = web?.results ?? [];
      hits.push(
        ...results.map(({ url, title, description }) => ({ url, title: title ?? "", description: description ?? "" })),
      );
      if (results.length < count) break;
    }
    return hits;
  },
};
