// A WebSocket client (RFC 6455) on Node's plain HTTP client. Hand-made: the built-in one loads a whole second HTTP client, 14 MB in a process
// that may wait for weeks.
import { isUtf8 } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { failureWords, httpFor, MAX_ANSWER_BYTES } from "./http.ts";

export interface WebSocketOptions {
  readonly protocols?: readonly string[];
  /** For the connection and the answer to it together. */
  readonly connectMs: number;
  /** Ends the attempt; an open socket is closed by its own `close`. */
  readonly signal?: AbortSignal;
  /** A whole message: a text, or bytes. Not before the promise of the socket has resolved. */
  onMessage(data: string | Uint8Array): void;
  /** The server is alive: anything came, be it an answer to `ping`. */
  onSign?(): void;
  /** Once, however it ended: 1006 where nobody said goodbye. */
  onClose(code: number, reason: string): void;
}

export interface ClientSocket {
  /** False: it is closed or closing. */
  send(data: string | Uint8Array): boolean;
  /** Asks for a sign of life. */
  ping(): void;
  /** Says goodbye and waits for an answer, not for long. */
  close(code?: number, reason?: string): void;
  /** Without a word. */
  drop(): void;
}

const OP = { more: 0, text: 1, bytes: 2, close: 8, ping: 9, pong: 10 } as const;
const FIN = 0x80;
const MASKED = 0x80;
const MOST_CONTROL = 125;
const NO_CODE = 1005;
const NO_GOODBYE = 1006;
const GOODBYE_MS = 3000;
/** Proves that the server knows the protocol (RFC 6455, 1.3). */
const KNOWN_BY_ALL = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Rejects with words about the server, without its address: a ticket may be in it. */
export async function connectWebSocket(address: string | URL, options: WebSocketOptions): Promise<ClientSocket> {
  const url = new URL(address);
  url.protocol = url.protocol === "wss:" ? "https:" : url.protocol === "ws:" ? "http:" : url.protocol;
  url.hash = "";
  const { protocols = [], connectMs, signal } = options;
  signal?.throwIfAborted();
  const key = randomBytes(16).toString("base64");
  const request = httpFor(url).request(url, {
    agent: false,
    headers: {
      ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": key },
      ...(protocols.length > 0 ? { "sec-websocket-protocol": protocols.join(", ") } : {}),
    },
  });
  const stop = () => request.destroy(new Error("stopped"));
  const late = setTimeout(
    () => request.destroy(new Error(`no connection within ${connectMs / 1000} seconds`)),
    connectMs,
  );
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<ClientSocket>((resolve, reject) => {
      request.once("error", (error) => reject(new Error(wordsOf(error), { cause: error })));
      request.once("response", (answer) => {
        answer.destroy();
        reject(new Error(`the connection was refused (status ${answer.statusCode ?? 0})`));
      });
      request.once("upgrade", ({ headers }, stream, head) => {
        const expected = createHash("sha1").update(`${key}${KNOWN_BY_ALL}`).digest("base64");
        const chosen = headers["sec-websocket-protocol"];
        const isKnown = headers["sec-websocket-accept"] === expected && headers.upgrade?.toLowerCase() === "websocket";
        if (!isKnown || (chosen !== undefined && !protocols.includes(chosen)) || headers["sec-websocket-extensions"]) {
          stream.destroy();
          return reject(new Error("the server does not speak WebSocket"));
        }
        resolve(new Connection(stream, head, options));
      });
      request.end();
    });
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", stop);
  }
}

/** Its own words where there is no code of the system. */
const wordsOf = (error: Error) => ("code" in error ? failureWords(error) : error.message);

/** What the other side did that no server does; the code goes back to it. */
class Misfit extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

interface Frame {
  readonly isLast: boolean;
  readonly op: number;
  readonly payload: Buffer;
}

class Connection implements ClientSocket {
  readonly #stream: Duplex;
  readonly #options: WebSocketOptions;
  /** What has arrived and is not a whole frame yet. */
  #arrived: Buffer[] = [];
  #size = 0;
  /** How much is needed before there is something to read. */
  #wanted = 2;
  /** The frames of a message that came in parts. */
  #parts: Buffer[] = [];
  #partsOp = 0;
  #partsSize = 0;
  #state: "open" | "closing" | "closed" = "open";
  #goodbye: { readonly code: number; readonly reason: string } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(stream: Duplex, head: Buffer, options: WebSocketOptions) {
    this.#stream = stream;
    this.#options = options;
    if ("setNoDelay" in stream) (stream as Duplex & { setNoDelay(): void }).setNoDelay(); // a socket, over TLS too
    stream.on("error", () => undefined); // `close` follows
    stream.on("close", () => this.#ended());
    stream.on("end", () => stream.destroy());
    // A turn later: whoever connected has the socket by then.
    setImmediate(() => {
      stream.on("data", (bytes: Buffer) => this.#read(bytes));
      if (head.length > 0) this.#read(head);
    });
  }

  send(data: string | Uint8Array): boolean {
    if (this.#state !== "open") return false;
    this.#write(typeof data === "string" ? OP.text : OP.bytes, typeof data === "string" ? Buffer.from(data) : data);
    return true;
  }

  ping(): void {
    if (this.#state === "open") this.#write(OP.ping, Buffer.alloc(0));
  }

  close(code = 1000, reason = ""): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#write(OP.close, closing(code, reason));
    this.#timer = setTimeout(() => this.drop(), GOODBYE_MS);
    this.#timer.unref();
  }

  drop(): void {
    this.#stream.destroy();
  }

  #ended(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    if (this.#timer) clearTimeout(this.#timer);
    const { code, reason } = this.#goodbye ?? { code: NO_GOODBYE, reason: "" };
    this.#options.onClose(code, reason);
  }

  #write(op: number, payload: Uint8Array): void {
    const { length } = payload;
    const extra = length <= MOST_CONTROL ? 0 : length <= 0xffff ? 2 : 8;
    const frame = Buffer.allocUnsafe(2 + extra + 4 + length);
    frame[0] = FIN | op;
    frame[1] = MASKED | (extra === 0 ? length : extra === 2 ? 126 : 127);
    if (extra === 2) frame.writeUInt16BE(length, 2);
    if (extra === 8) frame.writeBigUInt64BE(BigInt(length), 2);
    const mask = randomBytes(4);
    mask.copy(frame, 2 + extra);
    const start = 6 + extra;
    for (let at = 0; at < length; at++) frame[start + at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0);
    this.#stream.write(frame);
  }

