import { z } from "zod";
import { WebError } from "../../safety/url-fetch.ts";
import { UrlRefusedError } from "../../safety/url-guard.ts";
import { type PageDocument, parsePage } from "./plain-text.ts";
import type { ServiceLine, ServicePage, WebHit, WebService } from "./service.ts";

const braveHits = z.object({
  web: z
    .object({
      results: z.array(z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() })),
    })
    .nullish(),
});
const PAGE = 20;
const BRAVE_MOST_PAGES = 10;

export const brave: WebService = {
  name: "brave",
  title: "Brave Search",
  keyName: "BRAVE_SEARCH_API_KEY",
  baseUrl: "https://api.search.brave.com",
  async search(query, limit, line) {
    const hits: WebHit[] = [];
    for (let page = 0; page < BRAVE_MOST_PAGES && hits.length < limit; page++) {
      const count = Math.min(PAGE, limit);
      const asked = new URLSearchParams({ q: query, count: String(count), offset: String(page) });
      const { web } = await line.json(`/res/v1/web/search?${asked}`, braveHits, {
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

const DDGS_MOST_PAGES = 4;

/** DuckDuckGo's page for browsers without scripts: the one search that needs no key. */
export const ddgs: WebService = {
  name: "ddgs",
  title: "DuckDuckGo",
  baseUrl: "https://html.duckduckgo.com",
  async search(query, limit, line) {
    const hits = new Map<string, WebHit>();
    let form: Readonly<Record<string, string>> | null = { q: query, b: "" };
    for (let page = 0; form && page < DDGS_MOST_PAGES && hits.size < limit; page++) {
      const answer = await readResults(form, line);
      for (const hit of answer.hits) if (!hits.has(hit.url)) hits.set(hit.url, hit);
      form = answer.hits.length > 0 ? answer.next : null;
    }
    return [...hits.values()];
  },
};

async function readResults(form: Readonly<Record<string, string>>, line: ServiceLine) {
  const html = await line.text("/html/", { form, headers: { accept: "text/html" } });
  const document = await parsePage(html);
  if (document.querySelector(".anomaly-modal__title, #challenge-form"))
    throw new WebError(
      "DuckDuckGo wants to know whether a person is asking. Wait a while, or set up another search service (guide: web).",
    );
  const hits: WebHit[] = [];
  for (const result of document.querySelectorAll(".result:not(.result--ad)")) {
    const link = result.querySelector("a.result__a");
    const url = targetOf(link?.getAttribute("href") ?? "");
    const description = result.querySelector(".result__snippet")?.textContent ?? "";
    if (url) hits.push({ url, title: link?.textContent ?? "", description });
  }
  return { hits, next: nextForm(document) };
}

/** Results lead through a counting address that carries the real one. */
function targetOf(href: string): string | null {
  if (!URL.canParse(href, "https://duckduckgo.com")) return null;
  const url = new URL(href, "https://duckduckgo.com");
  return url.searchParams.get("uddg") ?? (url.hostname.endsWith("duckduckgo.com") ? null : url.href);
}

function nextForm(document: PageDocument): Readonly<Record<string, string>> | null {
  const form = document.querySelector(".nav-link form:has(input[name=s]), .nav-link form");
  const fields = [...(form?.querySelectorAll("input[name]") ?? [])].map(
    (input) => [input.getAttribute("name") ?? "", input.getAttribute("value") ?? ""] as const,
  );
  return fields.some(([name, value]) => name === "s" && value !== "") ? Object.fromEntries(fields) : null;
}

const exaHits = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      text: z.string().nullish(),
      highlights: z.array(z.string()).nullish(),
    }),
  ),
});
const exaPages = exaHits.extend({
  statuses: z
    .array(z.object({ id: z.string(), status: z.string(), error: z.object({ tag: z.string().nullish() }).nullish() }))
    .nullish(),
});

