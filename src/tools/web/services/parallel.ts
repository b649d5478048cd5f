import { z } from "zod";
import type { ServiceLine, WebService } from "../service.ts";

const result = z.object({
  url: z.string(),
  title: z.string().nullish(),
  excerpts: z.array(z.string()).nullish(),
  full_content: z.string().nullish(),
});
const found = z.object({ results: z.array(result) });
const pages = found.extend({
  errors: z
    .array(z.object({ url: z.string(), error_type: z.string().nullish(), content: z.string().nullish() }))
    .nullish(),
});

export const parallel: WebService = {
  name: "parallel",
  title: "Parallel",
  keyName: "PARALLEL_API_KEY",
  baseUrl: "https://api.parallel.ai",
  async search(query, limit, line) {
    const { results } = await line.json("/v1beta/search", found, {
      headers: authorized(line),
      body: { objective: query, search_queries: [query], max_results: limit },
    });
    return results.map(({ url, title, excerpts }) => ({
      url,
      title: title ?? "",
      description: excerpts?.join(" … ") ?? "",
    }));
  },
  async extract(urls, line) {
    const { results, errors } = await line.json("/v1beta/extract", pages, {
      headers: authorized(line),
      body: { urls, full_content: true },
    });
    return [
      ...results.map(({ url, title, full_content, excerpts }) => ({
        url,
        title: title ?? "",
        content: full_content || (excerpts?.join("\n\n") ?? ""),
      })),
      ...(errors ?? []).map(({ url, error_type, content }) => ({
        url,
        error: `Parallel could not read the page (${error_type || content || "no reason given"})`,
      })),
    ];
  },
};

const authorized = ({ key }: ServiceLine) => ({ "x-api-key": key, "parallel-beta": "search-extract-2025-10-10" });
