// The servers of a home, shared by its conversations: each is started once, and ends with the last conversation that uses it.

import { openLogFile } from "../home/log.ts";
import type { OpenHome } from "../home/open.ts";
import { messageOf } from "../kit/errors.ts";
import { createAuxiliary } from "../llm/auxiliary/client.ts";
import { sanitizeError, toolError } from "../tools/toolset/dispatch.ts";
import { registry, type ToolRegistry } from "../tools/toolset/registry.ts";
import type { McpTool, SamplingAnswer, SamplingCall, ServerStatus } from "./contract.ts";
import { McpError } from "./errors.ts";
import { type HubPorts, ListingCache, McpHub, type ServerTools } from "./hub.ts";
import { launchRefusal } from "./launch-check.ts";
import { buildTools } from "./server-tools.ts";
import {
  type McpPayer,
  type McpRequest,
  parseServer,
  parseServers,
  type ServerSettings,
  toolName,
  toolsetName,
  wantedServers,
} from "./settings.ts";

/** How long a call waits for a server that is on its way. */
const CALL_WAITS_MS = 15_000;
const STDERR_BYTES = 5 * 1024 * 1024;

interface Shared {
  readonly hub: McpHub;
  readonly users: Set<() => McpPayer | null>;
}

const shared = new WeakMap<OpenHome, Promise<Shared>>();

/** One conversation's share of the servers. */
export interface McpUse {
  settled(ms: number): Promise<void>;
  applyChanges(): void;
  explainMissing(name: string, signal: AbortSignal): Promise<string | null>;
  reload(): Promise<void>;
  /** What tools say of themselves changed. One line per server that cannot be used; with `slow`, also for those that have not answered yet. */
  troubles(options: { readonly slow: boolean }): readonly string[];
  /** One line per server, for the user. */
  describe(): readonly string[];
  /** The servers end with the last conversation. */
  close(): Promise<void>;
}

export async function useServers(request: McpRequest, payer: () => McpPayer | null): Promise<McpUse> {
  const { home } = request;
  const opening = shared.get(home) ?? openShared(request);
  shared.set(home, opening);
  const { hub, users } = await opening;
  users.add(payer);
  hub.start(configured(request));
  return {
    ...usesOf(hub, () => Object.keys(home.config().mcp_servers)),
    reload: () => hub.reload(configured(request), CALL_WAITS_MS),
    troubles: ({ slow }) => [...unusable(request), ...troublesOf(hub, slow)],
    async close() {
      if (!users.delete(payer) || users.size > 0) return;
      shared.delete(home);
      // At once: a conversation that opens from here on starts servers of its own, under the same names.
      for (const { name } of hub.statuses()) publish({ server: name, tools: [] }, home, registry);
      await hub.close();
    },
  };
}

/** Servers that belong to one conversation: nobody else has them, and they end with it. */
export async function useOwnServers(
  request: McpRequest,
  payer: () => McpPayer | null,
  own: ToolRegistry,
): Promise<McpUse> {
  const { home, mcpServers = {} } = request;
  const { servers, problems } = parseServers(mcpServers);
  const users = new Set([payer]);
  const ports = hubPorts(request, (call) => sample(call, users, request));
  const hub = await McpHub.open(ports, (change) => publish(change, home, own));
  hub.start(servers);
  return {
    ...usesOf(hub, () => Object.keys(mcpServers)),
    reload: () => hub.reload(servers, CALL_WAITS_MS),
    troubles: ({ slow }) => [...problems, ...troublesOf(hub, slow)],
    close: () => hub.close(),
  };
}

function usesOf(
  hub: McpHub,
  names: () => readonly string[],
): Pick<McpUse, "settled" | "applyChanges" | "explainMissing" | "describe"> {
  return {
    settled: (ms) => hub.settled(ms),
    applyChanges: () => hub.applyChanges(),
    explainMissing: (name) => explainMissing(name, hub, names()),
    describe: () => hub.statuses().map(describe),
  };
}

const troublesOf = (hub: McpHub, slow: boolean) => [
  ...hub.statuses().flatMap(({ changes }) => changes),
  ...hub.statuses().flatMap((status) => troubleOf(status) ?? (slow ? (slownessOf(status) ?? []) : [])),
];

async function openShared(request: McpRequest): Promise<Shared> {
  const { home } = request;
  const users: Shared["users"] = new Set();
  const hub = await McpHub.open(
    hubPorts(request, (call) => sample(call, users, request)),
    (change) => publish(change, home, registry),
  );
  return { hub, users };
}

/** What the MCP room needs of a home. */
export function hubPorts(request: McpRequest, sample?: HubPorts["sample"]): HubPorts {
  const { home, clock, cwd } = request;
  const log = home.log.child("mcp");
  const stderr = openLogFile({
    path: home.paths.at("logs", "mcp-stderr.log"),
    maxBytes: STDERR_BYTES,
    backups: 1,
    onTrouble: (note) => log.warn(note),
    clock,
  });
  return {
    clock,
    log,
    // npx, node and their kin look for programs and settings where they are started.
    cwd: home.folders.isTrusted(cwd) ? cwd : home.osHome,
    osHome: home.osHome,
    environment: () => home.environment(),
    tokensDir: home.paths.at("mcp-tokens"),
    mediaDir: home.paths.cacheDir,
    cacheFile: home.paths.at("cache", "mcp_tools.json"),
    pinsFile: home.paths.at("mcp_pins.json"),
    redact: (text) => home.redact(text),
    stderr: (server, line) =>
      stderr.append(`${new Date(clock.now()).toISOString()} [${server}] ${home.redact(line)}\n`),
    checkCommand: async (line, server) =>
      launchRefusal(server, line, {
        config: home.config(),
        home: home.paths.dir,
        osHome: home.osHome,
        sudoPasswordSet: home.env("SUDO_PASSWORD") !== undefined,
        yolo: request.yolo === true,
      }),
    sample,
  };
}

