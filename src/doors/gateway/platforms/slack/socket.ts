// The socket that events come by. The package's own way of reconnecting waits for seconds and can end the process with a rejected promise
// nobody holds, so a client is used for one connection here and the next one is made by us.
import type { SocketModeClient } from "@slack/socket-mode";
import { joinSignals, OutOfTime, within } from "../../../../kit/clock.ts";
import { asRecord, asText, parseJson } from "../../../../kit/json.ts";
import { type AdapterHost, PlatformError } from "../../contract.ts";
import { clientOptions, connectFailure, quietLogger } from "./web.ts";

/** What Slack sends: an event, a command, a pressed button. */
export interface Envelope {
  readonly type: string;
  readonly body: unknown;
}

interface SocketOptions {
  readonly host: AdapterHost;
  readonly appToken: string;
  /** Resolves when it is stored; only then Slack is told. What rejects comes again. */
  take(envelope: Envelope): Promise<void>;
  /** A new connection listens: something may have been missed before it. */
  opened(): void;
}

const HELLO_MS = 20_000;
const GOODBYE_MS = 1000;
const SHORT_MS = 5000;
const RETRY_MS = { first: 500, most: 30_000 };
/** Then the gateway is told, and begins again with everything. */
const TRIES = 6;

export class SlackSocket {
  readonly #options: SocketOptions;
  readonly #over = new AbortController();
  #current: SocketModeClient | null = null;
  #reconnecting: Promise<void> | null = null;
  #gaveUp = false;
  #openedAt = 0;
  /** Connections in a row that ended as soon as they had begun. */
  #short = 0;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  /** Resolves when events come in. */
  async start(signal: AbortSignal): Promise<void> {
    const either = joinSignals(signal, this.#over.signal);
    try {
      await this.#open(either.signal);
    } catch (error) {
      throw connectFailure(error, "SLACK_APP_TOKEN");
    } finally {
      either.release();
    }
  }

  async stop(): Promise<void> {
    this.#over.abort(new Error("the connection to Slack was closed"));
    const client = this.#current;
    this.#current = null;
    if (client) await this.#end(client);
    await this.#reconnecting;
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { host, appToken } = this.#options;
    const { SocketModeClient: Client } = await host.package("@slack/socket-mode", () => import("@slack/socket-mode"));
    const client: SocketModeClient = new Client({
      appToken,
      autoReconnectEnabled: false,
      logger: quietLogger(host),
      clientOptions: clientOptions(host),
    });
    this.#listen(client);
    try {
      await within(() => client.start(), HELLO_MS, host.clock, signal);
    } catch (error) {
      await this.#end(client);
      if (error instanceof OutOfTime || error === undefined)
        throw new PlatformError("no_hello", "Slack opened a connection and did not begin to talk", { retryable: true });
      throw error;
    }
    const before = this.#current;
    this.#current = client;
    this.#openedAt = host.clock.now();
    client.once("disconnected", () => this.#lost(client));
    if (before) await this.#end(before);
  }

  #listen(client: SocketModeClient): void {
    const { host, take, opened } = this.#options;
    // At once, before the first event can be taken.
    client.once("connected", opened);
    client.on("slack_event", ({ type, body, ack }: Envelope & { ack(): Promise<void> }) => {
      if (this.#over.signal.aborted || type === "hello") return;
      take({ type, body })
        // On a connection that is gone by now: Slack sends it again, and it is known then.
        .then(() => ack().catch((error: unknown) => host.log.debug("slack: an event could not be acknowledged", error)))
        .catch((error: unknown) => {
          if (this.#over.signal.aborted) return; // it comes again, to whoever connects next
          host.log.error("an event of Slack could not be stored; it will come again", error);
        });
    });
    // The package closes at the first warning, before there is another connection, and fails on payloads it does not know.
    const [original] = client.listeners("ws_message") as ((...values: unknown[]) => Promise<void> | undefined)[]; // as it registers them
    client.removeAllListeners("ws_message");
    client.on("ws_message", (data: unknown, isBinary: unknown) => {
      const message = typeof data === "string" && data.includes('"disconnect"') ? asRecord(parseJson(data)) : {};
      if (message.type === "disconnect") return this.#replace(client, asText(message.reason));
      Promise.resolve(original?.(data, isBinary)).catch((error: unknown) =>
        host.log.debug("slack: a message could not be read", error),
      );
    });
  }

  /** Slack wants us on another connection: the new one is open before the old one closes. */
  #replace(client: SocketModeClient, reason: string): void {
    if (client !== this.#current) return;
    const { host } = this.#options;
    if (reason === "link_disabled") {
      const off = "Socket Mode is turned off in the settings of the Slack app; turn it on";
      return host.lost(new PlatformError(reason, off, { retryable: false }));
    }
    host.log.debug(`slack: another connection is wanted (${reason})`);
    this.#reconnect();
  }

  #lost(client: SocketModeClient): void {
    if (client !== this.#current) return;
    this.#current = null;
    this.#end(client).catch(() => undefined); // it is closed
    this.#reconnect();
  }

  #reconnect(): void {
    if (this.#over.signal.aborted || this.#reconnecting) return;
    this.#reconnecting = this.#tryAgain().finally(() => {
      this.#reconnecting = null;
      // It broke while the last step of this was on its way.
      if (this.#current === null && !this.#gaveUp) this.#reconnect();
    });
  }

  async #tryAgain(): Promise<void> {
    const { host } = this.#options;
    const { signal } = this.#over;
    this.#short = host.clock.now() - this.#openedAt < SHORT_MS ? this.#short + 1 : 0;
    if (this.#short > 1) await this.#pause(this.#short);
    for (let tries = 0; !signal.aborted; tries++)
      try {
        return await this.#open(signal);
      } catch (error) {
        if (signal.aborted) return;
        const failure = connectFailure(error, "SLACK_APP_TOKEN");
        if (!failure.retryable || tries >= TRIES) {
          this.#gaveUp = true;
          return host.lost(failure);
        }
        await this.#pause(tries);
      }
  }

  async #pause(tries: number): Promise<void> {
    const { clock } = this.#options.host;
    const wait = Math.min(RETRY_MS.most, RETRY_MS.first * 2 ** tries) * (1 + clock.random() / 4);
    await clock.sleep(wait, this.#over.signal).catch(() => undefined); // it is over
  }

  /** Says goodbye, and does not wait for an answer for long: the package would for half a minute. */
  async #end(client: SocketModeClient): Promise<void> {
    for (const event of ["slack_event", "ws_message", "disconnected"]) client.removeAllListeners(event);
    // Its address may still be on the way: it would connect when that arrives.
    client.once("connecting", () => setImmediate(() => force(client)));
    const closed = client.disconnect();
    await within(() => closed, GOODBYE_MS, this.#options.host.clock).catch(() => undefined);
    force(client);
  }
}

/** The first call closes; the second, on what is closed or closing, lets go of its timers. */
function force(client: SocketModeClient): void {
  client.websocket?.disconnect();
  client.websocket?.disconnect();
}
