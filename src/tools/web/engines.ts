// The services we know, each as what differs: its name and key, its headers, what it is sent, and how its answer is read.
import { z } from "zod";
import { WebError } from "../../safety/url-fetch.ts";
import { UrlRefusedError } from "../../safety/url-guard.ts";
import { type PageDocument, parsePage } from "./plain-text.ts";
import type { ServiceLine, ServicePage, WebHit, WebService } from "./service.ts";

const text = z.string().nullish();
const texts = z.array(z.string()).nullish();
const results = <Fields extends z.ZodRawShape>(fields: Fields) =>
  z.array(z.object({ url: z.string(), title: text, ...fields }));
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

type Text = z.infer<typeof text>;
type Found = { readonly url: string; readonly title?: Text };
const hitOf = ({ url, title }: Found, description: Text) => ({
  url,
  title: title ?? "",
  description: description ?? "",
});
const pageOf = ({ url, title }: Found, content: Text) => ({ url, title: title ?? "", content: content ?? "" });

const BRAVE_PAGE = 20;
const BRAVE_MOST_PAGES = 10;
const braveHits = z.object({ web: z.object({ results: results({ description: text }) }).nullish() });

export const brave: WebService = {
  name: "brave",
  title: "Brave Search",
  keyName: "BRAVE_SEARCH_API_KEY",
  baseUrl: "https://api.search.brave.com",
  headers: (key) => ({ accept: "application/json", "x-subscription-token": key }),
  async search(query, limit, line) {
    const hits: WebHit[] = [];
    const count = Math.min(BRAVE_PAGE, limit);
    for (let page = 0; page < BRAVE_MOST_PAGES && hits.length < limit; page++) {
      const asked = new URLSearchParams({ q: query, count: String(count), offset: String(page) });
      const { web } = await line.json(`/res/v1/web/search?${asked}`, braveHits);
      const found = web?.results ?? [];
      hits.push(...found.map((one) => hitOf(one, one.description)));
      if (found.length < count) break;
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
  headers: () => ({ accept: "text/html" }),
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
  const html = await line.text("/html/", { form });
  const document = await parsePage(html);
  if (document.querySelector(".anomaly-modal__title, #challenge-form"))
    throw new WebError(
      "DuckDuckGo wants to know whether a person is asking. Wait a while, or set up another search service (guide: web).",
    );
  const hits: WebHit[] = [];
  for (const result of document.querySelectorAll(".result:not(.result--ad)")) {
    const link = result.querySelector("a.result__a");
    const url = targetOf(link?.getAttribute("href") ?? "");
    if (url) hits.push(hitOf({ url, title: link?.textContent }, result.querySelector(".result__snippet")?.textContent));
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

const exaHits = z.object({ results: results({ text, highlights: texts }) });
const exaFailure = z.object({ id: z.string(), status: z.string(), error: z.object({ tag: text }).nullish() });
const exaPages = exaHits.extend({ statuses: z.array(exaFailure).nullish() });

export const exa: WebService = {
  name: "exa",
  title: "Exa",
  keyName: "EXA_API_KEY",
  baseUrl: "https://api.exa.ai",
  headers: (key) => ({ "x-api-key": key }),
  async search(query, limit, line) {
    const body = { query, numResults: limit, contents: { highlights: true } };
    const { results } = await line.json("/search", exaHits, { body });
    return results.map((one) => hitOf(one, one.highlights?.join(" … ") || one.text));
  },
  async extract(urls, line) {
    const { results, statuses } = await line.json("/contents", exaPages, { body: { urls, text: true } });
    const failed = (statuses ?? []).filter(({ status }) => status === "error");
    return [
      ...results.map((one) => pageOf(one, one.text)),
      ...failed.map(({ id, error }) => ({
        url: id,
        error: `Exa could not read the page (${error?.tag ?? "no reason given"})`,
      })),
    ];
  },
};

const firecrawlList = results({ description: text });
const firecrawlHits = z.object({ data: z.union([firecrawlList, z.object({ web: firecrawlList.default([]) })]) });
const firecrawlFacts = z.object({ title: z.unknown(), url: text, sourceURL: text }).partial();
const firecrawlPage = z.object({ data: z.object({ markdown: text, metadata: firecrawlFacts.nullish() }) });

/** Also on a machine of one's own, without a key. */
export const firecrawl: WebService = {
  name: "firecrawl",
  title: "Firecrawl",
  keyName: "FIRECRAWL_API_KEY",
  baseUrl: "https://api.firecrawl.dev",
  headers: (key) => (key === "" ? {} : bearer(key)),
  async search(query, limit, line) {
    const { data } = await line.json("/v2/search", firecrawlHits, { body: { query, limit } });
    return (Array.isArray(data) ? data : data.web).map((one) => hitOf(one, one.description));
  },
  extract: (urls, line) => Promise.all(urls.map((url) => scrape(url, line))),
};

/** It reads one page per request, so one that fails leaves the others alone. */
async function scrape(url: string, line: ServiceLine): Promise<ServicePage> {
  try {
    const body = { url, formats: ["markdown"], onlyMainContent: true };
    const { data } = await line.json("/v2/scrape", firecrawlPage, { body });
    const { title, url: landed, sourceURL } = data.metadata ?? {};
    const name = Array.isArray(title) ? title[0] : title;
    const page = pageOf({ url, title: typeof name === "string" ? name : "" }, data.markdown);
    return { ...page, finalUrl: landed ?? sourceURL ?? undefined };
  } catch (error) {
    if (!(error instanceof WebError) && !(error instanceof UrlRefusedError)) throw error;
    return { url, error: error.message };
  }
}

const parallelHits = z.object({ results: results({ excerpts: texts, full_content: text }) });
const parallelFailure = z.object({ url: z.string(), error_type: text, content: text });
const parallelPages = parallelHits.extend({ errors: z.array(parallelFailure).nullish() });

export const parallel: WebService = {
  name: "parallel",
  title: "Parallel",
  keyName: "PARALLEL_API_KEY",
  baseUrl: "https://api.parallel.ai",
  headers: (key) => ({ "x-api-key": key, "parallel-beta": "search-extract-2025-10-10" }),
  async search(query, limit, line) {
    const body = { objective: query, search_queries: [query], max_results: limit };
    const { results } = await line.json("/v1beta/search", parallelHits, { body });
    return results.map((one) => hitOf(one, one.excerpts?.join(" … ")));
  },
  async extract(urls, line) {
    const body = { urls, full_content: true };
    const { results, errors } = await line.json("/v1beta/extract", parallelPages, { body });
    return [
      ...results.map((one) => pageOf(one, one.full_content || one.excerpts?.join("\n\n"))),
      ...(errors ?? []).map(({ url, error_type, content }) => ({
        url,
        error: `Parallel could not read the page (${error_type || content || "no reason given"})`,
      })),
    ];
  },
};

const searxngHits = z.object({ results: results({ content: text }) });
const SEARXNG_MOST_PAGES = 5;

/** A search engine of one's own; many installations answer in JSON only when their settings allow it. */
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
      for (const one of results) if (!hits.has(one.url)) hits.set(one.url, hitOf(one, one.content));
      if (hits.size === before) break;
    }
    return [...hits.values()];
  },
};

const tavilyHits = z.object({ results: results({ content: text }) });
const tavilyPages = z.object({
  results: results({ raw_content: text }).default([]),
  failed_results: z.array(z.object({ url: z.string(), error: text })).default([]),
});

export const tavily: WebService = {
  name: "tavily",
  title: "Tavily",
  keyName: "TAVILY_API_KEY",
  baseUrl: "https://api.tavily.com",
  headers: bearer,
  async search(query, limit, line) {
    const body = { query, max_results: Math.min(limit, 20) };
    const { results } = await line.json("/search", tavilyHits, { body });
    return results.map((one) => hitOf(one, one.content));
  },
  async extract(urls, line) {
    const { results, failed_results } = await line.json("/extract", tavilyPages, {
      body: { urls, format: "markdown" },
    });
    return [
      ...results.map((one) => pageOf(one, one.raw_content)),
      ...failed_results.map(({ url, error }) => ({ url, error: error || "Tavily could not read the page" })),
    ];
  },
};
