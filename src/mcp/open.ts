// The MCP servers of one conversation. Nothing of the MCP room is loaded as long as no server is configured.
import { LayeredRegistry, registry, type ToolRegistry } from "../tools/toolset/registry.ts";
import { type McpPayer, type McpRequest, toolName, wantedServers } from "./settings.ts";
import type { McpUse } from "./shared.ts";

/** How long the first request of a new conversation waits for servers. */
const FIRST_REQUEST_WAITS_MS = 3000;

export class ConversationMcp {
  /** The tools of this conversation: everybody's, and those of its own servers. */
  readonly registry: ToolRegistry;
  readonly #request: McpRequest;
  readonly #use: Promise<McpUse | null>;
  readonly #startedAt: number;
  #payer: McpPayer | null = null;
  #reloaded: McpUse | null = null;
  #current: McpUse | null = null;
  readonly #reported = new Set<string>();
  #waited = false;

  /** Begins to connect in the background. */
  constructor(request: McpRequest) {
    this.#request = request;
    this.#startedAt = request.clock.now();
    const own = Object.keys(request.mcpServers ?? {});
    this.registry = own.length === 0 ? registry : new LayeredRegistry(registry);
    this.#use = wantedServers(request).length + own.length === 0 ? Promise.resolve(null) : this.#open();
    this.#use.catch((error) => request.home.log.warn("MCP servers could not be opened", error));
  }

  /** Who pays for what servers ask of a model; until it is known they get no answer. */
  setPayer(payer: McpPayer): void {
    this.#payer = payer;
  }

  /** Waits for servers that are on their way, at most three seconds from the beginning. */
  async ready(): Promise<void> {
    const use = await this.#use.catch(() => null);
    const left = this.#startedAt + FIRST_REQUEST_WAITS_MS - this.#request.clock.now();
    if (left > 0) await use?.settled(left);
    this.#waited = true;
  }

  /** What is wrong with servers, one line each, for the user; each line once. */
  takeTroubles(): readonly string[] {
    const lines = this.#current?.troubles({ slow: this.#waited }) ?? [];
    this.#waited = false;
    const fresh = lines.filter((line) => !this.#reported.has(line));
    for (const line of fresh) this.#reported.add(line);
    return fresh;
  }

  beforeTurn(): void {
    this.#current?.applyChanges();
  }

  async explainMissing(name: string, signal: AbortSignal): Promise<string | null> {
    if (!name.startsWith("mcp_")) return null;
    const use = this.#current;
    if (use) return use.explainMissing(name, signal);
    return `${name} belongs to an MCP server that is not configured or is disabled. "hermes mcp list" shows the servers.`;
  }

  /** Connects anew, as config.yaml says now. Resolves to one line per server. */
  async reload(): Promise<readonly string[]> {
    await this.#use.catch(() => null);
    if (!this.#current && wantedServers(this.#request).length === 0) return ["No MCP servers configured."];
    if (!this.#current) this.#reloaded = await this.#open();
    else await this.#current.reload();
    await this.#current?.settled(FIRST_REQUEST_WAITS_MS);
    return this.#current?.describe() ?? [];
  }

  async close(): Promise<void> {
    const use = await this.#use.catch(() => null);
    await (this.#reloaded ?? use)?.close();
    this.#current = null;
  }

  async #open(): Promise<McpUse> {
    const { useOwnServers, useServers } = await import("./shared.ts");
    const request = this.#request;
    const payer = () => this.#payer;
    const own = Object.keys(request.mcpServers ?? {}).length > 0;
    const uses = [
      // First: a name that both have is meant by whoever brought it along.
      ...(own ? [await useOwnServers(request, payer, this.registry)] : []),
      ...(wantedServers(request).length > 0 || !own ? [await useServers(request, payer)] : []),
    ];
    const [only, ...more] = uses;
    const use = only && more.length === 0 ? only : together(uses, Object.keys(request.mcpServers ?? {}));
    this.#current = use;
    return use;
  }
}

function together(uses: readonly McpUse[], own: readonly string[]): McpUse {
  const [brought, shared] = uses;
  return {
    settled: async (ms) => void (await Promise.all(uses.map((use) => use.settled(ms)))),
    applyChanges: () => {
      for (const use of uses) use.applyChanges();
    },
    explainMissing: async (name, signal) => {
      const isOwn = own.some((server) => name.startsWith(toolName(server, "")));
      return (await (isOwn ? brought : shared)?.explainMissing(name, signal)) ?? null;
    },
    reload: async () => void (await Promise.all(uses.map((use) => use.reload()))),
    troubles: (options) => uses.flatMap((use) => use.troubles(options)),
    describe: () => uses.flatMap((use) => use.describe()),
    close: async () => void (await Promise.all(uses.map((use) => use.close()))),
  };
}
