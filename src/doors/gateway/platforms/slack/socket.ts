// The socket that events come by (Socket Mode): an address that holds for one connection, a hello, and envelopes that come again until they
// are acknowledged. Slack replaces its connections every few hours; the new one is open before the old one closes.
import { joinSignals, OutOfTime, within } from "../../../../kit/clock.ts";
import { asRecord, asText, parseJson } from "../../../../kit/json.ts";
import { type ClientSocket, connectWebSocket } from "../../../../kit/websocket.ts";
import { type AdapterHost, PlatformError } from "../../contract.ts";
import { addressProblem } from "../../web-calls.ts";
import { SlackClient } from "./client.ts";
import { connectFailure } from "./web.ts";

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
/** As long as a connection may be silent that was asked for a sign of life. */
const ALIVE_MS = 10_000;
const SHORT_MS = 5000;
const RETRY_MS = { first: 500, most: 30_000 };
/** Then the gateway is told, and begins again with everything. */
const TRIES = 6;

/** One connection. */
interface Line {
  readonly socket: ClientSocket;
  /** Aborted when it has ended. */
  readonly ended: AbortController;
  heardAt: number;
}

export class SlackSocket {
  readonly #options: SocketOptions;
  readonly #client: SlackClient;
  readonly #over = new AbortController();
  #current: Line | null = null;
  #reconnecting: Promise<void> | null = null;
  #gaveUp = false;
  #openedAt = 0;
  /** Connections in a row that ended as soon as they had begun. */
  #short = 0;

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#client = new SlackClient(options.host, options.appToken);
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
    this.#current?.socket.close();
    this.#current = null;
    await this.#reconnecting;
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { host } = this.#options;
    const attempt = new AbortController();
    const line = await within(() => this.#connect(attempt.signal), HELLO_MS, host.clock, signal).catch((error) => {
      attempt.abort();
      if (!(error instanceof OutOfTime)) throw error;
      throw new PlatformError("no_hello", "Slack opened a connection and did not begin to talk", { retryable: true });
    });
    const before = this.#current;
    this.#current = line;
    this.#openedAt = host.clock.now();
    before?.socket.close();
    if (line.ended.signal.aborted) this.#lost(line);
    else void this.#watch(line);
  }

  /** Resolves when Slack has said hello. */
  async #connect(signal: AbortSignal): Promise<Line> {
    const { clock } = this.#options.host;
    const { url } = await this.#client.call("apps.connections.open", {}, signal);
    const problem = addressProblem(url, "the address of Slack's socket", "ws");
    if (problem !== null) throw new PlatformError("bad_address", problem, { retryable: false });
    const hello = Promise.withResolvers<void>();
    const socket = await connectWebSocket(asText(url), {
      ...{ connectMs: HELLO_MS, signal },
      onMessage: (data) => this.#read(line, typeof data === "string" ? data : "", hello),
      onSign() {
        line.heardAt = clock.now();
      },
      onClose: (code) => {
        line.ended.abort();
        hello.reject(new Error(`Slack closed the connection (${code})`));
        this.#lost(line);
      },
    });
    const line: Line = { socket, ended: new AbortController(), heardAt: clock.now() };
    const drop = () => socket.drop();
    signal.addEventListener("abort", drop, { once: true });
    try {
      await hello.promise;
    } finally {
      signal.removeEventListener("abort", drop);
    }
    return line;
  }

  #read(line: Line, text: string, hello: PromiseWithResolvers<void>): void {
    if (this.#over.signal.aborted) return;
    const { host, take, opened } = this.#options;
    const { type, reason, envelope_id: id, payload } = asRecord(parseJson(text));
    if (type === "hello") {
      opened(); // at once, before the first event can be taken
      return hello.resolve();
    }
    if (type === "disconnect") {
      hello.reject(new Error(`Slack wants another connection (${asText(reason)})`));
      return this.#replace(line, asText(reason));
    }
    if (typeof type !== "string" || typeof id !== "string") return;
    take({ type, body: payload }).then(
      () => {
        // On a connection that is gone by now: Slack sends it again, and it is known then.
        if (!line.socket.send(JSON.stringify({ envelope_id: id })))
          host.log.debug("slack: an event could not be acknowledged");
      },
      (error: unknown) => {
        if (this.#over.signal.aborted) return; // it comes again, to whoever connects next
        host.log.error("an event of Slack could not be stored; it will come again", error);
      },
    );
  }

  /** A connection can be dead without an end: it is asked for signs of life. */
  async #watch(line: Line): Promise<void> {
    const { clock } = this.#options.host;
    const { signal } = line.ended;
    while (!signal.aborted) {
      line.socket.ping();
      await clock.sleep(ALIVE_MS, signal).catch(() => undefined); // it has ended
      if (!signal.aborted && clock.now() - line.heardAt > 2 * ALIVE_MS) line.socket.drop();
    }
  }

  /** Slack wants us on another connection: the new one is open before the old one closes. */
  #replace(line: Line, reason: string): void {
    if (line !== this.#current) return;
    const { host } = this.#options;
    if (reason === "link_disabled") {
      const off = "Socket Mode is turned off in the settings of the Slack app; turn it on";
      return host.lost(new PlatformError(reason, off, { retryable: false }));
    }
    host.log.debug(`slack: another connection is wanted (${reason})`);
    this.#reconnect();
  }

  #lost(line: Line): void {
    if (line !== this.#current) return;
    this.#current = null;
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
}
