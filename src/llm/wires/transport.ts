// The thin part that touches the network: one POST, its answer as JSON events or as one JSON value, every failure as a WireFailure.
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Clock } from "../../kit/clock.ts";
import { failureCode, failureWords } from "../../kit/http.ts";
import { asRecord, asText, isRecord, parseJson } from "../../kit/json.ts";
import { hostOf } from "../providers/hosts.ts";
import type { ModelError, RequestLimits } from "../wire.ts";

/** What a wire needs of `fetch`; the global one satisfies it, and so does anything that answers like it. */
export type FetchLike = (url: string, init: FetchInit) => Promise<ResponseLike>;

interface FetchInit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly redirect?: "manual";
}

export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Iterable<[string, string]>;
  readonly body: { getReader(): BodyReader } | null;
}

interface BodyReader {
  read(): Promise<{ done: false; value: Uint8Array } | { done: true; value?: undefined }>;
  cancel(): Promise<void>;
}

export interface WirePorts {
  readonly fetch: FetchLike;
  readonly clock: Clock;
}

interface Exchange {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  readonly ports: WirePorts;
  readonly limits: RequestLimits;
  readonly signal: AbortSignal;
  /** The request asked for a stream. */
  readonly stream: boolean;
  /** Masked wherever the server repeats it. */
  readonly secret: string;
}

export interface ServerEvent {
  readonly event?: string | undefined;
  readonly data: unknown;
}

interface Answer {
  readonly headers: Readonly<Record<string, string>>;
  /** True: read `events()`. False: the server sent one JSON value, read `whole()`. */
  readonly streamed: boolean;
  /** Ends at `[DONE]` or where the body ends. */
  events(): AsyncGenerator<ServerEvent>;
  whole(): Promise<unknown>;
  /** Must be called, whatever happened. Closes the socket unless the answer was read to its end. */
  close(options: { complete: boolean }): void;
}

const MAX_ERROR_BYTES = 64 * 1024;
const MAX_EVENT_CHARS = 32 * 1024 * 1024;
const LINGER_MS = 1000;

export async function post(exchange: Exchange): Promise<Answer> {
  const { url, ports, signal } = exchange;
  const watch = new Watch(signal, exchange.limits, ports.clock);
  try {
    const response = await watch.race(
      ports.fetch(url, {
        method: "POST",
        headers: { ...exchange.headers },
        body: exchange.body,
        signal: watch.signal,
        // Following a redirect would carry the key to another host.
        redirect: "manual",
      }),
    );
    watch.begin();
    const headers = headersOf(response);
    if (!response.ok) throw await refusal(response, headers, exchange, watch);
    return openAnswer(response, headers, exchange, watch);
  } catch (thrown) {
    watch.end({ closeSocket: true });
    throw failureFromThrown(thrown, hostOf(url) || url);
  }
}

function openAnswer(response: ResponseLike, headers: Record<string, string>, exchange: Exchange, watch: Watch): Answer {
  const type = headers["content-type"] ?? "";
  const reader = response.body?.getReader() ?? NO_BODY;
  const host = hostOf(exchange.url);
  if (type.includes("text/html")) {
    throw new WireFailure({
      message: `${host} answered with a web page instead of a model's answer; check the base URL ${exchange.url}`,
      code: "not_an_api",
      headers,
    });
  }
  const read = async () => {
    try {
      const chunk = await watch.race(reader.read());
      watch.touch();
      return chunk;
    } catch (thrown) {
      throw failureFromThrown(thrown, host);
    }
  };
  return {
    headers,
    streamed: type.includes("text/event-stream") || (exchange.stream && !type.includes("json")),
    events: () => readEvents(read),
    async whole() {
      const text = await readText(read, Infinity);
      const value = parseJson(text);
      if (value !== undefined) return value;
      throw new WireFailure({
        message: `${host} answered with something that is not JSON: ${text.slice(0, 200)}`,
        code: "bad_answer",
        headers,
      });
    },
    close({ complete }) {
      watch.end({ closeSocket: !complete });
      if (complete) void drain(reader);
    },
  };
}

