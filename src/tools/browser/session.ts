// The browser of one conversation: opened with its first page, closed when nothing was asked of it for a while or the conversation ends.

import { rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Dialog, Download, Page, Request } from "playwright-core";
import type { Config } from "../../home/config/schema.ts";
import type { Refusal } from "../../safety/guarded-proxy.ts";
import { cacheFolder } from "../media/endpoint.ts";
import type { StateKey, ToolContext } from "../toolset/context.ts";
import { addressCheck } from "../web/access.ts";
import { findBrowserProvider } from "./cloud.ts";
import { type BrowserLocation, type Launched, launchBrowser } from "./launch.ts";

const MAX_MESSAGES = 200;
const MAX_PAGES = 8;
const MAX_HOSTS = 10_000;
const LARGEST_DOWNLOAD = 50 * 1024 * 1024;
const DOWNLOAD_MS = 60_000;

interface ConsoleLine {
  readonly type: string;
  readonly text: string;
}

/** One running browser and what happened in it since it was last asked. */
export class OpenBrowser {
  readonly dialogs: Dialogs;
  readonly messages: ConsoleLine[] = [];
  readonly errors: string[] = [];
  /** What no answer has reported yet. */
  readonly notes: string[] = [];
  readonly refusals: Refusal[];
  /** Host and status of where the page in front is heading or stands. */
  heading = "";
  status = 200;
  /** Hosts that pages asked for; the browser itself asks for others. */
  readonly wanted = new Set<string>();
  /** Of the last snapshot; empty after a navigation. */
  refs: ReadonlySet<string> = new Set();
  readonly #launched: Launched;
  readonly #ctx: ToolContext;
  readonly #ours = new Set<Page>();
  #page: Page | null = null;
  #gone: string | null = null;
  #death = Promise.withResolvers<string>();

  readonly location: BrowserLocation;