/** Puts the tools of servers as they were last seen into the registry, for commands that only list them. */
export async function registerKnownTools(home: OpenHome): Promise<void> {
  const cache = await ListingCache.open(home.paths.at("cache", "mcp_tools.json"));
  const asleep = () => Promise.reject(new McpError("unreachable", "nobody is connected"));
  const ports = { mediaDir: home.paths.cacheDir, redact: (text: string) => text };
  for (const settings of parseServers(home.config().mcp_servers).servers) {
    const listing = settings.enabled ? cache.get(settings) : null;
    if (listing)
      publish({ server: settings.name, tools: buildTools(listing, settings, asleep, ports).tools }, home, registry);
  }
}

function configured(request: McpRequest): ServerSettings[] {
  const { home } = request;
  const wanted = new Set(wantedServers(request));
  const { servers, problems } = parseServers(home.config().mcp_servers);
  for (const problem of problems) home.log.child("mcp").warn(problem);
  return servers.filter(({ name }) => wanted.has(name));
}

/** What keeps a server of this conversation from being tried at all. */
function unusable(request: McpRequest): readonly string[] {
  const entries = request.home.config().mcp_servers;
  return wantedServers(request).flatMap((name) => {
    const { settings, problems } = parseServer(name, entries[name]);
    return settings ? [] : problems;
  });
}

function troubleOf({ state, reason }: ServerStatus): string | null {
  return state === "connected" || state === "idle" || state === "closed" ? null : reason;
}

function slownessOf({ name, state }: ServerStatus): string | null {
  if (state !== "waiting" && state !== "connecting") return null;
  return `MCP server "${name}" has not responded yet: this conversation starts without its tools. To see why: hermes mcp test ${name}`;
}

/** The registry always holds what a server offers now; conversations keep the list they began with. */
function publish({ server, tools }: ServerTools, home: OpenHome, into: ToolRegistry): void {
  const toolset = toolsetName(server);
  const now = new Set(tools.map(({ name }) => name));
  for (const name of into.toolsOf(toolset)) if (!now.has(name)) into.deregister(name);
  for (const tool of tools) register(tool, toolset, home, into);
  // A toolset of ours with the same name keeps it; `mcp-<server>` always works.
  if (tools.length > 0 && into.toolsOf(server).length === 0) into.alias(server, toolset);
}

function register(tool: McpTool, toolset: string, home: OpenHome, into: ToolRegistry): void {
  const { name, description, parameters, parallel, timeoutMs } = tool;
  into.register({
    name,
    toolset,
    description,
    parameters,
    parallel,
    emoji: "🔌",
    textOrigin: "mcp",
    timeoutMs: () => timeoutMs,
    async handler(args, ctx) {
      try {
        return await tool.call(args, ctx);
      } catch (error) {
        if (error instanceof McpError) return toolError(error.message);
        home.log.child("mcp").warn(`${name} failed`, error);
        return toolError(sanitizeError(messageOf(error)));
      }
    },
  });
}

async function explainMissing(name: string, hub: McpHub, servers: readonly string[]): Promise<string | null> {
  const isOwn = (server: string) => name.startsWith(toolName(server, ""));
  const server = servers.find(isOwn);
  if (server === undefined) {
    return `${name} belongs to an MCP server that is no longer configured. "hermes mcp list" shows the servers.`;
  }
  const state = hub.get(server)?.status.state;
  if (state === "waiting" || state === "connecting") await hub.settled(CALL_WAITS_MS);
  const status = hub.get(server)?.status;
  if (!status)
    return `MCP server "${server}" is disabled. To use it: hermes config set mcp_servers.${server}.enabled true`;
  if (status.state === "connected") return `MCP server "${server}" no longer offers ${name}.`;
  return status.reason ?? `MCP server "${server}" is still being connected; try again later.`;
}

function describe({ name, state, reason, tools }: ServerStatus): string {
  if (state === "connected" || state === "idle") return `${name}: ${tools} ${tools === 1 ? "tool" : "tools"}`;
  return `${name}: ${reason ?? state}`;
}

/** A server's question to a model, paid for by the conversation that called it; by the newest one when none did. */
async function sample(
  call: SamplingCall,
  users: Shared["users"],
  { home, clock }: McpRequest,
): Promise<SamplingAnswer> {
  const payers = [...users].flatMap((payer) => payer() ?? []);
  const payer = payers.find((one) => one.sessionId() === call.sessionId) ?? payers.at(-1);
  if (!payer) throw new Error("no conversation is open that could answer");
  const auxiliary = createAuxiliary({
    gate: payer.gate,
    jobId: payer.jobId,
    clock,
    log: home.log.child("mcp"),
    config: () => home.config(),
    main: () => payer.main(),
    resolve: (spec) => payer.resolve(spec),
    onUsage: (usage) => payer.used(usage),
  });
  const { text, message, finishReason, target } = await auxiliary.callAux({
    task: "mcp",
    messages: call.messages,
    maxTokens: call.maxTokens,
    temperature: call.temperature,
    tools: call.tools,
    timeout: call.timeoutSeconds,
    signal: call.signal,
    sessionId: call.sessionId,
    model: call.model ?? undefined,
  });
  return { text, toolCalls: message.tool_calls ?? [], finishReason, model: target.model };
}
