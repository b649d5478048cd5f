// Large pages are converted on a thread of their own, which is given up when it takes too long: no page may hold up a conversation, or
// the others of this process.

import { runAside } from "../../kit/worker.ts";
import type { MarkdownPage } from "./markdown.ts";
import { plainMarkdown, sizeOf } from "./plain-text.ts";

const TIME_MS = 10_000;
const MEMORY_MB = 512;

export interface ConvertOptions {
  readonly signal: AbortSignal;
  readonly timeMs?: number;
}

/** Rejects only with the signal's reason. A page that is too much for the thread comes in plainer Markdown, with its links. */
export async function convertPage(html: string, base: URL, options: ConvertOptions): Promise<MarkdownPage> {
  const size = sizeOf(html);
  const page =
    size === "hopeless" ? null : await (size === "large" ? convertAside(html, base, options) : convertHere(html, base));
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

function convertAside(html: string, base: URL, { signal, timeMs = TIME_MS }: ConvertOptions) {
  const worker = new URL("./markdown-worker.ts", import.meta.url);
  return runAside<MarkdownPage>(worker, { html, base: base.href }, { signal, timeMs, memoryMb: MEMORY_MB });
}
