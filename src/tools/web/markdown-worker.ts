// One page, turned into Markdown on a thread of its own.
import { parentPort, workerData } from "node:worker_threads";
import { htmlToMarkdown } from "./markdown.ts";

const { html, base } = workerData as { readonly html: string; readonly base: string }; // what convert-page.ts hands over
parentPort?.postMessage(await htmlToMarkdown(html, new URL(base)));
