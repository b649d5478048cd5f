// A stream of events to one client, written straight to its connection: one that does not read slows its own stream down and nobody else's.
import type { ServerResponse } from "node:http";

/** A client that reads nothing for so long is gone. */
const STALLED_MS = 60_000;

export class EventStream {
  readonly #outgoing: ServerResponse;
  readonly #keepaliveMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isBegun = false;

  constructor(outgoing: ServerResponse, keepaliveSeconds: number) {
    this.#outgoing = outgoing;
    this.#keepaliveMs = keepaliveSeconds * 1000;
  }

  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** From here on the answer is a stream. */
  begin(headers: Readonly<Record<string, string>> = {}): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    this.#outgoing.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      ...headers,
    });
    this.#outgoing.flushHeaders();
    this.#outgoing.once("close", () => clearTimeout(this.#timer));
    this.#timer = setTimeout(() => this.#write(": keepalive\n\n"), this.#keepaliveMs);
  }

  /** Data without a name; resolves when the connection takes more. */
  data(data: object | "[DONE]"): Promise<void> {
    return this.#write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }

  named(event: string, data: object): Promise<void> {
    return this.#write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Data that a client can ask for again, from there on. */
  numbered(id: number, data: object): Promise<void> {
    return this.#write(`id: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  comment(text: string): Promise<void> {
    return this.#write(`: ${text}\n\n`);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outgoing.end();
  }

  async #write(text: string): Promise<void> {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed || outgoing.writableEnded) return;
    this.#timer?.refresh();
    if (outgoing.write(text)) return;
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => outgoing.destroy(), STALLED_MS);
      const done = () => {
        clearTimeout(late);
        outgoing.off("drain", done);
        outgoing.off("close", done);
        resolve();
      };
      outgoing.once("drain", done).once("close", done);
    });
  }
}
