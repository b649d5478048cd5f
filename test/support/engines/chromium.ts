// A real Chromium and a site of our own on loopback.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, defaultConfig } from "../../../src/home/config/schema.ts";
import { findChromium } from "../../../src/tools/browser/launch.ts";
import { browserHolder } from "../../../src/tools/browser/session.ts";
import type { ToolContext } from "../../../src/tools/toolset/context.ts";
import { registry, type ToolOutput } from "../../../src/tools/toolset/registry.ts";
import { createToolState } from "../../../src/tools/toolset/session-tools.ts";
import { dispatch } from "../dispatch.ts";
import { toolContext } from "../tool-context.ts";
import "../../../src/tools/browser.ts";

export async function missingChromium(): Promise<string | null> {
  const found = await findChromium({ engine: "auto", path: process.env.PATH ?? "" });
  return found === null ? "No Chromium is installed (apt install chromium)." : null;
}

export type Pages = Readonly<Record<string, string | ((request: IncomingMessage, response: ServerResponse) => void)>>;

export interface Site {
  readonly url: string;
  readonly host: string;
  /** Paths that were asked for. */
  readonly asked: string[];
  close(): Promise<void>;
}

export async function startSite(pages: Pages): Promise<Site> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://site").pathname;
    asked.push(path);
    const page = pages[path];
    if (typeof page === "function") return page(request, response);
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html; charset=utf-8" });
    response.end(page ?? "nothing here");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const host = `127.0.0.1:${address.port}`;
  return {
    url: `http://${host}`,
    host,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export interface Surfer {
  readonly ctx: ToolContext;
  readonly homeDir: string;
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<Reply>;
  /** The result as it is, for those that are not JSON text. */
  raw(name: string, args?: Readonly<Record<string, unknown>>): Promise<ToolOutput>;
  /** The same conversation and browser, with other settings or ports. Closed with its first one. */
  as(change: Partial<Config["browser"]>, given?: Partial<ToolContext>): Surfer;
  close(): Promise<void>;
}

/** The parsed result of a browser tool; fields are what the tools promise. */
// biome-ignore lint/suspicious/noExplicitAny: the results are JSON and each test looks at other fields
export type Reply = any;

/** One conversation with browser tools, in a home of its own. Addresses of this machine are allowed unless said otherwise. */
export async function surfer(
  change: Partial<Config["browser"]> = {},
  given: Partial<ToolContext> = {},
): Promise<Surfer> {
  const homeDir = await realpath(await mkdtemp(join(tmpdir(), "hermes-browser-")));
  const state = createToolState();
  const plain = toolContext({ homeDir });
  const make = (settings: Partial<Config["browser"]>, ports: Partial<ToolContext>): Surfer => {
    const config = defaultConfig();
    const ctx = toolContext({
      homeDir,
      state,
      environment: { ...plain.environment, tempDir: homeDir },
      config: { ...config, browser: { ...config.browser, allow_private_urls: true, ...settings } },
      env: (name) => (name === "PATH" ? process.env.PATH : undefined),
      ...ports,
    });
    const raw = (name: string, args: Readonly<Record<string, unknown>> = {}) => dispatch(registry, name, args, ctx);
    return {
      ctx,
      homeDir,
      raw,
      async call(name, args) {
        const output = await raw(name, args);
        if (typeof output !== "string") throw new Error("not a text result");
        return JSON.parse(output);
      },
      as: (other, more = {}) => make({ ...settings, ...other }, { ...ports, ...more }),
      async close() {
        await state.of(browserHolder).dispose();
        await rm(homeDir, { recursive: true, force: true, maxRetries: 5 });
      },
    };
  };
  return make(change, given);
}

/** A browser that runs already, with an open debugging port. */
export async function startRunningBrowser(): Promise<{
  readonly cdpUrl: string;
  readonly pid: number;
  close(): Promise<void>;
}> {
  const profile = await mkdtemp(join(tmpdir(), "hermes-running-"));
  const program = (await findChromium({ engine: "auto", path: process.env.PATH ?? "" })) ?? "";
  const args = ["--headless", "--no-sandbox", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"];
  const child = spawn(program, args, { stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const note = join(profile, "DevToolsActivePort");
  let port = "";
  while (port === "" && child.exitCode === null) {
    port = (await readFile(note, "utf8").catch(() => "")).split("\n")[0] ?? "";
    if (port === "") await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    cdpUrl: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    async close() {
      child.kill("SIGKILL");
      await exited;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The ref of the first line of a snapshot that contains a text. */
export function refOf(snapshot: string, text: string): string {
  const line = snapshot.split("\n").find((one) => one.includes(text));
  const ref = /@\w+/.exec(line ?? "")?.[0];
  if (ref === undefined) throw new Error(`no ref beside "${text}" in:\n${snapshot}`);
  return ref;
}
