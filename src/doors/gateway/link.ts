// One bot: its lease, its connection, what comes in and what goes out in its name. It connects again by itself until somebody stops it.
import type { Logger } from "../../home/log.ts";
import { type Clock, joinSignals, OutOfTime, within } from "../../kit/clock.ts";
import { messageOf } from "../../kit/errors.ts";
import { isRecord } from "../../kit/json.ts";
import { LaneMovedError, StoreError } from "../../sessions/store.ts";
import type { BotLease, OutboxRow, WorkStore } from "../../sessions/work.ts";
import { type AdapterHost, type PlatformAdapter, type PlatformEntry, PlatformError } from "./contract.ts";
import { Delivery } from "./delivery.ts";
import { accountOf, type GatewaySettings } from "./settings.ts";

type LinkState = "connecting" | "connected" | "disconnected" | "retrying" | "paused" | "fatal";

/** What people see of a bot. Times in Unix seconds. */
interface LinkStatus {
  readonly state: LinkState;
  readonly account: string | null;
  readonly since: number | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly retry_at: number | null;
  readonly listening: string | null;
  readonly last_inbound_at: number | null;
  readonly last_outbound_at: number | null;
}

interface LinkOptions {
  readonly entry: PlatformEntry;
  readonly identity: string;
  readonly settings: GatewaySettings;
  readonly work: WorkStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  /** What the adapter is handed, but for what this file knows. */
  host(account: string): Omit<AdapterHost, "lost">;
  /** Nobody else on this machine uses the bot; null: taken, resolves to how to give it back. */
  lock(): Promise<{ release(): Promise<void> } | { heldBy: number }>;
  /** One line for the console, without the label. */
  say(line: string): void;
  changed(): void;
  /** The commands of the registry, for the platform's menu. */
  commands(): readonly { readonly name: string; readonly description: string }[];
  undeliverable(row: OutboxRow, error: string): void;
}

const MOST_FAILURES = 10;
const DISCONNECT_MS = 5000;

