// All servers of a home, side by side: one that is slow, broken or forbidden never stops the others.
import type { McpPorts, McpTool, ServerStatus } from "./contract.ts";
import { ListingCache } from "./listing-cache.ts";
import { McpServer } from "./server.ts";
import type { ServerSettings } from "./settings.ts";

/** All first connections together. */
const START_MS = 120_000;

export interface HubPorts extends McpPorts {
  readonly cacheFile: string;
}

export interface ServerTools {
  readonly server: string;
  readonly tools: readonly McpTool[];
}

export class McpHub {
  readonly #ports: HubPorts;
  readonly #servers = new Map<string, McpServer>();
  readonly #started: Promise<void>[] = [];
  readonly #onTools: (change: ServerTools) => void;
  readonly #cache: ListingCache;

  private constructor(ports: HubPorts, cache: ListingCache, onTools: (change: ServerTools) => void) {
    this.#ports = ports;
    this.#cache = cache;
    this.#onTools = onTools;
  }

  /** `onTools` is told whenever the tools of a server are others than before: at once when it is new, else by `applyChanges`. */
  static async open(ports: HubPorts, onTools: (change: ServerTools) => void): Promise<McpHub> {
    return new McpHub(ports, await ListingCache.open(ports.cacheFile), onTools);
  }

  /** Begins to connect to those of the servers that are not known yet. Returns at once. */
  start(servers: readonly ServerSettings[]): void {
    const deadline = AbortSignal.timeout(START_MS);
    for (const settings of servers) {
      if (this.#servers.has(settings.name)) continue;
      const server = new McpServer({
        settings,
        ports: this.#ports,
        known: this.#cache.get(settings),
        onTools: ({ tools }) => this.#onTools({ server: settings.name, tools: this.#unique(settings.name, tools) }),
        onListing: (_server, listing) => this.#cache.put(settings, listing),
        onFailure: ({ message }) => this.#cache.putFailure(settings, { reason: message, at: this.#ports.clock.now() }),
      });
      this.#servers.set(settings.name, server);
      this.#started.push(server.start(deadline));
    }
  }

  /** Resolves when every server has come or failed, at the latest after `ms`. */
  async settled(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await Promise.race([Promise.all(this.#started), promise]);
    clearTimeout(timer);
  }

  /** Between turns: takes over what servers changed since, and says so in the log. */
  applyChanges(): void {
    for (const server of this.#servers.values()) {
      const change = server.applyChanges();
      if (!change) continue;
      const list = (names: readonly string[]) => (names.length === 0 ? "none" : names.join(", "));
      this.#ports.log.info(
        `MCP server "${server.settings.name}" changed its tools: added ${list(change.added)}; removed ${list(change.removed)}`,
      );
    }
  }

  get(name: string): McpServer | undefined {
    return this.#servers.get(name);
  }

  statuses(): readonly ServerStatus[] {
    return [...this.#servers.values()].map(({ status }) => status);
  }

  /** Connects anew to all of `servers`, forgets the others. Resolves when the outcome of each is known, at the latest after `ms`. */
  async reload(servers: readonly ServerSettings[], ms: number): Promise<void> {
    const old = [...this.#servers.values()];
    this.#servers.clear();
    this.#started.splice(0);
    await Promise.all(old.map((server) => server.close()));
    const kept = new Set(servers.map(({ name }) => name));
    for (const { settings } of old) if (!kept.has(settings.name)) this.#onTools({ server: settings.name, tools: [] });
    this.start(servers);
    await this.settled(ms);
  }

  /** Ends every server, in parallel. Resolves when no process of theirs is left. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
    await this.#cache.flush();
  }

  /** Two servers whose names look alike to a model must not answer for each other. */
  #unique(server: string, tools: readonly McpTool[]): readonly McpTool[] {
    const others = [...this.#servers.values()].filter(({ settings }) => settings.name !== server);
    const taken = new Map(
      others.flatMap((other) => other.tools.map(({ name }) => [name, other.settings.name] as const)),
    );
    return tools.filter(({ name, tool }) => {
      const owner = taken.get(name);
      if (owner === undefined) return true;
      this.#ports.log.warn(
        `MCP server "${server}": tool "${tool}" is left out, its name ${name} is taken by server "${owner}".`,
      );
      return false;
    });
  }
}
