import { createHash } from "node:crypto";
import type { OpenHome } from "../home/open.ts";
import type { Clock } from "../kit/clock.ts";
import type { ModelSpec } from "../llm/auxiliary/contract.ts";
import type { ModelGate } from "../llm/gate.ts";
import type { Usage } from "../llm/usage.ts";
import type { Target } from "../llm/wire.ts";
import { chooseServers } from "../tools/toolset/toolsets.ts";

// One entry of `mcp_servers`: what the user wrote, read once into what the program uses.

export interface StdioEndpoint {
  readonly type: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface HttpEndpoint {
  readonly type: "http" | "sse";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** False: any certificate will do. A text: the file of the authority to trust. */
  readonly verify: boolean | string;
  readonly clientCert: string | null;
  readonly clientKey: string | null;
  readonly oauth: OAuthSettings | null;
}

export interface OAuthSettings {
  readonly clientId: string | null;
  readonly clientSecret: string | null;
  readonly scope: string | null;
  /** 0 = any free port. */
  readonly redirectPort: number;
  readonly clientName: string;
}

export interface SamplingSettings {
  readonly enabled: boolean;
  readonly model: string | null;
  readonly maxTokensCap: number;
  readonly timeoutSeconds: number;
  readonly maxPerMinute: number;
  /** Empty = any. */
  readonly allowedModels: readonly string[];
  readonly maxToolRounds: number;
}

export interface ServerSettings {
  readonly name: string;
  readonly enabled: boolean;
  readonly endpoint: StdioEndpoint | HttpEndpoint;
  readonly timeoutMs: number;
  readonly connectMs: number;
  /** Null = all. */
  readonly include: readonly string[] | null;
  readonly exclude: readonly string[];
  readonly resources: boolean;
  readonly prompts: boolean;
  readonly parallel: boolean;
  readonly keepaliveMs: number;
  /** Null = never closed for being idle. */
  readonly idleMs: number | null;
  /** Connected with the first call, once its tools are known. */
  readonly lazy: boolean;
  readonly sampling: SamplingSettings;
  readonly elicitation: { readonly enabled: boolean; readonly timeoutMs: number };
}

interface ParsedServers {
  readonly servers: readonly ServerSettings[];
  /** One line each: which server, what is wrong, what to do. A bad server never stops the rest. */
  readonly problems: readonly string[];
}

type Tree = Readonly<Record<string, unknown>>;

export function parseServers(entries: Tree): ParsedServers {
  const servers: ServerSettings[] = [];
  const problems: string[] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const parsed = parseServer(name, entry);
    if (parsed.settings) servers.push(parsed.settings);
    problems.push(...parsed.problems);
  }
  return { servers, problems };
}

export function parseServer(
  name: string,
  entry: unknown,
): { readonly settings: ServerSettings | null; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const say = (what: string) => void problems.push(`MCP server "${name}": ${what}`);
  if (!isTree(entry)) {
    say(`mcp_servers.${name} must be a mapping with command or url; it is ignored.`);
    return { settings: null, problems };
  }
  const reader = new Reader(entry, `mcp_servers.${name}`, say);
  const endpoint = endpointOf(name, entry, reader, say);
  if (!endpoint) return { settings: null, problems };
  const tools = reader.section("tools");
  const exclude = tools.list("exclude");
  const include = tools.has("include") ? tools.list("include") : null;
  if (!tools.sound) {
    say(`mcp_servers.${name}.tools (which tools may be used) cannot be read; the server is ignored.`);
    return { settings: null, problems };
  }
  const sampling = reader.switched("sampling");
  const allowedModels = sampling.list("allowed_models");
  const limits = {
    maxTokensCap: sampling.number("max_tokens_cap", 4096),
    timeoutSeconds: sampling.number("timeout", 30),
    maxPerMinute: sampling.number("max_rpm", 10),
    maxToolRounds: sampling.number("max_tool_rounds", 5),
  };
  const elicitation = reader.switched("elicitation");
  const idle = reader.number("idle_timeout_seconds", 0);
  const settings: ServerSettings = {
    name,
    enabled: reader.leave("enabled", true),
    endpoint,
    timeoutMs: reader.number("timeout", 120) * 1000,
    connectMs: reader.number("connect_timeout", 60) * 1000,
    include,
    exclude,
    resources: tools.leave("resources", true),
    prompts: tools.leave("prompts", true),
    parallel: reader.flag("supports_parallel_tool_calls", false),
    keepaliveMs: Math.max(5, reader.number("keepalive_interval", 180)) * 1000,
    idleMs: idle > 0 ? idle * 1000 : null,
    lazy: reader.flag("lazy", false),
    sampling: {
      // It costs money: with a limit that cannot be read there is none.
      enabled: sampling.leave("enabled", true) && sampling.sound,
      model: sampling.text("model"),
      ...limits,
      allowedModels,
    },
    elicitation: {
      enabled: reader.has("elicitation") && elicitation.leave("enabled", true),
      timeoutMs: elicitation.number("timeout", 300) * 1000,
    },
  };
  return { settings, problems };
}