export class Link {
  readonly entry: PlatformEntry;
  /** Names the bot without its token. */
  readonly account: string;
  readonly #options: LinkOptions;
  readonly #over = new AbortController();
  #adapter: PlatformAdapter | null = null;
  #delivery: Delivery | null = null;
  #running: Promise<void> | null = null;
  #resumed: (() => void) | null = null;
  #failures = 0;
  #status: LinkStatus = {
    ...{ state: "disconnected", account: null, since: null, error_code: null, error_message: null },
    ...{ retry_at: null, listening: null, last_inbound_at: null, last_outbound_at: null },
  };
  /** Resolves when the first try to connect has an outcome. */
  readonly tried: Promise<void>;
  #triedOnce!: () => void;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.entry = options.entry;
    this.account = accountOf(options.identity);
    this.tried = new Promise((resolve) => {
      this.#triedOnce = resolve;
    });
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Null while it is not connected. */
  get adapter(): PlatformAdapter | null {
    return this.#status.state === "connected" ? this.#adapter : null;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Something was promised in its name. */
  wake(): void {
    this.#delivery?.wake();
  }

  /** Something came in or went out. */
  noteTraffic(way: "last_inbound_at" | "last_outbound_at"): void {
    this.#set({ [way]: this.#now });
  }

  /** Not connected until `resume`. */
  pause(): void {
    if (this.#status.state === "paused") return;
    this.#set({ state: "paused", error_code: null, error_message: null, retry_at: null });
    this.#lost?.(new PlatformError("paused", "paused", { retryable: true }));
  }

  resume(): void {
    this.#failures = 0;
    this.#resumed?.();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  // --- its life

  async #run(): Promise<void> {
    const { clock, settings, log } = this.#options;
    while (!this.#over.signal.aborted) {
      const error = await this.#connectAndWait().catch((failure: unknown) => asPlatformError(failure));
      if (this.#over.signal.aborted) break;
      if (error === null || this.#status.state === "paused") {
        await this.#untilResumed();
        continue;
      }
      if (!error.retryable) {
        log.error(`${this.entry.label} is off`, error);
        this.#fail("fatal", error);
        this.#options.say(`off: ${error.message}`);
        this.#triedOnce();
        await this.#untilResumed();
        continue;
      }
      this.#failures++;
      // A disk that is full is not the platform's failure: it is tried for as long as that lasts.
      if (this.#failures >= MOST_FAILURES && !(error.cause instanceof StoreError)) {
        this.#fail("paused", error);
        this.#options.say(
          `paused after ${MOST_FAILURES} failures: ${error.message}; /platform resume ${this.entry.name}`,
        );
        this.#triedOnce();
        await this.#untilResumed();
        continue;
      }
      const { reconnect_first: first, reconnect_backoff: backoff, reconnect_max: most } = settings.timers;
      const wait = Math.min(most, this.#failures === 1 ? first : backoff * 2 ** (this.#failures - 2));
      this.#fail("retrying", error, this.#now + wait);
      this.#options.say(`failed: ${error.message}; retry in ${Math.round(wait)} s`);
      log.warn(`${this.entry.label} is not connected`, error);
      this.#triedOnce();
      await clock.sleep(wait * 1000, this.#over.signal).catch(() => undefined);
    }
    if (this.#status.state !== "fatal") this.#set({ state: "disconnected", since: null, retry_at: null });
    this.#triedOnce();
  }

  /** Resolves to why the connection ended. */
  async #connectAndWait(): Promise<PlatformError> {
    const { work, holder, settings, entry, clock } = this.#options;
    this.#set({ state: "connecting", retry_at: null });
    const lock = await this.#options.lock();
    if ("heldBy" in lock)
      throw new PlatformError(`${entry.name}_lock`, `process ${lock.heldBy} already uses this bot`, {
        retryable: false,
      });
    try {
      const taken = await work.takeBot(this.account, holder, { seconds: settings.timers.lease });
      if (taken.type === "held")
        throw new PlatformError(`${entry.name}_lease`, `${taken.by} already uses this bot`, { retryable: true });
      const over = new AbortController();
      const joined = joinSignals(over.signal, this.#over.signal);
      void this.#renew(taken.lease, joined.signal, (error) => this.#lost?.(error));
      try {
        return await this.#serve(taken.lease, joined.signal, clock);
      } finally {
        over.abort();
        joined.release();
        await work.releaseBot(taken.lease).catch(() => undefined); // it runs out by itself
      }
    } finally {
      await lock.release();
    }
  }

  #lost: ((error: PlatformError) => void) | null = null;

  async #serve(lease: BotLease, signal: AbortSignal, clock: Clock): Promise<PlatformError> {
    const { entry, settings, work, log } = this.#options;
    const { promise, resolve } = Promise.withResolvers<PlatformError>();
    this.#lost = resolve;
    signal.addEventListener("abort", () => resolve(stopped()), { once: true });
    const seconds = settings.timers.connect;
    const host = { ...this.#options.host(this.account), lost: (error: unknown) => resolve(asPlatformError(error)) };
    const inTime = <T>(step: () => Promise<T>) =>
      within(step, seconds * 1000, clock, signal).catch((error: unknown) => {
        if (!(error instanceof OutOfTime)) throw error;
        throw new PlatformError("connect_timeout", `not connected within ${seconds} seconds`, { retryable: true });
      });
    const adapter = await inTime(async () => entry.open(host));
    try {
      await inTime(async () => adapter.connect(signal));
      this.#adapter = adapter;
      this.#failures = 0;
      const { account, listening = null } = adapter;
      this.#set({ state: "connected", account, listening, since: this.#now, error_code: null, error_message: null });
      const who = entry.listensOnly ? [] : [`connected as ${account}`];
      this.#options.say([...who, ...(listening ? [`listening on ${listening}`] : [])].join(", "));
      const { send_retry: retry, send_retry_max: retryMax, controls: poll } = settings.timers;
      this.#delivery = new Delivery({
        ...{ work, entry, adapter: this.#noted(adapter), account: this.account, lease, clock, log },
        timers: { retry, retryMax, poll },
        humanPause: () => settings.humanPause(clock),
        passingSeconds: () => settings.home.config().display.ephemeral_system_ttl,
        onDead: (row, error) => this.#options.undeliverable(row, error),
        onLost: () =>
          resolve(new PlatformError("moved", "another process sends for this bot now", { retryable: true })),
      });
      this.#delivery.start();
      this.#triedOnce();
      void this.#setCommands(adapter);
      return await promise;
    } finally {
      this.#lost = null;
      this.#adapter = null;
      await this.#delivery?.stop();
      this.#delivery = null;
      await within(async () => adapter.disconnect(), DISCONNECT_MS, clock).catch((error) =>
        log.warn(`${entry.label} did not disconnect`, error),
      );
    }
  }

  /** The adapter, with the time of what it sent noted. */
  #noted(adapter: PlatformAdapter): PlatformAdapter {
    const noted = adapter.send.bind(adapter);
    const send: PlatformAdapter["send"] = async (...args) => {
      const result = await noted(...args);
      if (!("failed" in result)) this.noteTraffic("last_outbound_at");
      return result;
    };
    return new Proxy(adapter, { get: (target, name) => (name === "send" ? send : bound(target, name)) });
  }

  async #setCommands(adapter: PlatformAdapter): Promise<void> {
    const { log, entry } = this.#options;
    try {
      await adapter.setCommands?.(this.#options.commands());
    } catch (error) {
      log.warn(`${entry.label} did not take the menu of commands`, error);
    }
  }

  async #renew(lease: BotLease, signal: AbortSignal, lost: (error: PlatformError) => void): Promise<void> {
    const { work, clock, settings, log } = this.#options;
    while (!signal.aborted) {
      const { lease: seconds } = settings.timers;
      await clock.sleep((seconds * 1000) / 3, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await work.renewBot(lease, { seconds });
      } catch (error) {
        if (error instanceof LaneMovedError)
          return lost(new PlatformError("moved", messageOf(error), { retryable: true }));
        log.warn("the lease of a bot could not be renewed; it is tried again", error);
      }
    }
  }

  async #untilResumed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resumed = resolve;
    this.#over.signal.addEventListener("abort", () => resolve(), { once: true });
    if (this.#over.signal.aborted) resolve();
    await promise;
    this.#resumed = null;
  }

  #fail(state: LinkState, { code, message }: PlatformError, retryAt: number | null = null): void {
    this.#set({ state, error_code: code, error_message: message, retry_at: retryAt, since: null });
  }

  #set(change: Partial<LinkStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#options.changed();
  }

  get #now(): number {
    return this.#options.clock.now() / 1000;
  }
}

const stopped = () => new PlatformError("stopped", "the gateway stops", { retryable: true });

/**
 * What is no `PlatformError` is a defect of an adapter; the others go on, and this one is tried again. Those of plugins are told by what
 * they carry: their code cannot import ours.
 */
function asPlatformError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const { code, retryable } = isRecord(error) ? error : {};
  const isTold = typeof code === "string" && typeof retryable === "boolean";
  const facts = isTold ? { code, retryable } : { code: "unforeseen", retryable: true };
  return new PlatformError(facts.code, messageOf(error), { retryable: facts.retryable, cause: error });
}

function bound(target: object, name: string | symbol): unknown {
  const value = Reflect.get(target, name);
  return typeof value === "function" ? value.bind(target) : value;
}
