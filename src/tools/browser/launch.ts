// Starts a browser of our own, or joins one that runs. The browser library is loaded here, with the first page of a conversation.

import { access, constants, mkdir, mkdtemp, readdir, readlink, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import type { Config } from "../../home/config/schema.ts";
import type { HomePaths } from "../../home/paths.ts";
import { messageOf, UserError } from "../../kit/errors.ts";
import { isAlive } from "../../kit/pid.ts";
import { type AddressCheck, type Refusal, startGuardedProxy } from "../../safety/guarded-proxy.ts";
import { proxySettings } from "../../safety/url-fetch.ts";
import { findProgram } from "../../sandbox/child-env.ts";
import { descendantsOf, signalTree } from "../../sandbox/processes.ts";
import { type BrowserProvider, isProvided, type ProvidedBrowser } from "./cloud.ts";
import { type Driver, loadDriver } from "./driver.ts";

/** As the settings say, or on this machine whatever they say. */
export type BrowserLocation = "as_set" | "here";

interface LaunchOptions {
  readonly location: BrowserLocation;
  readonly home: HomePaths;
  readonly config: Config;
  env(name: string): string | undefined;
  /** Says what takes so long. */
  notify(text: string): void;
  readonly check: AddressCheck;
  onRefused(refusal: Refusal): void;
  /** A browser that runs elsewhere, by the name that `browser.engine` gives; null when nobody provides it. */
  findProvider?(name: string): Promise<BrowserProvider | null>;
}

export interface Launched {
  readonly context: BrowserContext;
  /** An empty page to begin with. */
  readonly page: Page;
  /** It is the user's own browser; only pages we opened are ours. */
  readonly joined: boolean;
  /** Ends the browser and everything it started, and removes its profile. */
  close(): Promise<void>;
}

/** What the user can read when no browser could be had. */
export class NoBrowserError extends UserError {
  override name = "NoBrowserError";
}

const START_MS = 30_000;
/** Nothing leaves but through our proxy: no direct names, no direct UDP. */
const NETWORK = [
  "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  // What the browser would ask its maker by itself.
  "--gaia-url=https://browser.invalid",
  "--disable-component-update",
  // That flag alone still asks once, at the start.
  "--component-updater=url-source=https://browser.invalid/",
];

export async function launchBrowser(options: LaunchOptions): Promise<Launched> {
  const { cdp_url, engine } = options.config.browser;
  if (options.location === "here") return startOwn(options);
  if (cdp_url.trim() !== "") {
    const hint = "Start it with --remote-debugging-port, or empty the setting.";
    return joinRunning(options, { address: cdp_url.trim(), from: "browser.cdp_url in config.yaml", hint });
  }
  const provided = await options.findProvider?.(engine.trim());
  return provided ? joinProvided(options, provided) : startOwn(options);
}

/** Whether pages are opened by a browser on another machine: what is near there is not what is near here. */
export function isElsewhere(settings: Config["browser"]): boolean {
  const { cdp_url } = settings;
  if (cdp_url.trim() === "") return isProvided(settings.engine.trim());
  return URL.canParse(cdp_url.trim()) && !/^(?:localhost|127\..*|\[::1\])$/.test(new URL(cdp_url.trim()).hostname);
}

async function startOwn(options: LaunchOptions): Promise<Launched> {
  const { home, config, env, check, onRefused } = options;
  const engine = isProvided(config.browser.engine.trim()) ? "auto" : config.browser.engine;
  const program = await findChromium({ engine, path: env("PATH") ?? "" });
  if (program === null) throw new NoBrowserError(missingChromium(engine));
  const { chromium } = await driverFor(options);
  const profile = await makeProfile(home);
  const proxy = await startGuardedProxy({ check, onRefused, network: proxySettings(env) });
  const release = async () => {
    await proxy.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const context = await chromium.launchPersistentContext(join(profile, "profile"), {
      executablePath: program,
      headless: true,
      // Chromium's own sandbox refuses to work for root.
      chromiumSandbox: process.getuid?.() !== 0,
      proxy: { server: proxy.url },
      args: NETWORK,
      // What the shell knows (keys, tokens) is none of a web page's business.
      env: {
        PATH: env("PATH") ?? "",
        HOME: profile,
        TMPDIR: profile,
        LANG: env("LANG") ?? "C.UTF-8",
        XDG_CONFIG_HOME: profile,
        XDG_CACHE_HOME: profile,
      },
      acceptDownloads: true,
      downloadsPath: join(profile, "downloads"),
      viewport: { width: 1280, height: 800 },
      timeout: START_MS,
      // The program ends its browsers itself when it is stopped.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    });
    const browserPid = await pidOf(join(profile, "profile"));
    if (config.browser.record_sessions) await context.tracing.start({ screenshots: true, snapshots: true });
    return {
      context,
      page: context.pages()[0] ?? (await context.newPage()),
      joined: false,
      async close() {
        if (config.browser.record_sessions) await saveRecording(context, home);
        // Its profile is thrown away: nothing in it is worth an orderly end, and a page in an endless loop would not come to one.
        if (browserPid) signalTree(browserPid, await descendantsOf(browserPid), "SIGKILL");
        await context.close().catch(() => undefined); // already gone is what was wanted
        await release();
      },
    };
  } catch (error) {
    await release();
    throw new NoBrowserError(whyNot(program, error));
  }
}

/** The user's own browser, with what they are logged in to. Its traffic does not pass our proxy: requests are judged one by one. */
async function joinRunning(
  options: LaunchOptions,
  { address, from, hint }: { readonly address: string; readonly from: string; readonly hint: string },
): Promise<Launched> {
  const { check, onRefused } = options;
  const { chromium } = await driverFor(options);
  let browser: Browser;
  try {
    browser = await chromium.connectOverCDP(address, { timeout: START_MS });
  } catch (error) {
    throw new NoBrowserError(`No browser answers at ${address} (${from}): ${firstLine(error)}. ${hint}`);
  }
  const context = browser.contexts()[0] ?? (await browser.newContext());
  await context.route("**/*", async (route) => {
    const url = new URL(route.request().url());
    const verdict = /^https?:$/.test(url.protocol) ? await check(url.href) : ({ allowed: true } as const);
    if (verdict.allowed) return route.fallback();
    onRefused({ host: url.host, reason: verdict.reason });
    return route.abort("accessdenied");
  });
  return {
    context,
    page: await context.newPage(),
    joined: true,
    async close() {
      // Its windows stay: it is the user's.
      await context.unrouteAll({ behavior: "ignoreErrors" }).catch(() => undefined);
      await browser.close().catch(() => undefined); // only our connection to it
    },
  };
}

async function joinProvided(options: LaunchOptions, provider: BrowserProvider): Promise<Launched> {
  const from = `the browser "${options.config.browser.engine.trim()}" of browser.engine in config.yaml`;
  let given: ProvidedBrowser;
  try {
    given = await provider.open();
  } catch (error) {
    throw new NoBrowserError(`No browser: ${from} cannot be had: ${firstLine(error)}`);
  }
  const end = async () => {
    await given.close?.();
  };
  try {
    const joined = await joinRunning(options, { address: given.cdpUrl, from, hint: "Set browser.engine to auto." });
    return { ...joined, close: () => joined.close().finally(end) };
  } catch (error) {
    await end();
    throw error;
  }
}

async function driverFor(options: LaunchOptions): Promise<Driver> {
  try {
    return await loadDriver(options);
  } catch (error) {
    throw new NoBrowserError(firstLine(error));
  }
}

/** A fresh one for each conversation: what one logs in to is nothing to another. Named by our process, so that leftovers can be recognized. */
async function makeProfile(home: HomePaths): Promise<string> {
  const folder = join(home.cacheDir, "browser");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const owner = Number(/^(\d+)-/.exec(name)?.[1]);
    if (owner > 0 && !isAlive(owner)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 2 });
  }
  return mkdtemp(join(folder, `${process.pid}-`));
}

/** Chromium notes its own process in its profile; 0 where it does not. */
async function pidOf(profile: string): Promise<number> {
  const lock = await readlink(join(profile, "SingletonLock")).catch(() => "");
  return Number(/-(\d+)$/.exec(lock)?.[1] ?? 0);
}

async function saveRecording(context: BrowserContext, home: HomePaths): Promise<void> {
  const folder = join(home.cacheDir, "recordings");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const name = `browser_${new Date().toISOString().replace(/\D/g, "").slice(0, 14)}_${process.pid}.zip`;
  await context.tracing.stop({ path: join(folder, name) }).catch(() => undefined); // a browser that died has no recording
}

function whyNot(program: string, error: unknown): string {
  const text = messageOf(error);
  if (/sandbox/i.test(text) && /usable|namespace|SUID/i.test(text)) {
    return `${program} has no sandbox it could work in here: allow unprivileged user namespaces on this machine, or connect to a browser elsewhere with browser.cdp_url.`;
  }
  return `${program} could not be started: ${firstLine(error)}`;
}

function firstLine(error: unknown): string {
  return messageOf(error).split("\n")[0] ?? "";
}

// Which Chromium drives the tools.

const NAMES = [
  "chromium",
  "chromium-browser",
  "google-chrome-stable",
  "google-chrome",
  "microsoft-edge",
  "brave-browser",
];
const ELSEWHERE: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser"].map(
    (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
  ),
  win32: [
    "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
    "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
  ],
};

interface ProgramQuery {
  /** `browser.engine`: auto, a program's name or its path. */
  readonly engine: string;
  readonly path: string;
  readonly platform?: NodeJS.Platform;
}

/** Null when there is none. */
export async function findChromium({
  engine,
  path,
  platform = process.platform,
}: ProgramQuery): Promise<string | null> {
  const wanted = engine.trim();
  if (wanted !== "" && wanted !== "auto") return findProgram(wanted, path);
  for (const name of NAMES) {
    const found = await findProgram(name, path);
    if (found !== null) return found;
  }
  for (const candidate of ELSEWHERE[platform] ?? []) if (await isThere(candidate)) return candidate;
  return null;
}

function missingChromium(engine: string): string {
  const named = engine.trim() !== "" && engine.trim() !== "auto";
  return named
    ? `No browser: browser.engine in config.yaml names "${engine}", which is not there. Set it to the path of a Chromium or to auto.`
    : "No browser: neither Chromium nor Chrome is installed here. Install one (Debian: apt install chromium), or name its path in " +
        "browser.engine in config.yaml, or connect to a running one with browser.cdp_url.";
}

function isThere(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
