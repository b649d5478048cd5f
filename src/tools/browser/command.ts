// One command to the browser of a conversation: started if need be, limited in time, described in words when it fails.

import type { Page } from "playwright-core";
import { messageOf } from "../../kit/errors.ts";
import { stripAnsi } from "../../kit/strip-ansi.ts";
import type { ToolContext } from "../toolset/context.ts";
import { type BrowserLocation, NoBrowserError } from "./launch.ts";
import { browserHolder, type OpenBrowser } from "./session.ts";

export type Answer = Readonly<Record<string, unknown>>;

/** A failure in words for the model. */
export class CommandError extends Error {
  override name = "CommandError";
}

export interface CommandOptions {
  /** Where a browser is opened when there is none; without it the result asks to open a page first. */
  readonly opens?: BrowserLocation;
  /** Answers the dialog that keeps all other commands waiting. */
  readonly answersDialog?: boolean;
  /** In place of `browser.command_timeout`. */
  readonly seconds?: number | undefined;
}

export interface Scene {
  readonly browser: OpenBrowser;
  readonly page: Page;
  /** For the library's own waits: a little less than what is left of the command. */
  readonly timeout: number;
}

const ALIVE_MS = 2000;

/** Runs `work` and makes the tool's result of what it gives. Never rejects for what a page or a browser did. */
export async function command(
  ctx: ToolContext,
  options: CommandOptions | (() => Promise<CommandOptions>),
  work: (scene: Scene) => Promise<Answer>,
): Promise<string> {
  try {
    const how = typeof options === "function" ? await options() : options;
    return JSON.stringify({ success: true, ...(await run(ctx, how, work)) });
  } catch (error) {
    ctx.signal.throwIfAborted();
    return JSON.stringify({ success: false, error: explain(error) });
  }
}

/** The same for callers that make a result of their own; rejects with an error to be explained. */
export async function run(
  ctx: ToolContext,
  { opens, answersDialog = false, seconds }: CommandOptions,
  work: (scene: Scene) => Promise<Answer>,
): Promise<Answer> {
  const holder = ctx.state.of(browserHolder);
  if (opens === undefined && !(await holder.isOpen()))
    throw new CommandError("No page is open. Open one with browser_navigate first.");
  const browser = await holder.hold(ctx, opens);
  try {
    const waiting = browser.dialogs.open;
    if (waiting && !answersDialog) {
      throw new CommandError(
        `The page waits for an answer to its ${waiting.type} dialog: ${JSON.stringify(waiting.message)}. Answer it with browser_dialog first.`,
      );
    }
    const limit = 1000 * Math.max(1, seconds ?? ctx.config.browser.command_timeout);
    const earlier = browser.refusals.length;
    const outcome = await race(ctx, browser, limit, async () => {
      const page = await browser.page();
      return work({ browser, page, timeout: Math.max(500, limit - 500) });
    });
    if (outcome.type === "overtime") {
      if (await isAlive(browser))
        throw new CommandError(`No result within ${limit / 1000} s. ${outcome.detail}`.trim());
      await holder.drop();
      throw new CommandError(
        `The page did not answer within ${limit / 1000} s and kept the browser busy; it was closed. Open a page with browser_navigate.`,
      );
    }
    const refused = browser.refusals.slice(earlier).filter(({ host }) => browser.wanted.has(host));
    await leaveForbidden(browser, refused);
    const answer =
      outcome.type === "dialog"
        ? { dialog: browser.dialogs.open, hint: "answer it with browser_dialog" }
        : outcome.answer;
    const notes = browser.notes.splice(0);
    return {
      ...answer,
      notes: notes.length > 0 ? notes : undefined,
      ...(refused.length > 0 ? { blocked: [...new Set(refused.map(({ reason }) => reason))].slice(0, 5) } : {}),
    };
  } finally {
    if (browser.gone !== null) await holder.drop();
    holder.release(ctx);
  }
}

/** What went wrong, in one line. */
export function explain(error: unknown): string {
  if (error instanceof CommandError || error instanceof NoBrowserError) return error.message;
  const text = stripAnsi(messageOf(error));
  if (/has been closed|Target closed|disconnected|crashed/i.test(text)) {
    return "The browser ended unexpectedly. Open the page again with browser_navigate.";
  }
  const [first = "", ...log] = text.split("\n");
  const headline = first.replace(/^\w+\.\w+: /, "");
  const reason = log
    .map((line) => line.replace(/^[\s-]+/, ""))
    .findLast((line) => /intercepts|not (?:visible|enabled|editable|stable)|outside/.test(line));
  return reason ? `${headline} (${reason})` : headline;
}

type Outcome =
  | { readonly type: "answer"; readonly answer: Answer }
  | { readonly type: "dialog" }
  | { readonly type: "overtime"; readonly detail: string };

async function race(
  ctx: ToolContext,
  browser: OpenBrowser,
  limit: number,
  work: () => Promise<Answer>,
): Promise<Outcome> {
  const { promise: interrupted, resolve: end, reject: fail } = Promise.withResolvers<Outcome>();
  const timer = setTimeout(() => end({ type: "overtime", detail: "" }), limit);
  const stopListening = browser.dialogs.onOpen(() => end({ type: "dialog" }));
  const abort = () => fail(ctx.signal.reason);
  ctx.signal.addEventListener("abort", abort, { once: true });
  void browser.death.then(() => fail(new Error("browser has been closed")));
  const working = work().then(
    (answer): Outcome => ({ type: "answer", answer }),
    (error: unknown): Outcome => {
      if (error instanceof Error && error.name === "TimeoutError") return { type: "overtime", detail: explain(error) };
      throw error;
    },
  );
  try {
    ctx.signal.throwIfAborted();
    return await Promise.race([working, interrupted]);
  } finally {
    clearTimeout(timer);
    stopListening();
    ctx.signal.removeEventListener("abort", abort);
    // Whoever lost the race may still fail; nobody waits for it any more.
    working.catch(() => undefined);
    interrupted.catch(() => undefined);
  }
}

/** A page in an endless loop answers nothing any more. */
async function isAlive(browser: OpenBrowser): Promise<boolean> {
  const page = await browser.page();
  const answer = stopLoading(page)
    .then(() => page.evaluate("1"))
    .then(
      () => true,
      () => true, // a page on its way elsewhere refuses, and lives
    );
  const silence = new Promise<boolean>((resolve) =>
    setTimeout(() => resolve(browser.dialogs.open !== null), ALIVE_MS).unref(),
  );
  return Promise.race([answer, silence]);
}

/** A page that is on its way to another one answers nothing until it arrives or is stopped. */
async function stopLoading(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.stopLoading");
  await session.detach();
}

/** Wherever a click or a redirect led: a page that may not be opened is left, and the result says why. */
async function leaveForbidden(
  browser: OpenBrowser,
  refused: readonly { host: string; reason: string }[],
): Promise<void> {
  if (browser.gone !== null || browser.dialogs.open !== null) return;
  const page = await browser.page();
  const url = new URL(page.url());
  if (/^(?:about|data|blob):$/.test(url.protocol)) return;
  const refusal =
    refused.find(({ host }) => host === url.host)?.reason ??
    (/^https?:$/.test(url.protocol) || url.href.startsWith("chrome-error:")
      ? null
      : `only http and https addresses are opened, not ${url.protocol}`);
  if (refusal === null) return;
  await page.goto("about:blank").catch(() => undefined); // the answer counts
  throw new CommandError(
    `The page led to ${url.origin === "null" ? url.protocol : url.origin}, which is not opened: ${refusal}`,
  );
}
