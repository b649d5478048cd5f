// What the browser tools do, one function for each.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { countCodePoints } from "../../kit/code-points.ts";
import { messageOf } from "../../kit/errors.ts";
import { holdsSecret } from "../../safety/url-guard.ts";
import { cacheFolder } from "../media/endpoint.ts";
import { showPicture } from "../media/pictures.ts";
import type { ToolContext } from "../toolset/context.ts";
import type { ToolOutput } from "../toolset/registry.ts";
import { environmentResultStore, resultFileName } from "../toolset/results.ts";
import { addressCheck } from "../web/access.ts";
import { type Answer, CommandError, type CommandOptions, command, explain, run, type Scene } from "./command.ts";
import { isElsewhere } from "./launch.ts";
import {
  type Box,
  elementBoxes,
  IMAGES_SCRIPT,
  labelScript,
  outlinePage,
  PASSWORDS_SCRIPT,
  type PageImage,
  scrollScript,
  type TreeNode,
  UNLABEL_SCRIPT,
} from "./page.ts";
import { browserHolder } from "./session.ts";

const MAX_CHARS = 8000;
const MAX_IMAGES = 50;
const SETTLE_MS = 1000;

export function navigate({ url }: { readonly url: string }, ctx: ToolContext): Promise<string> {
  const address = withScheme(url);
  // No browser is started for what is not opened.
  const examine = async (): Promise<CommandOptions> => {
    if (holdsSecret(address, ctx.redact))
      throw new CommandError("The address holds one of your keys; it is not sent to a web site.");
    const { opened } = ctx.state.of(browserHolder);
    const check = addressCheck(ctx, opened);
    let verdict = await check(address);
    if (!verdict.allowed && verdict.isPrivate && isThisMachine(address)) {
      const { host } = new URL(address);
      const answer = await ctx.guard.decideLocalPage?.(host, ctx.signal);
      if (answer && !answer.approved) throw new CommandError(answer.message);
      if (answer) {
        opened.add(host);
        verdict = await check(address);
      }
    }
    if (!verdict.allowed) throw new CommandError(verdict.reason);
    const { browser } = ctx.config;
    return {
      opens: verdict.isPrivate && browser.auto_local_for_private_urls && isElsewhere(browser) ? "here" : "as_set",
    };
  };
  return command(ctx, examine, async ({ browser, page, timeout }) => {
    const earlier = browser.refusals.length;
    const failed = await page.goto(address, { waitUntil: "domcontentloaded", timeout }).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    const refused = browser.refusals.slice(earlier).find(({ host }) => host === browser.heading);
    if (refused) {
      if (!failed) await page.goto("about:blank");
      throw new CommandError(`${url} led to ${refused.host}, which is not opened. ${refused.reason}`);
    }
    if (failed) throw failed.error;
    const status = browser.status;
    await settle({ browser, page, timeout });
    return {
      ...(await seen({ browser, page, timeout }, ctx, false)),
      http_status: status >= 400 ? status : undefined,
    };
  });
}

export function snapshot({ full = false }: { readonly full?: boolean | undefined }, ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async (scene) => {
    await settle(scene);
    return seen(scene, ctx, full);
  });
}

export function click({ ref }: { readonly ref: string }, ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async (scene) => {
    const target = await element(scene, ref);
    await target.click({ timeout: Math.min(scene.timeout, 10_000) });
    await settle(scene);
    return { clicked: ref, ...(await where(scene)) };
  });
}

export function type(
  { ref, text }: { readonly ref: string; readonly text: string },
  ctx: ToolContext,
): Promise<string> {
  return command(ctx, {}, async (scene) => {
    if (holdsSecret(text, ctx.redact))
      throw new CommandError("The text holds one of your keys; it is not typed into a web page.");
    const target = await element(scene, ref);
    await target.fill(text, { timeout: Math.min(scene.timeout, 10_000) });
    return { typed: countCodePoints(text), element: ref };
  });
}

export function scroll({ direction }: { readonly direction: "up" | "down" }, ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async ({ page }) => {
    const { at, of } = await page.evaluate<{ at: number; of: number }>(scrollScript(direction === "up" ? -1 : 1));
    return { scrolled: direction, position: `${at} of ${of}` };
  });
}

export function back(ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async (scene) => {
    const before = scene.page.url();
    await scene.page.goBack({ waitUntil: "domcontentloaded", timeout: scene.timeout });
    if (scene.page.url() === before) throw new CommandError("There is no page before this one.");
    return where(scene);
  });
}

