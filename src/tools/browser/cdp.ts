// browser_cdp: one command of the DevTools protocol, to the page in front.
import type { CDPSession } from "playwright-core";
import { holdsSecret } from "../../safety/url-guard-secrets.ts";
import type { ToolContext } from "../toolset/context.ts";
import { addressCheck } from "./address-check.ts";
import { addressesIn, refuseCommand } from "./cdp-rules.ts";
import { CommandError, command } from "./command.ts";

const MOST_CHARS = 8000;

export interface CdpArguments {
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
      const verdict = await addressCheck(ctx)(address);
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
    const text = error instanceof Error ? error.message : String(error);
    if (/has been closed|Target closed/.test(text)) throw error;
    throw new CommandError(text.replace(/^cdpSession\.send: /, "").split("\n")[0] ?? text);
  }
}

function shorten(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= MOST_CHARS
    ? value
    : `${text.slice(0, MOST_CHARS).toWellFormed()}… [cut, ${text.length} characters]`;
}