type Read = BodyReader["read"];

const NO_BODY: BodyReader = { read: async () => ({ done: true }), cancel: async () => undefined };

async function* readEvents(read: Read): AsyncGenerator<ServerEvent> {
  const queue: EventSourceMessage[] = [];
  let tooLong = false;
  const parser = createParser({
    onEvent: (event) => queue.push(event),
    onError: ({ type }) => {
      tooLong ||= type === "max-buffer-size-exceeded";
    },
    maxBufferSize: MAX_EVENT_CHARS,
  });
  const decoder = new TextDecoder();
  let ended = false;
  while (!ended) {
    const chunk = await read();
    ended = chunk.done;
    // A last event without its blank line counts if it is whole, and not if it was cut off.
    parser.feed(chunk.done ? `${decoder.decode()}\n\n` : decoder.decode(chunk.value, { stream: true }));
    if (tooLong) {
      const most = `${MAX_EVENT_CHARS / (1024 * 1024)} MB`;
      throw new WireFailure({ message: `The server sent an event longer than ${most}.`, code: "ANSWER_TOO_LONG" });
    }
    for (const { event, data } of queue.splice(0)) {
      if (data.trim() === "[DONE]") return;
      if (data.trim() === "") continue;
      const value = parseJson(data);
      if (value !== undefined) yield { event, data: value };
      else if (!ended)
        throw new WireFailure({
          message: `The server sent an event that is not JSON: ${data.slice(0, 200)}`,
          code: "bad_stream",
        });
    }
  }
}

