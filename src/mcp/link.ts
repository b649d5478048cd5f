// One live connection: started, greeted, ready to be asked. What it needs of the SDK is loaded with the first one.
import type { Client, ClientCapabilities, Transport } from "@modelcontextprotocol/client";
import type { Logger } from "../home/log.ts";
import { VERSION } from "../home/paths.ts";
import { expandPath } from "../safety/paths.ts";
import { elicit, type Sampler } from "./client-requests.ts";
import type { McpCaller, McpPorts } from "./contract.ts";
import { McpError } from "./errors.ts";
import { didNotConnect, explainFailure, within } from "./health.ts";
import { serverFetch } from "./http-fetch.ts";
import { commandLine, malwareNotices, packageOf } from "./launch-check.ts";
import { OAuthFiles, refreshingOnce, TokenProvider } from "./oauth-provider.ts";
import type { HttpEndpoint, ServerSettings, StdioEndpoint } from "./settings.ts";
import { StdioTransport } from "./stdio-transport.ts";

interface LinkOptions {
  readonly settings: ServerSettings;
  readonly ports: McpPorts;
  readonly sampler: Sampler;
  /** The call that runs now, for what the server asks in the middle of it. */
  caller(): McpCaller | null;
  onToolsChanged(): void;
  /** It ended without being closed. */
  onLost(): void;
  readonly signal: AbortSignal;
}

export interface Link {
  readonly client: Client;
  readonly pid: number | null;
  /** How the server's process ended; null while it runs or when there is none. */
  ending(): string | null;
  /** Resolves when nothing of it is left. */
  close(): Promise<void>;
}