export function press({ key }: { readonly key: string }, ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async (scene) => {
    await scene.page.keyboard.press(key).catch((error: unknown) => {
      if (!/Unknown key/i.test(String(error))) throw error;
      throw new CommandError(`Unknown key "${key}". Keys are named like Enter, Tab, Escape, ArrowDown, a, Control+a.`);
    });
    await settle(scene);
    return { pressed: key, ...(await where(scene)) };
  });
}

export function getImages(ctx: ToolContext): Promise<string> {
  return command(ctx, {}, async ({ page }) => {
    const images = await page.evaluate<readonly PageImage[]>(IMAGES_SCRIPT);
    const shown = images
      .filter(({ src }) => src !== "")
      .map((image) => ({
        ...image,
        src: image.src.startsWith("data:") ? `${image.src.slice(0, 60)}…` : image.src.slice(0, 2000),
      }));
    return { images: shown.slice(0, MAX_IMAGES), count: shown.length };
  });
}

export function readConsole(
  { clear = false, expression }: { readonly clear?: boolean | undefined; readonly expression?: string | undefined },
  ctx: ToolContext,
): Promise<string> {
  return command(ctx, {}, async ({ browser, page }) => {
    if (expression !== undefined && holdsSecret(expression, ctx.redact))
      throw new CommandError("The expression holds one of your keys; it is not run in a web page.");
    if (expression !== undefined) return { result: shorten(await valueIn(page.evaluate(expression))) };
    const messages = browser.messages.map(({ type, text }) => ({ type, text }));
    const errors = [...browser.errors];
    if (clear) {
      browser.messages.length = 0;
      browser.errors.length = 0;
    }
    return {
      console_messages: messages.slice(-50),
      js_errors: errors.slice(-50),
      total_messages: messages.length,
      total_errors: errors.length,
    };
  });
}

export function answerDialog(
  { action, prompt_text }: { readonly action: "accept" | "dismiss"; readonly prompt_text?: string | undefined },
  ctx: ToolContext,
): Promise<string> {
  return command(ctx, { answersDialog: true }, async (scene) => {
    if (prompt_text !== undefined && holdsSecret(prompt_text, ctx.redact)) {
      throw new CommandError("The text holds one of your keys; it is not typed into a web page.");
    }
    const answered = await scene.browser.dialogs.answer({ accept: action === "accept", text: prompt_text });
    if (!answered) throw new CommandError("No dialog is open.");
    await settle(scene);
    return { answered: action, dialog: answered, ...(await where(scene)) };
  });
}

/** The page as the model sees it; its refs are the ones that count from now on. */
async function seen({ browser, timeout }: Scene, ctx: ToolContext, full: boolean): Promise<Answer> {
  const page = await browser.page();
  const tree = (await page.ariaSnapshotJSON({ mode: "ai", timeout })) as (TreeNode | string)[]; // the library gives its tree as plain JSON
  const outline = outlinePage(tree, { full });
  browser.refs = outline.refs;
  const text = ctx.redact(await withoutPasswords(page, outline.text));
  const facts = { url: page.url(), title: await page.title() };
  if (text.length <= MAX_CHARS) return { ...facts, snapshot: text, element_count: outline.elementCount };
  const cut = text.lastIndexOf("\n", MAX_CHARS);
  const path = await saveWhole(text, ctx);
  const rest = `[cut after ${cut} of ${text.length} characters${path ? `; all of it: ${path}` : ""}]`;
  return {
    ...facts,
    snapshot: `${text.slice(0, cut > 0 ? cut : MAX_CHARS).toWellFormed()}\n${rest}`,
    element_count: outline.elementCount,
    truncated: true,
    full_snapshot: path ?? undefined,
  };
}

async function saveWhole(text: string, ctx: ToolContext): Promise<string | null> {
  try {
    const store = environmentResultStore(ctx.environment, ctx.sessionId);
    return await store.save(`page_${resultFileName(ctx.callId)}`, text);
  } catch (error) {
    ctx.log.warn("a long page could not be saved", error);
    return null;
  }
}

/** The tree shows what stands in fields, those for passwords too. */
async function withoutPasswords(page: Scene["page"], text: string): Promise<string> {
  const values = await Promise.all(
    page.frames().map((frame) => frame.evaluate<string[]>(PASSWORDS_SCRIPT).catch(() => [])), // a frame that just went away
  );
  return [...new Set(values.flat())]
    .filter((value) => value !== "")
    .reduce((hidden, value) => hidden.replaceAll(`: ${value}`, ": ••••"), text);
}