async function readText(read: Read, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  while (bytes < most) {
    const { done, value } = await read();
    if (done) break;
    bytes += value.byteLength;
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

async function refusal(
  response: ResponseLike,
  headers: Record<string, string>,
  exchange: Exchange,
  watch: Watch,
): Promise<WireFailure> {
  const { status } = response;
  const reader = response.body?.getReader() ?? NO_BODY;
  const read: Read = async () => {
    const chunk = await watch.race(reader.read());
    watch.touch();
    return chunk;
  };
  const raw = await readText(read, MAX_ERROR_BYTES);
  const text = exchange.secret.length >= 8 ? raw.replaceAll(exchange.secret, "***") : raw;
  const plain = `HTTP ${status}${response.statusText ? ` ${response.statusText}` : ""} from ${hostOf(exchange.url)}`;
  if (status >= 300 && status < 400) {
    const fallback = `${plain}: the server redirects to ${headers.location ?? "nowhere"}; set the base URL to where it should go`;
    return failureFrom(undefined, { status, headers, code: "redirected", fallback });
  }
  const isPage = /^\s*<(!doctype|html)/i.test(text);
  const fallback = text.trim() === "" || isPage ? plain : `${plain}: ${text.trim().slice(0, 500)}`;
  return failureFrom(parseJson(text) ?? text, { status, headers, fallback });
}

/** Reads on for a moment after the last event, so that the connection can be used again. */
async function drain(reader: BodyReader): Promise<void> {
  const late = AbortSignal.timeout(LINGER_MS);
  const stop = () => void reader.cancel().catch(() => undefined);
  late.addEventListener("abort", stop, { once: true });
  try {
    while (!(await reader.read()).done);
  } catch {
    // The answer is complete; how the connection ends no longer matters.
  } finally {
    late.removeEventListener("abort", stop);
  }
}

function headersOf(response: ResponseLike): Record<string, string> {
  return Object.fromEntries([...response.headers].filter(([name]) => name !== "set-cookie"));
}

// One call's life: ends at once when the caller aborts or a limit is passed, and takes the socket with it.

const LONGEST_TIMER = 2 ** 31 - 1;

class Watch {
  readonly #socket = new AbortController();
  readonly #over = new AbortController();
  readonly #caller: AbortSignal;
  readonly #clock: Clock;
  readonly #limits: RequestLimits;
  #failure: WireFailure | null = null;
  #reject: ((failure: WireFailure) => void) | null = null;
  #lastSign: number;
  #begun = false;

  constructor(caller: AbortSignal, limits: RequestLimits, clock: Clock) {
    this.#caller = caller;
    this.#clock = clock;
    this.#limits = limits;
    const start = clock.now();
    this.#lastSign = start;
    if (caller.aborted) this.#aborted();
    caller.addEventListener("abort", this.#aborted, { once: true });
    const { totalMs, staleMs, firstByteMs = staleMs } = limits;
    void this.#until(totalMs, () => start, "request_timeout", "The whole request timed out");
    void this.#until(
      firstByteMs,
      () => (this.#begun ? Infinity : start),
      "stale_stream",
      "The server did not answer: timed out",
    );
  }

  /** For `fetch`: aborts when this call is over in any way but a good end. */
  get signal(): AbortSignal {
    return this.#socket.signal;
  }

  /** The response has begun: from here on silence is measured between bytes. */
  begin(): void {
    this.#begun = true;
    this.touch();
    void this.#until(this.#limits.staleMs, () => this.#lastSign, "stale_stream", "The stream fell silent: timed out");
  }

  /** A byte came. */
  touch(): void {
    this.#lastSign = this.#clock.now();
  }

  /** The promise's result, unless the call ends first. One at a time. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      promise.then(resolve, reject);
      if (this.#failure) reject(this.#failure);
    });
  }

  /** The call ended; `closeSocket` unless the body was read to its end. */
  end(options: { closeSocket: boolean }): void {
    this.#caller.removeEventListener("abort", this.#aborted);
    this.#over.abort("over"); // without a reason it makes an exception with a stack
    if (options.closeSocket) this.#socket.abort();
  }

  readonly #aborted = () =>
    this.#fail(new WireFailure({ message: "The call was stopped.", code: "aborted", name: "AbortError" }));

  #fail(failure: WireFailure): void {
    this.#failure ??= failure;
    this.#reject?.(this.#failure);
    this.end({ closeSocket: true });
  }

  async #until(limit: number | undefined, since: () => number, code: string, what: string): Promise<void> {
    if (limit === undefined || limit <= 0 || limit > LONGEST_TIMER) return;
    while (!this.#over.signal.aborted) {
      const now = this.#clock.now();
      const left = since() + limit - now;
      if (left === Infinity) return;
      if (left <= 0) {
        this.#fail(new WireFailure({ message: `${what} after ${limit / 1000} s.`, code, name: "TimeoutError" }));
        return;
      }
      const rang = await this.#clock.sleep(left, this.#over.signal).then(
        () => true,
        () => false,
      );
      // A clock that stands still (tests) cannot measure; without this line it would spin here.
      if (!rang || this.#clock.now() === now) return;
    }
  }
}

// Failures inside a wire travel as exceptions; at its edge they become values of the stream.

export class WireFailure extends Error {
  override name = "WireFailure";
  readonly error: ModelError;

  constructor(error: ModelError) {
    super(error.message);
    this.error = error;
  }
}

/** The failure that an error object of a server describes, wherever it came (body of a 4xx, a chunk, an event). */
export function failureFrom(
  body: unknown,
  more: Omit<ModelError, "message" | "body"> & { fallback: string },
): WireFailure {
  const { fallback, ...rest } = more;
  const outer = asRecord(body);
  const inner = isRecord(outer.error) ? outer.error : outer;
  const message =
    asText(inner.message) || asText(outer.error) || asText(outer.message) || asText(outer.detail) || fallback;
  const status = rest.status ?? httpStatus(inner.code) ?? httpStatus(inner.status);
  const code = rest.code ?? word(inner.code) ?? word(inner.type);
  return new WireFailure({
    ...rest,
    message,
    status,
    code,
    body: body === "" ? undefined : body,
  });
}

/** An error of a socket, or of whatever answers in its place. */
function failureFromThrown(thrown: unknown, host: string): WireFailure {
  if (thrown instanceof WireFailure) return thrown;
  const name = asText(asRecord(thrown).name) || undefined;
  return new WireFailure({ message: `${host} ${failureWords(thrown)}`, code: failureCode(thrown), name });
}

function word(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function httpStatus(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 400 && value < 600 ? value : undefined;
}