/** Rejects with `McpError`; then nothing of the attempt is left either. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const { settings, ports, signal } = options;
  const { endpoint } = settings;
  if (endpoint.type === "stdio") await checkLaunch(endpoint, options);
  const sdk = await loadSdk(ports.log);
  const transport = endpoint.type === "stdio" ? stdio(sdk, endpoint, options) : await http(sdk, endpoint, options);
  const client = makeClient(sdk, options);
  const ending = () => (transport instanceof StdioTransport ? transport.ending : null);
  let closed = false;
  const close = async () => {
    closed = true;
    await client.close();
    await transport.close();
  };
  try {
    const greeting = client.connect(transport, { timeout: settings.connectMs, signal });
    await within(greeting, settings.connectMs, () => didNotConnect(settings), signal);
  } catch (error) {
    await close();
    throw explainFailure(error, { settings, redact: ports.redact, ending: ending() });
  }
  client.onclose = () => {
    if (!closed) options.onLost();
  };
  client.onerror = (error) => ports.log.debug(`MCP server "${settings.name}": ${ports.redact(error.message)}`);
  // It may have gone between the greeting and now.
  if (ending() !== null) throw explainFailure(new Error("gone"), { settings, redact: ports.redact, ending: ending() });
  return { client, pid: transport instanceof StdioTransport ? transport.pid : null, ending, close };
}

async function checkLaunch(endpoint: StdioEndpoint, { settings, ports, signal }: LinkOptions): Promise<void> {
  const refusal = await ports.checkCommand(commandLine(endpoint), settings.name);
  if (refusal !== null) throw new McpError("blocked", `MCP server "${settings.name}": ${refusal}`);
  const fetched = packageOf(endpoint.command, endpoint.args);
  if (!fetched) return;
  const notices = await malwareNotices(fetched, { fetch, signal, url: ports.osvUrl });
  if (notices.length === 0) return;
  throw new McpError(
    "blocked",
    `MCP server "${settings.name}": BLOCKED: Package '${fetched.name}' (${fetched.ecosystem}) has known malware advisories: ${notices.join(", ")}. Remove it: hermes mcp remove ${settings.name}`,
  );
}

function stdio(sdk: Sdk, { command, args, env }: StdioEndpoint, { settings, ports }: LinkOptions): StdioTransport {
  return new StdioTransport(sdk, {
    command: command.startsWith("~/") ? expandPath(command, ports.cwd, ports.osHome) : command,
    args,
    env: serverEnvironment(ports.environment(), env),
    cwd: ports.cwd,
    onStderr: (line) => ports.stderr(settings.name, line),
  });
}

async function http(sdk: Sdk, endpoint: HttpEndpoint, { settings, ports }: LinkOptions): Promise<Transport> {
  const files = new OAuthFiles(ports.tokensDir, settings.name);
  const authProvider = endpoint.oauth
    ? new TokenProvider({
        server: settings.name,
        settings: endpoint.oauth,
        files,
        // Nobody is sent there from here; it is what a login would have used.
        redirectUrl: `http://127.0.0.1:${endpoint.oauth.redirectPort || 1}/callback`,
      })
    : undefined;
  const shared = {
    fetch: refreshingOnce(
      await serverFetch(endpoint, { server: settings.name, cwd: ports.cwd, osHome: ports.osHome }),
      files,
    ),
    // Ours: it follows redirects, and leaves credentials behind when they lead elsewhere.
    redirectPolicy: "follow" as const,
    requestInit: { headers: { ...endpoint.headers } },
    authProvider,
  };
  if (endpoint.type === "sse") return new sdk.SSEClientTransport(endpoint.url, shared);
  return new sdk.StreamableHTTPClientTransport(endpoint.url, shared);
}

function makeClient(sdk: Sdk, { settings, sampler, caller, onToolsChanged }: LinkOptions): Client {
  const capabilities: ClientCapabilities = {
    sampling: sampler.enabled ? { tools: {} } : undefined,
    elicitation: settings.elicitation.enabled ? { form: {} } : undefined,
  };
  const client = new sdk.Client({ name: "hermes", version: VERSION }, { capabilities });
  client.setNotificationHandler("notifications/tools/list_changed", onToolsChanged);
  if (sampler.enabled) {
    client.setRequestHandler("sampling/createMessage", (request, ctx) =>
      sampler.answer(request.params, { sessionId: caller()?.sessionId ?? null, signal: ctx.mcpReq.signal }),
    );
  }
  if (settings.elicitation.enabled) {
    client.setRequestHandler("elicitation/create", async (request, ctx) => {
      if (request.params.mode === "url") return { action: "decline" };
      const signal = AbortSignal.any([ctx.mcpReq.signal, AbortSignal.timeout(settings.elicitation.timeoutMs)]);
      return elicit(settings.name, request.params, caller(), signal);
    });
  }
  return client;
}

const PASSED = new Set(["PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR"]);
/** Without these no program starts on Windows. */
const WINDOWS = new Set([
  "SYSTEMROOT",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "TEMP",
  "TMP",
  "APPDATA",
  "LOCALAPPDATA",
  "USERPROFILE",
]);

/** What a server's process sees: a few harmless variables and what the user gave it. Keys of ours never get there by themselves. */
export function serverEnvironment(
  parent: Readonly<Record<string, string>>,
  configured: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const passed = Object.entries(parent).filter(
    ([name]) =>
      PASSED.has(name) || name.startsWith("XDG_") || (platform === "win32" && WINDOWS.has(name.toUpperCase())),
  );
  return { ...Object.fromEntries(passed), ...configured };
}

// The SDK, loaded with the first server.

export type Sdk = typeof import("@modelcontextprotocol/client");

let quieted = false;

export async function loadSdk(log: Pick<Logger, "debug">): Promise<Sdk> {
  const sdk = await import("@modelcontextprotocol/client");
  if (!quieted) {
    quieted = true;
    // It has no other way to warn than the terminal, which belongs to the conversation.
    const warn = console.warn;
    console.warn = (...words: unknown[]) => {
      if (typeof words[0] === "string" && words[0].startsWith("[mcp-sdk]")) log.debug(words.join(" "));
      else warn(...words);
    };
  }
  return sdk;
}
