import { WebError } from "../../../safety/url-fetch.ts";
import { type PageDocument, parsePage } from "../dom.ts";
import type { ServiceLine, WebHit, WebService } from "../service.ts";

const MOST_PAGES = 4;

/** DuckDuckGo's page for browsers without scripts: the one search that needs no key. */
export const ddgs: WebService = {
  name: "ddgs",
  title: "DuckDuckGo",
  baseUrl: "https://html.duckduckgo.com",
  async search(query, limit, line) {
    const hits = new Map<string, WebHit>();
    let form: Readonly<Record<string, string>> | null = { q: query, b: "" };
    for (let page = 0; form && page < MOST_PAGES && hits.size < limit; page++) {
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
