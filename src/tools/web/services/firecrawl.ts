import { z } from "zod";
import { WebError } from "../../../safety/url-fetch.ts";
import { UrlRefusedError } from "../../../safety/url-guard.ts";
import type { ServiceLine, ServicePage, WebService } from "../service.ts";

const hit = z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() });
const found = z.object({ data: z.union([z.array(hit), z.object({ web: z.array(hit).default([]) })]) });
const page = z.object({
  data: z.object({
    markdown: z.string().nullish(),
    metadata: z
      .object({ title: z.unknown(), url: z.string().nullish(), sourceURL: z.string().nullish() })
      .partial()
      .nullish(),
  }),
});

/** Also on a machine of one's own, without a key. */
export const firecrawl: WebService = {
  name: "firecrawl",
  title: "Firecrawl",
  keyName: "FIRECRAWL_API_KEY",
  baseUrl: "https://api.firecrawl.dev",
  async search(query, limit, line) {
    const { data } = await line.json("/v2/search", found, { headers: authorized(line), body: { query, limit } });
    const hits = Array.isArray(data) ? data : data.web;
    return hits.map(({ url, title, description }) => ({ url, title: title ?? "", description: description ?? "" }));
  },
  extract: (urls, line) => Promise.all(urls.map((url) => scrape(url, line))),
};

async function scrape(url: string, line: ServiceLine): Promise<ServicePage> {
  try {
    const { data } = await line.json("/v2/scrape", page, {
      headers: authorized(line),
      body: { url, formats: ["markdown"], onlyMainContent: true },
    });
    const { title, url: landed, sourceURL } = data.metadata ?? {};
    const text = Array.isArray(title) ? title[0] : title;
    return {
      url,
      title: typeof text === "string" ? text : "",
      content: data.markdown ?? "",
      finalUrl: landed ?? sourceURL ?? undefined,
    };
  } catch (error) {
    if (!(error instanceof WebError) && !(error instanceof UrlRefusedError)) throw error;
    return { url, error: error.message };
  }
}

const authorized = ({ key }: ServiceLine): Record<string, string> =>
  key === "" ? {} : { authorization: `Bearer ${key}` };