export const exa: WebService = {
  name: "exa",
  title: "Exa",
  keyName: "EXA_API_KEY",
  baseUrl: "https://api.exa.ai",
  async search(query, limit, line) {
    const { results } = await line.json("/search", exaHits, {
      headers: exaHeaders(line),
      body: { query, numResults: limit, contents: { highlights: true } },
    });
    return results.map(({ url, title, highlights, text }) => ({
      url,
      title: title ?? "",
      description: highlights?.join(" … ") || text || "",
    }));
  },
  async extract(urls, line) {
    const { results, statuses } = await line.json("/contents", exaPages, {
      headers: exaHeaders(line),
      body: { urls, text: true },
    });
    const failed = (statuses ?? []).filter(({ status }) => status === "error");
    return [
      ...results.map(({ url, title, text }) => ({ url, title: title ?? "", content: text ?? "" })),
      ...failed.map(({ id, error }) => ({
        url: id,
        error: `Exa could not read the page (${error?.tag ?? "no reason given"})`,
      })),
    ];
  },
};

const exaHeaders = ({ key }: ServiceLine) => ({ "x-api-key": key });

const hit = z.object({ url: z.string(), title: z.string().nullish(), description: z.string().nullish() });
const firecrawlHits = z.object({ data: z.union([z.array(hit), z.object({ web: z.array(hit).default([]) })]) });
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
    const { data } = await line.json("/v2/search", firecrawlHits, {
      headers: firecrawlHeaders(line),
      body: { query, limit },
    });
    const hits = Array.isArray(data) ? data : data.web;
    return hits.map(({ url, title, description }) => ({ url, title: title ?? "", description: description ?? "" }));
  },
  extract: (urls, line) => Promise.all(urls.map((url) => scrape(url, line))),
};

async function scrape(url: string, line: ServiceLine): Promise<ServicePage> {
  try {
    const { data } = await line.json("/v2/scrape", page, {
      headers: firecrawlHeaders(line),
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

const firecrawlHeaders = ({ key }: ServiceLine): Record<string, string> =>
  key === "" ? {} : { authorization: `Bearer ${key}` };

const result = z.object({
  url: z.string(),
  title: z.string().nullish(),
  excerpts: z.array(z.string()).nullish(),
  full_content: z.string().nullish(),
});
const parallelHits = z.object({ results: z.array(result) });
const parallelPages = parallelHits.extend({
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
    const { results } = await line.json("/v1beta/search", parallelHits, {
      headers: parallelHeaders(line),
      body: { objective: query, search_queries: [query], max_results: limit },
    });
    return results.map(({ url, title, excerpts }) => ({
      url,
      title: title ?? "",
      description: excerpts?.join(" … ") ?? "",
    }));
  },
  async extract(urls, line) {
    const { results, errors } = await line.json("/v1beta/extract", parallelPages, {
      headers: parallelHeaders(line),
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

const parallelHeaders = ({ key }: ServiceLine) => ({ "x-api-key": key, "parallel-beta": "search-extract-2025-10-10" });

const searxngHits = z.object({
  results: z.array(z.object({ url: z.string(), title: z.string().nullish(), content: z.string().nullish() })),
});
const SEARXNG_MOST_PAGES = 5;

/** A search engine of one's own; many installations answer in JSON only when told to. */
export const searxng: WebService = {
  name: "searxng",
  title: "SearXNG",
  baseUrl: "",
  async search(query, limit, line) {
    const hits = new Map<string, WebHit>();
    for (let page = 1; page <= SEARXNG_MOST_PAGES && hits.size < limit; page++) {
      const asked = new URLSearchParams({ q: query, format: "json", pageno: String(page) });
      const { results } = await line.json(`/search?${asked}`, searxngHits).catch((error: unknown) => {
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

const tavilyHits = z.object({
  results: z.array(z.object({ url: z.string(), title: z.string().nullish(), content: z.string().nullish() })),
});
const tavilyPages = z.object({
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
    const { results } = await line.json("/search", tavilyHits, {
      headers: tavilyHeaders(line),
      body: { query, max_results: Math.min(limit, 20) },
    });
    return results.map(({ url, title, content }) => ({ url, title: title ?? "", description: content ?? "" }));
  },
  async extract(urls, line) {
    const { results, failed_results } = await line.json("/extract", tavilyPages, {
      headers: tavilyHeaders(line),
      body: { urls, format: "markdown" },
    });
    return [
      ...results.map(({ url, title, raw_content }) => ({ url, title: title ?? "", content: raw_content ?? "" })),
      ...failed_results.map(({ url, error }) => ({ url, error: error || "Tavily could not read the page" })),
    ];
  },
};

const tavilyHeaders = ({ key }: ServiceLine) => ({ authorization: `Bearer ${key}` });