  #read(bytes: Buffer): void {
    if (this.#state === "closed" || this.#goodbye !== null) return;
    this.#options.onSign?.();
    this.#arrived.push(bytes);
    this.#size += bytes.length;
    try {
      for (let frame = this.#frame(); frame !== null; frame = this.#frame()) {
        this.#take(frame);
        if (this.#goodbye !== null) return;
      }
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      if (this.#state === "open") this.#write(OP.close, closing(error.code, error.message));
      this.#part(error.code, error.message);
    }
  }

  /** The next whole frame of what has arrived. */
  #frame(): Frame | null {
    if (this.#size < this.#wanted) return null;
    const bytes = this.#arrived.length === 1 && this.#arrived[0] ? this.#arrived[0] : Buffer.concat(this.#arrived);
    this.#arrived = [bytes];
    const [first = 0, second = 0] = bytes;
    const op = first & 0x0f;
    const isLast = (first & FIN) !== 0;
    if ((first & 0x70) !== 0) throw new Misfit(1002, "a frame with bits that nobody agreed on");
    if ((second & MASKED) !== 0) throw new Misfit(1002, "a masked frame of a server");
    const short = second & 0x7f;
    if (op >= OP.close && (short > MOST_CONTROL || !isLast)) throw new Misfit(1002, "a control frame that is too long");
    const start = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < start) return this.#wait(start);
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length + this.#partsSize > MAX_ANSWER_BYTES) throw new Misfit(1009, "a message that is too long");
    if (bytes.length < start + length) return this.#wait(start + length);
    const rest = bytes.subarray(start + length);
    this.#arrived = rest.length > 0 ? [rest] : [];
    this.#size = rest.length;
    this.#wanted = 2;
    return { isLast, op, payload: bytes.subarray(start, start + length) };
  }

  #wait(size: number): null {
    this.#wanted = size;
    return null;
  }

  #take({ isLast, op, payload }: Frame): void {
    if (op === OP.ping) return this.#state === "open" ? this.#write(OP.pong, payload) : undefined;
    if (op === OP.pong) return;
    if (op === OP.close) return this.#takeGoodbye(payload);
    if (op > OP.bytes) throw new Misfit(1002, `a frame of the unknown kind ${op}`);
    if ((op === OP.more) !== this.#parts.length > 0)
      throw new Misfit(1002, "parts of messages that do not fit together");
    if (this.#parts.length === 0) this.#partsOp = op;
    if (!isLast) {
      this.#parts.push(payload);
      this.#partsSize += payload.length;
      return;
    }
    const whole = this.#parts.length === 0 ? payload : Buffer.concat([...this.#parts, payload]);
    this.#parts = [];
    this.#partsSize = 0;
    if (this.#partsOp === OP.text && !isUtf8(whole)) throw new Misfit(1007, "a text that is not UTF-8");
    // Bytes are copied: the buffer they came in is a larger one.
    this.#options.onMessage(this.#partsOp === OP.text ? whole.toString("utf8") : Uint8Array.from(whole));
  }

  #takeGoodbye(payload: Buffer): void {
    const reason = payload.subarray(2);
    if (payload.length === 1 || !isUtf8(reason)) throw new Misfit(1002, "a goodbye that cannot be read");
    const code = payload.length === 0 ? NO_CODE : payload.readUInt16BE(0);
    if (this.#state === "open") this.#write(OP.close, code === NO_CODE ? Buffer.alloc(0) : closing(code, ""));
    this.#part(code, reason.toString("utf8"));
  }

  /** Everything is said; the server ends the connection, or we do when it takes too long. */
  #part(code: number, reason: string): void {
    this.#goodbye = { code, reason };
    this.#state = "closing";
    this.#arrived = [];
    this.#stream.end();
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.drop(), GOODBYE_MS);
    this.#timer.unref();
  }
}

function closing(code: number, reason: string): Buffer {
  const words = Buffer.from(reason).subarray(0, MOST_CONTROL - 2);
  const payload = Buffer.alloc(2 + words.length);
  payload.writeUInt16BE(code, 0);
  words.copy(payload, 2);
  return payload;
}
