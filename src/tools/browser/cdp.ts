// browser_cdp: one command of the DevTools protocol, to the page in front.

import type { CDPSession } from "playwright-core";
import { messageOf } from "../../kit/errors.ts";
import { holdsSecret } from "../../safety/url-guard.ts";
import type { ToolContext } from "../toolset/context.ts";
import { addressCheck } from "../web/access.ts";
import { CommandError, command } from "./command.ts";
import { browserHolder } from "./session.ts";

const MAX_CHARS = 8000;

interface CdpArguments {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly timeout?: number | undefined;
}

export function sendCommand({ method, params = {}, timeout }: CdpArguments, ctx: ToolContext): Promise<string> {
  const seconds =
    timeout === undefined ? undefined : Math.min(Math.max(timeout, 1), ctx.config.browser.command_timeout);
  return command(ctx, { seconds }, async ({ page }) => {
    const refusal = refuseCommand(method, params);
    if (refusal !== null) throw new CommandError(refusal);
    if (holdsSecret(JSON.stringify(params), ctx.redact))
      throw new CommandError("The parameters hold one of your keys; they are not sent.");
    for (const address of addressesIn(params)) {
      if (!/^https?:/i.test(address)) continue;
      const verdict = await addressCheck(ctx, ctx.state.of(browserHolder).opened)(address);
      if (!verdict.allowed) throw new CommandError(`${address} is not opened: ${verdict.reason}`);
    }
    const session = await page.context().newCDPSession(page);
    try {
      return { result: shorten(await send(session, method, params)) };
    } finally {
      await session.detach().catch(() => undefined); // it went with its page
    }
  });
}

async function send(session: CDPSession, method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
  try {
    return await session.send(method as "Page.enable", params as never); // the name is checked by the browser
  } catch (error) {
    const text = messageOf(error);
    if (/has been closed|Target closed/.test(text)) throw error;
    throw new CommandError(text.replace(/^cdpSession\.send: /, "").split("\n")[0] ?? text);
  }
}

function shorten(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= MAX_CHARS
    ? value
    : `${text.slice(0, MAX_CHARS).toWellFormed()}… [cut, ${text.length} characters]`;
}

// Which DevTools commands a model may send. The protocol can also read files, hand files to pages, change where traffic goes and end the
// browser: only parts that concern the page itself are open.

const DOMAINS = new Set(
  (
    "Accessibility Animation CSS DOM DOMDebugger DOMSnapshot DOMStorage Emulation Input LayerTree Log Network Overlay Page Performance " +
    "PerformanceTimeline Profiler Runtime Media Audits"
  ).split(" "),
);
const CLOSED = new Set([
  "DOM.setFileInputFiles",
  "DOM.getFileInfo",
  "Page.setDownloadBehavior",
  "Page.setInterceptFileChooserDialog",
  "Page.crash",
  "Page.close",
  "Page.handleJavaScriptDialog",
  "Page.addScriptToEvaluateOnNewDocument",
  "Page.setBypassCSP",
  "Network.loadNetworkResource",
  "Network.setRequestInterception",
  "Runtime.terminateExecution",
]);

/** Null, or why this command is not sent. */
export function refuseCommand(method: string, params: Readonly<Record<string, unknown>>): string | null {
  const match = /^([A-Za-z]+)\.([A-Za-z]+)$/.exec(method);
  if (!match) return `"${method}" is not a command; they are named Domain.command, e.g. Page.reload.`;
  if (!DOMAINS.has(match[1] ?? "")) {
    return `Commands of ${match[1]} are not sent: only those that concern the open page (${[...DOMAINS].slice(0, 8).join(", ")}, …).`;
  }
  if (CLOSED.has(method)) return `${method} is not sent: it reaches beyond the open page.`;
  const foreign = addressesIn(params).find((address) => !/^(?:https?|about|data|blob):/i.test(address));
  return foreign === undefined
    ? null
    : `${method} is not sent: only http and https addresses are opened, not ${foreign.slice(0, 100)}`;
}

/** Parameters named like an address, wherever they stand. */
export function addressesIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (typeof inner === "string") return /^(?:url|referrer|origin)$/i.test(key) && inner !== "" ? [inner] : [];
    return addressesIn(inner);
  });
}
