// One configured server over its whole life: connected, lost, found again, left in peace, closed.
import type { Client, RequestOptions } from "@modelcontextprotocol/client";
import { Sampler } from "./client-requests.ts";
import type { McpCaller, McpPorts, McpTool, ServerState, ServerStatus } from "./contract.ts";
import { McpError } from "./errors.ts";
import { Breaker, explainFailure, isAnswer, QuietWatch, within } from "./health.ts";
import { type Link, openLink } from "./link.ts";
import { buildTools, type Listing, Offering, readListing } from "./server-tools.ts";
import type { ServerSettings } from "./settings.ts";

const START_TRIES = 3;
const TRIES = 5;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
const PARKED_MS = 300_000;
/** How long a call waits for a connection that is being made. */
const CALL_WAITS_MS = 15_000;
/** A connection that lasted this long was a good one: the next loss starts counting anew. */
const GOOD_MS = 30_000;

interface ServerOptions {
  readonly settings: ServerSettings;
  readonly ports: McpPorts;
  /** What it said it has when it was last connected, for servers that connect late. */
  readonly known: Listing | null;
  /** What of a listing may be shown, and what the user should know of it. */
  review(listing: Listing): { readonly listing: Listing; readonly warnings: readonly string[] };
  /** It has tools for the first time. Later changes wait for `applyChanges`. */
  onTools(server: McpServer): void;
  onListing(server: McpServer, listing: Listing): void;
  /** A try to connect has failed. */
  onFailure(failure: McpError): void;
}

/**
 * - Nothing here rejects but `reconnect` and the calls of its tools, and those with `McpError` alone.
 * - At most one process of the server is alive at any time.
 */
export class McpServer {
  readonly settings: ServerSettings;
  readonly #options: ServerOptions;
  readonly #breaker: Breaker;
  readonly #sampler: Sampler;
  readonly #watch: QuietWatch;
  readonly #offering: Offering;
  readonly #stop = new AbortController();
  readonly #callers: McpCaller[] = [];
  #changes: readonly string[] = [];
  #state: ServerState = "waiting";
  #failure: McpError | null = null;
  #link: Link | null = null;
  #linkedAt = 0;
  #opening: Promise<Link> | null = null;
  #recovering = false;
  #tries = 0;
  #nextTry = 0;
  #refreshing: Promise<void> = Promise.resolve();