function endpointOf(
  name: string,
  entry: Tree,
  reader: Reader,
  say: (what: string) => void,
): ServerSettings["endpoint"] | null {
  const command = reader.text("command");
  const address = reader.text("url");
  if (address === null) {
    if (command !== null) {
      return { type: "stdio", command, args: reader.list("args"), env: textsOf(entry.env) };
    }
    say(`it has no command or url. Set one: hermes config set mcp_servers.${name}.url URL`);
    return null;
  }
  if (command !== null) say("it has both command and url; url is used. Remove one of them from config.yaml.");
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    say(`mcp_servers.${name}.url is not an http or https URL.`);
    return null;
  }
  const oauth = reader.section("oauth");
  if (reader.has("client_key") && !reader.has("client_cert")) say(`mcp_servers.${name}.client_key needs client_cert.`);
  return {
    type: reader.text("transport")?.toLowerCase() === "sse" ? "sse" : "http",
    url,
    headers: textsOf(entry.headers),
    verify:
      typeof entry.ssl_verify === "string" && !isBoolean(entry.ssl_verify)
        ? entry.ssl_verify
        : reader.flag("ssl_verify", true),
    clientCert: reader.text("client_cert"),
    clientKey: reader.text("client_key"),
    oauth:
      reader.text("auth")?.toLowerCase() === "oauth"
        ? {
            clientId: oauth.text("client_id"),
            clientSecret: oauth.text("client_secret"),
            scope: oauth.text("scope"),
            redirectPort: oauth.number("redirect_port", 0),
            clientName: oauth.text("client_name") ?? "Hermes Agent",
          }
        : null,
  };
}

/** Reads the keys of one mapping; what does not fit is reported and replaced by its default. */
class Reader {
  readonly #tree: Tree;
  readonly #path: string;
  readonly #say: (what: string) => void;
  /** Everything that was looked at so far could be read. */
  sound = true;

  constructor(tree: Tree, path: string, say: (what: string) => void) {
    this.#tree = tree;
    this.#path = path;
    this.#say = say;
  }

  has(key: string): boolean {
    return this.#tree[key] !== undefined && this.#tree[key] !== null;
  }

