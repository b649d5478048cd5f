// Large pages are converted on a thread of their own, which is given up when it takes too long: no page may hold up a conversation, or
// the others of this process.

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

/** Null when the thread came to no end in time, or to a bad one. */
async function convertAside(html: string, base: URL, { signal, timeMs = TIME_MS }: ConvertOptions) {
  const { Worker } = await import("node:worker_threads");
  signal.throwIfAborted();
  const worker = new Worker(new URL("./markdown-worker.ts", import.meta.url), {
    workerData: { html, base: base.href },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    // What a page holds must not find the user's keys, and nothing is written over the screen.
    env: {},
    stdout: true,
    stderr: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<MarkdownPage | null>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const late = setTimeout(() => resolve(null), timeMs);
  worker.once("message", resolve);
  worker.once("error", () => resolve(null));
  worker.once("exit", () => resolve(null));
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
    await worker.terminate();
  }
}