  constructor(launched: Launched, location: BrowserLocation, ctx: ToolContext, refusals: Refusal[]) {
    this.#launched = launched;
    this.location = location;
    this.refusals = refusals;
    this.#ctx = ctx;
    this.dialogs = new Dialogs(ctx.config.browser);
    const { context } = launched;
    context.on("page", (page) => void this.#meet(page));
    context.once("close", () => this.#die("the browser ended unexpectedly"));
    context.browser()?.once("disconnected", () => this.#die("the browser ended unexpectedly"));
    context.on("request", (request) => {
      const { host } = new URL(request.url());
      if (this.wanted.size < MAX_HOSTS) this.wanted.add(host);
      if (this.#isInFront(request)) this.heading = host;
    });
    context.on("response", (response) => {
      if (this.#isInFront(response.request())) this.status = response.status();
    });
    this.#adopt(launched.page);
  }

  /** Why it is of no use any more; null while it lives. */
  get gone(): string | null {
    return this.#gone;
  }

  /** Resolves to the reason when the browser dies. */
  get death(): Promise<string> {
    return this.#death.promise;
  }

  get context() {
    return this.#launched.context;
  }

  /** The page in front. */
  async page(): Promise<Page> {
    if (this.#page && !this.#page.isClosed()) return this.#page;
    const left = [...this.#ours].findLast((page) => !page.isClosed());
    const page = left ?? (await this.context.newPage());
    this.#page = page;
    this.#adopt(page);
    return page;
  }

  async close(): Promise<void> {
    this.#die("the browser was closed");
    this.dialogs.forget();
    if (this.#launched.joined) await Promise.all([...this.#ours].map((page) => page.close().catch(() => undefined))); // or gone by themselves
    await this.#launched.close();
  }

  #isInFront(request: Request): boolean {
    if (!request.isNavigationRequest()) return false;
    try {
      return request.frame() === this.#page?.mainFrame();
    } catch {
      return false; // the first request of a window that is just being made
    }
  }

  #die(reason: string): void {
    this.#gone ??= reason;
    this.#death.resolve(reason);
  }

  /** In a browser of the user's own only what our pages open is ours. */
  async #meet(page: Page): Promise<void> {
    const opener = this.#launched.joined ? await page.opener().catch(() => null) : null;
    if (!this.#launched.joined || (opener && this.#ours.has(opener))) this.#adopt(page);
  }

  /** A new window comes to the front, as it does for a person. */
  #adopt(page: Page): void {
    if (this.#ours.has(page)) return;
    this.#ours.add(page);
    if (this.#page && this.#ours.size > MAX_PAGES) {
      this.#ours.delete(page);
      this.notes.push(`a new window was closed: ${MAX_PAGES} are open already`);
      void page.close().catch(() => undefined); // gone by itself
      return;
    }
    if (this.#page) this.notes.push("the page opened a new window; it is in front now");
    this.#page = page;
    this.refs = new Set();
    page.on("dialog", (dialog) => this.dialogs.add(dialog));
    page.on("console", (message) => keep(this.messages, { type: message.type(), text: message.text().slice(0, 2000) }));
    page.on("pageerror", (error) => keep(this.errors, String(error.message).slice(0, 2000)));
    page.on("download", (download) => void this.#keepDownload(download));
    page.on("framenavigated", (frame) => {
      if (frame === page.mainFrame() && page === this.#page) this.refs = new Set();
    });
    page.once("crash", () => {
      this.notes.push("the page crashed and was closed");
      this.dialogs.forget();
      void page.close().catch(() => undefined); // gone by itself
    });
    page.once("close", () => {
      this.#ours.delete(page);
      if (this.#page !== page) return;
      this.#page = null;
      this.refs = new Set();
      this.dialogs.forget();
    });
  }

  async #keepDownload(download: Download): Promise<void> {
    const name =
      basename(download.suggestedFilename())
        .replace(/[^\p{L}\p{N}._ -]/gu, "_")
        .slice(-120) || "download";
    try {
      const timer = setTimeout(() => void download.cancel(), DOWNLOAD_MS);
      const path = await download.path().finally(() => clearTimeout(timer));
      const { size } = await stat(path);
      if (size > LARGEST_DOWNLOAD) {
        await rm(path, { force: true });
        this.notes.push(`the download "${name}" was thrown away: ${Math.round(size / 1e6)} MB, 50 are allowed`);
        return;
      }
      const target = join(await cacheFolder(this.#ctx.home, "documents"), `${this.#ctx.clock.now()}_${name}`);
      await rename(path, target);
      this.notes.push(`downloaded "${name}" (${size} bytes) to ${target}`);
    } catch (error) {
      const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
      this.notes.push(`the download "${name}" failed: ${why}`);
    }
  }
}

/** What a conversation holds: at most one browser. */
class BrowserHolder {
  #opening: Promise<OpenBrowser> | null = null;
  #idle: NodeJS.Timeout | undefined;
  #busy = 0;
  #closed = false;
  /** Servers of this machine (`host:port`) that the user said yes to. */
  readonly opened = new Set<string>();

  /**
   * The browser, opened if there is none; it is not closed for idleness until `release`. Asked for at another location than the one where it
   * stands, it is closed and another one opened there.
   */
  async hold(ctx: ToolContext, location?: BrowserLocation): Promise<OpenBrowser> {
    this.#busy++;
    clearTimeout(this.#idle);
    try {
      const present = await this.#opening;
      if (present && present.gone === null && (location ?? present.location) === present.location) return present;
      if (this.#closed) throw new Error("this conversation is closed");
      if (present) await this.drop();
      this.#opening = open(ctx, location ?? "as_set");
      return await this.#opening;
    } catch (error) {
      this.#opening = null;
      this.release(ctx);
      throw error;
    }
  }

  /** True when a page is open. */
  async isOpen(): Promise<boolean> {
    const present = await this.#opening?.catch(() => null);
    return present != null && present.gone === null;
  }

  release(ctx: ToolContext): void {
    this.#busy--;
    if (this.#busy > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.drop(), ctx.config.browser.inactivity_timeout * 1000);
    this.#idle.unref();
  }

  /** Closes the browser; the next call opens another one. */
  async drop(): Promise<void> {
    clearTimeout(this.#idle);
    const opening = this.#opening;
    this.#opening = null;
    const present = await opening?.catch(() => null);
    await present?.close();
  }

  async dispose(): Promise<void> {
    this.#closed = true;
    await this.drop();
  }
}

export const browserHolder: StateKey<BrowserHolder> = {
  name: "browser",
  create: () => new BrowserHolder(),
  dispose: (holder) => holder.dispose(),
};

async function open(ctx: ToolContext, location: BrowserLocation): Promise<OpenBrowser> {
  const refusals: Refusal[] = [];
  const launched = await launchBrowser({
    location,
    home: ctx.home,
    config: ctx.config,
    env: (name) => ctx.env?.(name),
    notify: (text) => ctx.progress(text),
    check: addressCheck(ctx, ctx.state.of(browserHolder).opened),
    onRefused: (refusal) => keep(refusals, refusal),
    findProvider: (name) => findBrowserProvider(name, ctx),
  });
  return new OpenBrowser(launched, location, ctx, refusals);
}

function keep<T>(list: T[], item: T): void {
  list.push(item);
  if (list.length > MAX_MESSAGES) list.shift();
}

// The dialogs a page puts over itself. It stands still until one is answered, so the result shows it and the model has to answer.

interface OpenDialog {
  readonly type: string;
  readonly message: string;
  readonly default_value?: string;
}

class Dialogs {
  readonly #policy: string;
  readonly #timeoutMs: number;
  readonly #waiting: { dialog: Dialog; timer: NodeJS.Timeout }[] = [];
  #listeners = new Set<() => void>();

  constructor({ dialog_policy, dialog_timeout_s }: Config["browser"]) {
    this.#policy = dialog_policy;
    this.#timeoutMs = dialog_timeout_s * 1000;
  }

  /** The one that has to be answered now. */
  get open(): OpenDialog | null {
    const dialog = this.#waiting[0]?.dialog;
    if (!dialog) return null;
    const preset = dialog.defaultValue();
    return {
      type: dialog.type(),
      message: dialog.message().slice(0, 1000),
      default_value: preset || undefined,
    };
  }

  add(dialog: Dialog): void {
    if (this.#policy === "auto_accept") return void dialog.accept().catch(() => undefined); // the page is gone
    if (this.#policy === "auto_dismiss") return void dialog.dismiss().catch(() => undefined); // the page is gone
    const entry = { dialog, timer: setTimeout(() => void this.#end(entry, () => dialog.dismiss()), this.#timeoutMs) };
    entry.timer.unref();
    this.#waiting.push(entry);
    for (const listener of this.#listeners) listener();
  }

  /** Resolves to the dialog that was answered; null when there was none. */
  async answer(answer: { readonly accept: boolean; readonly text?: string | undefined }): Promise<OpenDialog | null> {
    const { open } = this;
    const entry = this.#waiting[0];
    if (!entry || !open) return null;
    await this.#end(entry, () => (answer.accept ? entry.dialog.accept(answer.text) : entry.dialog.dismiss()));
    return open;
  }

  /** Dialogs that died with their page. */
  forget(): void {
    for (const { timer } of this.#waiting.splice(0)) clearTimeout(timer);
  }

  /** Calls back when one opens, until the returned function is called. */
  onOpen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async #end(entry: { dialog: Dialog; timer: NodeJS.Timeout }, act: () => Promise<void>): Promise<void> {
    clearTimeout(entry.timer);
    const at = this.#waiting.indexOf(entry);
    if (at >= 0) this.#waiting.splice(at, 1);
    await act().catch(() => undefined); // the page is gone, and the dialog with it
  }
}
