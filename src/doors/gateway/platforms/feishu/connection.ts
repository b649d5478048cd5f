// The persistent connection: frames of Protocol Buffers on a WebSocket, acknowledged one by one after they are stored.
import { asRecord, asText, type Json, parseJson } from "../../../../kit/json.ts";
import { type AdapterHost, PlatformError } from "../../contract.ts";
import { addressProblem } from "../../web-calls.ts";
import { asPlatformError, type OpenSocket, openSocket, reopened } from "../../web-socket.ts";
import type { FeishuApi } from "./api.ts";
import { decodeFrame, encodeFrame, type Frame, Pieces } from "./frames.ts";

interface ConnectionOptions {
  readonly host: AdapterHost;
  readonly api: FeishuApi;
  /** Resolves when an event is stored, to what is answered. */
  take(event: Json): Promise<Json | null>;
}

const PING_SECONDS = 120;
const CONTROL = 0;
const DATA = 1;
const NONE = new Uint8Array();
const WRONG_APP = new Set([403, 514, 10_003, 10_014]);

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #over = new AbortController();
  readonly #pieces = new Pieces();
  #socket: OpenSocket | null = null;
  #service = 0;
  #pingSeconds = PING_SECONDS;
  #lastFrame = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  async open(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.close(), { once: true });
    await this.#open().catch((error: unknown) => {
      throw asPlatformError(error);
    });
    void this.#stayAlive();
  }

  close(): void {
    this.#over.abort();
    this.#socket?.close();
  }

  async #open(): Promise<void> {
    const { api, host } = this.#options;
    const reply = await api.endpoint();
    const { code, msg, data } = asRecord(reply.json);
    const { URL: address, ClientConfig: config } = asRecord(data);
    if (code !== 0 || addressProblem(address, "its address", "ws") !== null)
      throw new PlatformError(
        WRONG_APP.has(Number(code)) ? "auth" : "unreachable",
        `Feishu gives no connection: ${asText(msg) || `status ${reply.status}`}; is the persistent connection chosen in the developer console?`,
        { retryable: !WRONG_APP.has(Number(code)) },
      );
    const url = new URL(asText(address));
    this.#service = Number(url.searchParams.get("service_id") ?? 0);
    this.#configure(asRecord(config));
    this.#lastFrame = host.clock.now();
    const socket = await openSocket(url, {
      log: host.log,
      onFrame: (bytes) => this.#take(typeof bytes === "string" ? NONE : bytes),
      onLost: (reason) => void this.#reopen(reason),
    });
    this.#socket = socket;
    if (this.#over.signal.aborted) socket.close();
  }

  async #reopen(reason: string): Promise<void> {
    if (this.#over.signal.aborted) return;
    const { clock, log, lost } = this.#options.host;
    log.info(`the connection ended, it is opened again: ${reason}`);
    const error = await reopened(() => this.#open(), { clock, log, signal: this.#over.signal });
    if (error !== null) lost(error);
  }

  async #stayAlive(): Promise<void> {
    const { clock } = this.#options.host;
    while (!this.#over.signal.aborted) {
      this.#write({ ...EMPTY, service: this.#service, headers: [["type", "ping"]] });
      await clock.sleep(this.#pingSeconds * 1000, this.#over.signal).catch(() => undefined);
      if (this.#over.signal.aborted || clock.now() - this.#lastFrame < this.#pingSeconds * 3000) continue;
      this.#socket?.close();
      await this.#reopen("it no longer answers");
    }
  }

  async #take(bytes: Uint8Array): Promise<void> {
    const frame = decodeFrame(bytes);
    if (!frame) return;
    this.#lastFrame = this.#options.host.clock.now();
    const headers = Object.fromEntries(frame.headers);
    if (frame.method === CONTROL) {
      if (headers.type === "pong") this.#configure(asRecord(parseJson(Buffer.from(frame.payload).toString())));
      return;
    }
    if (frame.method !== DATA) return;
    const place = { count: Number(headers.sum ?? 1), index: Number(headers.seq ?? 0) };
    const whole = this.#pieces.add(headers.message_id ?? "", place, frame.payload);
    if (whole === null) return;
    const begun = this.#options.host.clock.now();
    // Without an answer, or with another one than this, the event comes again.
    const answer = await this.#options.take(asRecord(parseJson(Buffer.from(whole).toString())));
    const data = answer === null ? {} : { data: Buffer.from(JSON.stringify(answer)).toString("base64") };
    const took = String(Math.round(this.#options.host.clock.now() - begun));
    const payload = Buffer.from(JSON.stringify({ code: 200, ...data }));
    this.#write({ ...frame, headers: [...frame.headers, ["biz_rt", took]], payload });
  }

  #configure({ PingInterval: seconds }: Json): void {
    if (typeof seconds === "number" && seconds > 0) this.#pingSeconds = seconds;
  }

  #write(frame: Frame): void {
    this.#socket?.send(encodeFrame(frame));
  }
}

const EMPTY = { sequence: 0n, log: 0n, method: CONTROL, payload: NONE } as const;