async function element({ browser, page }: Scene, ref: string) {
  const name = ref.trim().replace(/^@/, "");
  const stale = new CommandError(
    `${ref} is not an element of the last snapshot (refs are void after the next snapshot and after a navigation). Take a new one with browser_snapshot.`,
  );
  if (!browser.refs.has(name)) throw stale;
  const target = page.getByRef(name);
  if ((await target.count()) === 0) throw stale;
  return target;
}

/** What a click sets off needs a moment; pages that never come to rest are not waited for. */
async function settle({ browser }: Scene): Promise<void> {
  const page = await browser.page();
  await page.waitForLoadState("load", { timeout: SETTLE_MS }).catch(() => undefined); // slow pages are read as they are
}

async function where({ browser }: Scene): Promise<Answer> {
  const page = await browser.page();
  return { url: page.url(), title: await page.title() };
}

async function valueIn(evaluation: Promise<unknown>): Promise<unknown> {
  try {
    return (await evaluation) ?? null;
  } catch (error) {
    const text = messageOf(error);
    if (/has been closed|Target closed/.test(text)) throw error;
    throw new CommandError(text.split("\n    at ")[0]?.replace(/^page\.evaluate: /, "") ?? text);
  }
}

function shorten(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= MAX_CHARS
    ? value
    : `${text.slice(0, MAX_CHARS).toWellFormed()}… [cut, ${text.length} characters]`;
}

function withScheme(url: string): string {
  const text = url.trim();
  if (/^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[\w.-]+:\d+(?:\/|$)/.test(text)) return text;
  return `${isThisMachine(`http://${text}`) ? "http" : "https"}://${text}`;
}

/** By its name alone: what somebody's name server says about another name counts for nothing here. */
function isThisMachine(address: string): boolean {
  return /^(?:(?:.*\.)?localhost|127\.[\d.]+|\[::1\])$/.test(URL.parse(address)?.hostname ?? "");
}

// browser_vision: a screenshot of the page in front, shown to a model that sees.

const MAX_LABELS = 100;

interface LookArguments {
  readonly question: string;
  readonly annotate?: boolean | undefined;
}

export async function look({ question, annotate = false }: LookArguments, ctx: ToolContext): Promise<ToolOutput> {
  let bytes: Buffer | undefined;
  try {
    const answer = await run(ctx, {}, async (scene) => {
      const shot = await photograph(scene, annotate);
      bytes = shot.bytes;
      const name = `browser_${ctx.clock.now()}_${Math.floor(ctx.clock.random() * 1e6)}.png`;
      const path = join(await cacheFolder(ctx.home, "screenshots"), name);
      await writeFile(path, shot.bytes, { mode: 0o600 });
      return { screenshot_path: path, url: scene.page.url(), ...shot.facts };
    });
    if (!bytes) return JSON.stringify({ success: true, ...answer }); // a dialog stood in front of the page
    return await showPicture({ bytes, type: "image/png" }, question, answer, ctx);
  } catch (error) {
    ctx.signal.throwIfAborted();
    return JSON.stringify({ success: false, error: explain(error) });
  }
}

async function photograph(
  { browser, page, timeout }: Scene,
  annotate: boolean,
): Promise<{ bytes: Buffer; facts: Answer }> {
  if (!annotate) return { bytes: await page.screenshot({ timeout }), facts: {} };
  const tree = (await page.ariaSnapshotJSON({ mode: "ai", boxes: true, timeout })) as (TreeNode | string)[]; // the library gives its tree as plain JSON
  browser.refs = outlinePage(tree, { full: false }).refs;
  const window = page.viewportSize() ?? { width: 1280, height: 800 };
  const boxes = elementBoxes(tree)
    .filter(({ box }) => isVisible(box, window))
    .slice(0, MAX_LABELS)
    .map(({ ref, box }) => ({ label: `@${ref}`, box }));
  await page.evaluate(labelScript(boxes));
  try {
    return { bytes: await page.screenshot({ timeout }), facts: { annotated: boxes.map(({ label }) => label) } };
  } finally {
    await page.evaluate(UNLABEL_SCRIPT).catch(() => undefined); // the page went away, and the labels with it
  }
}

function isVisible({ x, y, width, height }: Box, window: { readonly width: number; readonly height: number }): boolean {
  return width > 0 && height > 0 && x < window.width && y < window.height && x + width > 0 && y + height > 0;
}
