// The socket that Discord tells of events by: one session that outlives its connections. After a cut it is resumed, and what was missed comes
// again; a session that Discord has forgotten begins anew.
import type { Logger } from "../../../../home/log.ts";
import { type Clock, OutOfTime, within } from "../../../../kit/clock.ts";
import { messageOf } from "../../../../kit/errors.ts";
import { asRecord, asText, parseJson } from "../../../../kit/json.ts";
import { type ClientSocket, connectWebSocket } from "../../../../kit/websocket.ts";
import { addressProblem } from "../../web-calls.ts";
import type { Dispatch } from "./shapes.ts";

interface SocketOptions {
  readonly token: string;
  readonly intents: number;
  /** Where a new session begins. */
  readonly address: string;
  readonly clock: Clock;
  readonly log: Logger;
  dispatch(event: Dispatch): void;
  /** A connection has ended, so many in a row that led to nothing. False: there is to be no other. */
  closed(code: number, failures: number): boolean;
}

const OP = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalid: 9,
  hello: 10,
  alive: 11,
} as const;
const CONNECT_MS = 20_000;
const CLOSE_MS = 3000;
const PAUSES_MS = [0, 500, 1000, 2000, 4000];
/** The session is over; any other closing may be resumed. */
const SESSION_OVER: ReadonlySet<number> = new Set([4007, 4009]);
const CUT = 1006;
/** Our own: the session lives on. */
const AGAIN = 4900;

interface Session {
  readonly id: string;
  readonly address: string;
}

export class DiscordSocket {
  readonly #options: SocketOptions;
  readonly #over = new AbortController();
  readonly #up = Promise.withResolvers<void>();
  #session: Session | null = null;
  #sequence: number | null = null;
  #socket: ClientSocket | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Discord's heartbeat was answered. */
  #isAlive = true;
  #isUp = false;
  /** Before the next connection. */
  #pause = 0;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  /** Resolves when the first session has begun; later ones come by themselves. */
  start(): Promise<void> {
    this.#running = this.#keep();
    return this.#up.promise;
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.#socket?.close(1000, "shutting down");
    await within(() => this.#running, CLOSE_MS, this.#options.clock).catch((error) => {
      if (!(error instanceof OutOfTime)) throw error;
      this.#socket?.drop(); // a socket that is not answered waits for its closing
    });
  }

  async #keep(): Promise<void> {
    const { clock, closed } = this.#options;
    const { signal } = this.#over;
    for (let failures = 0; ; ) {
      this.#isUp = false;
      const code = await this.#connection();
      if (signal.aborted) return;
      failures = this.#isUp ? 0 : failures + 1;
      if (SESSION_OVER.has(code)) this.#session = null;
      if (!closed(code, failures)) return;
      const wait = Math.max(this.#pause, PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? 0);
      this.#pause = 0;
      await clock.sleep(wait, signal).catch(() => undefined); // it is over
      if (signal.aborted) return;
    }
  }

  /** One connection, from its beginning to its end. Resolves to the code it was closed with. */
  async #connection(): Promise<number> {
    const { address, log } = this.#options;
    const ended = Promise.withResolvers<number>();
    const beating = new AbortController();
    const line: { socket?: ClientSocket } = {};
    try {
      const socket = await connectWebSocket(`${this.#session?.address ?? address}/?v=10&encoding=json`, {
        ...{ connectMs: CONNECT_MS, signal: this.#over.signal },
        onMessage: (data) => line.socket && this.#read(line.socket, data, beating.signal),
        onClose: (code) => ended.resolve(code),
      });
      line.socket = socket;
      this.#socket = socket;
      const late = setTimeout(() => this.#isUp || socket.drop(), CONNECT_MS).unref();
      const code = await ended.promise;
      clearTimeout(late);
      return code;
    } catch (error) {
      log.debug(`the socket failed: ${messageOf(error)}`);
      return CUT;
    } finally {
      beating.abort();
      this.#socket = null;
    }
  }

  #read(socket: ClientSocket, data: string | Uint8Array, signal: AbortSignal): void {
    if (this.#over.signal.aborted) return;
    const payload = asRecord(parseJson(String(data)));
    switch (payload.op) {
      case OP.hello:
        void this.#beat(socket, Number(asRecord(payload.d).heartbeat_interval) || CONNECT_MS, signal);
        return this.#begin(socket);
      case OP.alive:
        this.#isAlive = true;
        return;
      case OP.heartbeat:
        socket.send(JSON.stringify({ op: OP.heartbeat, d: this.#sequence }));
        return;
      case OP.reconnect:
        return socket.close(AGAIN, "asked to reconnect");
      case OP.invalid:
        // Discord wants a moment between the end of a session and the next.
        if (payload.d !== true) {
          this.#session = null;
          this.#pause = 1000 + 4000 * this.#options.clock.random();
        }
        return socket.close(AGAIN, "the session is over");
      case OP.dispatch:
        if (typeof payload.s === "number") this.#sequence = payload.s;
        return this.#take(payload as unknown as Dispatch); // by what Discord documents; whoever reads it bears what is not so
    }
  }

  #begin(socket: ClientSocket): void {
    const { token, intents } = this.#options;
    const session = this.#session;
    const [op, d] =
      session === null
        ? [OP.identify, { token, intents, properties: { os: process.platform, browser: "hermes", device: "hermes" } }]
        : [OP.resume, { token, session_id: session.id, seq: this.#sequence }];
    if (session === null) this.#sequence = null;
    socket.send(JSON.stringify({ op, d }));
  }

  #take(event: Dispatch): void {
    if (event.t === "READY" || event.t === "RESUMED") {
      this.#isUp = true;
      this.#up.resolve();
    }
    if (event.t === "READY") {
      const address = asText(event.d.resume_gateway_url);
      // An address without encryption would show the token: such a session is not resumed.
      const isFit = addressProblem(address, "resume_gateway_url", "ws") === null;
      this.#session = isFit ? { id: event.d.session_id, address: address.replace(/\/$/, "") } : null;
    }
    this.#options.dispatch(event);
  }

  /** Says again and again that we live. A connection that does not answer is dead, however alive it looks. */
  async #beat(socket: ClientSocket, everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    this.#isAlive = true;
    const rest = (ms: number) => clock.sleep(ms, signal).catch(() => undefined); // the connection has ended
    await rest(everyMs * clock.random());
    while (!signal.aborted) {
      if (!this.#isAlive) {
        log.debug("the socket gives no sign of life");
        return socket.drop();
      }
      this.#isAlive = false;
      socket.send(JSON.stringify({ op: OP.heartbeat, d: this.#sequence }));
      await rest(everyMs);
    }
  }
}
