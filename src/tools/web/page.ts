// One page fetched from here and turned into text.

import { runInWorker } from "../../kit/worker.ts";
import { type WebAnswer, WebError, type WebHead } from "../../safety/url-fetch.ts";
import type { WebAccess } from "./access.ts";
import type { MarkdownPage } from "./markdown.ts";
import { plainMarkdown, sizeOf } from "./plain-text.ts";

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
  const { title, markdown } = await convertPage(text, url, { signal });
  return { title, content: markdown };
}

const typeOf = (contentType: string) => (contentType.split(";")[0] ?? "").trim().toLowerCase();

// From bytes to text. What a server says about the alphabet of a page is often missing and sometimes wrong.

/** A mark at the beginning decides, then the server's word, then the page's own, then what the bytes allow. */
function decodeText(body: Uint8Array, contentType: string): string {
  const label = markOf(body) ?? charsetOf(contentType) ?? declaredIn(body);
  const named = label === undefined ? null : decoderFor(label);
  if (named) return named.decode(body);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return new TextDecoder("windows-1252").decode(body); // every byte means something there
  }
}

function markOf(body: Uint8Array): string | undefined {
  const [first, second, third] = body;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return undefined;
}

const charsetOf = (text: string) => /charset\s*=\s*(?:["']\s*)?([\w.:-]+)/i.exec(text)?.[1];

/** In `<meta>` or an XML declaration near the beginning, which are plain ASCII in every alphabet in use. */
function declaredIn(body: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(body.subarray(0, 2048));
  const meta = /<meta\b[^>]{0,300}/gi;
  for (const [tag] of head.matchAll(meta)) {
    const label = charsetOf(tag);
    if (label) return label;
  }
  return /^\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:-]+)/i.exec(head)?.[1];
}

function decoderFor(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label);
  } catch {
    return null; // a name nobody knows says nothing
  }
}

// Large pages are converted on a thread of their own, which is given up when it takes too long: no page may hold up a conversation, or
// the others of this process.

const TIME_MS = 10_000;
const MEMORY_MB = 512;

interface ConvertOptions {
  readonly signal: AbortSignal;
  readonly timeMs?: number;
}

/** Rejects only with the signal's reason. A page that is too much for the thread comes in plainer Markdown, with its links. */
export async function convertPage(html: string, base: URL, options: ConvertOptions): Promise<MarkdownPage> {
  const size = sizeOf(html);
  const page =
    size === "hopeless"
      ? null
      : await (size === "large" ? convertInWorker(html, base, options) : convertHere(html, base));
  return page ?? plainMarkdown(html, base);
}

async function convertHere(html: string, base: URL): Promise<MarkdownPage | null> {
  const { htmlToMarkdown } = await import("./markdown.ts");
  try {
    return await htmlToMarkdown(html, base);
  } catch {
    return null; // a page that confuses the packages is still text
  }
}

function convertInWorker(html: string, base: URL, { signal, timeMs = TIME_MS }: ConvertOptions) {
  const worker = new URL("./markdown-worker.ts", import.meta.url);
  return runInWorker<MarkdownPage>(worker, { html, base: base.href }, { signal, timeMs, memoryMb: MEMORY_MB });
}
