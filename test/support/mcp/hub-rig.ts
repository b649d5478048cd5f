// Servers as the product runs them, in a temporary folder, with everything they say written down.
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "../../../src/home/log.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import type { McpCaller } from "../../../src/mcp/contract.ts";
import { type HubPorts, McpHub } from "../../../src/mcp/hub.ts";
import type { McpServer } from "../../../src/mcp/server.ts";
import { parseServers } from "../../../src/mcp/settings.ts";
import type { Ask } from "../../../src/safety/decision.ts";

const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "..", "..", "..", "node_modules", "@modelcontextprotocol");

export const realServer = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(packages, `server-${name}`, "dist", "index.js"), ...args],
});

export const tinyServer = (...args: string[]) => ({
  command: process.execPath,
  args: [join(here, "tiny-server.mjs"), ...args],
});

export const shellServer = () => ({ command: "sh", args: [join(here, "shell-server.sh")] });

export interface HubRig extends AsyncDisposable {
  readonly hub: McpHub;
  readonly dir: string;
  readonly lines: string[];
  readonly stderr: string[];
  server(name: string): McpServer;
  /** What the tool answers; the text of its error when it fails. */
  call(server: string, tool: string, args?: Record<string, unknown>, caller?: Partial<McpCaller>): Promise<string>;
}

export async function hubRig(servers: object, ports: Partial<HubPorts> = {}, waitMs = 20_000): Promise<HubRig> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "hermes-mcp-")));
  const lines: string[] = [];
  const stderr: string[] = [];
  const keep = (message: string) => void lines.push(message);
  const log: Logger = { debug: () => undefined, info: keep, warn: keep, error: keep, child: () => log };
  const hub = await McpHub.open(
    {
      clock: systemClock,
      log,
      cwd: dir,
      osHome: dir,
      environment: () => ({ PATH: process.env.PATH ?? "", HOME: dir, LANG: "C.UTF-8", SECRET_KEY: "do-not-pass" }),
      tokensDir: join(dir, "mcp-tokens"),
      mediaDir: join(dir, "cache"),
      cacheFile: join(dir, "cache", "mcp_tools.json"),
      pinsFile: join(dir, "mcp_pins.json"),
      redact: (text) => text,
      stderr: (server, line) => void stderr.push(`${server}: ${line}`),
      checkCommand: async () => null,
      ...ports,
    },
    () => undefined,
  );
  hub.start(parseServers({ ...servers }).servers);
  await hub.settled(waitMs);
  const server = (name: string) => {
    const found = hub.get(name);
    if (!found) throw new Error(`no server ${name}`);
    return found;
  };
  const nobody: Ask = () => Promise.reject(new Error("nobody is here"));
  return {
    hub,
    dir,
    lines,
    stderr,
    server,
    async call(name, tool, args = {}, caller = {}) {
      const found = server(name).tools.find((one) => one.tool === tool);
      if (!found) return `no tool ${tool}`;
      const run = {
        sessionId: "s1",
        signal: new AbortController().signal,
        interactive: false,
        ask: nobody,
        progress: () => undefined,
        ...caller,
      };
      try {
        return await found.call(args, run);
      } catch (error) {
        return `${(error as Error).name}: ${(error as Error).message}`;
      }
    },
    async [Symbol.asyncDispose]() {
      await hub.close();
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
