// All servers of a home, side by side: one that is slow, broken or forbidden never stops the others.

import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomic } from "../kit/files.ts";
import type { McpPorts, McpTool, ServerStatus } from "./contract.ts";
import { ToolPins } from "./pins.ts";
import { McpServer } from "./server.ts";
import type { Listing } from "./server-tools.ts";
import { endpointKey, type ServerSettings } from "./settings.ts";

/** All first connections together. */
const START_MS = 120_000;

export interface HubPorts extends McpPorts {
  readonly cacheFile: string;
  /** What tools said of themselves when the user first met them. */
  readonly pinsFile: string;
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
  readonly #pins: ToolPins;

  private constructor(
    ports: HubPorts,
    kept: { readonly cache: ListingCache; readonly pins: ToolPins },
    onTools: (change: ServerTools) => void,
  ) {
    this.#ports = ports;
    this.#cache = kept.cache;
    this.#pins = kept.pins;
    this.#onTools = onTools;
  }

  /** `onTools` is called when the tools of a server changed: at once when it is new, else by `applyChanges`. */
  static async open(ports: HubPorts, onTools: (change: ServerTools) => void): Promise<McpHub> {
    const [cache, pins] = await Promise.all([ListingCache.open(ports.cacheFile), ToolPins.open(ports.pinsFile)]);
    return new McpHub(ports, { cache, pins }, onTools);
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
        review: (listing) => this.#pins.review(settings, listing),
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
    await this.#pins.flush().catch((error) => this.#ports.log.warn("what MCP tools are known by was not kept", error));
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
        `MCP server "${server}": tool "${tool}" is skipped: its name ${name} is already used by server "${owner}".`,
      );
      return false;
    });
  }
}

// What servers said they have, kept between runs: for those that connect late, and for commands that only list.

interface Entry {
  /** Of the endpoint: another command or address is another server. */
  readonly place: string;
  /** Null: it was never connected. */
  readonly listing: Listing | null;
  /** How the last try to connect failed; absent when it did not. */
  readonly failed?: FailedTry;
}

interface FailedTry {
  readonly reason: string;
  /** Milliseconds since the epoch: the first of several tries with the same end. */
  readonly at: number;
}

export class ListingCache {
  readonly #path: string;
  #entries: Record<string, Entry> = {};
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string) {
    this.#path = path;
  }

  static async open(path: string): Promise<ListingCache> {
    const cache = new ListingCache(path);
    cache.#entries = await cache.#read();
    return cache;
  }

  get(settings: ServerSettings): Listing | null {
    return this.#entry(settings)?.listing ?? null;
  }

  /** How the last try to connect failed; null when it did not. */
  failed(settings: ServerSettings): FailedTry | null {
    return this.#entry(settings)?.failed ?? null;
  }

  /** It is connected, and this is what it has. */
  put(settings: ServerSettings, listing: Listing): void {
    this.#keep(settings, { place: endpointKey(settings.endpoint), listing });
  }

  /** It could not be connected; what it had before stays known. */
  putFailure(settings: ServerSettings, failed: FailedTry): void {
    const before = this.#entry(settings);
    if (before?.failed?.reason === failed.reason) return;
    this.#keep(settings, { place: endpointKey(settings.endpoint), listing: before?.listing ?? null, failed });
  }

  #entry({ name, endpoint }: ServerSettings): Entry | null {
    const entry = Object.hasOwn(this.#entries, name) ? this.#entries[name] : undefined;
    return entry?.place === endpointKey(endpoint) ? entry : null;
  }

  /** Another process may have written meanwhile: its servers are kept. A cache that cannot be written is no loss. */
  #keep({ name }: ServerSettings, entry: Entry): void {
    if (JSON.stringify(this.#entries[name]) === JSON.stringify(entry)) return;
    this.#entries[name] = entry;
    this.#writing = this.#writing.then(async () => {
      try {
        const merged = { ...(await this.#read()), [name]: entry };
        await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
        await writeFileAtomic(this.#path, `${JSON.stringify(merged)}\n`, { mode: 0o600 });
      } catch {
        // read again from the server next time
      }
    });
  }

  flush(): Promise<void> {
    return this.#writing;
  }

  async #read(): Promise<Record<string, Entry>> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      if (typeof value !== "object" || value === null) return {};
      return Object.fromEntries(Object.entries(value).filter(([, entry]) => isEntry(entry)));
    } catch {
      return {}; // no cache yet, or not ours
    }
  }
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== "object" || value === null || !("place" in value) || !("listing" in value)) return false;
  const { listing } = value;
  if (listing === null) return "failed" in value;
  return typeof listing === "object" && "tools" in listing && Array.isArray(listing.tools);
}