  constructor(options: ServerOptions) {
    const { settings, ports } = options;
    this.settings = settings;
    this.#options = options;
    this.#breaker = new Breaker(ports.clock);
    this.#watch = new QuietWatch({
      keepaliveMs: settings.keepaliveMs,
      idleMs: settings.idleMs,
      onSilence: () => this.#lost(),
      onIdle: (link) => this.#sleep(link),
    });
    const { mediaDir, log } = ports;
    const results = { mediaDir, redact: (text: string) => ports.redact(text) };
    this.#offering = new Offering({
      build: (listed) => {
        const { listing, warnings } = options.review(listed);
        this.#changes = warnings;
        const built = buildTools(listing, settings, (caller, run) => this.#request(caller, run), results);
        return { ...built, warnings: [...built.warnings, ...warnings] };
      },
      onTools: () => options.onTools(this),
      warn: (line) => log.warn(line),
    });
    this.#sampler = new Sampler({
      server: settings.name,
      settings: settings.sampling,
      clock: ports.clock,
      sample: ports.sample,
    });
  }

  get tools(): readonly McpTool[] {
    return this.#offering.tools;
  }

  get status(): ServerStatus {
    return {
      name: this.settings.name,
      state: this.#state,
      reason: this.#link ? null : (this.#failure?.message ?? null),
      tools: this.#offering.tools.length,
      warnings: this.#offering.warnings,
      changes: this.#changes,
    };
  }

  /** The process of the server; null when it has none. */
  get pid(): number | null {
    return this.#link?.pid ?? null;
  }

  /** The first connection, in at most three tries and until `deadline` aborts. Resolves when its outcome is known. */
  async start(deadline: AbortSignal): Promise<void> {
    const { known } = this.#options;
    if (this.settings.lazy && known) {
      this.#state = "idle";
      this.#offering.take(known);
      return;
    }
    for (let n = 1; ; n++) {
      try {
        await this.#open(deadline);
        return;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        if (n === START_TRIES || deadline.aborted || !mayPass(error)) break;
        if (!(await this.#pause(pauseBefore(n, this.#options.ports.clock.random())))) return;
      }
    }
    this.#options.ports.log.warn(this.#failure?.message ?? `MCP server "${this.settings.name}" is not available`);
    if (mayPass(this.#failure)) void this.#park();
  }

  /** Closes what there is and connects anew. */
  async reconnect(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    const old = this.#link;
    this.#link = null;
    await old?.close();
    this.#breaker.reset();
    await this.#open(this.#stop.signal);
  }

  /** Takes over what the server changed in its list since; called between turns. */
  applyChanges(): ReturnType<Offering["applyChanges"]> {
    return this.#offering.applyChanges();
  }

  async close(): Promise<void> {
    this.#stop.abort(new McpError("unreachable", `MCP server "${this.settings.name}" was closed.`));
    this.#state = "closed";
    this.#watch.end();
    await this.#opening?.catch(() => undefined);
    const link = this.#link;
    this.#link = null;
    await link?.close();
  }

  /** One request in the name of a call. */
  async #request<T>(caller: McpCaller, run: (client: Client, options: RequestOptions) => Promise<T>): Promise<T> {
    const { name } = this.settings;
    const refusal = this.#breaker.refusal();
    if (refusal) {
      throw new McpError(
        "unreachable",
        `MCP server "${name}" failed three times in a row and is paused for another ${refusal.seconds} s. Last reason: ${refusal.reason}`,
      );
    }
    this.#watch.wake();
    this.#callers.push(caller);
    try {
      return await this.#attempt(caller, run, true);
    } finally {
      this.#callers.splice(this.#callers.indexOf(caller), 1);
      if (this.#callers.length === 0) this.#watch.rest();
    }
  }

  async #attempt<T>(
    caller: McpCaller,
    run: (client: Client, options: RequestOptions) => Promise<T>,
    mayRepeat: boolean,
  ): Promise<T> {
    const { settings } = this;
    let link: Link | null = null;
    try {
      link = await this.#usable(caller.signal);
      const result = await run(link.client, {
        timeout: settings.timeoutMs,
        signal: caller.signal,
        onprogress: ({ progress, total, message }) =>
          caller.progress(message ?? (total === undefined ? `${progress}` : `${progress}/${total}`)),
      });
      this.#breaker.succeeded();
      this.#tries = 0;
      return result;
    } catch (error) {
      if (caller.signal.aborted)
        throw new McpError("refused", `The call to MCP server "${settings.name}" was interrupted.`);
      const failure = await this.#explain(error, link);
      if (failure.kind === "expired" && mayRepeat && link) {
        await this.#renew(link);
        return this.#attempt(caller, run, false);
      }
      if (failure.kind === "refused") this.#breaker.succeeded();
      else this.#breaker.failed(failure.message);
      if (failure.kind === "needs_reauth") this.#leave("needs_reauth", failure);
      throw failure;
    }
  }

  /** The pipe breaks a moment before the process is known to be gone; its last words explain more than the broken pipe. */
  async #explain(error: unknown, link: Link | null): Promise<McpError> {
    if (link?.pid != null && link.ending() === null && !(error instanceof McpError)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { settings } = this;
    return explainFailure(error, {
      settings,
      redact: this.#options.ports.redact,
      ending: isAnswer(error) ? null : (link?.ending() ?? null),
    });
  }

  /** A session the server forgot is replaced; several calls that notice it share one new connection. */
  async #renew(stale: Link): Promise<void> {
    if (this.#link === stale) {
      this.#link = null;
      await stale.close();
    }
    const { name } = this.settings;
    const late = () =>
      new McpError("unreachable", `MCP server "${name}" lost the session and could not be reached again.`);
    await within(this.#open(this.#stop.signal), CALL_WAITS_MS, late);
  }

  async #usable(signal: AbortSignal): Promise<Link> {
    if (this.#link) return this.#link;
    const { name, connectMs } = this.settings;
    if (this.#state === "parked" || this.#state === "blocked" || this.#state === "failed") {
      const seconds = Math.max(0, Math.ceil((this.#nextTry - this.#options.ports.clock.now()) / 1000));
      const again = this.#state === "parked" ? ` Retrying in ${seconds} s.` : "";
      throw new McpError(
        this.#failure?.kind ?? "unreachable",
        `${this.#failure?.message ?? `MCP server "${name}" is not connected.`}${again}`,
      );
    }
    const late = () => new McpError("unreachable", `MCP server "${name}" is still being connected; try again later.`);
    return within(this.#open(this.#stop.signal), Math.min(CALL_WAITS_MS, connectMs), late, signal);
  }

  #open(signal: AbortSignal): Promise<Link> {
    if (this.#link) return Promise.resolve(this.#link);
    this.#opening ??= this.#connect(AbortSignal.any([signal, this.#stop.signal])).finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #connect(signal: AbortSignal): Promise<Link> {
    const { settings } = this;
    const { ports } = this.#options;
    if (signal.aborted) throw explainFailure(signal.reason, { settings, redact: ports.redact, ending: null });
    this.#state = this.#offering.isKnown ? "reconnecting" : "connecting";
    let link: Link | null = null;
    try {
      link = await openLink({
        settings,
        ports,
        sampler: this.#sampler,
        caller: () => this.#callers.at(-1) ?? null,
        onToolsChanged: () => this.#refresh(),
        onLost: () => this.#lost(),
        signal,
      });
      const listing = await readListing(link.client, { timeout: settings.connectMs, signal });
      this.#link = link;
      this.#linkedAt = ports.clock.now();
      this.#state = "connected";
      this.#failure = null;
      this.#adopt(listing);
      this.#watch.begin(link);
      if (this.#callers.length > 0) this.#watch.wake();
      return link;
    } catch (error) {
      await link?.close();
      const failure = explainFailure(error, { settings, redact: ports.redact, ending: link?.ending() ?? null });
      this.#leave(stateAfter(failure), failure);
      if (!this.#stop.signal.aborted) this.#options.onFailure(failure);
      throw failure;
    }
  }

  #leave(state: ServerState, failure: McpError): void {
    this.#failure = failure;
    if (this.#state !== "closed") this.#state = state;
  }

  #lost(): void {
    const link = this.#link;
    if (!link || this.#stop.signal.aborted) return;
    const { ports } = this.#options;
    this.#link = null;
    this.#watch.end();
    if (ports.clock.now() - this.#linkedAt >= GOOD_MS) this.#tries = 0;
    const failure = explainFailure(new Error("the connection was lost"), {
      settings: this.settings,
      redact: ports.redact,
      ending: link.ending(),
    });
    ports.log.warn(failure.message);
    this.#leave("reconnecting", failure);
    void link.close();
    void this.#recover();
  }

  /** Closed after being idle: the next call connects anew. */
  #sleep(link: Link): void {
    if (this.#link !== link || this.#callers.length > 0) return;
    this.#link = null;
    this.#watch.end();
    this.#state = "idle";
    void link.close();
  }

  async #recover(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    const { clock } = this.#options.ports;
    while (this.#tries < TRIES) {
      this.#tries++;
      if (!(await this.#pause(pauseBefore(this.#tries, clock.random())))) return;
      try {
        await this.#open(this.#stop.signal);
        this.#recovering = false;
        return;
      } catch (error) {
        if (!mayPass(error)) break;
        this.#state = "reconnecting";
      }
    }
    this.#recovering = false;
    if (mayPass(this.#failure)) await this.#park();
  }

  /** Not given up: tried again every five minutes. */
  async #park(): Promise<void> {
    const { clock } = this.#options.ports;
    for (;;) {
      this.#leave(
        "parked",
        this.#failure ?? new McpError("unreachable", `MCP server "${this.settings.name}" is not connected.`),
      );
      this.#nextTry = clock.now() + PARKED_MS;
      if (!(await this.#pause(PARKED_MS))) return;
      try {
        await this.#open(this.#stop.signal);
        this.#tries = 0;
        return;
      } catch (error) {
        if (!mayPass(error)) return;
      }
    }
  }

  /** False when the server was closed meanwhile. */
  async #pause(ms: number): Promise<boolean> {
    try {
      await this.#options.ports.clock.sleep(ms, this.#stop.signal);
      return true;
    } catch {
      return false; // sleep rejects for nothing else
    }
  }

  /** The server changed its list: it is read now, one reading at a time, and taken over at the next turn. */
  #refresh(): void {
    this.#refreshing = this.#refreshing.then(async () => {
      const link = this.#link;
      if (!link) return;
      try {
        this.#adopt(await readListing(link.client, { timeout: this.settings.timeoutMs, signal: this.#stop.signal }));
      } catch (error) {
        const { ports } = this.#options;
        ports.log.warn(explainFailure(error, { settings: this.settings, redact: ports.redact, ending: null }).message);
      }
    });
  }

  #adopt(listing: Listing): void {
    this.#offering.take(listing);
    this.#options.onListing(this, listing);
  }
}

/** Doubling from one second to a minute, a fifth more or less: servers that fell together do not rise together. */
export function pauseBefore(attempt: number, random: number): number {
  return Math.round(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.8 + 0.4 * random));
}

function mayPass(error: unknown): boolean {
  return !(error instanceof McpError) || error.kind === "unreachable" || error.kind === "expired";
}

function stateAfter({ kind }: McpError): ServerState {
  if (kind === "blocked" || kind === "needs_reauth") return kind;
  return kind === "missing" ? "failed" : "reconnecting";
}