  section(key: string): Reader {
    const value = this.#tree[key];
    const read = new Reader(isTree(value) ? value : {}, `${this.#path}.${key}`, this.#say);
    if (this.has(key) && !isTree(value)) {
      this.#wrong(key, "a mapping");
      read.sound = false;
    }
    return read;
  }

  /** A section that may also be just switched on or off. What is neither is off. */
  switched(key: string): Reader {
    const value = this.#tree[key];
    if (!this.has(key) || isTree(value)) return this.section(key);
    return new Reader({ enabled: this.leave(key, true) }, `${this.#path}.${key}`, this.#say);
  }

  text(key: string): string | null {
    const value = this.#tree[key];
    if (typeof value === "number") return String(value);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
  }

  number(key: string, fallback: number): number {
    const value = this.#tree[key];
    if (!this.has(key)) return fallback;
    // A value that came out of a template is text.
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number === "number" && Number.isFinite(number) && number >= 0) return number;
    this.#wrong(key, `a number; ${fallback} is used`);
    return fallback;
  }

  flag(key: string, fallback: boolean): boolean {
    return this.#flag(key, fallback, fallback);
  }

  /** A switch that lets the server do more: false when it cannot be read. */
  leave(key: string, fallback: boolean): boolean {
    return this.#flag(key, fallback, false);
  }

  #flag(key: string, fallback: boolean, unclear: boolean): boolean {
    const value = this.#tree[key];
    if (!this.has(key)) return fallback;
    if (typeof value === "boolean") return value;
    if (typeof value === "string" && isBoolean(value)) return /^(?:true|yes|on|1)$/i.test(value.trim());
    this.#wrong(key, `true or false; ${unclear} is used`);
    return unclear;
  }

  list(key: string): readonly string[] {
    const value = this.#tree[key];
    if (!this.has(key)) return [];
    if (typeof value === "string") return [value];
    if (Array.isArray(value) && !value.some((item) => typeof item === "object")) return value.map(String);
    this.#wrong(key, "a list of texts");
    return [];
  }

  #wrong(key: string, wanted: string): void {
    this.sound = false;
    this.#say(`${this.#path}.${key} must be ${wanted}.`);
  }
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  if (!isTree(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) =>
      inner === null || inner === undefined ? [] : [[key, String(inner)]],
    ),
  );
}

function isBoolean(text: string): boolean {
  return /^(?:true|false|yes|no|on|off|0|1)$/i.test(text.trim());
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// What a conversation says about MCP servers: which it wants, and who pays for what they ask of a model.

export interface McpRequest {
  readonly home: OpenHome;
  readonly clock: Clock;
  readonly cwd: string;
  readonly platform: string;
  readonly toolsets?: readonly string[] | undefined;
  readonly yolo?: boolean | undefined;
  /** Servers of this conversation alone, by name, as `mcp_servers` of the settings would have them. */
  readonly mcpServers?: Readonly<Record<string, unknown>> | undefined;
}

export interface McpPayer {
  sessionId(): string;
  readonly gate: ModelGate;
  readonly jobId?: string | undefined;
  /** The conversation's model, as it is now. */
  main(): Target;
  resolve(spec: ModelSpec): Promise<Target>;
  /** What an answer took. */
  used(usage: Usage): void;
}

/** Names of the servers this conversation may use. */
export function wantedServers({ home, platform, toolsets }: McpRequest): string[] {
  return chooseServers({ platform, config: home.config(), toolsets });
}

// The names a server's tools have for the model.

const LONGEST = 64;

/** `mcp_<server>_<tool>` in characters every provider takes; longer names are cut and get a hash. */
export function toolName(server: string, tool: string): string {
  return fit(`mcp_${plain(server)}_${plain(tool)}`);
}

/** The name behind `mcp__server__tool`, the way other clients write it; null for everything else. */
export function fromDoubleUnderscores(name: string): string | null {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/s.exec(name) ?? [];
  return server === undefined || tool === undefined ? null : toolName(server, tool);
}

/** A hash: the endpoint may hold secrets in arguments and headers. */
export function endpointKey(endpoint: ServerSettings["endpoint"]): string {
  const plain = endpoint.type === "stdio" ? [endpoint.command, endpoint.args] : [endpoint.type, String(endpoint.url)];
  return createHash("sha256").update(JSON.stringify(plain)).digest("hex").slice(0, 16);
}

export function toolsetName(server: string): string {
  return `mcp-${server}`;
}

function plain(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/gu, "_");
}

function fit(name: string): string {
  if (name.length <= LONGEST) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  return `${name.slice(0, LONGEST - hash.length - 1)}_${hash}`;
}
