// One page fetched from here and turned into text.
import { type WebAnswer, WebError, type WebHead } from "../../safety/url-fetch.ts";
import type { WebAccess } from "./access.ts";
import { decodeText } from "./charset.ts";

export interface Page {
  readonly title: string;
  readonly content: string;
}

const ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.9,*/*;q=0.5";
const HTML = /^(?:text\/html|application\/xhtml\+xml)$/;
const TEXT =
  /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-javascript|ecmascript|sql|x-sh|x-ndjson|jsonl?|graphql|rtf)|[\w-]+\/[\w.-]+\+(?:json|xml|yaml))$/;

/** Rejects with `WebError` or `UrlRefusedError`: what went wrong, in words. */
export async function readPage(url: string, access: WebAccess): Promise<Page> {
  const answer = await access.fetch(url, {
    headers: { accept: ACCEPT, "accept-language": "en;q=0.9,*;q=0.5" },
    accept: refuseUnreadable,
  });
  const page = await textOf(answer, access.signal);
  if (page.content.trim() === "")
    throw new WebError(
      `${answer.url.host} sent a page without text; it may be made by scripts that only a browser runs.`,
    );
  return page;
}

function refuseUnreadable({ status, statusText, contentType, url }: WebHead): void {
  if (status < 200 || status >= 300) throw new WebError(`${url.host} answered HTTP ${status} ${statusText}`.trim());
  const type = typeOf(contentType);
  if (type !== "" && !HTML.test(type) && !TEXT.test(type))
    throw new WebError(`${url.href} is ${type}, not a page of text.`);
}

async function textOf({ body, contentType, url }: WebAnswer, signal: AbortSignal): Promise<Page> {
  const text = decodeText(body, contentType);
  // Whatever a server calls it: no text has zero bytes in it.
  if (text.includes("\u0000")) throw new WebError(`${url.href} is a binary file, not a page of text.`);
  const type = typeOf(contentType);
  if (!HTML.test(type) && !(type === "" && /^\s*(?:<!--[\s\S]{0,2000}?-->\s*)?<(?:!doctype html|html)\b/i.test(text)))
    return { title: "", content: text };
  const { convertPage } = await import("./convert-page.ts");
  const { title, markdown } = await convertPage(text, url, { signal });
  return { title, content: markdown };
}

const typeOf = (contentType: string) => (contentType.split(";")[0] ?? "").trim().toLowerCase();
