import { z } from "zod";
import type { ServiceLine, WebService } from "../service.ts";

const found = z.object({
  results: z.array(z.object({ url: z.string(), title: z.string().nullish(), content: z.string().nullish() })),
});
const pages = z.object({
  results: z
    .array(z.object({ url: z.string(), title: z.string().nullish(), raw_content: z.string().nullish() }))
    .default([]),
  failed_results: z.array(z.object({ url: z.string(), error: z.string().nullish() })).default([]),
});

export const tavily: WebService = {
  name: "tavily",
  title: "Tavily",
  keyName: "TAVILY_API_KEY",
  baseUrl: "https://api.tavily.com",
  async search(query, limit, line) {
    const { results } = await line.json("/search", found, {
      headers: authorized(line),
      body: { query, max_results: Math.min(limit, 20) },
    });
    return results.map(({ url, title, content }) => ({ url, title: title ?? "", description: content ?? "" }));
  },
  async extract(urls, line) {
    const { results, failed_results } = await line.json("/extract", pages, {
      headers: authorized(line),
      body: { urls, format: "markdown" },
    });
    return [
      ...results.map(({ url, title, raw_content }) => ({ url, title: title ?? "", content: raw_content ?? "" })),
      ...failed_results.map(({ url, error }) => ({ url, error: error || "Tavily could not read the page" })),
    ];
  },
};

const authorized = ({ key }: ServiceLine) => ({ authorization: `Bearer ${key}` });
